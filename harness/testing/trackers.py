"""Checks of trackers: each follows a small run from its start to its end, and one that ends early."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import chdir
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from harness.errors import UserError
from harness.run.tracking import tracked
from harness.testing.report import CheckFunction, Skip
from harness.testing.rig import Rig, Trial, global_state, noting_draws
from harness.testing.toys import scratch_folder, toy_run
from harness.tracker import TrackedCell, TrackedRun, TrackedStage, Tracker

EVENTS = ("started", "finished", "cached", "failed", "retried", "waiting", "skipped")


@dataclass
class TrackerTrial(Trial):
    """The effects of following a run: hooks that changed their arguments, in words."""

    changed: dict[str, None] = field(default_factory=dict)


@dataclass
class TrackerRig(Rig[Tracker, TrackerTrial]):
    """A tracker under test."""

    folder: Path = field(default_factory=partial(scratch_folder, "tracker"))

    def trial(self, values: Mapping[str, Any], seed: int) -> TrackerTrial:
        """Follow a whole run, with cells of every kind, below the kit's folder."""
        del seed
        return self.follow(self.make(values), list(cells()), "whole")

    def follow(self, tracker: Tracker, chosen: Sequence[TrackedCell], status: str) -> TrackerTrial:
        """Call every hook in the order of a run; note changed arguments and uses of global random state.

        Raises:
            Skip: the tracker does not start, as it says itself, such as where a package is missing.
        """
        trial = TrackerTrial({})
        stages = [TrackedStage(event, "train", "train Plain on Usual, seed 1", 0.5, "why") for event in EVENTS]
        table: list[Mapping[str, Any]] = [{"dataset": "Usual", "method": "Plain", "mean": 0.5, "values": [0.5, None]}]
        calls: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [(tracker.stage, (stage,)) for stage in stages]
        calls += [(tracker.cell, (cell,)) for cell in chosen]
        calls += [(tracker.finish, (table if chosen else [], "failed" if chosen else status))]
        with chdir(self.folder), noting_draws("a hook", trial.draws):
            try:
                _call(trial, tracker.start, run_in(self.folder / status))
            except UserError as error:
                raise Skip(f"it does not start: {error}") from None
            for call, arguments in calls:
                _call(trial, call, *arguments)
        return trial


def _call(trial: TrackerTrial, call: Callable[..., Any], *arguments: Any) -> None:
    copies = copy.deepcopy(arguments)
    call(*arguments)
    if repr(arguments) != repr(copies):
        trial.changed[f"{call.__name__}() changes its arguments"] = None


def run_in(folder: Path) -> TrackedRun:
    """Return the toy run, with a run folder of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    run = toy_run()
    results, record = run.results, run.record
    config = copy.deepcopy(run.session.suite.resolved)
    return TrackedRun(record.id, results.suite, results.protocol, results.seeds, folder, config, record.provenance)


def cells() -> Iterator[TrackedCell]:
    """Yield cells of the toy run: new, cached, failed with and without history, odd names and numbers."""
    run = toy_run()
    first, second, *_ = run.record.cells
    tuned = next(cell for cell in run.record.cells if cell.hyperparameters)
    store = run.session.store
    yield tracked(tuned, store, None, cached=False)
    yield tracked(second, store, None, cached=True)
    done = tracked(first, store, None, cached=False)
    odd = {"name (α, 50 %)": "a/b: c", "list": [1, 2], "none": None}
    rows: list[dict[str, Any]] = [
        {"epoch": 0, "loss": float("nan"), "scores": {"val": None, "möglich": 0.5}},
        {"epoch": 1, "loss": 0.5},
    ]
    yield replace(done, id="odd", dataset="Set (0.8, 0.9)/ü", method="M+ @ 1 %", hyperparameters=odd, history=rows)
    yield replace(done, id="failed", status="failed", reason="ValueError: no such thing", scores={}, seconds=None)
    yield replace(done, id="killed", status="timeout", reason="3 s", scores={}, history=(), hyperparameters={})


def follows_a_run(rig: TrackerRig) -> Iterator[str]:
    """No hook raises in a whole run, with failed cells, odd names and numbers, nor where one ends before any cell."""
    rig.outcome()
    rig.follow(rig.make(), [], "interrupted")
    yield from ()


def leaves_inputs(rig: TrackerRig) -> Iterator[str]:
    """Its arguments stay as they were, as other trackers get the same."""
    yield from rig.outcome().changed


CHECKS: tuple[CheckFunction, ...] = (follows_a_run, leaves_inputs, global_state)
