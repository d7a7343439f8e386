"""Copies between stores: what one has and the other lacks, checked where it arrives. No torch."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from urllib.request import url2pathname

from harness.errors import UserError
from harness.store.artifact import MissingArtifact
from harness.store.intake import receive, receive_run
from harness.store.keys import DIGEST
from harness.store.objects import Objects, open_objects
from harness.store.references import keys_of_run, keys_of_stage, needed
from harness.store.source import FolderSource, Refused, Source
from harness.store.store import Store

_AT_ONCE = 4
Progress = Callable[[int, int, int], None]
"""Is told how many artifacts are done, of how many, and how many bytes were copied."""


@dataclass
class Copied:
    """What a copy did: artifacts, bytes and runs copied, artifacts that were there, and what was refused and why."""

    artifacts: int = 0
    bytes: int = 0
    present: int = 0
    runs: int = 0
    refused: dict[str, str] = field(default_factory=dict)


def open_target(target: str, store: Store) -> FolderSource | Objects:
    """The other store: a folder (also as ``file://``), or an fsspec URL.

    Raises:
        UserError: it is empty, this store itself, or cannot be used.
    """
    if not target.removeprefix("file://").strip():
        raise UserError("the target is empty; name a folder or a URL")  # an empty path is the current folder
    if "://" in target and not target.startswith("file://"):
        return open_objects(target)
    other = Store(folder_of(target))
    if other.root.resolve() == store.root.resolve():
        raise UserError(f"{target} is this store itself")
    return FolderSource(other)


def open_source(target: str, store: Store) -> FolderSource | Objects:
    """The other store, as :func:`open_target` gives it, to copy from.

    Raises:
        UserError: there is none: to pull nothing from a mistyped place would look like success.
    """
    source = open_target(target, store)
    if not source.exists():
        raise UserError(f"there is no store at {target}")
    return source


def folder_of(target: str) -> Path:
    """The folder that a target names."""
    return Path(url2pathname(target.removeprefix("file://"))).expanduser()


def pull(store: Store, source: Source, keys: Collection[str], runs: Iterable[str], progress: Progress) -> Copied:
    """Copy artifacts and runs into this store.

    Args:
        keys: those that are wanted; those that the source lacks, or that are here, are left out.
        runs: ids of runs that are wanted, with all that they are made of.

    Raises:
        StoreError, DiskFullError: the store cannot take them; what has arrived is kept.
    """
    store.require_writable()
    copied, all_keys = Copied(), set(keys)
    for run in runs:
        try:
            record, new = receive_run(store, source, run)
            all_keys.update(*map(keys_of_stage, keys_of_run(record)))
            copied.runs += new
        except Refused as error:
            copied.refused[f"run {run}"] = str(error)
    there = source.present({key for key in all_keys if DIGEST.fullmatch(key)})
    wanted = sorted(key for key in there if not store.has(key))
    copied.present = len(there) - len(wanted)
    work = _Work(copied, len(wanted), progress)
    _each(wanted, lambda key: work.one(key, lambda moved: receive(store, source, key, moved)))
    return copied


def push(
    store: Store, target: FolderSource | Objects, keys: Collection[str], runs: Sequence[str], progress: Progress
) -> Copied:
    """Copy artifacts and runs of this store elsewhere; see :func:`pull`."""
    if isinstance(target, FolderSource):
        return pull(Store(Path(target.name)), FolderSource(store), keys, runs, progress)
    there = target.present(keys)
    wanted = sorted(set(keys) - there)
    copied = Copied(present=len(there))
    work = _Work(copied, len(wanted), progress)
    _each(wanted, lambda key: work.one(key, lambda moved: target.put(store, key, moved)))
    for run in runs:
        try:
            copied.runs += target.put_run(store, run)
        except FileNotFoundError as error:
            copied.refused[f"run {run}"] = f"it is not complete ({Path(str(error.filename)).name} is missing)"
    return copied


def stored(store: Store, keys: Collection[str]) -> list[str]:
    """Keys of the artifacts in this store that belong to stages with these keys: further tiers and analyses too."""
    return [info.key for info in store.list() if (meta := store.meta(info.key)) is not None and needed(meta, keys)]


class _Work:
    """Counts, from several threads, and keeps the reason of what was refused."""

    def __init__(self, copied: Copied, total: int, progress: Progress) -> None:
        self._copied, self._total, self._progress = copied, total, progress
        self._lock = Lock()
        self._done = 0
        self._tell()

    def one(self, key: str, copy: Callable[[Callable[[int], None]], None]) -> None:
        """Copy one artifact; what is wrong with it stops no other."""
        reason = ""
        try:
            copy(self._moved)
        except (Refused, MissingArtifact) as error:
            reason = str(error)
        with self._lock:
            self._done += 1
            if reason:
                self._copied.refused[key[:12]] = reason
            else:
                self._copied.artifacts += 1
            self._tell()

    def _moved(self, size: int) -> None:
        with self._lock:
            self._copied.bytes += size
            self._tell()

    def _tell(self) -> None:
        self._progress(self._done, self._total, self._copied.bytes)


def _each(keys: Sequence[str], copy: Callable[[str], None]) -> None:
    """Several at a time: object stores answer slowly. The first error that is no refusal ends it."""
    pool = ThreadPoolExecutor(_AT_ONCE)
    try:
        for done in [pool.submit(copy, key) for key in keys]:
            done.result()
    finally:
        pool.shutdown(cancel_futures=True)
