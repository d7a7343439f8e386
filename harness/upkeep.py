"""Upkeep of a store: what is in it, whether it is sound, and what can go."""

from __future__ import annotations

import os
import shutil
import time
import uuid
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness.artifact import META
from harness.keys import hash_file

if TYPE_CHECKING:
    from harness.store import Store

_YOUNG = 3600.0


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


@dataclass(frozen=True)
class Removed:
    """What :func:`collect` removed, or would remove: artifacts, other leftovers, bytes of both."""

    artifacts: tuple[Info, ...]
    debris: int
    size: int


def listing(store: Store) -> tuple[Info, ...]:
    """Every complete artifact, oldest first."""
    found = []
    for key in store.artifact_keys():
        meta = store.meta(key)
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


def verify(store: Store) -> list[str]:
    """Read every artifact in full; damaged ones are put aside. One line for each problem, and nothing in the log."""
    with store.noting_damage() as noted:
        return list(_problems(store, noted))


def _problems(store: Store, noted: Mapping[str, str]) -> Iterator[str]:
    for key in store.artifact_keys():
        folder = store.artifact_folder(key)
        meta = store.meta(key)
        if meta is None:
            yield f"{key[:12]}: incomplete, or its description is damaged ({noted.get(key, 'it is gone')})"
            continue
        faults = [name for name, item in meta.files.items() if not _sound(folder / name, str(item["sha256"]))]
        if meta.key != key:
            faults.append(META)
        if faults:
            text = f"{', '.join(faults)}: content differs from what was written"
            yield f"{key[:12]} ({meta.title}): {text}"
            store.put_aside(key, text)
            continue
        extra = {path.name for path in folder.glob("*")} - {META, *meta.files}
        if extra:
            names = ", ".join(f"'{name}'" for name in sorted(extra))
            yield f"{key[:12]} ({meta.title}): {names} does not belong there"


def _sound(path: Path, expected: str) -> bool:
    try:
        return hash_file(path) == expected
    except OSError:
        return False


def collect(
    store: Store,
    *,
    keep: Collection[str] | None = None,
    unused_for: float | None = None,
    dry_run: bool = False,
    now: float | None = None,
) -> Removed:
    """Remove what is no longer wanted.

    Debris always goes: drafts of dead writers, damaged artifacts that were put aside, forgotten part files. An
    artifact goes when every condition that is given condemns it; with none given all stay. A run that loses an
    artifact to a concurrent collection makes it again.

    Args:
        keep: keys still wanted, those of further outputs included.
        unused_for: seconds since an artifact was last opened.
        dry_run: only tell.
        now: the current time, in seconds since 1970.

    Raises:
        StoreError: the store cannot be written.
    """
    moment = time.time() if now is None else now
    condemned = [info for info in listing(store) if _condemned(info, keep, unused_for, moment)]
    leftovers = list(_leftovers(store, moment))
    total = sum(info.size for info in condemned) + sum(
        size(path) if path.is_dir() else path.lstat().st_size for path in leftovers
    )
    if dry_run:
        return Removed(tuple(condemned), len(leftovers), total)
    for info in condemned:
        _remove(store, info)
    for path in leftovers:
        _delete(path)
    swept = store.sweep()
    return Removed(tuple(condemned), len(leftovers) + swept, total)


def _condemned(info: Info, keep: Collection[str] | None, unused_for: float | None, now: float) -> bool:
    if keep is None and unused_for is None:
        return False
    return (keep is None or info.key not in keep) and (unused_for is None or now - info.used > unused_for)


def _leftovers(store: Store, now: float) -> Iterator[Path]:
    yield from (store.root / "debris").glob("*")
    for pattern in ("*.part", "*/*.part", "*/*/*.part"):
        for path in store.root.glob(pattern):
            with suppress(OSError):
                if now - path.stat().st_mtime > _YOUNG:
                    yield path


def _remove(store: Store, info: Info) -> None:
    """Take an artifact away in one step, so that no reader meets half of it, then delete it and what tells of it."""
    debris = store.root / "debris"
    with suppress(OSError):
        debris.mkdir(exist_ok=True)
        gone = debris / f"{info.key}-{uuid.uuid4().hex[:8]}"
        store.artifact_folder(info.key).rename(gone)
        _delete(gone)
        for path in (store.place_folder(info.place) / f"{info.key}.json", store.record_path(info.key)):
            path.unlink(missing_ok=True)


def _delete(path: Path) -> None:
    with suppress(OSError):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
