"""Maps on embeddings made by hand: what the colours tell, and which panels there are."""

import numpy as np
import pytest

from harness.analysis import MeasuredCell, Study
from harness.data import Task
from harness.errors import UserError
from harness.results.rows import RunResults
from plugins.analyses.tsne import TSNE

ROLES = {"train": "train", "val": "val", "test": "test"}
LABELS, BASE = np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1])
MAP = np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0], [6.0, 7.0]])


def study(*methods, base=BASE):
    arrays = {"map": MAP, "labels": LABELS} | ({} if base is None else {"base": base})
    values = {"split": "val", "same_label": 0.25} | ({} if base is None else {"same_base": 0.5})
    cells = [
        MeasuredCell("Set", method, "c", 1, Task("binary", 2), ROLES, "val", values=values, arrays=arrays)
        for method in methods
    ]
    return Study("Map", RunResults("s", "r", "p", (1,), (), methods, ()), tuple(cells))


def drawn(axes):
    return {group.get_label(): group.get_offsets().tolist() for group in axes.collections}


def test_one_map_by_class_by_base_and_by_agreement():
    pytest.importorskip("matplotlib")
    figure = TSNE().figure(study("ERM", "EQuAD"))
    assert [axes.get_title() for axes in figure.axes] == ["by class", "by base", "by agreement", "", "", ""]
    assert [axes.get_ylabel() for axes in figure.axes] == ["ERM", "", "", "EQuAD", "", ""]
    by_class, by_base, by_agreement = map(drawn, figure.axes[:3])
    points = MAP.tolist()
    assert by_class == {"class 0": points[:2], "class 1": points[2:]}
    assert by_base == {"base 0": points[:1], "base 1": points[1:]}
    assert by_agreement == {"base agrees": [points[0], *points[2:]], "base differs": [points[1]]}


def test_each_column_of_a_wide_figure_has_a_heading():
    pytest.importorskip("matplotlib")
    figure = TSNE().figure(study("A", "B", "C", "D"))
    assert [axes.get_title() for axes in figure.axes] == 2 * ["by class", "by base", "by agreement"] + 6 * [""]


def test_one_colouring_has_a_panel_for_each_method():
    pytest.importorskip("matplotlib")
    figure = TSNE(by="base").figure(study("ERM", "EQuAD"))
    assert [axes.get_title() for axes in figure.axes] == ["ERM", "EQuAD"]
    assert set(drawn(figure.axes[0])) == {"base 0", "base 1"}


def test_sets_without_a_base_are_coloured_by_class():
    pytest.importorskip("matplotlib")
    figure = TSNE().figure(study("ERM", base=None))
    assert [set(drawn(axes)) for axes in figure.axes] == [{"class 0", "class 1"}]
    with pytest.raises(UserError, match="no chosen dataset has a base"):
        TSNE(by="base").figure(study("ERM", base=None))


def test_shares_of_neighbours_are_percents():
    found = TSNE().present(study("ERM"))
    assert found.rows == (("Set", "ERM", 1, "val", 4, 25.0, 50.0),)
