"""One identity of a cell, from the plan to the trackers."""

from __future__ import annotations

from dataclasses import fields

import pytest

from harness.analysis import MeasuredCell
from harness.plan.build import Cell
from harness.results.rows import CellId, ResultRow
from harness.results.run_record import CellRecord
from harness.tracker import TrackedCell


@pytest.mark.parametrize("form", [Cell, CellRecord, ResultRow, MeasuredCell, TrackedCell])
def test_whatever_holds_a_cell_begins_with_its_identity(form: type[CellId]) -> None:
    assert issubclass(form, CellId)
    assert [item.name for item in fields(form)][:4] == [item.name for item in fields(CellId)]


def test_a_cell_is_named_with_its_configuration_where_there_are_several() -> None:
    assert CellId("Toy", "ERM", "-", 1).name == "ERM on Toy, seed 1"
    assert CellId("Toy", "IRM", "penalty=1", 2).name == "IRM (penalty=1) on Toy, seed 2"
    assert CellId("Toy", "IRM", "penalty=1", 2).coordinates == ("Toy", "IRM", "penalty=1", 2)


def test_the_table_begins_with_the_cell() -> None:
    row = ResultRow("Toy", "ERM", "-", 1, "test", "accuracy", "last", 0.5)
    assert list(vars(row))[:6] == ["dataset", "method", "config_id", "seed", "split", "metric"]
