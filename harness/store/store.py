"""The store: stage artifacts by content key, failures, leases and runs, in one folder shared by many processes.

An artifact is a folder, complete or absent: it is written under ``tmp``, described with checksums, and renamed
into ``artifacts``. Nothing is flushed to the disk on purpose: after a power cut a torn file fails its checksum on
first read and its stage runs again. No torch.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import shutil
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from harness.safe_io import parse_json, read_text
from harness.store import leftovers
from harness.store import listing as upkeep
from harness.store import toolchains as makers
from harness.store.artifact import (
    META,
    Artifact,
    DiskFullError,
    Draft,
    Meta,
    MissingArtifact,
    StoreError,
    dump,
    writing,
)
from harness.store.folders import store_root
from harness.store.keys import digest, file_digest
from harness.store.leftovers import begin_draft
from harness.store.listing import Info
from harness.store.locks import Lease, try_lock
from harness.store.placing import move
from harness.store.shards import present
from harness.store.stage import Failure, Stage, moment

__all__ = [
    "Artifact",
    "DiskFullError",
    "Draft",
    "Info",
    "Lease",
    "Meta",
    "MissingArtifact",
    "Store",
    "StoreError",
]
_REMEMBERED = 256
"""Descriptions of artifacts that a store keeps in memory."""
_NO_FILE = (errno.EISDIR, errno.ELOOP)
_log = logging.getLogger(__name__)


class Store:
    """Artifacts by key. Opening one touches nothing; folders are made at the first write.

    Args:
        root: the folder; by default ``BENCH_STORE``, else ``store`` in the user's cache folder.

    Raises:
        StoreError: ``root`` is a file or cannot be read.
    """

    def __init__(self, root: Path | None = None) -> None:
        self.root = (store_root() if root is None else Path(root)).absolute()
        self._metas: dict[str, tuple[tuple[int, int], Meta]] = {}  # of the last few: a run reads very many
        try:
            if self.root.exists():
                with os.scandir(self.root):
                    pass
        except OSError as error:
            raise StoreError(f"cannot use {self.root} as a store: {error.strerror or error}") from None

    def require_writable(self) -> None:
        """Make the store ready for a run: try to write, and remove what killed processes left.

        Raises:
            StoreError: the folder cannot be written; the text names the path.
        """
        probe, lock = begin_draft(self._folder("tmp"), "probe")
        with lock, writing(probe):
            probe.touch()
            probe.unlink()
        self.sweep()

    def _folder(self, *parts: str) -> Path:
        folder = self.root.joinpath(*parts)
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
        return folder

    def artifact_folder(self, key: str) -> Path:
        """Where the artifact of a key is or would be."""
        return self.root.joinpath("artifacts", key[:2], key)

    def has(self, key: str) -> bool:
        """Whether there is a complete artifact: its description is there and every file has its size.

        Content is checked on first read. A damaged artifact is put aside here, with a warning.
        """
        return self.meta(key) is not None

    def present(self, keys: Iterable[str]) -> set[str]:
        """Those of the keys that have an artifact, complete or not: for many keys a few listings, and no file read."""
        return present(self.root / "artifacts", keys)

    def failed(self, keys: Iterable[str]) -> set[str]:
        """Those of the keys that have a stored failure, readable or not."""
        return present(self.root / "failures", keys, ".json")

    def meta(self, key: str) -> Meta | None:
        """The description of an artifact, or None where there is no complete one."""
        return self._meta(key, again=True)

    def _meta(self, key: str, *, again: bool) -> Meta | None:
        at = f"{self.root}{os.sep}artifacts{os.sep}{key[:2]}{os.sep}{key}"  # as text: many times for each cell of a run
        try:
            stat = os.stat(f"{at}{os.sep}{META}")  # noqa: PTH116
            mark = (stat.st_mtime_ns, stat.st_ino)
            known = self._metas.get(key)
            meta = known[1] if known is not None and known[0] == mark else Meta.read(Path(at))
            for name, item in meta.files.items():
                if os.stat(f"{at}{os.sep}{name}").st_size != item["size"]:  # noqa: PTH116
                    raise ValueError(f"{name} has another size than was written")
        except (FileNotFoundError, NotADirectoryError) as error:
            if not Path(at).is_dir():
                return None
            if again:  # it may have been put there between the two looks
                return self._meta(key, again=False)
            self.put_aside(key, f"{Path(error.filename or META).name} is missing")
            return None
        except OSError as error:
            if error.errno not in _NO_FILE:
                raise StoreError(f"cannot read {at}: {error.strerror or error}") from None
            self.put_aside(key, f"{Path(error.filename or META).name} is no plain file")
            return None
        except ValueError as error:
            self.put_aside(key, str(error))
            return None
        if key not in self._metas and len(self._metas) >= _REMEMBERED:
            del self._metas[next(iter(self._metas))]
        self._metas[key] = mark, meta
        return meta

    def open(self, key: str) -> Artifact:
        """The artifact of a key.

        Raises:
            MissingArtifact: there is no complete one.
        """
        meta = self.meta(key)
        if meta is None:
            raise MissingArtifact(key, f"no artifact {key[:12]} in {self.root}")
        with suppress(OSError):
            os.utime(self.artifact_folder(key))  # "last used", for gc
        return Artifact(self.artifact_folder(key), meta, self.put_aside)

    def put_aside(self, key: str, why: str) -> None:
        """Move a damaged artifact out of the way, with a warning; its stage runs again."""
        _log.warning("artifact %s is damaged and will be made again (%s)", key[:12], why)
        self._metas.pop(key, None)
        with suppress(OSError):
            debris = self.root / "debris"
            debris.mkdir(exist_ok=True)
            self.artifact_folder(key).rename(debris / f"{key}-{uuid.uuid4().hex[:8]}")

    @contextmanager
    def create(
        self, stage: Stage, *, key: str | None = None, provenance: Mapping[str, Any] | None = None
    ) -> Iterator[Draft]:
        """Write the artifact of a stage: committed when the block ends, dropped when it raises.

        Where the key is already there, the first artifact stays. A stage of several artifacts commits them one
        after the other, its own key last, so that its presence says that all are there.

        Args:
            key: which of the stage's keys; by default its own.
            provenance: versions and the like, kept in the description.

        Raises:
            StoreError: the store cannot be written.
            DiskFullError: there is no room.
        """
        chosen = stage.key if key is None else key
        with self.drafted(chosen) as folder:
            draft = Draft(folder, provenance or {})
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
        """A folder that becomes the artifact of a key when the block ends, and goes when it raises.

        Raises:
            StoreError: the store cannot be written.
            DiskFullError: there is no room.
        """
        with self.draft_folder(key[:16]) as folder:
            yield folder
            self._commit(folder, key)

    @contextmanager
    def draft_folder(self, label: str) -> Iterator[Path]:
        """A folder under ``tmp``, to be moved elsewhere within the block; what is left of it then goes."""
        folder, lock = begin_draft(self._folder("tmp"), label)
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
                move(draft, target)
            except OSError:
                if not target.is_dir():
                    raise
                if not self.has(key):
                    move(draft, target)  # what stood there was damaged and has been put aside

    def _lock(self, path: Path) -> Lease | None:
        with writing(path):
            return try_lock(path)

    def try_lease(self, key: str) -> Lease | None:
        """The right to run the stage of a key, or None while another process has it. Advisory; see ``locks``.

        It ends with the process, however that ends, and belongs to the process that took it, not to its children.
        """
        return self._lock(self._folder("leases") / f"{key}.lock")

    def place_folder(self, place: str) -> Path:
        """The index of a logical place: a file for each artifact, of which the name alone counts."""
        return self.root / "places" / digest(place)[:32]

    def index(self, place: str, key: str) -> None:
        """Enter an artifact under its logical place."""
        entry = self.place_folder(place) / f"{key}.json"
        with writing(entry):
            entry.parent.mkdir(parents=True, exist_ok=True)
            entry.touch()

    def preimages(self, place: str) -> list[tuple[str, Any]]:
        """Key and preimage of every artifact at a logical place, oldest first."""
        found = []
        for path in sorted(self.place_folder(place).glob("*.json")):
            meta = self.meta(path.stem)
            if meta is not None:
                found.append((meta.created, path.stem, meta.preimage))
        return [(key, preimage) for _, key, preimage in sorted(found, key=lambda item: item[:2])]

    def failure_path(self, key: str) -> Path:
        """Where the failure of a key is or would be."""
        return self.root.joinpath("failures", key[:2], f"{key}.json")

    def failure(self, key: str) -> Failure | None:
        """The stored failure of a key, or None."""
        data = self._read(self.failure_path(key))
        try:
            return None if data is None else Failure(**{**data["failure"], "since": moment(data["created"])})
        except (TypeError, KeyError, ValueError, OverflowError, OSError):  # damaged: the stage runs again
            return None

    def record_failure(self, key: str, failure: Failure, stage: Stage) -> None:
        """Store a failure that is a result; others (``Failure.kept`` is false) are not stored and run again."""
        if failure.kept:
            told = {"key": key, "kind": stage.kind, "place": stage.place, "title": stage.title, "created": time.time()}
            self._write(self.failure_path(key), {**told, "failure": asdict(failure)})

    def clear_failure(self, key: str) -> None:
        """Forget the failure of a key."""
        with writing(self.failure_path(key)):
            self.failure_path(key).unlink(missing_ok=True)

    def record_run(self, stage: Stage, facts: Mapping[str, Any]) -> None:
        """Keep what is known of a stage's execution (``seconds``, ``cpu``, ``memory``, versions …)."""
        self.keep_record(stage.key, facts)
        line = json.dumps([stage.place, facts.get("seconds")]) + "\n"
        path = self.root / "timings.jsonl"
        with writing(path), path.open("a", encoding="utf-8") as stream:
            stream.write(line)

    def keep_record(self, key: str, facts: Mapping[str, Any]) -> None:
        """Keep what is known of a stage that was executed elsewhere: it says nothing of how long it takes here."""
        self._write(self.record_path(key), facts)
        with writing(self.root):
            makers.note(self.root, key, facts, self._write)

    def record_path(self, key: str) -> Path:
        """Where the record of a stage's execution is or would be."""
        return self.root.joinpath("records", key[:2], f"{key}.json")

    def record(self, key: str) -> dict[str, Any]:
        """What :meth:`record_run` kept for a key; empty where nothing."""
        data = self._read(self.record_path(key))
        return data if isinstance(data, dict) else {}

    def timings(self) -> list[tuple[str, float]]:
        """Place and seconds of every recorded execution, oldest first."""
        try:
            lines = read_text(self.root / "timings.jsonl").splitlines()
        except (OSError, ValueError):
            return []
        found = []
        for line in lines:
            with suppress(ValueError, TypeError):
                place, seconds = parse_json(line)
                if isinstance(seconds, float | int) and seconds >= 0:
                    found.append((str(place), float(seconds)))
        return found

    def file_digest(self, path: Path) -> str:
        """SHA-256 of an input file, remembered in the store while the file stays as it is.

        Raises:
            DataError: there is no such file, or it cannot be read.
        """
        known = self._read(self.root / "files.json")
        memo = known if isinstance(known, dict) else {}
        before = memo.get(str(path.absolute()))
        result = file_digest(path, memo)
        if memo.get(str(path.absolute())) != before:
            with suppress(StoreError, DiskFullError):  # a memory only: a read-only store works without it
                self._write(self.root / "files.json", memo)
        return result

    @property
    def runs(self) -> Path:
        """The folder of run folders (made by the first :meth:`new_run`)."""
        return self.root / "runs"

    @staticmethod
    def new_run_name(suite: str) -> str:
        """A name for a new run; those of a suite sort by time, down to the 65,536th part of a second."""
        label = "".join(letter if letter.isalnum() or letter in "-_" else "-" for letter in suite)[:60] or "run"
        now = time.time()
        return f"{time.strftime('%Y%m%d-%H%M%S', time.localtime(now))}-{label}-{int(now % 1 * 65536):04x}"

    def new_run(self, name: str) -> Path:
        """Make the folder of a new run, by a name from :meth:`new_run_name`."""
        folder = self._folder("runs") / name
        with writing(folder):
            folder.mkdir()
        return folder

    def artifact_keys(self) -> Sequence[str]:
        """Keys of all artifact folders, complete or not, sorted."""
        return sorted(path.name for path in self.root.glob("artifacts/??/*"))

    def sweep(self) -> int:
        """Remove what dead processes left; returns how many drafts and files. See :mod:`harness.store.leftovers`."""
        return leftovers.sweep(self.root)

    def list(self) -> tuple[Info, ...]:
        """Every complete artifact, oldest first; see :mod:`harness.store.listing`."""
        return upkeep.listing(self)

    def size(self) -> int:
        """Bytes of everything in the store: artifacts, debris, runs."""
        return upkeep.size(self.root)

    def verify(self) -> Sequence[str]:
        """Read every byte and tell what is wrong; changes nothing. See :mod:`harness.store.checking`."""
        from harness.store.checking import inspect

        return [str(problem) for problem in inspect(self)]

    def _read(self, path: Path) -> Any:
        """JSON of a small file, or None where it is absent or damaged."""
        try:
            return parse_json(read_text(path))
        except (OSError, ValueError):
            return None

    def _write(self, path: Path, value: Any) -> None:
        """Replace a small JSON file as a whole."""
        part, lock = begin_draft(self._folder("tmp"), path.stem[:16])
        with lock, writing(path):
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                part.write_text(dump(value), encoding="utf-8")
                move(part, path)
            finally:
                part.unlink(missing_ok=True)
