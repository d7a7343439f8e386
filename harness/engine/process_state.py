"""State of a process that runs stages: one thread for numeric libraries, and signals that interrupt it."""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing import resource_tracker
from pathlib import Path
from types import FrameType
from typing import Any, Final

THREAD_VARIABLES: Final = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)


SAFE_PATH: Final = "PYTHONSAFEPATH"
_SHARE: Final = Path("/sys/fs/cgroup/cpu.max")
"""Where Linux tells a container how much time of processors it has in each period, in microseconds, or ``max``."""


def limit_threads() -> None:
    """Limit numeric libraries to one thread: those not yet loaded by environment, torch by its own switch.

    Many one-thread workers do more than one many-thread worker, and sums keep their order.
    """
    os.environ.update({name: "1" for name in THREAD_VARIABLES if os.environ.get(name) != "1"})
    if (torch := sys.modules.get("torch")) is not None and torch.get_num_threads() != 1:
        torch.set_num_threads(1)


def available_cores() -> int:
    """Return the number of cores that this process may use; a container may see more than it has time of."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with suppress(OSError, ValueError):
        time, period = map(int, _SHARE.read_text(encoding="ascii").split())
        cores = min(cores, math.ceil(time / period))
    return cores


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit libraries to one thread inside the block, in a process that is not ours alone, and undo it after."""
    before = {name: os.environ.get(name) for name in THREAD_VARIABLES}
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


def _switches() -> dict[str, tuple[Any, Callable[[Any], object]]]:
    """Return what a component may leave changed in its process: name -> present value and the function to set it."""
    if (torch := sys.modules.get("torch")) is None:
        return {}
    precision = torch.get_float32_matmul_precision(), torch.set_float32_matmul_precision
    autocast = torch.is_autocast_enabled("cpu"), partial(torch.set_autocast_enabled, "cpu")
    return {
        "torch's default type": (torch.get_default_dtype(), torch.set_default_dtype),
        "torch's default device": (torch.get_default_device(), torch.set_default_device),
        "torch's precision of matrix products": precision,
        "torch's gradient mode": (torch.is_grad_enabled(), torch.set_grad_enabled),
        "torch's autocast": autocast,
    }


@contextmanager
def switches_kept() -> Iterator[list[str]]:
    """Put switches of the process back after the block; the list receives the names of those that it changed."""
    before, changed = _switches(), list[str]()
    try:
        yield changed
    finally:
        after = _switches()
        for name, (value, put) in before.items():
            if after[name][0] != value:
                put(value)
                changed.append(name)


@contextmanager
def without_current_folder() -> Iterator[None]:
    """Keep the current folder from the path of a Python started meanwhile: a ``harness.py`` in it is none of ours."""
    before = os.environ.get(SAFE_PATH)
    os.environ[SAFE_PATH] = "1"
    try:
        yield
    finally:
        os.environ.pop(SAFE_PATH)
        os.environ |= {} if before is None else {SAFE_PATH: before}


@contextmanager
def interrupts_held_back() -> Iterator[None]:
    """Block signals while a process or thread is started that inherits the mask, as does all that it will start.

    So Ctrl-C and what else reaches the whole terminal group or job stays the main thread's business.
    """
    with without_current_folder():
        resource_tracker.ensure_running()  # first, because starting it lifts the mask
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGHUP, signal.SIGUSR1})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)
"""A batch scheduler or ``kill``, a terminal that is gone, and what Slurm's ``--signal=USR1`` sends."""


class Terminated(KeyboardInterrupt):
    """The process was asked to end by one of :data:`STOP_SIGNALS`. Exit code 143; Ctrl-C has 130."""

    exit_code = 143


@contextmanager
def terminable() -> Iterator[None]:
    """Raise :class:`Terminated` on the first such signal inside the block; further ones do not disturb the cleaning up.

    Only the main thread may set signal handlers; elsewhere, and where there is a handler already (``nohup`` has one for
    SIGHUP), it changes nothing.
    """
    main = threading.current_thread() is threading.main_thread()
    ours = [number for number in STOP_SIGNALS if main and signal.getsignal(number) is signal.SIG_DFL]

    def stop(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        for each in ours:
            signal.signal(each, signal.SIG_IGN)
        raise Terminated

    for number in ours:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)
