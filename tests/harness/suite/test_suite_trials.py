"""Samplers: which trials a suite has before anything has run, and which one follows from scores."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from statistics import fmean
from typing import Any

import pytest
from suite_kit import HEAD, Load, methods, row

from harness.suite.spec import Configuration, Row

pytest.importorskip("optuna")
ROWS = (
    "  A: {baseline: erm, tune: {model.layers: [1, 2, 3, 4, 5], train.lr: [0.1, 0.2, 0.3, 0.4, 0.5]}}\n"
    "  B: {baseline: {use: irm, tune: {penalty: [1, 2, 3, 4, 5, 6]}}, envs: random(2), tune: {train.lr: [1, 2, 3]}}\n"
    "  C: {baseline: erm, tune: {model.layers: [1, 2]}}\n"
    "  D: {baseline: erm}\n"
)
RANDOM = "tune: {sampler: random, trials: 12}\n"
TPE = "tune: {sampler: tpe, trials: 16}\n"


def ids(row: Row) -> list[str]:
    return [configuration.id for configuration in row.configurations]


def search(row: Row, score: Callable[[Configuration], float]) -> list[Configuration]:
    """All trials of a row, where the scores are these."""
    trials = list(row.configurations)
    assert row.ask is not None
    for _ in range(row.pending):
        trials.append(row.ask(trials, list(map(score, trials))))
    return trials


def lr(configuration: Configuration) -> float:
    return configuration.train.lr


def test_every_tuned_method_has_as_many_trials_and_a_small_grid_all_of_its(load: Load) -> None:
    suite = load(RANDOM + methods(ROWS))
    assert {r.method: (len(r.configurations), r.pending) for r in suite.rows} == {
        "A": (12, 0),
        "B": (12, 0),
        "C": (2, 0),
        "D": (1, 0),
    }
    assert [ids(row(suite, name))[0] for name in "AB"] == ["layers=1, lr=0.1", "penalty=1, lr=1"]
    assert all(len(set(ids(r))) == len(ids(r)) for r in suite.rows)
    assert suite.cells == 12 + 12 + 2 + 1
    assert suite.resolved["tune"] == {"sampler": "random", "trials": 12}
    assert repr(load(RANDOM.replace("12", "1.2e1") + methods(ROWS)).tune) == repr(suite.tune)


def test_random_trials_depend_on_the_axes_alone(load: Load) -> None:
    swapped = "  Z: {tune: {train.lr: [0.1, 0.2, 0.3, 0.4, 0.5], model.layers: [1, 2, 3, 4, 5]}, baseline: erm}\n"
    suite, other = load(RANDOM + methods(ROWS)), load(RANDOM + methods("  Y: {baseline: erm}\n" + swapped), seeds="7,8")
    assert ids(row(suite, "A")) == ids(row(other, "Z"))
    more = load("tune: {sampler: random, trials: 20}\n" + methods(ROWS))
    assert ids(row(more, "A"))[:12] == ids(row(suite, "A"))
    assert ids(row(load("budget: 12\n" + methods(ROWS)), "A")) != ids(row(suite, "A"))


def test_tpe_knows_its_random_trials_and_asks_for_the_rest(load: Load) -> None:
    suite = load(TPE + methods(ROWS))
    assert [(len(r.configurations), r.pending) for r in suite.rows] == [(10, 6), (10, 6), (2, 0), (1, 0)]
    assert ids(row(suite, "A")) == ids(row(load(RANDOM + methods(ROWS)), "A"))[:10]
    assert (suite.cells, suite.pending) == (16 + 16 + 2 + 1, 12)
    few = load("tune: {trials: 4}\n" + methods(ROWS))
    assert {r.method: (len(r.configurations), r.pending) for r in few.rows}["A"] == (4, 0)


def test_equal_scores_give_equal_trials_and_others_others(load: Load) -> None:
    suite, again = (row(load(TPE + methods(ROWS)), "A") for _ in range(2))
    trials = search(suite, lr)
    assert len({trial.id for trial in trials}) == 16
    assert search(again, lr) == trials
    assert search(again, lambda trial: -trial.train.lr) != trials


def test_trials_go_where_scores_are_higher(load: Load) -> None:
    axes = "model.layers: [1, 2, 3, 4, 5], train.lr: [1, 2, 3, 4, 5, 6, 7, 8], train.weight_decay: [0, 1, 2]"
    found = row(load("tune: {trials: 30}\n" + methods(f"  A: {{baseline: erm, tune: {{{axes}}}}}\n")), "A")
    before, after = [], []
    for best in range(1, 9):
        distances = [abs(lr(trial) - best) for trial in search(found, lambda trial: -abs(lr(trial) - best))]  # noqa: B023
        before += distances[:10]
        after += distances[10:]
    assert fmean(after) < 0.7 * fmean(before)
    assert after.count(0) > 2 * len(after) / 8


def test_trials_avoid_what_failed(load: Load) -> None:
    trials = search(row(load(TPE + methods(ROWS)), "A"), lambda trial: 0.5 if lr(trial) < 0.35 else -math.inf)
    assert sum(lr(trial) < 0.35 for trial in trials[10:]) >= 5


def test_all_may_have_failed(load: Load) -> None:
    trials = search(row(load(TPE + methods(ROWS)), "A"), lambda _: -math.inf)
    assert len({trial.id for trial in trials}) == 16


def test_almost_the_whole_grid_can_be_tried(load: Load) -> None:
    trials = search(row(load("tune: {trials: 24}\n" + methods(ROWS)), "A"), lr)
    assert len({trial.id for trial in trials}) == 24


def test_what_has_no_effect_beside_the_others_makes_no_trial_of_its_own(load: Load) -> None:
    ciga = "  A: {baseline: {use: ciga, contrast: 2, tune: default}, tune: {train.lr: [1, 2, 3, 4, 5, 6]}}\n"
    found = row(load("tune: {trials: 17}\n" + methods(ciga)), "A")
    trials = search(found, lambda trial: trial.values["baseline.variant"] == "v2")
    assert len({trial.id for trial in trials}) == 17
    assert all(("baseline.hinge" in t.values) == (t.values["baseline.variant"] == "v2") for t in trials)
    assert len({trial.id for trial in trials[10:] if "baseline.hinge" in trial.values}) >= 4


def test_what_a_later_trial_may_be_is_checked_before_the_run(faults: Any) -> None:
    text = methods(
        "  A: {baseline: {use: comparing, form: across}, tune: {train.lr: [1, 2], envs.k: [2, 3, 1]}, envs: random}\n"
    )
    assert "compares environments" in faults("tune: {trials: 2}\n" + text)[0]


def test_null_lifts_an_included_search_and_options_change_it(load: Load) -> None:
    files = {"base.yaml": TPE + methods(ROWS)}
    text = "bench: 1\ninclude: base.yaml\n"
    assert len(ids(row(load(text + "tune: null\n", files=files), "A"))) == 25
    assert len(ids(row(load(text + "tune: null\nbudget: 3\n", files=files), "A"))) == 3
    merged = load(text + "tune: {trials: 30}\n", files=files).tune
    assert (merged and merged.sampler, merged and merged.trials) == ("tpe", 30)
    assert row(load(text, files=files, sets=("tune.trials=12",)), "A").pending == 2
    assert ids(row(load(text, files=files, quick=True), "A")) == ["layers=1, lr=0.1"]


@pytest.mark.parametrize(
    ("tune", "place", "told"),
    [
        ("{sampler: tpee}", "1:17", "'sampler': expected one of tpe, random, found 'tpee' (did you mean 'tpe'?)"),
        ("{trials: 0}", "1:16", "'trials': expected at least 1, found 0"),
        ("{trails: 4}", "1:8", "unknown key 'trails' in 'tune' (did you mean 'trials'?); allowed: sampler, trials"),
        ("default", "1:7", "'tune' is a table such as {sampler: tpe, trials: 20}, found 'default'"),
        ("{}\nbudget: 3", "1:1", "'budget' caps the grid, and 'tune' draws from it; make one of them null"),
    ],
)
def test_wrong_values_are_told_with_their_place(faults: Any, tune: str, place: str, told: str) -> None:
    assert faults(f"tune: {tune}\n" + methods(ROWS)) == [f"{place}: {told}"]


def test_a_method_has_no_sampler_of_its_own(faults: Any) -> None:
    (told,) = faults(methods("  A: {baseline: erm, tune: {trials: 4}}\n"))
    assert told.endswith("the sampler stands under 'tune' of the suite, for all methods")


def test_without_optuna_the_extra_is_named(faults: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    assert faults(TPE + methods(ROWS)) == ["1:1: 'tune' needs Optuna: pip install 'equad-bench[optuna]'"]


def test_head_is_a_suite_without_search(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    assert HEAD in methods(ROWS)
    assert load(methods(ROWS)).tune is None
