"""Where artifacts can be taken from: another store's folder here, object stores in :mod:`harness.store.objects`."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import BinaryIO, Protocol

from harness.errors import BenchError
from harness.results.run_record import RECORD, RESULTS
from harness.safe_io import RUN_ID
from harness.store.artifact import META
from harness.store.keys import DIGEST
from harness.store.store import Store

RUN_FILES = ("suite.yaml", RESULTS, RECORD)
"""What is copied of a run folder, the record last: a report can be made of it."""


class Refused(BenchError):
    """Something elsewhere is damaged, or not what a store may take in; nothing of it has been kept."""


class Source(Protocol):
    """What can be read from another store. Whatever it gives is checked by who takes it in."""

    name: str

    def present(self, keys: Collection[str]) -> set[str]:
        """Those of the keys that it has."""

    def keys(self) -> list[str]:
        """All keys that it has."""

    def runs(self) -> list[str]:
        """Ids of all runs that it has."""

    def meta(self, key: str) -> BinaryIO:
        """The description of an artifact."""

    def file(self, key: str, name: str, sha256: str) -> BinaryIO:
        """A file of an artifact, by its name and checksum."""

    def size(self, key: str, name: str, sha256: str) -> int | None:
        """Bytes that a file of an artifact really has, or None where it cannot be told."""

    def record(self, key: str) -> BinaryIO:
        """What is known of a stage's execution; :class:`FileNotFoundError` where nothing."""

    def run_file(self, run: str, name: str) -> BinaryIO:
        """A file of a run folder."""


def is_run_id(name: str) -> bool:
    """Whether a name can be that of a run's folder, and leads nowhere else."""
    return RUN_ID.fullmatch(name) is not None


class FolderSource:
    """The folder of another store, which is only read: nothing in it is put aside, removed or marked as used."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.name = str(store.root)

    def exists(self) -> bool:
        """Whether there is such a folder; it may be empty."""
        return self._store.root.exists()

    def present(self, keys: Collection[str]) -> set[str]:
        """Those of the keys that it has."""
        return self._store.present(keys)

    def keys(self) -> list[str]:
        """All keys that it has."""
        return [key for key in self._store.artifact_keys() if DIGEST.fullmatch(key)]

    def runs(self) -> list[str]:
        """Ids of all runs that it has."""
        return sorted(path.parent.name for path in self._store.runs.glob(f"*/{RECORD}") if is_run_id(path.parent.name))

    def meta(self, key: str) -> BinaryIO:
        """The description of an artifact."""
        return _plain(self._store.artifact_folder(key) / META)

    def file(self, key: str, name: str, sha256: str) -> BinaryIO:  # noqa: ARG002 - other sources go by it
        """A file of an artifact."""
        return _plain(self._store.artifact_folder(key) / name)

    def size(self, key: str, name: str, sha256: str) -> int | None:  # noqa: ARG002 - other sources go by it
        """Bytes that a file of an artifact has."""
        return (self._store.artifact_folder(key) / name).lstat().st_size

    def record(self, key: str) -> BinaryIO:
        """What is known of a stage's execution."""
        return _plain(self._store.record_path(key))

    def run_file(self, run: str, name: str) -> BinaryIO:
        """A file of a run folder."""
        return _plain(self._store.runs / run / name)


def _plain(path: Path) -> BinaryIO:
    """Open a file that is one: a link could lead anywhere, and a pipe would wait for ever."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        if path.is_symlink():
            raise Refused(f"{path.name} is a link; links are not followed") from None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise Refused(f"{path.name} is no plain file")
    return os.fdopen(descriptor, "rb")


def chunks(stream: BinaryIO, most: int, what: str) -> Iterator[bytes]:
    """The content of a stream, and not a byte more than it may have.

    Raises:
        Refused: it has more, or cannot be read.
    """
    while block := _read(stream, min(1 << 20, most + 1), what):
        most -= len(block)
        if most < 0:
            raise Refused(f"{what} is larger than it may be")
        yield block


def _read(stream: BinaryIO, size: int, what: str) -> bytes:
    try:
        return stream.read(size)
    except OSError as error:
        raise Refused(f"{what} cannot be read ({error.strerror or error})") from None
