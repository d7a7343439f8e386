"""Wall time, CPU time and peak memory of a block."""

from __future__ import annotations

import re
import resource
import sys
import time
from contextlib import suppress
from typing import Any, Self


class Meter:
    """Measure a block: ``with Meter() as meter: ...``, then ``meter.reading()``.

    On Linux the peak is that of the block: the kernel's high-water mark is put back to the present use first.
    Elsewhere it is the peak of the process so far.
    """

    def __enter__(self) -> Self:
        _reset_peak()
        self._wall = time.perf_counter()
        self._cpu = time.process_time()
        return self

    def __exit__(self, *_: object) -> None:
        self._wall = time.perf_counter() - self._wall
        self._cpu = time.process_time() - self._cpu
        self._peak = _peak()

    def reading(self) -> dict[str, Any]:
        """``wall`` and ``cpu`` in seconds, ``peak_rss`` in bytes."""
        return {"wall": self._wall, "cpu": self._cpu, "peak_rss": self._peak}


def _reset_peak() -> None:
    with suppress(OSError), open("/proc/self/clear_refs", "wb", buffering=0) as file:  # noqa: PTH123 (on the hot path)
        file.write(b"5")  # 5: the high-water mark only; see proc(5)


def _peak() -> int:
    """Peak resident memory in bytes; ``ru_maxrss`` would include the peak inherited at the fork."""
    with suppress(OSError), open("/proc/self/status", "rb", buffering=0) as file:  # noqa: PTH123 (on the hot path)
        found = re.search(rb"VmHWM:\s*(\d+) kB", file.read())
        if found:
            return int(found[1]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
