"""Panels of figures: a column or a page wide, every title and legend entry as it was written."""

import pytest

from harness.run.analyses import STYLE
from plugins.analyses._plots import (
    COLUMN,
    PAGE,
    at_least,
    legend_above,
    of_pairs,
    of_splits,
    panels,
    percent,
    split_name,
    styles,
)

mpl = pytest.importorskip("matplotlib")


@pytest.fixture(autouse=True)
def style():
    with mpl.rc_context(STYLE):
        yield


@pytest.mark.parametrize(
    ("count", "width", "rows"), [(1, COLUMN, [0]), (6, COLUMN, [0, 0, 1, 1, 2, 2]), (7, PAGE, [0] * 4 + [1] * 3)]
)
def test_panels_fill_a_column_and_more_than_three_rows_of_them_a_page(count, width, rows):
    figure, axes = panels({n: f"panel {n}" for n in range(count)})
    assert figure.get_figwidth() == pytest.approx(width)
    assert len(axes) == len(figure.axes) == count
    assert [axis.get_subplotspec().rowspan.start for axis in axes.values()] == rows


def test_titles_of_pairs_are_apart_and_no_wider_than_their_panel():
    pairs = [("SPMotif-0.60, large invariant", "EQuAD, reweighted ERM, gamma 0.5"), ("Set", "a $x_{$ b $")]
    figure, axes = panels(of_pairs(pairs))
    figure.draw_without_rendering()
    boxes = [axis.title.get_window_extent() for axis in axes.values()]
    assert boxes[0].x1 < boxes[1].x0
    assert boxes[0].x0 > 0


def test_titles_say_what_panels_differ_in():
    assert list(of_pairs([("A", "M"), ("A", "N")]).values()) == ["M", "N"]
    assert list(of_pairs([("A", "M"), ("B", "M")]).values()) == ["A", "B"]
    assert list(of_splits([("A", "test"), ("B", "id_test"), ("B", "ood_test")]).values()) == [
        "A",
        "B\nID test",
        "B\nOOD test",
    ]
    assert split_name("val") == "validation"


def test_the_legend_has_the_entries_of_all_panels_and_hides_no_axis_label():
    figure, axes = panels({0: "a", 1: "b"}, x="score", y="loss")
    axes[0].plot([0], [0], label="one $")
    axes[1].plot([0], [0], label="one $")
    axes[1].plot([0], [0], label="two")
    legend_above(figure)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [r"one \$", "two"]
    figure.draw_without_rendering()
    legend, *others = (
        artist.get_window_extent() for artist in (figure.legends[0], *figure.texts, *(a.title for a in axes.values()))
    )
    assert len(others) == 4
    assert not any(legend.overlaps(other) for other in others)


def test_differences_without_a_meaning_do_not_fill_an_axis_of_percents():
    assert at_least((39.9, 40.1), 10) == pytest.approx((35, 45))
    assert at_least((99.9, 100.0), 10) == pytest.approx((91, 101))
    assert at_least((20, 90), 10) == (20, 90)


def test_scores_are_in_percent_and_no_scores_give_no_number():
    assert percent([0.5, 0.7]) == (pytest.approx(60), pytest.approx(200**0.5))
    assert percent([0.5]) == (50, None)
    assert percent([]) == (None, None)


def test_more_methods_than_colours_are_told_apart_by_their_dash():
    found = styles(f"method {n}" for n in range(20))
    assert len({(style["color"], style["linestyle"]) for style in found.values()}) == 20
