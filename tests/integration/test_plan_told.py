"""``bench plan`` on one screen: what would run, why, how long."""

from __future__ import annotations

import re

from integration_kit import TOY, Workshop

METHODS = TOY.replace(
    "{baseline: irm, envs: random(2)}", "{baseline: {use: irm, tune: {penalty: [1, 10]}}, envs: random(2)}"
)


def test_equal_reasons_stand_once_and_no_other_suite_counts(workshop: Workshop) -> None:
    """It took 557 lines, as digests kept equal reasons apart, and was stale against whatever another suite had run."""
    workshop.write(METHODS)
    workshop.run()
    other = workshop.write(METHODS, "other.yaml")
    plan = workshop.command("plan", str(other), "--epochs", "3").stdout
    assert "new: 8 train stages: this suite has not run it\n" in plan
    kinds = [line.split()[0] for line in plan.split("\n\n")[1].splitlines()]
    assert kinds == ["stage", "prepare", "encode", "quantify", "annotate", "train", "score"]
    assert "stale:" not in plan
    plan = workshop.command("plan", "suite.yaml", "--epochs", "3").stdout
    assert ", no estimate yet for 8 of them; the others about " in plan
    plan = workshop.command("plan", "suite.yaml", "--epochs", "3", "--seeds", "1,2,3").stdout
    assert re.search(r"^stale: \d+ train stages: train\.epochs: 2 -> 3", plan, re.MULTILINE)
    assert "new: 1 encode stage: this suite has not run it\n" in plan
    assert "new: 1 quantify stage: this suite has not run it\n" in plan
    assert len(plan.splitlines()) <= 20
    full = workshop.command("plan", "suite.yaml", "--epochs", "3", "--verbose").stdout
    assert "stale: train ERM on Toy, seed 1 and 7 more\n    train.epochs: 2 -> 3\n" in full
    only = workshop.command("plan", "suite.yaml", "--seeds", "3").stdout
    assert "new: 1 encode stage: seed: " in only
    assert "new: 1 quantify stage: what it reads is new\n" in only
    known = workshop.command("plan", "suite.yaml", "--seeds", "1,2,3").stdout
    assert re.search(r"^to run: \d+ stages, about \S+ of one worker's time$", known, re.MULTILINE)


def test_a_further_tuned_value_replaces_nothing(workshop: Workshop) -> None:
    """It was stale, as if the value beside it had been edited."""
    workshop.write(METHODS)
    workshop.run()
    plan = workshop.command("plan", "suite.yaml", "--set", "methods.IRM.baseline.tune.penalty=[1, 10, 100]").stdout
    assert "new: 2 train stages: this suite has not run it\n" in plan
    assert "stale:" not in plan
    plan = workshop.command("plan", "suite.yaml", "--set", "methods.IRM.baseline.tune.penalty=[1, 100]").stdout
    assert "stale: 2 train stages: irm.penalty: default -> 100\n" in plan


def test_a_quick_run_says_nothing_of_how_long_the_suite_takes(workshop: Workshop) -> None:
    workshop.write(TOY)
    workshop.command("run", "suite.yaml", "--quick", "--engine", "inline")
    plan = workshop.command("plan", "suite.yaml", "--epochs", "3").stdout
    assert "no estimate yet\n" in plan
    assert "stale:" not in plan
    told = workshop.command("report", "suite.yaml", check=False)
    assert told.returncode == 2
    assert "has only quick runs, which are shown by their id: " in told.stderr
