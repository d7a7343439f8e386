"""The core's files whose code enters keys, and a check that they are those that were planned with. No torch."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final

from harness.errors import ChangedError

HARNESS: Final = Path(__file__).resolve().parents[1]
PLUGINS: Final = HARNESS.parent / "plugins"
"""Our ``plugins`` package is installed beside ``harness``, whatever else has that name."""
_NUMERICS: Final = (
    "graphs",
    "nn",
    "training",
    "registry/pygcl.py",
    "randomness.py",
    "results/summary.py",
    "stages/encode.py",
    "stages/quantify.py",
    "stages/annotate.py",
    "stages/train.py",
    "stages/learners.py",
    "stages/reading.py",
)
_OF_KIND: Final = {
    "dataset": ("graphs/packed.py", "graphs/batch.py", "graphs/checks.py", "stages/prepare.py"),
    "analysis": (*_NUMERICS, "stages/analyse.py", "stages/cell.py"),
}
_Mark = tuple[int, int]


def core_files(kind: str, core: Path = HARNESS) -> list[Path]:
    """Return the core's files on whose numerics a component of this kind depends, in order."""
    files: list[Path] = []
    for name in _OF_KIND.get(kind, _NUMERICS):
        path = core / name
        files += sorted(path.rglob("*.py")) if path.is_dir() else [path]
    return files


def _mark(path: Path) -> _Mark | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size


_OURS: Final = (*core_files("analysis"), *core_files("dataset"), *PLUGINS.rglob("*.py"))
_AT_START: Final = {path: _mark(path) for path in _OURS}
"""The state of the files when this process, or the one it was forked from, began to import the harness."""


def is_as_at_start(path: Path) -> bool:
    """Return True if a core or plugin file of ours was not written since this process imported the harness."""
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
