# ruff: noqa: ARG001 (every action takes the stage and the store)
"""Toy stages and bodies, importable by workers, and a store that notes what ran."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from harness.engine import Event, Job
from harness.errors import DataError, DivergedError
from harness.stages.context import Context
from harness.store import Stage, Store


def stage(key: str, *inputs: str, do: str = "ok", **more: Any) -> Stage:
    """A stage that does one thing: the function of that name below."""
    fields = {name: more.pop(name) for name in ("in_parent", "outputs") if name in more}
    return Stage("train", key, key, {}, inputs, {"do": do, **more}, title=f"stage {key}", **fields)


class ToyStore(Store):
    """A store that notes which process ran a stage."""

    @property
    def job(self) -> Job:
        """Toy stages need no torch, so that nothing is loaded for the workers."""
        return Job(body, Context(self), preload=())

    def write(self, made: Stage, key: str | None = None) -> None:
        """Write the sum of the inputs' numbers and one; as slowly as ``slow`` says."""
        total = 1 + sum(self.open(name).read_json("number") for name in made.inputs)
        with self.create(made, key=key) as draft:
            draft.write_json("number", total)
            time.sleep(made.payload.get("slow", 0))
            draft.write_json("again", total)

    def note_run(self, key: str) -> None:
        self._folder("ran")
        with (self.root / "ran" / key).open("a") as file:
            file.write(f"{os.getpid()}\n")

    def ran(self, key: str) -> list[int]:
        """Process ids of those that ran a stage, one per execution."""
        path = self.root / "ran" / key
        return [int(line) for line in path.read_text().split()] if path.exists() else []


def diamond(**payload: Any) -> list[Stage]:
    """Four stages; the last one's number is 5."""
    edges = [["first"], ["left", "first"], ["right", "first"], ["last", "left", "right"]]
    return [stage(*edge, **payload) for edge in edges]


def body(stage: Stage, context: Context) -> dict[str, Any]:
    """Do what ``do`` says, then write the artifacts."""
    store = context.store
    assert isinstance(store, ToyStore)
    store.note_run(stage.key)
    for name in stage.inputs:
        assert store.has(name), name
    action = globals()["_" + stage.payload["do"].replace("-", "_")]
    extra = action(stage, store) or {}
    for key in (*stage.outputs, stage.key):
        store.write(stage, key)
    return {**extra, "place": context.device, "store": str(store.root)}


REMEMBERED: set[str] = set()


def remembering_body(stage: Stage, context: Context) -> None:
    """Note in this process alone that the stage ran."""
    REMEMBERED.add(stage.key)


def broken_body(stage: Stage, context: Context) -> None:
    """End without an artifact."""


class Recorder:
    """An observer that keeps what it saw."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def __call__(self, event: Event) -> None:
        self.events.append(event)

    def kinds(self, key: str) -> list[str]:
        return [event.kind for event in self.events if event.stage.key == key]

    def keys(self, kind: str) -> list[str]:
        return [event.stage.key for event in self.events if event.kind == kind]

    def last(self, key: str) -> Event:
        return [event for event in self.events if event.stage.key == key][-1]


def wait_until(true: Callable[[], bool], seconds: float = 60) -> None:
    """Wait, but not for ever."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def _ok(stage: Stage, store: ToyStore) -> None:
    """Do nothing more."""


def _raise(stage: Stage, store: ToyStore) -> None:
    raise ValueError("the loss is\nof the wrong shape")


class AcceleratorError(RuntimeError):
    """Named as torch's, without torch."""


def _spoil(stage: Stage, store: ToyStore) -> None:
    raise AcceleratorError("CUDA error: an illegal memory access was encountered")


def _exit(stage: Stage, store: ToyStore) -> None:
    sys.exit("already finished")


def _diverge(stage: Stage, store: ToyStore) -> None:
    raise DivergedError("the loss was nan in epoch 3")


def _no_data(stage: Stage, store: ToyStore) -> None:
    raise DataError("no such file")


def _disk(stage: Stage, store: ToyStore) -> None:
    try:
        raise OSError(errno.ENOSPC, "No space left on device")
    except OSError as error:
        raise RuntimeError("cannot save") from error


def _no_memory(stage: Stage, store: ToyStore) -> None:
    raise MemoryError


def _loop(stage: Stage, store: ToyStore) -> None:
    while True:
        pass


def _stop(stage: Stage, store: ToyStore) -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def _deaf(stage: Stage, store: ToyStore) -> None:
    signal.signal(signal.SIGUSR1, signal.SIG_DFL)
    _loop(stage, store)


def _hog(stage: Stage, store: ToyStore) -> None:
    held = []
    while True:
        held.append(b"x" * (16 << 20))
        time.sleep(0.01)


def _child_hog(stage: Stage, store: ToyStore) -> None:
    """Hold memory in a process of a process, and none here."""
    hold = "held = b'x' * (700 << 20); import time; time.sleep(60)"
    between = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {hold!r}])"
    subprocess.run([sys.executable, "-c", between], check=False)


def _forks(stage: Stage, store: ToyStore) -> None:
    """Hold memory that forks share, as a loader's workers do."""
    held = b"x" * (300 << 20)
    children = [os.fork() for _ in range(3)]
    time.sleep(1.5)
    if not all(children):
        os._exit(0)
    assert held
    for child in children:
        os.waitpid(child, 0)


def _quit(stage: Stage, store: ToyStore) -> None:
    os._exit(7)


def _suicide(stage: Stage, store: ToyStore) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _suicide_once(stage: Stage, store: ToyStore) -> None:
    if len(store.ran(stage.key)) == 1:
        os.kill(os.getpid(), signal.SIGKILL)


def _interrupt_self(stage: Stage, store: ToyStore) -> None:
    os.kill(os.getpid(), signal.SIGINT)


def _environment(stage: Stage, store: ToyStore) -> dict[str, Any]:
    import torch

    return {"threads": torch.get_num_threads(), "omp": os.environ.get("OMP_NUM_THREADS"), "own": 1}


def _unsendable(stage: Stage, store: ToyStore) -> dict[str, Any]:
    return {"function": lambda: None}


def _swell(stage: Stage, store: ToyStore) -> None:
    held = b"x" * (96 << 20)
    assert held


def _say(stage: Stage, store: ToyStore) -> None:
    print("a line from a plugin")
    sys.stdout.flush()


def _shout(stage: Stage, store: ToyStore) -> None:
    """Print 80 MiB, half of it in a process of its own, and a last line a moment later."""
    shout = "import os\nfor _ in range(40): os.write(1, b'x' * (1 << 20))"
    subprocess.run([sys.executable, "-c", shout], check=True)
    for _ in range(40):
        os.write(1, b"x" * (1 << 20))
    time.sleep(1.5)
    os.write(1, b"the last line\n")


def _find_damage(stage: Stage, store: ToyStore) -> None:
    """On the first try, read damaged inputs: they are put aside, and the stage fails."""
    time.sleep(stage.payload.get("seconds", 0))
    if len(store.ran(stage.key)) <= stage.payload.get("times", 1):
        for name in stage.inputs:
            shutil.rmtree(store.artifact_folder(name), ignore_errors=True)
        raise RuntimeError("an input is damaged")


def _sleep(stage: Stage, store: ToyStore) -> None:
    time.sleep(stage.payload["seconds"])


def _thread(stage: Stage, store: ToyStore) -> None:
    """Leave a thread."""
    threading.Thread(target=time.sleep, args=(100,)).start()


def _delay(stage: Stage, store: ToyStore) -> None:
    """As slow as the worker's environment says."""
    time.sleep(float(os.environ.get("BENCH_TOY_DELAY", "0.05")))
