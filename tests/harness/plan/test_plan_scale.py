"""Plans of many cells: what is done grows with what differs, counted rather than timed."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any, cast

import pytest
from plan_kit import Facts, baseline, every_method, pipeline, plan_of

from harness.plan.alike import Alike, Data
from harness.plan.datasets import DatasetFacts
from harness.plan.shared import Shared
from harness.plan.stage import Stage
from harness.plan.status import needed, survey
from harness.registry.index import load_catalog
from harness.store import keys
from harness.store.keys import Form, canonical, digest, file_digest
from harness.store.store import Store
from harness.suite import load_suite
from harness.suite.spec import ComponentSpec, DatasetSpec, Row, SelectSettings

DATASETS = tuple(DatasetSpec(f"D{n}", ComponentSpec("dataset", "data", {"bias": 0.1, "seed": n})) for n in range(3))


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often the named functions are called."""
    found: Counter[str] = Counter()

    def count(owner: Any, name: str) -> None:
        real = getattr(owner, name)

        def counted(*args: Any, **named: Any) -> Any:
            found[name] += 1
            return real(*args, **named)

        monkeypatch.setattr(owner, name, counted)

    count(keys, "_sha256")
    count(os, "listdir")
    count(os.path, "lexists")
    count(os, "stat")
    count(Store, "meta")
    count(Store, "failure")
    return found


def test_each_seed_costs_the_same_and_a_dataset_is_asked_once(counts: Counter[str]) -> None:
    rows = [row for dataset in DATASETS for row in every_method(dataset.label)]
    digested = []
    for seeds in (3, 6, 9):
        counts.clear()
        facts = Facts()
        plan = plan_of(DATASETS, rows, tuple(range(seeds)), facts)
        digested.append(counts["_sha256"])
        asked = {f"{what} {d.component.params}": 1 for d in DATASETS for what in ("declare", "files")}
        assert Counter(facts.asked) == Counter(asked)
    assert digested[2] - digested[1] == digested[1] - digested[0] < 5 * len(plan.cells) / 3


@pytest.mark.parametrize("count", [5, 50])
def test_configurations_share_what_their_pipelines_build_on(count: int, counts: Counter[str]) -> None:
    first = pipeline(0.5)
    assert first.pipeline is not None
    tuned = [first]
    for number in range(1, count):
        other = pipeline(number / 100)
        assert other.pipeline is not None
        steps = type(other.pipeline)(first.pipeline.encoders, first.pipeline.quantifier, other.learner)
        tuned.append(type(other)(other.id, other.values, other.learner, steps, None, first.model, first.train))
    plan = plan_of(DATASETS[:1], [Row("EQuAD", "D0", tuple(tuned), SelectSettings())], (1, 2), Facts())
    encoders = len(first.pipeline.encoders)
    prepared_and_its_file, ids, stages = 4, 2 * count, 2 * (2 * encoders + 2 * count)
    assert counts["_sha256"] == prepared_and_its_file + ids + stages, "encoders and quantifiers once for each seed"
    payloads = [plan.stages[cell.train].payload for cell in plan.cells]
    assert len({id(payload["backbone"]) for payload in payloads}) == 1
    assert len({id(payload["task"]) for payload in payloads}) == 1


def test_an_empty_store_is_not_asked_for_each_stage(tmp_path: Path, counts: Counter[str]) -> None:
    configurations = tuple(baseline("irm", penalty=float(n + 2)) for n in range(200))
    plan = plan_of(DATASETS[:1], [Row("IRM", "D0", configurations, SelectSettings())], (1, 2, 3), Facts())
    counts.clear()
    assert len(needed(plan, Store(tmp_path))) == len(plan.stages) == 1201
    looks = counts["listdir"] + counts["lexists"] + counts["stat"]
    assert looks <= 2 * 16 * 256, "a listing or at most fifteen looks in each of the subfolders"
    assert counts["meta"] == counts["failure"] == 0
    statuses = survey(plan, Store(tmp_path))
    assert {status.state for status in statuses} == {"new"}
    assert counts["meta"] == 0


def test_only_what_is_there_is_read(tmp_path: Path, counts: Counter[str]) -> None:
    store = Store(tmp_path)
    plan = plan_of(DATASETS[:1], [Row("ERM", "D0", (baseline("erm"),), SelectSettings())], tuple(range(1, 41)), Facts())
    stored = [plan.stages[cell.score] for cell in plan.cells[:10]]
    for stage in stored:
        with store.create(stage) as draft:
            draft.write_json("scores", [])
    counts.clear()
    missing = needed(plan, Store(tmp_path))
    assert len(missing) == len(plan.stages) - 20, "ten scores, and the trainings that nothing else needs"
    assert counts["meta"] == 10


def test_a_form_gives_the_digest_of_the_whole() -> None:
    common = {"z": {"b": [1, 2.0, None], "ü": {"x": True}}, "a": "50%s of %(a)s", "m%": None}
    form = Form({name: canonical(value) for name, value in common.items()}, "k", "%s")
    for own in ({"k": 3, "%s": []}, {"%s": {"of": "%d"}, "k": "ü%"}):
        assert form.digest(own) == digest({**common, **own})
    assert Form({}).digest({}) == digest({})


def test_a_shared_part_is_written_once(monkeypatch: pytest.MonkeyPatch) -> None:
    part, whole = {"b": 1}, {"text": "a"}
    common = Shared()
    made = common.of(lambda: part, "part", whole)
    assert common.of(dict, "part", whole) is made
    written: list[Any] = []
    monkeypatch.setattr("harness.plan.shared.canonical", lambda value: written.append(value) or canonical(value))
    for _ in range(2):
        assert common.form({"part": part, "other": 2}).digest({}) == digest({"part": part, "other": 2})
    assert written == [part, 2, 2]


def test_stages_with_other_values_of_their_own_have_other_keys() -> None:
    dataset = DATASETS[0]
    prepared = Stage("prepare", "0" * 64, "prepare/data", {})
    declared = cast("Any", None)
    alike = Alike(Shared(), Data(dataset, declared, prepared, {}, {}), "train", "erm", {"a": None, "b": 1}, {"c": 2})
    for own in ({"seed": 1}, {"seed": 1, "a": "given"}, {"seed": 2, "a": "given"}, {"a": "given"}):
        stage = alike.stage(own, {"c": 3}, ("in",), "title")
        assert stage.preimage == {"stage": "train", "protocol": 1, "a": None, "b": 1, **own}
        assert stage.key == digest(stage.preimage)
        assert (stage.place, stage.inputs, stage.payload) == ("train/data/erm", (prepared.key, "in"), {"c": 3})


def test_datasets_with_equal_settings_share_what_rows_are_made_of(tmp_path: Path) -> None:
    path = tmp_path / "suite.yaml"
    path.write_text(
        """
        bench: 1
        name: shared
        seeds: [1]
        datasets:
          A: {use: two-piece, seed: 1}
          B: {use: two-piece, seed: 2}
          C: {use: two-piece, seed: 3, train: {epochs: 3}}
        methods:
          IRM: {baseline: irm, envs: random(2), matrix: {baseline.penalty: [1, 2]}, tune: {train.lr: [0.1, 0.2]}}
        """,
        encoding="utf-8",
    )
    catalog = load_catalog()
    suite = load_suite(path, catalog, DatasetFacts(catalog, None, file_digest).declare)
    rows = {(row.dataset, row.method.rpartition("=")[2]): row.configurations for row in suite.rows}
    assert rows["A", "1"] is rows["B", "1"]
    assert rows["A", "1"] != rows["C", "1"]
    assert rows["A", "1"][0].environment is rows["C", "2"][0].environment
