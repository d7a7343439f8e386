"""Read a whole store, report what is not as it was written, and put it aside. No torch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import DataError, FileError
from harness.results.run_record import RECORD, RunRecord
from harness.safe_io import writing
from harness.store.artifact import META, Artifact, Meta, MissingArtifact
from harness.store.leases import running

if TYPE_CHECKING:
    from harness.store.store import Store


@dataclass(frozen=True)
class Fault:
    """An artifact or a run that is not as it was written.

    Attributes:
        what: the artifact or run, for people.
        why: what is wrong with it.
        path: its folder.
    """

    what: str
    why: str
    path: Path

    def __str__(self) -> str:
        return f"{self.what}: {self.why}"

    def mend(self, store: Store) -> None:
        """Put it aside; the next run that needs an artifact makes it again.

        Raises:
            FileError: the store cannot be written.
        """
        with writing(self.path):
            store.to_debris(self.path)


def inspect(store: Store) -> Iterator[Fault]:
    """Read every artifact in full, and every record of a run, and yield each fault. Changes nothing."""
    for key in store.artifact_keys():
        folder = store.artifact_folder(key)
        try:
            _read_in_full(folder, key)
        except (OSError, ValueError, MissingArtifact) as error:
            if folder.is_dir():  # else it was collected meanwhile
                yield Fault(key[:12], str(error), folder)
    for folder in sorted(store.runs.glob("*/")):
        try:
            RunRecord.load(folder)
        except DataError as error:
            if folder.name not in _going_on(store):
                yield Fault(f"run {folder.name}", f"{RECORD} cannot be read ({error.__cause__ or error})", folder)


def _read_in_full(folder: Path, key: str) -> None:
    meta = Meta.read(folder)
    if meta.key != key:
        raise ValueError(f"{META} is of another artifact")
    artifact = Artifact(folder, meta, lambda *_: None)
    for name in meta.files:
        artifact.path(name)


def _going_on(store: Store) -> set[str]:
    with suppress(FileError):  # a store that cannot be written has no run going on
        return running(store)
    return set()
