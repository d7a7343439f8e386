"""Best and second: ties as printed, and values that are not there."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.results.aggregate import rank


@pytest.mark.parametrize(
    ("means", "marks"),
    [
        ([0.5, 0.7, 0.6], ["", "best", "second"]),
        ([0.7, 0.7, 0.6, 0.6, 0.5], ["best", "best", "", "", ""]),
        ([0.7, 0.6, 0.6, 0.5], ["best", "second", "second", ""]),
        ([0.71950001, 0.71949999, None], ["best", "best", ""]),
        ([math.nan, 0.1, None], ["", "best", ""]),
        ([math.nan, math.inf, None], ["", "", ""]),
        ([], []),
    ],
)
def test_marks(means, marks):
    assert rank(means) == marks


@given(st.lists(st.one_of(st.none(), st.just(math.nan), st.integers(0, 20).map(lambda i: i / 20)), max_size=12))
def test_what_looks_equal_is_marked_equal_and_nothing_beats_the_best(means):
    marks = rank(means)
    real = [m for m in means if m is not None and not math.isnan(m)]
    for mean, mark in zip(means, marks, strict=True):
        if mean is None or math.isnan(mean):
            assert mark == ""
        else:
            above = sum(other > mean for other in real)
            assert mark == {0: "best", 1: "second"}.get(above, "")
