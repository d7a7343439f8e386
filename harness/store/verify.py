"""Read a whole store, report what is not as it was written, and mend it. No torch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import DataError, FileError
from harness.results.run_record import RECORD, RunRecord
from harness.safe_io import writing
from harness.store.artifact import META, Meta
from harness.store.gc import stage_key
from harness.store.keys import hash_file
from harness.store.leases import running

if TYPE_CHECKING:
    from harness.store.store import Store

_ASIDE = "put aside"


@dataclass(frozen=True)
class Fault:
    """Something in a store that is not as it was written.

    Attributes:
        what: the artifact, file or run, for people.
        why: what is wrong with it.
        path: the file or folder to be put aside; None where the index of places lacks an artifact.
        cure: the effect of mending it.
        damaged: whether an artifact, or what stands in the place of one, cannot be used for it.
        lacking: the place and the key that the index lacks.
    """

    what: str
    why: str
    path: Path | None
    cure: str = _ASIDE
    damaged: bool = False
    lacking: tuple[str, str] = ("", "")

    def __str__(self) -> str:
        return f"{self.what}: {self.why}"

    def mend(self, store: Store) -> None:
        """Put it aside, or enter it in the index.

        Raises:
            FileError: the store cannot be written.
        """
        if self.path is None:
            store.index(*self.lacking)
            return
        with writing(self.path):
            store.to_debris(self.path)


def inspect(store: Store) -> Iterator[Fault]:
    """Read everything in full and yield each fault. Changes nothing."""
    for key in store.artifact_keys():
        yield from _artifact_faults(store, key)
    for path in sorted(store.root.glob("failures/??/*.json")):
        if store.failure(path.stem) is None:
            yield Fault(path.name[:12], "a failure that cannot be read", path, f"{_ASIDE}; its stage runs again")
    for path in sorted(store.root.glob("records/??/*.json")):
        if not store.record(path.stem):
            cure = f"{_ASIDE}; the times of its stage are lost"
            yield Fault(path.name[:12], "a record that cannot be read", path, cure)
    yield from _run_faults(store)


def _artifact_faults(store: Store, key: str) -> Iterator[Fault]:
    folder = store.artifact_folder(key)
    if not folder.is_dir():
        for stray in store.root.glob(f"artifacts/??/{key}"):
            yield Fault(str(stray), "it does not belong there", stray, damaged=True)
        return
    what = key[:12]
    try:
        meta = Meta.read(folder)
        what += f" ({meta.title})" if meta.title else ""
        fault = "; ".join(_file_faults(folder, meta)) or ("" if meta.key == key else f"{META} is of another artifact")
    except FileNotFoundError:
        if not folder.is_dir():
            return  # collected meanwhile
        fault = f"{META} is missing"
    except (OSError, ValueError) as error:
        fault = f"{META} cannot be read ({error})"
    if fault:
        cure = f"{_ASIDE}; the next run that needs it makes it again"
        yield Fault(what, fault, folder, cure, damaged=True)
        return
    for path in sorted(folder.glob("*")):
        if path.name != META and path.name not in meta.files:
            yield Fault(what, f"'{path.name}' does not belong there", path)
    if key == stage_key(meta) and not (store.place_folder(meta.place) / f"{key}.json").exists():
        yield Fault(what, "it is not in the index of places", None, "entered", lacking=(meta.place, key))


def _file_faults(folder: Path, meta: Meta) -> Iterator[str]:
    for name, item in meta.files.items():
        try:
            size = (folder / name).stat().st_size
            if size != item["size"]:
                yield f"{name} has {size} bytes instead of {item['size']}"
            elif hash_file(folder / name) != item["sha256"]:
                yield f"{name}: content differs from what was written"
        except FileNotFoundError:
            yield f"{name} is missing"
        except OSError as error:
            yield f"{name} cannot be read ({error.strerror})"


def _run_faults(store: Store) -> Iterator[Fault]:
    for folder in sorted(store.runs.glob("*/")):
        try:
            RunRecord.load(folder)
        except DataError as error:
            if folder.name not in _going_on(store):
                why = f"{RECORD} cannot be read ({error.__cause__ or error})"
                yield Fault(f"run {folder.name}", why, folder)


def _going_on(store: Store) -> set[str]:
    with suppress(FileError):  # a store that cannot be written has no run going on
        return running(store)
    return set()
