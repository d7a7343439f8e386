"""Progress of a run: a live display on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from harness.cli.leaderboard import Standings
from harness.safe_io import visible

if TYPE_CHECKING:
    from harness.engine import Event
    from harness.run.session import Session
    from harness.store import Failure

_EVERY = 0.2
_DONE = ("finished", "cached", "failed", "skipped")


class Tally:
    """Counts of finished stages, failures, and an estimate of the time left."""

    def __init__(self, session: Session) -> None:
        from harness.plan.status import Clock, needed

        self.session = session
        stages = needed(session.plan, session.store)
        clock = Clock(session.store)
        self._left = {stage.key: (stage.kind, clock.seconds(stage)) for stage in stages}
        self.total = len(session.plan.stages)
        self.counts: Counter[str] = Counter(cached=self.total - len(stages))
        self.running: dict[str, tuple[str, float]] = {}
        self._workers = 1
        self.failures: list[str] = []
        self._left_of: Counter[str] = Counter(kind for kind, _ in self._left.values())
        self._unknown: Counter[str] = Counter(kind for kind, seconds in self._left.values() if seconds is None)
        self._expected: dict[str, float] = defaultdict(float)
        for kind, seconds in self._left.values():
            self._expected[kind] += seconds or 0.0
        self._spent: dict[str, float] = defaultdict(float)
        self._ran: Counter[str] = Counter()
        self.started = time.monotonic()
        self._known = set(session.plan.stages)
        self._standings = Standings(session)
        self._standings.add(key for key in session.plan.stages if key not in self._left)

    def add(self, event: Event) -> None:
        """Count one event."""
        stage = event.stage
        if stage.key not in self._known:  # of an analysis, which is planned once the scores are there
            self._known.add(stage.key)
            self.total += 1
        if event.kind == "started":
            self.running[stage.key] = (stage.title, time.monotonic())
            self._workers = max(self._workers, len(self.running))
            return
        if event.kind not in _DONE:
            return
        self.running.pop(stage.key, None)
        self._leave(stage.key)
        self.counts[event.kind] += 1
        if event.kind in ("finished", "cached"):
            self._standings.add([stage.key])
        if event.kind == "finished":
            self._spent[stage.kind] += event.seconds
            self._ran[stage.kind] += 1
        if event.kind == "failed" and event.failure is not None:
            self.failures.append(f"{stage.title}: {_brief(event.failure)}")

    def _leave(self, key: str) -> None:
        """Remove a stage from the stages that are left."""
        if key in self._left:
            kind, seconds = self._left.pop(key)
            self._left_of[kind] -= 1
            self._unknown[kind] -= seconds is None
            self._expected[kind] -= seconds or 0.0

    @property
    def done(self) -> int:
        """Return the number of stages that are finished, cached, failed or skipped."""
        return sum(self.counts[kind] for kind in _DONE)

    def seconds_left(self) -> float | None:
        """Estimate the time left by this run's and recorded stages, divided by the most workers seen at once."""
        total = 0.0
        for kind, count in self._left_of.items():
            if self._ran[kind]:
                total += count * self._spent[kind] / self._ran[kind]
            elif self._unknown[kind]:
                return None
            else:
                total += self._expected[kind]
        return total / min(self._workers, max(len(self._left), 1))

    def best(self) -> list[tuple[str, str, float]]:
        """Return (dataset, method, mean validation score) of the best rows of each dataset so far."""
        return self._standings.best()


def _brief(failure: Failure) -> str:
    """Return the status, the first line of the reason, and for a stored failure how to run it again."""
    return visible(f"{failure.status}: {failure.reason.partition(chr(10))[0]}{failure.remark}")


def clock_text(seconds: float | None) -> str:
    """Return seconds as ``3m 20s``; None as ``unknown``."""
    if seconds is None:
        return "unknown"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h {minutes:02d}m" if hours else f"{minutes}m {rest:02d}s" if minutes else f"{rest}s"


class Quiet:
    """No progress."""

    def observe(self, event: Event) -> None:
        """Ignore an event."""


class Lines:
    """One line per stage, for logs."""

    def __init__(self, tally: Tally, stream: TextIO) -> None:
        self._tally, self._stream = tally, stream

    def observe(self, event: Event) -> None:
        """Print a stage that ended, was retried or waits."""
        self._tally.add(event)
        if event.kind == "started":
            return
        tally = self._tally
        detail = f": {_brief(event.failure)}" if event.failure is not None else ""
        seconds = f" in {event.seconds:.1f} s of wall time" if event.kind in ("finished", "failed") else ""
        left = f", {clock_text(tally.seconds_left())} left" if event.kind == "finished" else ""
        print(
            f"[{tally.done}/{tally.total}] {event.kind} {event.stage.title}{detail}{seconds}{left}", file=self._stream
        )
        self._stream.flush()


class Screen:
    """A live display: a bar, running stages, failures, the best rows so far."""

    def __init__(self, tally: Tally, live: Any) -> None:
        self._tally, self._live, self._next = tally, live, 0.0

    def observe(self, event: Event) -> None:
        """Redraw, a few times a second at most."""
        self._tally.add(event)
        now = time.monotonic()
        if now >= self._next or self._tally.done == self._tally.total:
            self._next = now + _EVERY
            self._live.update(self.render(), refresh=True)

    def render(self) -> Any:
        """Return the display."""
        from rich.console import Group
        from rich.markup import escape
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        tally = self._tally
        counts = tally.counts
        head = Table.grid(padding=(0, 1))
        head.add_row(
            ProgressBar(total=max(tally.total, 1), completed=tally.done, width=30),
            f"{tally.done}/{tally.total} stages · {counts['finished']} run · {len(tally.running)} running · "
            f"{counts['cached']} cached · {counts['failed'] + counts['skipped']} failed · "
            f"{clock_text(time.monotonic() - tally.started)} elapsed · {clock_text(tally.seconds_left())} left",
        )
        now = time.monotonic()
        lines = [Text.from_markup(f"[cyan]▸[/] {escape(t)} ({now - s:.0f} s)") for t, s in tally.running.values()]
        lines += [Text.from_markup(f"[red]✗ {escape(text)}[/]") for text in tally.failures[-3:]]
        rows = tally.best()
        if rows:
            table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
            for dataset, method, score in rows:
                table.add_row(escape(dataset), escape(method), f"{100 * score:.2f}")
            return Group(head, *lines, Text("best rows so far (mean validation score in percent):"), table)
        return Group(head, *lines)


@contextmanager
def make_progress(session: Session, *, quiet: bool = False) -> Iterator[Quiet | Lines | Screen]:
    """Return the progress display that fits the error stream."""
    if quiet:
        yield Quiet()
        return
    tally = Tally(session)
    if not sys.stderr.isatty() or tally.done == tally.total:
        yield Lines(tally, sys.stderr)
        return
    from rich.console import Console
    from rich.live import Live

    with Live(console=Console(stderr=True), auto_refresh=False, transient=True) as live:
        yield Screen(tally, live)
