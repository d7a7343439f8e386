"""Recorded rows that tuned depth stand beside a run of one depth by their configurations of that depth."""

from __future__ import annotations

import pytest

from harness.errors import UserError
from harness.report.published import compare_published
from harness.results import record
from harness.results.aggregate import build_table
from harness.results.record import Recorded, beside_record

SUITE = """\
bench: 1
name: {name}
plugins: [toy_plugin.py]
seeds: [1, 2]
model: {{hidden: 8{layers}}}
train: {{epochs: 1, batch_size: 8}}
datasets:
  Toy: {{use: toy}}
methods:
  {method}
"""
TUNED = "IRM: {baseline: {use: irm, tune: {penalty: [1, 100]}}, envs: random(2), tune: {model.layers: [2, 3]}}"


@pytest.fixture
def shipped(workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a tuned run the whole record: two penalties at two depths, of which 3 is the backbone's default."""
    outcome = workshop.run(workshop.write(SUITE.format(name="theirs", layers="", method=TUNED)))
    monkeypatch.setattr(record, "load_record", lambda: (Recorded.of_run(outcome.record, outcome.results),))


@pytest.mark.usefixtures("shipped")
@pytest.mark.parametrize("layers", ["", ", layers: 2"])
def test_the_configurations_of_the_same_depth_count(workshop, layers: str) -> None:
    mine = "IRM: {baseline: {use: irm, tune: {penalty: [1, 100]}}, envs: random(2)}"
    run = workshop.run(workshop.write(SUITE.format(name="mine", layers=layers, method=mine))).results
    joined, remarks = beside_record(run)
    ours, theirs = build_table(joined).rows
    assert (ours.method, theirs.method, theirs.configurations) == ("IRM", "IRM, recorded", 2)
    assert theirs.test.values == ours.test.values
    assert "IRM on Toy (2 of 4)" in remarks[1]
    (cell,) = compare_published(build_table(run), "record").rows
    assert (cell.differs, cell.difference.estimate) == ((), 0.0)


@pytest.mark.usefixtures("shipped")
def test_without_a_configuration_of_the_depth_the_row_is_not_comparable(workshop) -> None:
    run = workshop.run(workshop.write(SUITE.format(name="mine", layers=", layers: 4", method="New: {baseline: erm}")))
    with pytest.raises(UserError, match=r"model\.layers: tuned on one side alone"):
        beside_record(run.results)
