"""Progress of a run: a live display on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import fmean
from typing import TYPE_CHECKING, Any

from harness.cli.output import say
from harness.safe_io import visible

if TYPE_CHECKING:
    from harness.engine import Event
    from harness.run.session import Session
    from harness.store import Failure

_DONE = ("finished", "cached", "failed", "skipped")


class Tally:
    """Counts of ended stages, and an estimate of the time left."""

    def __init__(self, session: Session) -> None:
        from harness.plan.status import Clock, needed

        clock = Clock(session.store)
        self._left = {stage.key: (stage.kind, clock.seconds(stage)) for stage in needed(session.plan, session.store)}
        self._known = set(session.plan.stages)
        self._searches = session.plan.suite.pending > 0
        self._running: set[str] = set()
        self._workers = 1
        self._took: defaultdict[str, list[float]] = defaultdict(list)
        self.counts = Counter(cached=len(self._known) - len(self._left))

    def add(self, event: Event) -> None:
        """Count one event."""
        key, kind = event.stage.key, event.stage.kind
        self._known.add(key)  # the stages of an analysis are planned once the scores are there
        if event.kind == "started":
            self._running.add(key)
            self._workers = max(self._workers, len(self._running))
        if event.kind in _DONE:
            self._running.discard(key)
            self._left.pop(key, None)
            self.counts[event.kind] += 1
        if event.kind == "finished":
            self._took[kind].append(event.seconds)

    @property
    def total(self) -> int:
        """Return the number of stages."""
        return len(self._known)

    @property
    def done(self) -> int:
        """Return the number of stages that are finished, cached, failed or skipped."""
        return self.counts.total()

    def seconds_left(self) -> float | None:
        """Estimate the time left by this run's and recorded stages, divided by the most workers seen at once."""
        means = {kind: fmean(took) for kind, took in self._took.items()}
        times = [means.get(kind, recorded) for kind, recorded in self._left.values()]
        known = [seconds for seconds in times if seconds is not None]
        if len(known) < len(times) or self._searches:  # nobody knows the trials to come
            return None
        return sum(known) / min(self._workers, max(len(times), 1))


def _brief(failure: Failure) -> str:
    """Return the status, the first line of the reason, and for a stored failure how to run it again."""
    return f"{failure.status}: {failure.reason.partition(chr(10))[0]}{failure.remark}"


def clock_text(seconds: float) -> str:
    """Return seconds as ``3m 20s``."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h {minutes:02d}m" if hours else f"{minutes}m {rest:02d}s" if minutes else f"{rest}s"


def _print_line(tally: Tally, event: Event) -> None:
    tally.add(event)
    if event.kind == "started":
        return
    detail = f": {_brief(event.failure)}" if event.failure is not None else ""
    seconds = f" in {event.seconds:.1f} s of wall time" if event.kind in ("finished", "failed") else ""
    left = [text for text in [_left_text(tally)] if text and event.kind == "finished"]
    say(", ".join([f"[{tally.done}/{tally.total}] {event.kind} {event.stage.title}{detail}{seconds}", *left]))


def _left_text(tally: Tally) -> str:
    """Return ``about 3m 20s left``; empty where there is no estimate."""
    seconds = tally.seconds_left()
    return "" if seconds is None else f"about {clock_text(seconds)} left"


class Screen:
    """A live display: a bar, and a line for each running stage; failures stay above it."""

    def __init__(self, tally: Tally, progress: Any) -> None:
        self._tally, self._progress = tally, progress
        self._whole = progress.add_task("", total=None)
        self._tasks: dict[str, Any] = {}

    def observe(self, event: Event) -> None:
        """Show one event."""
        from rich.text import Text

        self._tally.add(event)
        key, title = event.stage.key, event.stage.title
        if event.kind == "started":
            self._tasks[key] = self._progress.add_task(title, total=None)
        elif key in self._tasks:
            self._progress.remove_task(self._tasks.pop(key))
        if event.kind == "failed" and event.failure is not None:
            self._progress.print(Text(f"✗ {title}: {visible(_brief(event.failure))}", style="red"))
        counts = self._tally.counts
        failed = counts["failed"] + counts["skipped"]
        parts = [f"{self._tally.done}/{self._tally.total} stages", f"{counts['finished']} run"]
        parts += [f"{counts['cached']} cached", f"{failed} failed", _left_text(self._tally)]
        text = " · ".join(filter(None, parts))
        self._progress.update(self._whole, description=text, completed=self._tally.done, total=self._tally.total)


@contextmanager
def show_progress(session: Session, *, quiet: bool = False) -> Iterator[Callable[[Event], None]]:
    """Give the observer whose display fits the error stream."""
    if quiet:
        yield lambda _: None
        return
    tally = Tally(session)
    if not sys.stderr.isatty() or tally.done == tally.total:
        yield lambda event: _print_line(tally, event)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = BarColumn(30), TextColumn("{task.description}", markup=False), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        yield Screen(tally, progress).observe
