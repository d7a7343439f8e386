"""The store: stage artifacts by content key, failures, leases and runs, in one folder shared by many processes.

An artifact is a folder, complete or absent: it is written under ``tmp``, described with checksums, and renamed
into ``artifacts``. Nothing is flushed to the disk on purpose: after a power cut a torn file fails its checksum on
first read and its stage runs again. No torch.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import time
import uuid
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any

from harness.errors import FileError
from harness.safe_io import parse_json, write_text, writing
from harness.store.artifact import META, Artifact, Draft, Meta, MissingArtifact, dump
from harness.store.folders import store_root
from harness.store.keys import digest, file_digest
from harness.store.leases import LOCK, Lease, sweep, try_lock
from harness.store.stage import Failure, Stage, moment

COSTS = ("seconds", "cpu_seconds", "peak_memory", "peak_device_memory")
"""Costs in the record of a stage's execution."""
_log = logging.getLogger(__name__)


class Store:
    """Artifacts by key. Opening one touches nothing; folders are made at the first write.

    Args:
        root: the folder; by default ``BENCH_STORE``, else ``store`` in the user's cache folder.

    Raises:
        FileError: ``root`` is a file or cannot be read; by every method that writes: it cannot be written.
    """

    def __init__(self, root: Path | None = None) -> None:
        self.root = (store_root() if root is None else Path(root)).absolute()
        self.runs = self.root / "runs"
        try:
            if self.root.exists():
                with os.scandir(self.root):
                    pass
        except OSError as error:
            raise FileError(f"cannot use {self.root} as a store: {error.strerror or error}") from None

    def require_writable(self) -> None:
        """Make the store ready for a run: try to write, and remove what killed processes left."""
        with self.draft_folder("probe"):
            pass
        sweep(self.root)

    def _folder(self, name: str) -> Path:
        folder = self.root / name
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
        return folder

    def artifact_folder(self, key: str) -> Path:
        """Return the folder that the artifact of a key has or would have."""
        return self.root.joinpath("artifacts", key[:2], key)

    def refresh(self, key: str) -> None:
        """List the folder of an artifact: a network file system looks anew then."""
        with suppress(OSError):
            os.listdir(self.artifact_folder(key).parent)  # noqa: PTH208 (read for its effect)

    def has(self, key: str) -> bool:
        """Return True if there is a complete artifact: its description is there and every file has its size.

        Content is checked on first read. A damaged artifact is put aside here, with a warning.
        """
        return self.meta(key) is not None

    def present(self, keys: Iterable[str]) -> set[str]:
        """Return those of the keys that have an artifact, complete or not; reads listings, and no file."""
        return _present(self.root / "artifacts", keys)

    def failed(self, keys: Iterable[str]) -> set[str]:
        """Return those of the keys that have a stored failure, readable or not."""
        return _present(self.root / "failures", keys, ".json")

    def meta(self, key: str) -> Meta | None:
        """Return the description of an artifact, or None where there is no complete one."""
        return self._meta(key, again=True)

    def _meta(self, key: str, *, again: bool) -> Meta | None:
        folder = str(self.artifact_folder(key))
        try:
            stat = os.stat(f"{folder}/{META}")  # noqa: PTH116 - plain text is faster, and a run asks very often
            meta = _read_meta(folder, (stat.st_mtime_ns, stat.st_ino))
            for name, item in meta.files.items():
                if os.stat(f"{folder}/{name}").st_size != item["size"]:  # noqa: PTH116
                    raise ValueError(f"{name} has another size than was written")
        except (FileNotFoundError, NotADirectoryError) as error:
            if not Path(folder).is_dir():
                return None
            if again:  # it may have been put there between the two looks
                return self._meta(key, again=False)
            self.put_aside(key, f"{Path(error.filename or META).name} is missing")
        except OSError as error:
            raise FileError(f"cannot read {folder}: {error.strerror or error}") from None
        except ValueError as error:
            self.put_aside(key, str(error))
        else:
            return meta
        return None

    def open(self, key: str) -> Artifact:
        """Return the artifact of a key, and mark it as used.

        Raises:
            MissingArtifact: there is no complete one.
        """
        meta = self.meta(key)
        if meta is None:
            raise MissingArtifact(f"no artifact {key[:12]} in {self.root}")
        with suppress(OSError):
            os.utime(self.artifact_folder(key))  # "last used", for gc
        return Artifact(self.artifact_folder(key), meta, self.put_aside)

    def put_aside(self, key: str, why: str) -> None:
        """Move a damaged artifact out of the way, with a warning; its stage runs again."""
        _log.warning("artifact %s is damaged and will be made again (%s)", key[:12], why)
        with suppress(OSError):
            self.to_debris(self.artifact_folder(key))

    def to_debris(self, path: Path) -> Path:
        """Move a file or folder of the store into ``debris``, which ``bench cache gc`` empties; return its new path."""
        debris = self.root / "debris"
        debris.mkdir(exist_ok=True)
        return path.rename(debris / f"{path.name}-{uuid.uuid4().hex[:8]}")

    @contextmanager
    def create(self, stage: Stage, *, key: str | None = None) -> Iterator[Draft]:
        """Write the artifact of a stage: committed when the block ends, dropped when it raises.

        Where the key is already there, the first artifact stays. A stage of several artifacts commits them one
        after the other, its own key last, so that its presence says that all are there.

        Args:
            key: which of the stage's keys; by default its own.
        """
        chosen = stage.key if key is None else key
        with self.drafted(chosen) as folder:
            draft = Draft(folder)
            yield draft
            draft.describe(
                key=chosen,
                kind=stage.kind,
                place=stage.place,
                title=stage.title,
                preimage=stage.preimage,
                created=time.time(),
            )
            if chosen == stage.key:  # before the artifact: an entry without one does no harm
                self.index(stage.place, stage.key)
        if chosen == stage.key:
            self.clear_failure(chosen)

    @contextmanager
    def drafted(self, key: str) -> Iterator[Path]:
        """Give a folder that becomes the artifact of a key when the block ends, and goes when it raises."""
        with self.draft_folder(key[:16]) as folder:
            yield folder
            self._commit(folder, key)

    @contextmanager
    def draft_folder(self, label: str) -> Iterator[Path]:
        """Give a folder under ``tmp`` to be moved elsewhere within the block; remove what is left of it then."""
        lock = None
        while lock is None:  # else a sweep was faster, and takes it for a leftover
            folder = self._folder("tmp") / f"{label}-{uuid.uuid4().hex[:16]}"
            lock = try_lock(folder.with_name(folder.name + LOCK))
        with lock:
            try:
                with writing(folder):
                    folder.mkdir()
                yield folder
            finally:
                shutil.rmtree(folder, ignore_errors=True)

    def _commit(self, draft: Path, key: str) -> None:
        target = self.artifact_folder(key)
        with writing(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                draft.rename(target)
            except OSError:
                if not target.is_dir():
                    raise
                if not self.has(key):
                    draft.rename(target)  # what stood there was damaged and has been put aside

    def try_lease(self, key: str) -> Lease | None:
        """Take the right to run the stage of a key, or None while another process has it. Advisory; see ``leases``.

        It ends with the process, however that ends, and belongs to the process that took it, not to its children.
        """
        return try_lock(self._folder("leases") / f"{key}{LOCK}")

    def place_folder(self, place: str) -> Path:
        """Return the index of a logical place: a folder with an empty file for each artifact, named by its key."""
        return self.root / "places" / digest(place)[:32]

    def index(self, place: str, key: str) -> None:
        """Enter an artifact under its logical place."""
        entry = self.place_folder(place) / f"{key}.json"
        with writing(entry):
            entry.parent.mkdir(parents=True, exist_ok=True)
            entry.touch()

    def preimages(self, place: str, among: Collection[str] | None = None) -> list[tuple[str, Any]]:
        """Return key and preimage of every artifact at a logical place, or of those with some keys, oldest first."""
        keys = sorted(path.stem for path in self.place_folder(place).glob("*.json"))
        keys = keys if among is None else [key for key in keys if key in among]
        metas = [(key, meta) for key in keys if (meta := self.meta(key)) is not None]
        return [(key, meta.preimage) for key, meta in sorted(metas, key=lambda pair: pair[1].created)]

    def failure_path(self, key: str) -> Path:
        """Return the path that the failure of a key has or would have."""
        return self.root.joinpath("failures", key[:2], f"{key}.json")

    def failure(self, key: str) -> Failure | None:
        """Return the stored failure of a key, or None."""
        data = self._read(self.failure_path(key))
        try:
            return None if data is None else Failure(**{**data["failure"], "since": moment(data["created"])})
        except (TypeError, KeyError, ValueError, OverflowError, OSError):  # damaged: the stage runs again
            return None

    def record_failure(self, key: str, failure: Failure, stage: Stage) -> None:
        """Store a failure that is a result; others (``Failure.kept`` is false) are not stored and run again."""
        if failure.kept:
            of = {"key": key, "kind": stage.kind, "place": stage.place, "title": stage.title, "created": time.time()}
            self._write(self.failure_path(key), {**of, "failure": asdict(failure)})

    def clear_failure(self, key: str) -> None:
        """Forget the failure of a key."""
        with writing(self.failure_path(key)):
            self.failure_path(key).unlink(missing_ok=True)

    def record_run(self, stage: Stage, facts: Mapping[str, Any]) -> None:
        """Keep what is known of a stage's execution (``seconds``, ``cpu``, ``memory``, versions …)."""
        self.keep_record(stage.key, facts)
        line = json.dumps([stage.work, facts.get("seconds")]) + "\n"
        path = self.root / "timings.jsonl"
        with writing(path), path.open("a", encoding="utf-8") as stream:
            stream.write(line)

    def keep_record(self, key: str, facts: Mapping[str, Any]) -> None:
        """Keep what is known of a stage that was executed elsewhere: it says nothing of how long it takes here."""
        self._write(self.record_path(key), facts)

    def record_path(self, key: str) -> Path:
        """Return the path that the record of a stage's execution has or would have."""
        return self.root.joinpath("records", key[:2], f"{key}.json")

    def record(self, key: str) -> dict[str, Any]:
        """Return what :meth:`record_run` kept for a key; empty where nothing, or what another store made up."""
        data = self._read(self.record_path(key))
        return data if isinstance(data, dict) and _is_record(data) else {}

    def timings(self) -> list[tuple[str, float]]:
        """Return :attr:`Stage.work` and seconds of every recorded execution, oldest first."""
        try:
            lines = (self.root / "timings.jsonl").read_text(encoding="utf-8").splitlines()
        except (OSError, ValueError):
            return []
        timings = []
        for line in lines:
            with suppress(ValueError, TypeError):
                work, seconds = parse_json(line)
                timings.append((str(work), float(seconds)))
        return timings

    def file_digest(self, path: Path) -> str:
        """Return the SHA-256 of an input file, remembered in the store while the file stays as it is.

        Raises:
            DataError: there is no such file, or it cannot be read.
        """
        known = self._read(self.root / "files.json")
        memo = dict(known) if isinstance(known, dict) else {}
        result = file_digest(path, memo)
        if memo != (known or {}):
            with suppress(FileError):  # a memory only: a read-only store works without it
                self._write(self.root / "files.json", memo)
        return result

    def new_run(self, name: str) -> Path:
        """Make the folder of a new run, by a name from :func:`harness.store.leases.new_run_name`."""
        folder = self._folder("runs") / name
        with writing(folder):
            folder.mkdir()
        return folder

    def artifact_keys(self) -> Sequence[str]:
        """Return the keys of all artifact folders, complete or not, sorted."""
        return sorted(path.name for path in self.root.glob("artifacts/??/*"))

    def _read(self, path: Path) -> Any:
        """Read a small JSON file; None where it is absent or damaged."""
        try:
            return parse_json(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None

    def _write(self, path: Path, value: Any) -> None:
        with writing(path):
            write_text(path, dump(value))


class Scratch(Store):
    """A store for work that must leave nothing behind: it reads from another one and writes to a folder of its own.

    Stored failures of the other store are not seen.

    Args:
        base: read where nothing was written here; never written to.
        root: the folder of what is written, which the caller removes.
        hidden: keys of ``base`` that count as absent, so that their stages run again.
    """

    def __init__(self, base: Store, root: Path, hidden: Collection[str] = ()) -> None:
        super().__init__(root)
        self._base, self._hidden = base, frozenset(hidden)

    def meta(self, key: str) -> Meta | None:
        """Return the description of an artifact that is here or in the other store."""
        own = super().meta(key)
        return self._base.meta(key) if own is None and key not in self._hidden else own

    def present(self, keys: Iterable[str]) -> set[str]:
        """Return those of the keys that have an artifact here or in the other store, complete or not."""
        wanted = set(keys)
        return super().present(wanted) | (self._base.present(wanted) - self._hidden)

    def open(self, key: str) -> Artifact:
        """Return the artifact that is here, else the other store's.

        Raises:
            MissingArtifact: neither has it.
        """
        ours = super().meta(key) is not None or key in self._hidden
        return super().open(key) if ours else self._base.open(key)

    def record(self, key: str) -> dict[str, Any]:
        """Return what is known of a stage's execution, here or in the other store."""
        return super().record(key) or self._base.record(key)


@lru_cache(maxsize=256)
def _read_meta(folder: str, mark: tuple[int, int]) -> Meta:
    """Read the description in a folder, in the state that ``mark`` identifies; a run opens some many times."""
    del mark
    return Meta.read(Path(folder))


def _is_record(facts: Mapping[str, Any]) -> bool:
    """Return True if costs are numbers, where known, and the provenance is a table that has one of versions."""
    made = facts.get("provenance", {})
    costs_known = all(isinstance(facts.get(name), int | float | None) for name in COSTS)
    return costs_known and isinstance(made, dict) and isinstance(made.get("versions", {}), dict)


def _present(folder: Path, keys: Iterable[str], suffix: str = "") -> set[str]:
    """Return those of the keys for which a sharded folder has an entry (``ab/abcd…`` and the suffix)."""
    by_shard: dict[str, list[str]] = defaultdict(list)
    for key in keys:
        by_shard[key[:2]].append(key)
    there: set[str] = set()
    for shard, wanted in by_shard.items():
        with suppress(FileNotFoundError, NotADirectoryError):
            names = set(os.listdir(folder / shard))  # noqa: PTH208 - paths are several times slower
            there.update(key for key in wanted if f"{key}{suffix}" in names)
    return there
