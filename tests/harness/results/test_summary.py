"""Means of scores: equal ones are equal to the bit, in whatever order and from whatever values they come."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from harness.results.summary import mean, settled

COUNTS = st.integers(1, 20_000).flatmap(
    lambda graphs: st.tuples(st.just(graphs), st.lists(st.integers(0, graphs), min_size=1, max_size=10))
)


@given(COUNTS, st.randoms(use_true_random=False))
def test_the_mean_of_accuracies_is_the_true_one_rounded_once_in_any_order(case, random):
    graphs, right = case
    values = [count / graphs for count in right]
    shuffled = random.sample(values, len(values))
    assert mean(values) == mean(shuffled) == float(Fraction(sum(right), graphs * len(right)))


@given(st.integers(1, 100_000).flatmap(lambda n: st.tuples(st.integers(-n, n), st.just(n))))
def test_a_ratio_stays_what_it_is(ratio):
    assert settled(ratio[0] / ratio[1]) == ratio[0] / ratio[1]


@given(st.floats(-100, 100))
def test_no_number_moves_by_more_than_rounding(value):
    assert abs(settled(value) - value) < 1e-13


def test_other_sums_and_differences_settle_on_the_same_number():
    assert mean([0.3, 0.2, 0.1]) == mean([0.2, 0.2, 0.2]) == 0.2
    assert settled(0.3 - 0.2) == settled(0.2 - 0.1) == 0.1
    assert settled(0.1 + 0.2 - 0.3) == 0.0
