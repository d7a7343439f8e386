"""Keys do not change by accident: those of a made-up catalog are recorded, with all that a stage tells and hands on.

A store holds weeks of training under its keys. A test that fails here says that every such store is lost: if that is
meant, ``PROTOCOL_VERSION`` is bumped and the record made anew (``print(found)``).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest

from harness import upstream
from harness.catalog import Catalog, Entry
from harness.data import Declaration, Features, Task
from harness.hparams import HParam
from harness.keys import digest
from harness.plan.build import Plan, build_plan
from harness.plan.datasets import DatasetFacts
from harness.spec import (
    ComponentSpec,
    Configuration,
    DatasetSpec,
    ModelSettings,
    Pipeline,
    Row,
    SelectSettings,
    Suite,
    TrainSettings,
)

RECORDED = json.loads(Path(__file__).with_name("recorded_keys.json").read_text(encoding="utf-8"))


def entry(kind: str, name: str, *hparams: HParam, **traits: object) -> Entry:
    declared = {item.name: item for item in hparams}
    file = f"/made/up/{name}.py"
    return Entry(kind, name, "made_up", name.title(), file, "built-in", digest(name), declared, "", traits)


CATALOG = Catalog(
    [
        entry("dataset", "data", HParam("bias", "float", 0.5), HParam("seed", "int", 0)),
        entry("backbone", "gin", HParam("layers", "int", 3), HParam("dropout", "float", 0.0)),
        entry("environment", "fixed", HParam("k", "int", 2)),
        entry("environment", "drawn", HParam("k", "int", 2), per_batch=True),
        entry(
            "environment",
            "inferred",
            oracle=["motif", "base"],
            trains_networks=True,
            upstream={"reference": upstream("baseline", "erm", train={"epochs": 7})},
        ),
        entry("encoder", "mvgrl", HParam("layers", "int", 2), HParam("snapshots", "list[int]", [20, 40])),
        entry("quantifier", "svm", HParam("c", "list[float]", [0.1, 1.0])),
        entry("decorrelator", "eqn7", HParam("gamma", "float", 0.5)),
        entry("baseline", "erm"),
        entry("baseline", "irm", HParam("penalty", "float", 1.0), needs=["environments"]),
        entry(
            "baseline",
            "student",
            HParam("rule", "str", "best-val"),
            upstream={"assistant": upstream("baseline", "erm", checkpoint="$rule")},
        ),
    ]
)


class Facts:
    def declare(self, spec: ComponentSpec) -> Declaration:
        roles: Any = {"train": "train", "iid_val": "val", "ood_val": "val", "ood_test": "test"}
        del spec
        return Declaration(Task("multiclass", 3), Features("numeric", (4,)), splits=roles, default_val="ood_val")

    def files(self, spec: ComponentSpec) -> list[dict[str, str]]:
        return [{"name": "a.csv", "sha256": digest(spec.params["bias"])}] if "bias" in spec.params else []


def baseline(name: str, environment: ComponentSpec | None = None, train: Any = None, **params: Any) -> Configuration:
    model = ModelSettings(ComponentSpec("backbone", "gin", {"dropout": 0.0, "layers": 4}), "mean", 1)
    settings = TrainSettings(**(train or {}))
    values = {f"baseline.{key}": value for key, value in params.items()}
    name_ = ", ".join(f"{key}={value}" for key, value in params.items()) or "-"
    return Configuration(name_, values, ComponentSpec("baseline", name, params), None, environment, model, settings)


def pipeline(gamma: float) -> Configuration:
    encoders = tuple(ComponentSpec("encoder", "mvgrl", {"layers": n, "snapshots": [20, 40, 60]}) for n in (2, 3))
    learner = ComponentSpec("decorrelator", "eqn7", {"gamma": gamma})
    steps = Pipeline(encoders, ComponentSpec("quantifier", "svm", {"c": [1.0, 2.5]}), learner)
    model = ModelSettings(ComponentSpec("backbone", "gin"))
    return Configuration(f"gamma={gamma}", {"decorrelator.gamma": gamma}, learner, steps, None, model, TrainSettings())


def rows(dataset: str) -> list[Row]:
    fixed, drawn = ComponentSpec("environment", "fixed", {"k": 3}), ComponentSpec("environment", "drawn")
    inferred = ComponentSpec("environment", "inferred")
    methods: dict[str, tuple[Configuration, ...]] = {
        "ERM": (baseline("erm"), baseline("erm", train={"lr": 1e-4, "lr_drop_epoch": 5, "drop_last": True})),
        "IRM": tuple(baseline("irm", fixed, {"groups_per_batch": 4}, penalty=p) for p in (1.0, 10, 0.1)),
        "IRM, drawn": (baseline("irm", drawn, {"groups_per_batch": 4}),),
        "IRM, inferred": (baseline("irm", inferred, {"optimizer": "adamw", "weight_decay": 1}),),
        "Student": (baseline("student"), baseline("student", rule="last")),
        "EQuAD": (pipeline(0.5), pipeline(0.1)),
    }
    select = {"Student": SelectSettings(split="iid_val")}
    return [Row(name, dataset, found, select.get(name, SelectSettings())) for name, found in methods.items()]


@pytest.fixture(scope="module")
def plan() -> Plan:
    datasets = (
        DatasetSpec("D", ComponentSpec("dataset", "data")),
        DatasetSpec("Ünlike (0.8)", ComponentSpec("dataset", "data", {"bias": 0.8, "seed": 0})),
    )
    suite = Suite(
        name="recorded",
        path=Path("recorded.yaml"),
        protocol="equad",
        seeds=(1, 2),
        datasets=datasets,
        methods=("ERM",),
        rows=tuple(row for dataset in datasets for row in rows(dataset.label)),
    )
    return build_plan(suite, CATALOG, cast("DatasetFacts", Facts()))


def test_cells_and_keys_are_those_recorded(plan: Plan) -> None:
    found = [
        [cell.id, cell.dataset, cell.method, cell.configuration.id, cell.seed, cell.train, cell.score]
        for cell in plan.cells
    ]
    assert found == RECORDED["cells"]
    assert [stage.key for stage in plan.stages.values()] == RECORDED["stages"]


def test_a_key_is_the_digest_of_the_preimage_that_is_stored(plan: Plan) -> None:
    assert all(digest(stage.preimage) == stage.key for stage in plan.stages.values())


def test_what_workers_are_handed_and_people_are_told_is_that_recorded(plan: Plan) -> None:
    names = ("kind", "place", "inputs", "payload", "title", "in_parent", "outputs")
    told = [{name: getattr(stage, name) for name in names} for stage in plan.stages.values()]
    assert digest(told) == RECORDED["told"]
    assert digest(plan.producers) == RECORDED["producers"]
