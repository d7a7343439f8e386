"""Checks of trackers: they are told of a small run in a thread, as a run does it."""

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
from pathlib import Path
from typing import Any

import psutil

from harness.errors import UserError
from harness.run.tracking import tracked
from harness.testing.imports import HEAVY, loaded_at_import, optional_packages, without
from harness.testing.report import CheckFunction, Skip
from harness.testing.rng import all_states
from harness.testing.scratch import scratch_folder
from harness.testing.settings import EVERYWHERE
from harness.testing.toy_run import toy_run
from harness.tracker import TrackedCell, TrackedRun, TrackedStage, Tracker

EVENTS = ("started", "finished", "cached", "failed", "retried", "waiting", "skipped")
_PATIENCE = 5.0  # seconds for what a tracker started to end after `finish`
_LIMIT = 120.0


@dataclass(frozen=True)
class Told:
    """What came of telling a tracker of a run.

    Attributes:
        error: what a hook raised, and ``hook`` which.
        left: what it left open, in words.
        changed: what it changed of what it was handed, in words.
        drew: whether it touched a global generator.
    """

    error: BaseException | None = None
    hook: str = ""
    left: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    drew: bool = False


@dataclass
class TrackerSubject:
    """A tracker's class, and what came of telling it of a run."""

    cls: type[Tracker]
    _folder: Path = field(default_factory=partial(scratch_folder, "tracker"))

    def make(self) -> Tracker:
        """An instance with the values of ``probes["*"]``, which keep it from sending anything."""
        return self.cls(**self.cls.probes.get(EVERYWHERE, {}))

    @cached_property
    def whole(self) -> Told:
        """Of a whole run, with cells of every kind."""
        return self._tell("whole", list(cells()))

    @cached_property
    def cut(self) -> Told:
        """Of a run that is interrupted before a cell is done."""
        return self._tell("interrupted", [])

    def in_folder(self, work: Callable[[Path], Any]) -> Any:
        """Do something with a folder of the kit's as the current one, so that relative paths lead there."""
        with chdir(self._folder):
            return work(self._folder)

    def _tell(self, status: str, chosen: Sequence[TrackedCell]) -> Told:
        return self.in_folder(lambda folder: follow(self.make(), run_in(folder / status), chosen, status))  # type: ignore[no-any-return]

    def sound(self, told: Told) -> Told:
        """What came of it, for checks that need a tracker whose hooks work.

        Raises:
            Skip: a hook raises; another check tells of it.
        """
        if told.error is not None:
            raise Skip("a hook raises")
        return told


def run_in(folder: Path) -> TrackedRun:
    """The toy run, with a run folder of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    run = toy_run()
    results, record = run.results, run.record
    config = run.session.suite.resolved
    return TrackedRun(record.id, results.suite, results.protocol, results.seeds, folder, config, record.provenance)


def cells() -> Iterator[TrackedCell]:
    """Cells of the toy run: new, cached, failed with and without history, odd names and numbers."""
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


def follow(tracker: Tracker, run: TrackedRun, chosen: Sequence[TrackedCell], status: str) -> Told:
    """Tell a tracker of a run in a thread of its own, and look what it leaves."""
    before, folder = _Open.now(), str(run.folder.parent)
    told = Told()

    def work() -> None:
        nonlocal told
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what a library has to say is none of the tracker's faults
            told = _calls(tracker, run, chosen, status)

    thread = threading.Thread(target=work, name="bench-kit-tracker", daemon=True)
    thread.start()
    thread.join(_LIMIT)
    if thread.is_alive():
        return Told(TimeoutError(f"its hooks did not return within {_LIMIT:.0f} s"), "a hook")
    until = time.monotonic() + _PATIENCE
    while (left := _Open.now().beyond(before, folder)) and time.monotonic() < until:
        time.sleep(0.05)
    return replace(told, left=tuple(left))


def _calls(tracker: Tracker, run: TrackedRun, chosen: Sequence[TrackedCell], status: str) -> Told:
    """Every hook in the order of a run."""
    stages = [TrackedStage(event, "train", "train Plain on Usual, seed 1", 0.5, "why") for event in EVENTS]
    table: list[Mapping[str, Any]] = [{"dataset": "Usual", "method": "Plain", "mean": 0.5, "values": [0.5, None]}]
    calls: list[tuple[str, Callable[..., Any], tuple[Any, ...]]] = [("start", tracker.start, (run,))]
    calls += [("stage", tracker.stage, (stage,)) for stage in stages]
    calls += [("cell", tracker.cell, (cell,)) for cell in chosen]
    calls += [("finish", tracker.finish, (table if chosen else [], "failed" if chosen else status))]
    states = all_states()
    changed: list[str] = []
    for name, call, handed in calls:
        copies = copy.deepcopy(handed)
        try:
            call(*handed)
        except BaseException as error:
            return Told(error, name, changed=tuple(changed), drew=all_states() != states)
        if repr(handed) != repr(copies):
            changed.append(f"{name}() changes what it is handed")
    return Told(changed=tuple(dict.fromkeys(changed)), drew=all_states() != states)


@dataclass(frozen=True)
class _Open:
    """What the process holds."""

    files: tuple[str, ...]
    threads: tuple[threading.Thread, ...]
    processes: tuple[psutil.Process, ...]

    @classmethod
    def now(cls) -> _Open:
        process = psutil.Process()
        files = tuple(file.path for file in process.open_files())
        living = [child for child in process.children(recursive=True) if _lives(child)]
        return cls(files, tuple(threading.enumerate()), tuple(living))

    def beyond(self, before: _Open, folder: str) -> list[str]:
        """What was not held before: files below a folder, threads that hold up the end, processes."""
        files = sorted({path for path in self.files if path.startswith(os.path.realpath(folder))} - {*before.files})
        threads = [t.name for t in self.threads if t not in before.threads and not t.daemon]
        processes = [child for child in self.processes if child not in before.processes]
        return [
            *(f"the file '{Path(path).name}' is still open" for path in files),
            *(f"the thread '{name}' still runs and is no daemon: it would keep bench from ending" for name in threads),
            *(f"the process {_name(child)} still runs" for child in processes),
        ]


def _lives(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:  # it ended since it was listed
        return False


def _name(process: psutil.Process) -> str:
    try:
        return str(process.name())
    except psutil.Error:
        return str(process.pid)


def follows_a_run(subject: TrackerSubject) -> Iterator[str]:
    """No hook raises in a whole run: new, cached and failed cells, odd names, numbers that are not finite.

    Cause: a failed cell has no scores, and may have no history; a name or value that the tool does not take.

    Look at: cell, start, stage, finish
    """
    _unless_missing(subject)
    yield from _raised(subject.whole)


def follows_an_interrupted_run(subject: TrackerSubject) -> Iterator[str]:
    """No hook raises where a run ends before a cell is done, with an empty table.

    Cause: `finish` closes something that only `cell` opens.

    Look at: finish
    """
    _unless_missing(subject)
    yield from _raised(subject.cut)


def _raised(told: Told) -> Iterator[str]:
    if told.error is not None:
        yield f"{told.hook}() raised {type(told.error).__name__}: {str(told.error).strip().partition(chr(10))[0]}"


def closes_what_it_opened(subject: TrackerSubject) -> Iterator[str]:
    """After `finish`, no file, thread or process of its own is left.

    Cause: `finish` closes no stream, joins no thread, or ends no helper process.

    Look at: finish, start, cell
    """
    _unless_missing(subject)
    for told in (subject.whole, subject.cut):
        yield from dict.fromkeys(subject.sound(told).left)


def leaves_inputs(subject: TrackerSubject) -> Iterator[str]:
    """What it is told stays as it was, as other trackers are told the same.

    Cause: it adds to, or takes from, a mapping or list that it is handed.

    Look at: cell, start, finish
    """
    _unless_missing(subject)
    yield from subject.sound(subject.whole).changed


def global_state(subject: TrackerSubject) -> Iterator[str]:
    """Global generators are neither seeded nor drawn from.

    Cause: a random name for something; use `run.id` or `cell.id`.

    Look at: start, cell
    """
    _unless_missing(subject)
    if subject.sound(subject.whole).drew:
        yield "a hook changes the state of torch's, NumPy's or Python's global generator"


def imports_what_it_uses(subject: TrackerSubject) -> Iterator[str]:
    """Importing its module loads no heavy or optional package.

    Cause: an import at the top of the module; import inside of `start`.

    Look at: start
    """
    found = loaded_at_import(subject.cls, [*HEAVY, *optional_packages(subject.cls)])
    if found:
        yield f"importing the module loads {', '.join(found)}: import it inside of start()"


def tells_what_is_missing(subject: TrackerSubject) -> Iterator[str]:
    """Without a package that it needs, `start` raises a UserError of one line that says what to install.

    Cause: the ImportError is not caught, or the text names no `pip install`.

    Look at: start
    """
    packages = optional_packages(subject.cls)
    if not packages:
        raise Skip("it needs no package of its own")
    with without(packages):
        error = subject.in_folder(lambda folder: _start_error(subject, folder))
    if error is None:
        return  # it does without
    text = str(error)
    if not isinstance(error, UserError):
        yield f"without {', '.join(packages)} start() raises {type(error).__name__}: {text}"
    elif "\n" in text.strip() or "pip install" not in text:
        yield f"its text is not one line with `pip install …`: {text!r}"


def _start_error(subject: TrackerSubject, folder: Path) -> BaseException | None:
    run = run_in(folder / "without")
    try:
        subject.make().start(run)
    except (Exception, SystemExit) as error:
        return error
    return None


def _unless_missing(subject: TrackerSubject) -> None:
    """Go on where the packages are there.

    Raises:
        Skip: one is not.
    """
    from importlib.util import find_spec

    missing = [name for name in optional_packages(subject.cls) if find_spec(name) is None]
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
