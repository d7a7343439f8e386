"""What is in a store, and how much room it takes."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.store.store import Store


@dataclass(frozen=True)
class Info:
    """One artifact in a listing: its description, bytes, and when it was made and last opened (seconds since 1970)."""

    key: str
    kind: str
    place: str
    title: str
    size: int
    created: float
    used: float


def listing(store: Store) -> tuple[Info, ...]:
    """Every complete artifact, oldest first."""
    found = []
    for key in store.artifact_keys():
        meta = store.meta(key)
        with suppress(FileNotFoundError):  # collected meanwhile
            if meta is not None:
                used = store.artifact_folder(key).stat().st_mtime
                found.append(Info(key, meta.kind, meta.place, meta.title, meta.size, meta.created, used))
    return tuple(sorted(found, key=lambda info: (info.created, info.key)))


def size(folder: Path) -> int:
    """Bytes of all files below a folder; files that vanish meanwhile count nothing."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += (Path(parent) / name).lstat().st_size
    return total


def other_sizes(store: Store) -> dict[str, int]:
    """Bytes of what is in a store beside artifacts and what describes them."""
    leftovers = [store.root / "debris", store.root / "tmp"]
    return {"runs": size(store.runs), "leftovers": sum(map(size, leftovers))}
