"""The forest plot draws the means and intervals of the report's statistics."""

import pytest

from harness.analysis import MeasuredCell, Study
from harness.data import Task
from harness.report.statistics import statistics
from harness.results.aggregate import build_table
from harness.results.rows import DatasetFacts, MethodFacts, ResultRow, RunResults
from plugins.analyses.forest import Forest

ROLES = {"train": "train", "val": "val", "test": "test"}
SCORES = {"ERM": (0.4, 0.5, 0.6), "Same": (0.7, 0.7, 0.7), "EQuAD": (0.6, None, 0.8)}


@pytest.fixture
def study():
    rows, cells = [], []
    for label in ("A", "B"):
        for method, values in SCORES.items():
            for seed, value in enumerate(values, 1):
                status = "failed" if value is None else "ok"
                for split in ("val", "test"):
                    facts = (label, method, "c", seed, split, "accuracy", "best@val", value, status)
                    rows.append(ResultRow(*facts, selected=True))
                if value is not None:
                    cells.append(MeasuredCell(label, method, "c", seed, Task("binary", 2), ROLES, "val"))
    datasets = tuple(DatasetFacts(label, splits=ROLES, default_val="val") for label in ("A", "B"))
    entries = tuple(MethodFacts(label, method, {"c": {}}) for label in ("A", "B") for method in SCORES)
    results = RunResults("s", "r", "p", (1, 2, 3), datasets, tuple(SCORES), entries, rows=tuple(rows), reference="ERM")
    return Study("Forest", results, tuple(cells))


def test_the_numbers_are_those_of_the_statistics(study):
    wanted = {(row.dataset, row.method): row.mean for row in statistics(build_table(study.results)).rows}
    found = {(row[0], row[2]): row[3:] for row in Forest().present(study).rows}
    assert found == {place: (one.estimate, one.low, one.high, one.n) for place, one in wanted.items()}
    assert found["A", "ERM"][:3] == pytest.approx((50, 50 - 24.8414, 50 + 24.8414), abs=1e-3)
    assert found["A", "EQuAD"][3] == 2
    assert found["A", "Same"] == (pytest.approx(70), None, None, 3)


def test_each_dataset_has_a_panel_with_a_dot_and_an_interval_for_each_method(study):
    pytest.importorskip("matplotlib")
    figure = Forest().figure(study)
    assert [axes.get_title() for axes in figure.axes] == ["A", "B"]
    assert "test accuracy, %" in [text.get_text() for text in figure.texts]
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == list(SCORES)
    wanted = {row[2]: row[3:6] for row in Forest().present(study).rows if row[0] == "A"}
    lines = [(list(line.get_xdata()), list(line.get_ydata())) for line in figure.axes[0].lines]
    for place, (mean, low, high) in enumerate(wanted.values()):
        assert ([mean], [place]) in lines
        assert (([low, high], [place, place]) in lines) == (low is not None)
    assert ([50, 50], [0, 1]) in lines  # the reference, from the bottom to the top


def test_methods_that_the_analysis_does_not_name_are_left_out(study):
    chosen = tuple(cell for cell in study.cells if cell.method == "ERM")
    assert {row[2] for row in Forest().present(Study("Forest", study.results, chosen)).rows} == {"ERM"}
