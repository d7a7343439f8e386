"""A made-up catalog with every kind of stage, and plans of it without files, data or torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from plugin_kit import entry

from harness import upstream
from harness.data import Declaration, Features, Task
from harness.hparams import HParam
from harness.plan.build import Plan, build_plan
from harness.plan.datasets import Declarations
from harness.registry.catalog import Catalog
from harness.store import digest
from harness.suite.spec import (
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
    """Datasets with two validation splits; counts what it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def declare(self, spec: ComponentSpec) -> Declaration:
        roles: Any = {"train": "train", "iid_val": "val", "ood_val": "val", "ood_test": "test"}
        self.asked.append(f"declare {spec.params}")
        return Declaration(Task("multiclass", 3), Features("numeric", (4,)), splits=roles, default_val="ood_val")

    def files(self, spec: ComponentSpec) -> list[dict[str, str]]:
        self.asked.append(f"files {spec.params}")
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


def every_method(dataset: str) -> list[Row]:
    """A row for each kind of stage and of key."""
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


def plan_of(
    datasets: tuple[DatasetSpec, ...], rows: list[Row], seeds: tuple[int, ...], facts: Facts, catalog: Catalog = CATALOG
) -> Plan:
    suite = Suite(
        name="recorded",
        path=Path("recorded.yaml"),
        protocol="equad",
        seeds=seeds,
        datasets=datasets,
        methods=tuple(dict.fromkeys(row.method for row in rows)),
        rows=tuple(rows),
    )
    return build_plan(suite, catalog, cast("Declarations", facts))
