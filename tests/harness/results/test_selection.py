"""Selection: eligibility, ties, provisional grids, the oracle, and blindness to the test split."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.results.rows import DatasetFacts, MethodFacts, ResultRow, RunResults
from harness.results.selection import Candidate, ScoreTable, best_mean, choose, mark_selected
from harness.suite.spec import SelectSettings


def candidate(name, *values):
    statuses = tuple(v if isinstance(v, str) else "ok" for v in values)
    return Candidate(name, tuple(None if isinstance(v, str) else v for v in values), statuses)


def test_the_best_mean_over_seeds_wins():
    assert best_mean([candidate("a", 0.9, 0.1), candidate("b", 0.6, 0.6)]).config_id == "b"


def test_ties_take_the_first_declared():
    assert best_mean([candidate("a", 0.5, 0.7), candidate("b", 0.7, 0.5)]).config_id == "a"
    assert best_mean([candidate("a", 0.3, 0.2, 0.1), candidate("b", 0.1, 0.2, 0.3)]).config_id == "a"
    assert best_mean([candidate("a", 0.1, 0.1, 0.4), candidate("b", 0.1, 0.2, 0.3)]).config_id == "a"


@given(
    st.integers(1, 500).flatmap(lambda n: st.tuples(st.just(n), st.lists(st.integers(0, n), min_size=3, max_size=3))),
    st.permutations(range(3)),
)
def test_which_seed_had_which_score_decides_no_tie(case, order):
    graphs, right = case
    scores = [count / graphs for count in right]
    grid = [candidate("a", *scores), candidate("b", *(scores[place] for place in order))]
    assert best_mean(grid).config_id == "a"


@pytest.mark.parametrize("status", ["failed", "diverged", "undefined", "timeout", "memory", "skipped"])
def test_a_configuration_with_a_lost_seed_is_not_eligible(status):
    choice = best_mean([candidate("a", 0.9, status), candidate("b", 0.1, 0.1)])
    assert (choice.config_id, choice.provisional) == ("b", False)


def test_an_unfinished_grid_is_provisional():
    choice = best_mean([candidate("a", 0.9, "missing"), candidate("b", 0.1, 0.1)])
    assert (choice.config_id, choice.provisional) == ("b", True)


def test_before_any_configuration_is_complete_the_most_seeds_decide_first():
    grid = [
        candidate("a", 0.9, "missing", "missing"),
        candidate("b", 0.2, 0.2, "missing"),
        candidate("c", 0.3, 0.3, "missing"),
        candidate("d", 0.8, "failed", "missing"),
        candidate("e", "missing", "missing", "missing"),
    ]
    choice = best_mean(grid)
    assert (choice.config_id, choice.provisional) == ("c", True)


def test_a_finished_grid_of_failures_has_no_choice_and_says_why():
    choice = best_mean([candidate("a", 0.9, "failed"), candidate("b", "diverged", 0.5)])
    assert choice.config_id is None
    assert choice.reason == (
        "no configuration has a score for every seed (a: 1 of 2 seeds failed; b: 1 of 2 seeds diverged)"
    )


def test_an_untouched_grid_has_no_choice():
    choice = best_mean([candidate("a", "missing"), candidate("b", "missing")])
    assert (choice.config_id, choice.provisional) == (None, True)


def test_a_single_configuration_needs_no_scores():
    for values in (("failed", 0.4), ("missing", 0.4), ("undefined", "undefined")):
        choice = best_mean([candidate("-", *values)])
        assert (choice.config_id, choice.provisional) == ("-", False)


def run(select=None, **values):
    """A run whose keywords are ``config_split`` -> scores of two seeds (None for undefined)."""
    facts = DatasetFacts("D", splits={"train": "train", "val": "val", "iid_val": "val", "test": "test"})
    configs = {name.split("_", 1)[0]: {} for name in values}
    rows = []
    for name, scores in values.items():
        config, split = name.split("_", 1)
        for rule in ("best@val", "last"):
            for seed, score in enumerate(scores, start=1):
                status = "undefined" if score is None or math.isnan(score) else "ok"
                value = None if status != "ok" else score
                rows.append(ResultRow("D", "M", config, seed, split, "accuracy", rule, value, status))
    entry = MethodFacts("D", "M", configs, select or SelectSettings())
    return RunResults("s", "r", "equad", (1, 2), (facts,), ("M",), (entry,), rows=tuple(rows))


def pick(results):
    return choose(ScoreTable(results), results.entries[0], "test")


def test_mean_val_never_reads_the_test_split():
    low = run(a_val=[0.6, 0.6], b_val=[0.5, 0.5], a_test=[0.1, 0.1], b_test=[0.9, 0.9])
    high = run(a_val=[0.6, 0.6], b_val=[0.5, 0.5], a_test=[0.9, 0.9], b_test=[None, None])
    assert pick(low).config_id == pick(high).config_id == "a"


def test_the_named_validation_split_decides():
    scores = {"a_val": [0.6, 0.6], "b_val": [0.5, 0.5], "a_iid_val": [0.1, 0.1], "b_iid_val": [0.2, 0.2]}
    assert pick(run(**scores)).config_id == "a"
    iid = run(SelectSettings(split="iid_val", checkpoint="last"), **scores)
    assert pick(iid).config_id == "b"


def test_the_oracle_reads_the_test_split():
    scores = {"a_val": [0.6, 0.6], "b_val": [0.5, 0.5], "a_test": [0.1, 0.1], "b_test": [0.9, 0.9]}
    assert pick(run(SelectSettings(config="oracle"), **scores)).config_id == "b"


def test_an_undefined_score_is_never_best():
    assert pick(run(a_val=[math.nan, 0.9], b_val=[0.1, 0.1])).config_id == "b"


def test_selected_is_marked_on_the_rows():
    marked = mark_selected(run(a_val=[0.6, 0.6], b_val=[0.5, 0.5], a_test=[0.1, 0.1], b_test=[0.9, 0.9]))
    assert {row.config_id for row in marked.rows if row.selected} == {"a"}
    assert sum(row.selected for row in marked.rows) == 8
    assert mark_selected(marked) == marked


def test_a_default_is_never_the_oracle():
    assert SelectSettings().config == "mean-val"
