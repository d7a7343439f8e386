"""The core's files whose code computes, and whether this process still holds what stands in them. No torch."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final

from harness.errors import ChangedError

HARNESS: Final = Path(__file__).resolve().parents[1]
PLUGINS: Final = HARNESS.parent / "plugins"
"""Our ``plugins`` package is installed beside ``harness``, whatever else has that name."""
_ALL_ROOMS: Final = (
    "graphs",
    "nn",
    "training",
    "randomness.py",
    "results/means.py",
    "stages/encode.py",
    "stages/quantify.py",
    "stages/annotate.py",
    "stages/train.py",
    "stages/upstream.py",
    "stages/reading.py",
)
_ROOMS: Final = {
    "dataset": ("graphs/packed.py", "graphs/batch.py", "graphs/checks.py", "stages/prepare.py"),
    "analysis": (*_ALL_ROOMS, "stages/analyse.py", "stages/cell.py"),
}
_Mark = tuple[int, int]


def room_files(kind: str, core: Path = HARNESS) -> list[Path]:
    """The core's files whose numerics a component of this kind depends on, in order."""
    files: list[Path] = []
    for name in _ROOMS.get(kind, _ALL_ROOMS):
        path = core / name
        files += sorted(path.rglob("*.py")) if path.is_dir() else [path] if path.is_file() else []
    return files


def _mark(path: Path) -> _Mark | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size


def _marked() -> Iterator[tuple[Path, _Mark | None]]:
    for path in {*room_files("analysis"), *room_files("dataset"), *PLUGINS.rglob("*.py")}:
        yield path, _mark(path)


_AT_START: Final = dict(_marked())
"""As the files were when this process, or the one that it was forked from, imported the harness: before their code."""


def is_as_at_start(path: Path) -> bool:
    """Whether a file of the rooms or of our plugins has not been written since this process imported the harness."""
    return path in _AT_START and _AT_START[path] == _mark(path)


def refuse_changed(planned: Mapping[str, str]) -> None:
    """Refuse to compute with other code of the core than was planned with.

    Args:
        planned: path below the core -> SHA-256.

    Raises:
        ChangedError: a file is not as it was, or was written after this process may have loaded it.
    """
    for name, digest in planned.items():
        path = HARNESS / name
        mark = _mark(path)
        if mark is None or _digest(path, mark) != digest:
            raise ChangedError(f"changed since it was planned: {path}")
        if _AT_START.get(path) != mark:
            raise ChangedError(
                f"changed since this process started, which may have loaded what it held before: {path}; start it again"
            )


@lru_cache(maxsize=256)
def _digest(path: Path, mark: _Mark) -> str:
    del mark  # part of the cache's key alone
    return hashlib.sha256(path.read_bytes()).hexdigest()
