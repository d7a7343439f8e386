"""Learning curves on histories made by hand: means and ranges over seeds that stop at different epochs."""

from functools import partial

import numpy as np
import pytest

from harness.analysis import MeasuredCell, Study
from harness.data import Task
from harness.results.rows import DatasetFacts, RunResults
from plugins.analyses.curves import Curves

ROLES = {"train": "train", "val": "val", "test": "test"}
HISTORIES = {
    ("ERM", 1): {"loss": [4.0, 2.0, 1.0], "score/val": [0.2, 0.8, 0.4]},
    ("ERM", 2): {"loss": [2.0, 1.0], "score/val": [0.4, 0.6]},
    ("Other", 1): {"score/val": [np.nan, 0.5]},
}


def read_series(arrays, name, series):
    return arrays.get(series) if name == "history" else None


@pytest.fixture
def study():
    cells = []
    for (method, seed), history in HISTORIES.items():
        arrays = {name: np.array(values) for name, values in history.items()}
        read = partial(read_series, arrays)
        cells.append(MeasuredCell("Set", method, "c", seed, Task("binary", 2), ROLES, "val", read=read))
    dataset = DatasetFacts("Set", splits=ROLES, default_val="val")
    results = RunResults("s", "r", "p", (1, 2), (dataset,), ("ERM", "Other"), ())
    return Study("Curves", results, tuple(cells))


def test_the_table_has_the_best_and_the_last_validation_score(study):
    assert Curves().present(study).rows == (
        ("Set", "ERM", "val", 2, pytest.approx(70), pytest.approx(2), pytest.approx(50)),
        ("Set", "Other", "val", 1, pytest.approx(50), pytest.approx(2), pytest.approx(50)),
    )


def test_curves_of_all_methods_are_over_one_another(study):
    pytest.importorskip("matplotlib")
    loss, score = Curves().figure(study).axes
    assert {line.get_label(): line.get_ydata().tolist() for line in loss.lines} == {"ERM": [3.0, 1.5, 1.0]}
    drawn = {line.get_label(): line for line in score.lines}
    assert drawn["ERM"].get_ydata().tolist() == pytest.approx([30, 70, 40])
    assert drawn["ERM"].get_xdata().tolist() == [1, 2, 3]
    loss.locator_params(axis="x", nbins=3)
    ticks = loss.xaxis.get_major_locator().tick_values(0.65, 8.35)
    assert all(float(tick).is_integer() for tick in ticks), "epochs are whole"
    assert drawn["Other"].get_ydata().tolist() == [None, 50]
    assert drawn["ERM"].get_color() != drawn["Other"].get_color()
    (band,) = score.collections
    assert band.get_datalim(score.transData).intervaly.tolist() == pytest.approx([20, 80])
