"""Panels of figures: a page wide at most, every title and legend entry as it was written."""

import pytest

from plugins.analyses._plots import PAGE, at_least, label_outer, legend_below, of_pairs, panels

pytest.importorskip("matplotlib")


def test_many_panels_are_wrapped_to_the_width_of_a_page():
    figure, axes = panels({n: f"panel {n}" for n in range(7)}, across=3)
    assert figure.get_figwidth() == pytest.approx(PAGE)
    assert len(axes) == len(figure.axes) == 7
    assert [axis.get_subplotspec().rowspan.start for axis in axes.values()] == [0, 0, 0, 1, 1, 1, 2]


def test_titles_of_pairs_are_apart_and_no_wider_than_their_panel():
    pairs = [("SPMotif-0.60, large invariant", "EQuAD, reweighted ERM, gamma 0.5"), ("Set", "a $x_{$ b $")]
    figure, axes = panels(of_pairs(pairs), across=2)
    figure.draw_without_rendering()
    boxes = [axis.title.get_window_extent() for axis in axes.values()]
    assert boxes[0].x1 < boxes[1].x0
    assert boxes[0].x0 > 0


def test_axes_are_labelled_once_for_a_row_and_at_the_lowest_panel_of_a_column():
    _, axes = panels({n: str(n) for n in range(3)})
    label_outer(axes.values(), x="class", y="score")
    assert [(axis.get_xlabel(), axis.get_ylabel()) for axis in axes.values()] == [
        ("", "score"),
        ("class", ""),
        ("class", "score"),
    ]


def test_the_legend_has_the_entries_of_all_panels():
    figure, axes = panels({0: "a", 1: "b"})
    axes[0].plot([0], [0], label="one $")
    axes[1].plot([0], [0], label="one $")
    axes[1].plot([0], [0], label="two")
    legend_below(figure)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [r"one \$", "two"]


def test_differences_without_a_meaning_do_not_fill_an_axis():
    assert at_least((0.999, 1.0), 0.1) == pytest.approx((0.9495, 1.0495))
    assert at_least((0.2, 0.9), 0.1) == (0.2, 0.9)
