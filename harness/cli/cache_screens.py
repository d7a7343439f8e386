"""What ``bench cache`` shows."""

from __future__ import annotations

import sys
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

from harness.cli.words import counted
from harness.safe_io import size_text

if TYPE_CHECKING:
    from harness.store.collecting import Choice, Removed
    from harness.store.exchange import Copied
    from harness.store.listing import Info

_SHOWN = 12
_EVERY = 10.0


def collection(choice: Choice, removed: Removed | None) -> str:
    """What goes, or has gone, by kind, with a total."""
    infos = choice.artifacts if removed is None else removed.artifacts
    lines = [*_by_kind(infos), *(_titles(infos) if removed is None else ())]
    leftovers = len(choice.leftovers) if removed is None else removed.leftovers
    size = choice.size if removed is None else removed.size
    counts = f"{counted(len(infos), 'artifact')} and {counted(leftovers, 'leftover')}, {size_text(size)}"
    rest = f"; artifacts then take {size_text(choice.total - sum(info.size for info in infos))}"
    lines.append(f"{'would remove' if removed is None else 'removed'} {counts}{rest}")
    if choice.in_use:
        lines.append(f"{counted(choice.in_use, 'artifact')} stay: a run that is going on needs them")
    if removed is not None and removed.held:
        lines.append(f"{counted(removed.held, 'artifact')} stay: used meanwhile")
    if removed is None and (infos or leftovers):
        lines.append("nothing has been removed; --yes does it")
    return "\n".join(lines) + "\n"


def _by_kind(infos: tuple[Info, ...]) -> list[str]:
    counts, sizes = Counter(info.kind for info in infos), Counter[str]()
    for info in infos:
        sizes[info.kind] += info.size
    return [
        f"  {kind:<26}{counted(count, 'artifact'):>16}{size_text(sizes[kind]):>12}"
        for kind, count in sorted(counts.items())
    ]


def _titles(infos: tuple[Info, ...]) -> list[str]:
    now = time.time()
    lines = [
        f"  {info.key[:12]}  {size_text(info.size):>9}  {_ago(now - info.used):>8}  {info.title}"
        for info in infos[:_SHOWN]
    ]
    return lines + ([f"  … and {len(infos) - _SHOWN} more"] if len(infos) > _SHOWN else [])


def _ago(seconds: float) -> str:
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return "now"


def collection_json(choice: Choice, removed: Removed | None) -> str:
    """The same as JSON."""
    from dataclasses import asdict

    from harness.results.rows import dumps

    infos = choice.artifacts if removed is None else removed.artifacts
    data: dict[str, Any] = {
        "removed": removed is not None,
        "artifacts": [asdict(info) for info in infos],
        "leftovers": len(choice.leftovers) if removed is None else removed.leftovers,
        "bytes": choice.size if removed is None else removed.size,
        "bytes_before": choice.total,
        "in_use": choice.in_use + (0 if removed is None else removed.held),
    }
    return dumps(data)


def copied_lines(done: Copied, verb: str, where: str) -> list[str]:
    """What a copy did; what was refused, with the reason."""
    runs = f" and {counted(done.runs, 'run')}" if done.runs else ""
    lines = [f"{what}: refused: {why}" for what, why in done.refused.items()]
    there = (
        f"; {counted(done.present, 'artifact')} {'was' if done.present == 1 else 'were'} there" if done.present else ""
    )
    copied = f"{counted(done.artifacts, 'artifact')}{runs}, {size_text(done.bytes)}"
    return [*lines, f"{verb} {copied} {where}{there}"]


class CopyProgress:
    """Progress of a copy on the error stream: one line that changes on a terminal, else a line now and then."""

    def __init__(self, verb: str) -> None:
        self._verb, self._terminal = verb, sys.stderr.isatty()
        self._next = time.monotonic() + (0.2 if self._terminal else _EVERY)
        self._shown = False

    def __call__(self, done: int, total: int, size: int) -> None:
        """Say how far it is, if it is time to."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + (0.2 if self._terminal else _EVERY)
        self._shown = True
        text = f"{self._verb}: {done} of {counted(total, 'artifact')}, {size_text(size)}"
        print(
            f"\r{text}\x1b[K" if self._terminal else text,
            end="" if self._terminal else "\n",
            file=sys.stderr,
            flush=True,
        )

    def close(self) -> None:
        """Clear the line."""
        if self._shown and self._terminal:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
