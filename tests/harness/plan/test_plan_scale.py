"""Plans of many cells: what is done grows with what differs, counted rather than timed."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from plan_kit import Facts, baseline, every_method, plan_of

from harness.plan import status
from harness.plan.components import Components
from harness.plan.status import needed, survey
from harness.store import Stage, Store
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

    count(os, "listdir")
    count(os.path, "lexists")
    count(os, "stat")
    count(Store, "meta")
    count(Store, "failure")
    return found


def test_a_dataset_is_asked_once() -> None:
    rows = [row for dataset in DATASETS for row in every_method(dataset.label)]
    for seeds in (3, 6):
        facts = Facts()
        plan_of(DATASETS, rows, tuple(range(seeds)), facts)
        assert max(Counter(facts.asked).values()) <= 2, "whatever the number of rows and seeds"


def test_what_a_configuration_fixes_is_worked_out_once_for_all_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    for name in ("identity", "reference", "networks"):
        real = getattr(Components, name)
        monkeypatch.setattr(Components, name, lambda *given, real=real, name=name: asked.append(name) or real(*given))
    counted = []
    for seeds in (1, 50):
        asked.clear()
        plan = plan_of(DATASETS[:1], every_method("D0"), tuple(range(seeds)), Facts())
        assert len(plan.cells) % seeds == 0
        counted.append(Counter(asked))
    assert counted[0] == counted[1]


def test_a_store_without_records_costs_no_digest_and_no_comparison(tmp_path: Path) -> None:
    plan = plan_of(DATASETS[:1], every_method("D0"), (1,), Facts())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stage, "work", property(lambda _: pytest.fail("nothing is recorded that could be looked up")))
        patch.setattr(status, "_stored", lambda _: pytest.fail("nothing is stored that could be compared"))
        assert survey(plan, Store(tmp_path), set())


def test_an_empty_store_is_not_asked_for_each_stage(tmp_path: Path, counts: Counter[str]) -> None:
    configurations = tuple(baseline("irm", penalty=float(n + 2)) for n in range(200))
    plan = plan_of(DATASETS[:1], [Row("IRM", "D0", configurations, SelectSettings())], (1, 2, 3), Facts())
    counts.clear()
    assert len(needed(plan, Store(tmp_path))) == len(plan.stages) == 1201
    looks = counts["listdir"] + counts["lexists"] + counts["stat"]
    assert looks <= 2 * 16 * 256, "a listing or at most fifteen looks in each of the subfolders"
    assert counts["meta"] == counts["failure"] == 0
    statuses = survey(plan, Store(tmp_path), set())
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
