"""One thread per stage: many one-thread workers do more than one many-thread worker, and sums keep their order."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

THREAD_VARIABLES: Final = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)


def limit_threads() -> None:
    """One thread from here on: for libraries not yet loaded by environment, for torch by its own switch."""
    os.environ.update({name: "1" for name in THREAD_VARIABLES if os.environ.get(name) != "1"})
    if (torch := sys.modules.get("torch")) is not None and torch.get_num_threads() != 1:
        torch.set_num_threads(1)


def available_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread inside the block, in a process that is not ours alone; what was set before comes back."""
    before = {name: value for name in THREAD_VARIABLES if (value := os.environ.get(name)) != "1"}
    torch = sys.modules.get("torch")
    threads = torch.get_num_threads() if torch else 1
    limit_threads()
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        if torch and threads != 1:
            torch.set_num_threads(threads)
