"""Checks of trackers: each follows a small run in a thread, as in a real run."""

from __future__ import annotations

import copy
import os
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import chdir
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil

from harness.errors import UserError
from harness.run.tracking import tracked
from harness.testing.imports import HEAVY, loaded_at_import, optional_packages, without
from harness.testing.report import CheckFunction, Skip
from harness.testing.rig import Rig, Trial, all_states, scratch_folder
from harness.testing.toys import toy_run
from harness.tracker import TrackedCell, TrackedRun, TrackedStage, Tracker

EVENTS = ("started", "finished", "cached", "failed", "retried", "waiting", "skipped")
_PATIENCE = 5.0  # seconds in which what a tracker started may end after `finish`
_LIMIT = 120.0


@dataclass
class TrackerTrial(Trial):
    """The effects of following a run.

    Attributes:
        error: the exception of a hook.
        left: files, threads and processes left open, in words.
        changed: hooks that changed their arguments, in words.
    """

    error: BaseException | None = None
    left: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)


@dataclass
class TrackerRig(Rig[Tracker, TrackerTrial]):
    """A tracker under test."""

    folder: Path = field(default_factory=partial(scratch_folder, "tracker"))

    def trial(self, values: Mapping[str, Any], seed: int) -> TrackerTrial:
        """Follow a whole run, with cells of every kind, below the kit's folder; a hook's error is kept."""
        del seed
        return self._follow(self.make(values), list(cells()), "whole")

    @cached_property
    def interrupted(self) -> TrackerTrial:
        """Follow a run that is interrupted before a cell is done."""
        return self._follow(self.make(), [], "interrupted")

    def both(self) -> list[TrackerTrial]:
        """Return both trials of a tracker whose hooks work and whose packages are installed.

        Raises:
            Skip: a hook raises, which another check reports, or a package is missing.
        """
        _installed(self)
        trials = [self.outcome(), self.interrupted]
        if any(trial.error is not None for trial in trials):
            raise Skip("a hook raises")
        return trials

    def _follow(self, tracker: Tracker, chosen: Sequence[TrackedCell], status: str) -> TrackerTrial:
        """Call a tracker's hooks in a thread of its own, and look for what it leaves open."""
        with chdir(self.folder):
            run = run_in(self.folder / status)
            before, trial = Held.now(), TrackerTrial({})
            arguments = (tracker, run, chosen, status, trial)
            thread = threading.Thread(target=_call_hooks, args=arguments, name="bench-kit-tracker", daemon=True)
            thread.start()
            thread.join(_LIMIT)
            if thread.is_alive():
                return TrackerTrial({}, error=TimeoutError(f"its hooks did not return within {_LIMIT:.0f} s"))
            until = time.monotonic() + _PATIENCE
            while (left := Held.now().beyond(before, str(self.folder))) and time.monotonic() < until:
                time.sleep(0.05)
        return replace(trial, left=left)


def run_in(folder: Path) -> TrackedRun:
    """Return the toy run, with a run folder of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    run = toy_run()
    results, record = run.results, run.record
    config = run.session.suite.resolved
    return TrackedRun(record.id, results.suite, results.protocol, results.seeds, folder, config, record.provenance)


def cells() -> Iterator[TrackedCell]:
    """Yield cells of the toy run: new, cached, failed with and without history, odd names and numbers."""
    run = toy_run()
    first, second, *_ = run.record.cells
    tuned = next(cell for cell in run.record.cells if cell.hyperparameters)
    store = run.session.store
    yield tracked(first, store, None, cached=False)
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


def _call_hooks(
    tracker: Tracker, run: TrackedRun, chosen: Sequence[TrackedCell], status: str, trial: TrackerTrial
) -> None:
    """Call every hook in the order of a run; note changed arguments, use of global state, and the first error."""
    stages = [TrackedStage(event, "train", "train Plain on Usual, seed 1", 0.5, "why") for event in EVENTS]
    table: list[Mapping[str, Any]] = [{"dataset": "Usual", "method": "Plain", "mean": 0.5, "values": [0.5, None]}]
    calls: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [(tracker.start, (run,))]
    calls += [(tracker.stage, (stage,)) for stage in stages]
    calls += [(tracker.cell, (cell,)) for cell in chosen]
    calls += [(tracker.finish, (table if chosen else [], "failed" if chosen else status))]
    states = all_states()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings of a library are no fault of the tracker
        for call, arguments in calls:
            copies = copy.deepcopy(arguments)
            try:
                call(*arguments)
            except BaseException as error:
                trial.error = error
                return
            changed = f"{call.__name__}() changes its arguments"
            if repr(arguments) != repr(copies) and changed not in trial.changed:
                trial.changed.append(changed)
    if all_states() != states:
        trial.draws.append("a hook changes the state of torch's, NumPy's or Python's global generator")


@dataclass(frozen=True)
class Held:
    """The files, threads and child processes of this process."""

    files: frozenset[str]
    threads: frozenset[threading.Thread]
    processes: frozenset[psutil.Process]

    @classmethod
    def now(cls) -> Held:
        """Return those of the moment."""
        process = psutil.Process()
        living = [child for child in process.children(recursive=True) if _lives(child)]
        files = frozenset(file.path for file in process.open_files())
        return cls(files, frozenset(threading.enumerate()), frozenset(living))

    def beyond(self, before: Held, folder: str) -> list[str]:
        """Return, in words, files below a folder, threads that are no daemons, and processes that are new."""
        files = sorted(path for path in self.files - before.files if path.startswith(os.path.realpath(folder)))
        threads = [thread.name for thread in self.threads - before.threads if not thread.daemon]
        return [
            *(f"the file '{Path(path).name}' is still open" for path in files),
            *(f"the thread '{name}' still runs and is no daemon: it would keep bench from ending" for name in threads),
            *(f"the process {child.pid} still runs" for child in self.processes - before.processes),
        ]


def _lives(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:  # it ended since it was listed
        return False


def follows_a_run(rig: TrackerRig) -> list[str]:
    """No hook raises in a whole run: new, cached and failed cells, odd names, numbers that are not finite."""
    _installed(rig)
    if error := rig.outcome().error:
        raise error
    return []


def follows_an_interrupted_run(rig: TrackerRig) -> list[str]:
    """No hook raises where a run ends before a cell is done, with an empty table."""
    _installed(rig)
    if error := rig.interrupted.error:
        raise error
    return []


def closes_what_it_opened(rig: TrackerRig) -> Iterator[str]:
    """After `finish`, no file, thread or process of its own is left."""
    for trial in rig.both():
        yield from dict.fromkeys(trial.left)


def leaves_inputs(rig: TrackerRig) -> Iterator[str]:
    """Its arguments stay as they were, as other trackers get the same."""
    yield from rig.both()[0].changed


def global_state(rig: TrackerRig) -> Iterator[str]:
    """Global generators are neither seeded nor drawn from: name things by `run.id` or `cell.id`."""
    yield from rig.both()[0].draws


def imports_what_it_uses(rig: TrackerRig) -> Iterator[str]:
    """Importing its module loads no heavy or optional package."""
    loaded = loaded_at_import(rig.cls, [*HEAVY, *optional_packages(rig.cls)])
    if loaded:
        yield f"importing the module loads {', '.join(loaded)}: import it inside of start()"


def tells_what_is_missing(rig: TrackerRig) -> Iterator[str]:
    """Without a package that it needs, `start` raises a UserError of one line with `pip install`."""
    packages = optional_packages(rig.cls)
    if not packages:
        raise Skip("it needs no package of its own")
    try:
        with chdir(rig.folder), without(packages):
            rig.make().start(run_in(rig.folder / "without"))
    except UserError as error:
        text = str(error).strip()
        if "\n" in text or "pip install" not in text:
            yield f"its text is not one line with `pip install …`: {text!r}"
    except (Exception, SystemExit) as error:
        yield f"without {', '.join(packages)} start() raises {type(error).__name__}: {error}"


def _installed(rig: TrackerRig) -> None:
    """Go on where the tracker's packages are installed.

    Raises:
        Skip: one is not.
    """
    missing = [name for name in optional_packages(rig.cls) if find_spec(name) is None]
    if missing:
        raise Skip(f"{', '.join(missing)} is not installed")


CHECKS: tuple[CheckFunction, ...] = (
    follows_a_run,
    follows_an_interrupted_run,
    closes_what_it_opened,
    leaves_inputs,
    global_state,
    imports_what_it_uses,
    tells_what_is_missing,
)
