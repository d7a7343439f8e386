"""Keys do not change by accident: those of a made-up catalog are recorded, with all that a stage tells and hands on.

A store holds weeks of training under its keys. A test that fails here says that every such store is lost: if that is
meant, ``PROTOCOL_VERSION`` is bumped and the record made anew (``print(found)``).
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest
from plan_kit import Facts, every_method, plan_of

from harness.plan.build import Plan
from harness.store import digest
from harness.suite.spec import ComponentSpec, DatasetSpec

RECORDED = json.loads(Path(__file__).with_name("recorded_keys.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def plan() -> Plan:
    datasets = (
        DatasetSpec("D", ComponentSpec("dataset", "data")),
        DatasetSpec("Ünlike (0.8)", ComponentSpec("dataset", "data", {"bias": 0.8, "seed": 0})),
    )
    return plan_of(datasets, [row for dataset in datasets for row in every_method(dataset.label)], (1, 2), Facts())


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
    told = [{name: asdict(stage)[name] for name in names} for stage in plan.stages.values()]
    assert digest(told) == RECORDED["told"]
    assert digest(plan.producers) == RECORDED["producers"]
