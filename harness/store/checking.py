"""Whether a store is sound, byte by byte, and mending what is not. No torch."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import DataError
from harness.results.run_record import RECORD, RunRecord
from harness.store import toolchains as makers
from harness.store.artifact import META, Meta, StoreError, writing
from harness.store.holds import running
from harness.store.keys import digest, hash_file

if TYPE_CHECKING:
    from harness.store.store import Store


@dataclass(frozen=True)
class Problem:
    """Something in a store that is not as it was written.

    Attributes:
        what: the artifact, file or run, for people.
        why: what is wrong with it.
        cure: what mending does.
        damaged: whether an artifact, or what stands in the place of one, cannot be used for it.
        mend: does it; may raise :class:`OSError` or :class:`StoreError`.
    """

    what: str
    why: str
    cure: str
    mend: Callable[[], None]
    damaged: bool = False

    def __str__(self) -> str:
        return f"{self.what}: {self.why}"


def inspect(store: Store) -> Iterator[Problem]:
    """Read everything in full and tell what is wrong. Changes nothing."""
    for key in store.artifact_keys():
        yield from _artifact_problems(store, key)
    for path in sorted(store.root.glob("failures/??/*.json")):
        if store.failure(path.stem) is None:
            yield _unreadable(store, path, "a failure that cannot be read", "removed; its stage runs again")
    for path in sorted(store.root.glob("records/??/*.json")):
        if not store.record(path.stem):
            yield _unreadable(store, path, "a record that cannot be read", "removed; the times of its stage are lost")
    for path in makers.unreadable(store.root):
        cure = "removed; plans do not tell what its stages were made with"
        yield _unreadable(store, path, "what stages were made with cannot be read", cure)
    yield from _run_problems(store)


def _artifact_problems(store: Store, key: str) -> Iterator[Problem]:
    folder = store.artifact_folder(key)
    if not folder.is_dir():
        if (stray := _stray(store, key)) is not None:
            yield Problem(
                str(stray), "it does not belong there", "put aside", _putting_aside(store, stray), damaged=True
            )
        return
    fault, title, meta = "", "", None
    try:
        meta = Meta.read(folder)
        title = f" ({meta.title})" if meta.title else ""
        fault = "; ".join(_faults(folder, meta)) or ("" if meta.key == key else f"{META} is of another artifact")
    except FileNotFoundError:
        if not folder.is_dir():
            return  # collected meanwhile
        fault = f"{META} is missing"
    except (OSError, ValueError) as error:
        fault = f"{META} cannot be read ({error})"
    if fault:
        cure = "put aside; the next run that needs it makes it again"
        yield Problem(f"{key[:12]}{title}", fault, cure, lambda: _aside(store, folder), damaged=True)
        return
    assert meta is not None
    yield from _lesser(store, folder, meta, f"{key[:12]}{title}")


def _lesser(store: Store, folder: Path, meta: Meta, what: str) -> Iterator[Problem]:
    """What does not make a sound artifact unusable."""
    for path in sorted(folder.glob("*")):
        if path.name != META and path.name not in meta.files:
            yield Problem(what, f"'{path.name}' does not belong there", "put aside", _putting_aside(store, path))
    if meta.key == digest(meta.preimage) and not (store.place_folder(meta.place) / f"{meta.key}.json").exists():
        yield Problem(
            what,
            "it is not in the index of places",
            "entered",
            lambda: store.index(meta.place, meta.key),
        )


def _faults(folder: Path, meta: Meta) -> Iterator[str]:
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


def _stray(store: Store, key: str) -> Path | None:
    return next(iter(store.root.glob(f"artifacts/??/{key}")), None)


def _run_problems(store: Store) -> Iterator[Problem]:
    going_on: set[str] | None = None
    for folder in sorted(store.runs.glob("*/")):
        try:
            RunRecord.load(folder)
        except DataError as error:
            if going_on is None:
                going_on = _going_on(store)
            if folder.name not in going_on:
                why = f"{RECORD} cannot be read ({error.__cause__ or error})"
                yield Problem(f"run {folder.name}", why, "put aside", _putting_aside(store, folder))


def _going_on(store: Store) -> set[str]:
    with suppress(StoreError):  # a store that cannot be written has no run going on
        return running(store)
    return set()


def _unreadable(store: Store, path: Path, why: str, cure: str) -> Problem:
    if path.is_dir() and not path.is_symlink():
        return Problem(path.name[:12], f"{why} (it is a folder)", "put aside", _putting_aside(store, path))
    return Problem(path.name[:12], why, cure, lambda: path.unlink(missing_ok=True))


def _putting_aside(store: Store, path: Path) -> Callable[[], None]:
    return lambda: _aside(store, path)


def _aside(store: Store, path: Path) -> None:
    debris = store.root / "debris"
    with writing(path):
        debris.mkdir(exist_ok=True)
        path.rename(debris / f"{path.name}-{uuid.uuid4().hex[:8]}")
