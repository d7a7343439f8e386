"""Look after a store: what is in it, what is damaged, and making room beside running processes. No torch.

What must write raises a :class:`harness.errors.FileError` where the store cannot be written.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import DataError, FileError
from harness.results.run_record import RECORD, RunRecord
from harness.safe_io import writing
from harness.store.artifact import META, Artifact, Meta, MissingArtifact
from harness.store.keys import DIGEST, digest
from harness.store.leases import delete, leftovers, running, sweep
from harness.store.stage import tier_key

if TYPE_CHECKING:
    from harness.store.store import Store


@dataclass(frozen=True)
class Info:
    """An artifact in a listing; ``created`` and ``used`` (last opened) are seconds since 1970."""

    key: str
    kind: str
    place: str
    title: str
    size: int
    created: float
    used: float


@dataclass(frozen=True)
class Garbage:
    """Artifacts and leftovers that may go, or have gone.

    Attributes:
        artifacts: in the order in which they go.
        leftovers: files and folders of dead processes, and damaged artifacts that were put aside.
        size: bytes of both.
        total: bytes that all artifacts had.
        in_use: how many artifacts stay only because a run or another process uses them.
    """

    artifacts: tuple[Info, ...]
    leftovers: tuple[Path, ...]
    size: int
    total: int
    in_use: int = 0


def listing(store: Store) -> tuple[Info, ...]:
    """Return every complete artifact, oldest first."""
    infos = []
    for key in store.artifact_keys():
        meta = store.meta(key)
        with suppress(FileNotFoundError):  # collected meanwhile
            if meta is not None:
                used = store.artifact_folder(key).stat().st_mtime
                infos.append(Info(key, meta.kind, meta.place, meta.title, meta.size, meta.created, used))
    return tuple(sorted(infos, key=lambda info: (info.created, info.key)))


def disk_size(path: Path) -> int:
    """Return the bytes of a file, or of all files below a folder; files that vanish meanwhile count nothing."""
    total = 0
    files = [Path(parent) / name for parent, _, names in os.walk(path) for name in names] if path.is_dir() else [path]
    for file in files:
        with suppress(OSError):
            total += file.lstat().st_size
    return total


def choose(
    store: Store,
    older_than: float | None = None,
    max_size: int | None = None,
    keep: Collection[str] | None = None,
) -> Garbage:
    """Return what may go and is not needed by a run that is going on. Removes nothing.

    Where several conditions are given an artifact goes only if each allows it; with none only leftovers go.

    Args:
        older_than: seconds since an artifact was last opened, at least.
        max_size: bytes that all artifacts together may have; the least recently used go first, until that is so.
        keep: keys of the stages that are still wanted.

    Raises:
        FileError: the store cannot be written, so that nobody can tell which runs are going on.
    """
    now, infos = time.time(), listing(store)
    total = left = sum(info.size for info in infos)
    chosen, in_use = [], 0
    if (older_than, max_size, keep) != (None, None, None):
        used = _keys_in_use(store)
        for info in sorted(infos, key=lambda info: (info.used, info.key)):
            if max_size is not None and left <= max_size:
                break
            if older_than is not None and now - info.used <= older_than:
                continue
            if keep is not None and _needed(store, info, keep):
                continue
            if _needed(store, info, used):
                in_use += 1
                continue
            chosen.append(info)
            left -= info.size
    rest = (*(store.root / "debris").glob("*"), *leftovers(store.root))
    return Garbage(tuple(chosen), rest, total - left + sum(map(disk_size, rest)), total, in_use)


def remove(store: Store, garbage: Garbage) -> Garbage:
    """Remove what was chosen, but for what a process holds or has opened since, and return what has gone.

    Each artifact goes in one step, so that no reader meets half of it; a run that loses one makes it again.
    """
    used = _keys_in_use(store)  # once more: a run may have begun since
    gone = tuple(info for info in garbage.artifacts if not _needed(store, info, used) and _remove(store, info))
    size = sum(info.size for info in gone)
    for path in garbage.leftovers:
        size += disk_size(path)
        delete(path)
    sweep(store.root)
    held = len(garbage.artifacts) - len(gone)
    return Garbage(gone, garbage.leftovers, size, garbage.total, garbage.in_use + held)


def _remove(store: Store, info: Info) -> bool:
    """Remove an artifact and return True, unless another process holds it or has opened it since it was chosen."""
    lease, folder = store.try_lease(info.key), store.artifact_folder(info.key)
    if lease is None:
        return False
    with lease, suppress(OSError):
        if folder.stat().st_mtime == info.used:
            delete(store.to_debris(folder))
            for path in (store.place_folder(info.place) / f"{info.key}.json", store.record_path(info.key)):
                path.unlink(missing_ok=True)
            return True
    return False


def _needed(store: Store, info: Info, keys: Collection[str]) -> bool:
    """Return True if an artifact is of stages with these keys: theirs, or an analysis of what is theirs."""
    meta = store.meta(info.key) if keys else None
    if meta is None:
        return False
    if meta.key in keys or stage_key(meta) in keys:
        return True
    inputs = [value for value in meta.preimage.values() if isinstance(value, str) and DIGEST.fullmatch(value)]
    return meta.kind == "analyse" and bool(inputs) and all(key in keys for key in inputs)


def stage_key(meta: Meta) -> str:
    """Return the key of the stage that wrote an artifact: its own, but for the tiers of a prepared dataset."""
    return digest(meta.preimage)


def keys_of_stage(key: str) -> tuple[str, str, str]:
    """Return all keys that a stage may write: its own, and those of a prepared dataset's further tiers."""
    return key, tier_key(key, "oracle"), tier_key(key, "sealed")


def keys_of_run(record: RunRecord) -> set[str]:
    """Return the keys of the stages whose artifacts a run is made of."""
    cells = [key for cell in record.cells for key in (cell.train, cell.score, *cell.needs)]
    return {*record.prepared.values(), *cells}


def _keys_in_use(store: Store) -> set[str]:
    """Return the keys of the runs that are going on; those without a readable record have none."""
    keys: set[str] = set()
    for name in running(store):
        with suppress(DataError):
            keys |= keys_of_run(RunRecord.load(store.runs / name))
    return keys


@dataclass(frozen=True)
class Fault:
    """An artifact or a run that is not as it was written: what is wrong, for people, and its folder."""

    text: str
    path: Path

    def __str__(self) -> str:
        return self.text

    def mend(self, store: Store) -> None:
        """Put it aside; the next run that needs an artifact makes it again."""
        with writing(self.path):
            store.to_debris(self.path)


def inspect(store: Store) -> Iterator[Fault]:
    """Read every artifact in full, and every record of a run, and yield each fault. Changes nothing."""
    for key in store.artifact_keys():
        folder = store.artifact_folder(key)
        try:
            meta = Meta.read(folder)
            if meta.key != key:
                raise ValueError(f"{META} is of another artifact")
            artifact = Artifact(folder, meta, lambda *_: None)
            for name in meta.files:
                artifact.path(name)
        except (OSError, ValueError, MissingArtifact) as error:
            if folder.is_dir():  # else it was collected meanwhile
                yield Fault(f"{key[:12]}: {error}", folder)
    for folder in sorted(store.runs.glob("*/")):
        try:
            RunRecord.load(folder)
        except DataError as error:
            with suppress(FileError):  # a store that cannot be written has no run going on
                if folder.name in running(store):
                    continue
            yield Fault(f"run {folder.name}: {RECORD} cannot be read ({error.__cause__ or error})", folder)
