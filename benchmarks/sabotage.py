"""Harm to a running process and to a store, drawn from a seeded generator. See ``faults.py``."""

from __future__ import annotations

import errno
import os
import random
import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

Harm = Callable[[], None]
"""Is called in the process that is harmed, before it runs."""


def failing_writes(rng: random.Random, number: int, fired: Path, *, for_good: bool) -> Harm:
    """Writes, renames and new folders fail with an error from a random one on, for a while or for good.

    A write that fails has written half, as on a disk that becomes full. ``fired`` is made when the first one fails.
    """
    first, last = (start := rng.randrange(1, 200)), start + (10**9 if for_good else rng.randrange(1, 25))
    count = [0]

    def due() -> bool:
        count[0] += 1
        return first <= count[0] < last

    def fail(path: object) -> None:
        mark(fired)
        raise OSError(number, os.strerror(number), str(path))

    def harm() -> None:
        import safetensors.torch

        real_text, real_open, real_save = Path.write_text, Path.open, safetensors.torch.save_file
        real_replace, real_mkdir = Path.replace, Path.mkdir

        def write_text(self: Path, data: str, *rest: Any, **more: Any) -> int:
            if due():
                with suppress(OSError):
                    real_text(self, data[: len(data) // 2], *rest, **more)
                fail(self)
            return real_text(self, data, *rest, **more)

        def open_(self: Path, mode: str = "r", *rest: Any, **more: Any) -> Any:
            if set(mode) & set("wax") and due():
                fail(self)
            return real_open(self, mode, *rest, **more)

        def save_file(tensors: Any, path: Path, *rest: Any) -> None:
            if due():
                Path(path).write_bytes(b"\x08")
                fail(path)
            real_save(tensors, path, *rest)

        def replace(self: Path, target: Path) -> Path:
            if due():
                fail(self)
            return real_replace(self, target)

        def mkdir(self: Path, *rest: Any, **more: Any) -> None:
            if due():
                fail(self)
            real_mkdir(self, *rest, **more)

        Path.write_text, Path.open, Path.replace, Path.mkdir = write_text, open_, replace, mkdir  # type: ignore[method-assign, assignment]
        safetensors.torch.save_file = save_file  # type: ignore[assignment]

    return harm


def odd_renames(rng: random.Random, fired: Path) -> Harm:
    """Each fourth rename or so fails for a while, is done but reported as failed, or shows up late."""
    seed = rng.random()

    def harm() -> None:
        drawn, real = random.Random(seed), Path.replace

        def later(hidden: Path, target: Path) -> None:
            with suppress(OSError):
                real(hidden, target)
            shutil.rmtree(hidden, ignore_errors=True)

        def replace(self: Path, target: Path) -> Path:
            kind = drawn.random()
            if kind < 0.25:
                mark(fired)
            if kind < 0.15:
                number = drawn.choice([errno.ESTALE, errno.EBUSY, errno.EEXIST])
                raise OSError(number, os.strerror(number), str(self))
            if kind < 0.2:
                real(self, target)
                raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), str(self))
            if kind < 0.25 and self.is_dir() and not target.exists():
                hidden = self.with_name(f"{self.name}-late")
                real(self, hidden)
                threading.Timer(drawn.uniform(0.05, 0.5), later, (hidden, target)).start()
                return target
            return real(self, target)

        Path.replace = replace  # type: ignore[method-assign, assignment]

    return harm


def no_locks() -> None:
    """As on a mount without a lock service."""
    import fcntl

    def flock(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    fcntl.flock = flock


def damage(rng: random.Random, store: Path, count: int) -> list[str]:
    """Flip a bit of, truncate, blank or remove some files; tells which."""
    files = sorted(path for path in store.rglob("*") if path.is_file() and "runs" not in path.parts)
    told = []
    for path in rng.sample(files, min(count, len(files))):
        content, how = bytearray(path.read_bytes()), rng.choice(["flip", "flip", "truncate", "blank", "remove"])
        if how == "remove" or not content:
            path.unlink()
        elif how == "flip":
            content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
            path.write_bytes(content)
        elif how == "truncate":
            path.write_bytes(content[: rng.randrange(len(content))])
        else:
            path.write_bytes(bytes(len(content)))
        told.append(f"{how} {path.relative_to(store)}")
    return told


def mark(path: Path) -> None:
    """Make an empty file by other means than those that are made to fail."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT))


def kill_one(rng: random.Random, pid: int) -> bool:
    """Kill a random descendant of a process, when it has some: a worker, the fork server or the resource tracker."""
    with suppress(psutil.Error):
        while (parent := psutil.Process(pid)).status() != psutil.STATUS_ZOMBIE:
            if family := parent.children(recursive=True):
                rng.choice(family).kill()
                return True
            time.sleep(0.05)
    return False


def lingering(store: Path, seconds: float = 20.0) -> list[str]:
    """Processes that still have this store in their environment, after some time to leave."""
    end = time.monotonic() + seconds
    while found := _users(str(store)):
        if time.monotonic() > end:
            return found
        time.sleep(0.1)
    return []


def _users(store: str) -> list[str]:
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            started_with = process.environ().get("BENCH_STORE") == store
            if process.pid != os.getpid() and started_with and process.status() != psutil.STATUS_ZOMBIE:
                found.append(f"{process.pid} {' '.join(process.cmdline())[:80]}")
    return found


class Disk:
    """A small disk of its own (tmpfs), where the system lets us mount one."""

    def __init__(self, folder: Path, size: str) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self._call("mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder))

    def again(self, options: str) -> None:
        """Change it: ``ro``, ``rw``, ``size=64m``."""
        self._call("mount", "-o", f"remount,{options}", str(self.folder))

    def close(self) -> None:
        """Take it away."""
        self._call("umount", "-l", str(self.folder))

    @staticmethod
    def possible(folder: Path) -> bool:
        """Whether we may mount."""
        if os.name != "posix" or os.geteuid() != 0 or shutil.which("mount") is None:
            return False
        try:
            Disk(folder / "try", "100k").close()
        except (OSError, subprocess.CalledProcessError):
            return False
        return True

    @staticmethod
    def _call(*words: str) -> None:
        subprocess.run(words, check=True, capture_output=True)
