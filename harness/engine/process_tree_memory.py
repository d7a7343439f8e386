"""How much memory a process holds together with the processes that it started."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import psutil


def held(pid: int) -> int:
    """Bytes of resident memory of a process and of all below it; 0 where it is gone.

    What a fork shares with its parent is counted once: each page by the number of processes that map it.
    """
    try:
        alone = int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return 0
    below = _below(pid)
    return max(alone, sum(map(_share, [pid, *below]))) if below else alone


def _share(pid: int) -> int:
    """What the process adds: a page that two map counts half. Slow, it asks for every page."""
    try:
        facts = psutil.Process(pid).memory_full_info()
    except psutil.Error:
        return 0
    return int(getattr(facts, "pss", facts.uss))


def _below(pid: int) -> list[int]:
    """The ids of its children and theirs. Linux has lists; elsewhere every process of the machine is looked at."""
    lists: list[Path] = []
    with suppress(OSError):  # it may end while it is looked at
        lists = list(Path(f"/proc/{pid}/task").glob("*/children"))
    if not lists:
        with suppress(psutil.Error):
            return [child.pid for child in psutil.Process(pid).children(recursive=True)]
    found: list[int] = []
    for path in lists:  # one of each thread
        with suppress(OSError):
            found += map(int, path.read_text(encoding="ascii").split())
    return found + [below for child in found for below in _below(child)]
