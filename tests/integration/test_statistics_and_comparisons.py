"""``bench report --statistics``, ``--published`` and ``bench compare`` on real runs."""

from __future__ import annotations

import json

import pytest
from integration_kit import TOY, Workshop

from harness.results import record
from harness.results.record import Recorded

SUITE = TOY.partition("  IRM:")[0] + "report: {reference: ERM, statistics: true}\n"


def test_runs_that_differ_are_refused_and_compared_by_force(workshop: Workshop, bench) -> None:
    suite = workshop.write(SUITE)
    first, second, third = (
        workshop.run(suite, **overrides).record.id for overrides in ({}, {"epochs": 1}, {"sets": ("train.epochs=2",)})
    )
    _check_report(bench, first)
    refused = bench("compare", first, second, code=2)
    assert "train.epochs: 2 / 1" in refused
    assert "--force" in refused
    assert "NOT COMPARABLE" in bench("compare", first, second, "--force")
    same = json.loads(bench("compare", first, third, "--json"))
    assert same["identical"]
    assert same["forced"] == []
    assert "overrides: nothing / --set train.epochs=2" in same["notes"]
    assert "both are run" in bench("compare", third, third, code=2)
    assert "did you mean 'latex'" in bench("compare", first, third, "-f", "latx", code=2)
    assert bench("compare", first, third, "-f", "markdown", "-o", "pairs.md") == "pairs.md\n"
    assert "| Toy | ERM |" in (workshop.folder / "pairs.md").read_text(encoding="utf-8")
    assert "fits no row" in bench("compare", first, third, "--methods", "IRM", code=2)


def test_a_run_stands_beside_recorded_rows(workshop: Workshop, bench, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = workshop.run(workshop.write(SUITE))
    recorded = Recorded.of_run(outcome.record, outcome.results)
    monkeypatch.setattr(record, "load_record", lambda: (recorded,))
    run = outcome.record.id
    told = bench("compare-to-record", run, "--reference", "ERM", "--checkpoint", "best-val")
    assert "ERM, recorded" in told
    assert "were not trained here" in told
    rows = {row["method"]: row for row in json.loads(bench("compare-to-record", run, "--json"))["rows"]}
    assert rows["ERM, recorded"]["values"] == rows["ERM"]["values"]
    assert bench("compare-to-record", run, "-f", "latex", "-o", "table.tex") == "table.tex\n"
    assert "is no row of run" in bench("compare-to-record", run, "--reference", "IRM", code=2)
    monkeypatch.setattr(record, "load_record", lambda: ())
    assert "no recorded row is comparable" in bench("compare-to-record", run, code=2)


def _check_report(bench, run: str) -> None:
    """The suite asks for statistics; the training's settings are known from the store."""
    told = json.loads(bench("report", run, "--json"))
    assert told["statistics"][0]["rows"][0]["mean"]["n"] == 2
    assert json.loads(bench("report", run, "--json", "--no-statistics"))["statistics"] == [None]
    assert "Confidence intervals" in bench("report", run)
    published = bench("report", run, "--published", "equad-icml24")
    assert "Columns that are not in the paper: Toy." in published
    assert "did you mean 'equad-icml24'" in bench("report", run, "--published", "equad-icml42", code=2)
