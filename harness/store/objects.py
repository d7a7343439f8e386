"""Another store behind an fsspec URL (``s3://``, ``memory://``, ``sftp://`` …), which has no renames to rely on.

Files are objects named by their checksum, so that two who push the same artifact at the same time cannot mix theirs;
the description of an artifact is written last and says that it is complete::

    blobs/ab/SHA256   artifacts/ab/KEY.json   records/ab/KEY.json   runs/ID/{suite.yaml, results.json, run.json}
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader, BytesIO, RawIOBase
from pathlib import Path
from typing import Any, BinaryIO

from harness.errors import UserError
from harness.registry.planned_code import KEPT
from harness.results.run_record import RECORD
from harness.store.artifact import META
from harness.store.keys import DIGEST
from harness.store.source import RUN_FILES, is_run_id
from harness.store.store import Store

_FEW = 16
"""Up to so many keys are asked for one by one; more are looked up in one listing."""


class Objects:
    """What an fsspec file system holds below a path."""

    def __init__(self, filesystem: Any, root: str, name: str) -> None:
        self._fs, self._root, self.name = filesystem, root.rstrip("/"), name

    def exists(self) -> bool:
        """Whether there is such a place. Object stores know no folders: a bucket, or what has something below it."""
        with self._told("read"), suppress(FileNotFoundError):
            self._fs.info(self._root)
            return True
        return bool(self.keys() or self.runs())

    def present(self, keys: Collection[str]) -> set[str]:
        """Those of the keys that it has complete."""
        if len(keys) > _FEW:
            return set(keys) & set(self.keys())
        with self._told("read"):
            return {key for key in keys if self._fs.exists(self._sharded("artifacts", f"{key}.json"))}

    def keys(self) -> list[str]:
        """All keys that it has complete."""
        names = [path.rsplit("/", 1)[-1].removesuffix(".json") for path in self._found("artifacts")]
        return sorted(name for name in names if DIGEST.fullmatch(name))

    def runs(self) -> list[str]:
        """Ids of all runs that it has complete."""
        parts = [path.split("/") for path in self._found("runs")]
        return sorted(part[-2] for part in parts if part[-1] == RECORD and is_run_id(part[-2]))

    def meta(self, key: str) -> BinaryIO:
        """The description of an artifact."""
        return self._open(self._sharded("artifacts", f"{key}.json"))

    def file(self, key: str, name: str, sha256: str) -> BinaryIO:  # noqa: ARG002 - the checksum is its name here
        """A file of an artifact."""
        return self._open(self._sharded("blobs", sha256))

    def size(self, key: str, name: str, sha256: str) -> int | None:  # noqa: ARG002 - the checksum is its name here
        """Bytes that a file of an artifact has; None where there is none, or the system does not tell."""
        with _reaching():
            return self._size(self._sharded("blobs", sha256))

    def record(self, key: str) -> BinaryIO:
        """What is known of a stage's execution."""
        return self._open(self._sharded("records", f"{key}.json"))

    def run_file(self, run: str, name: str) -> BinaryIO:
        """A file of a run folder."""
        return self._open(f"{self._root}/runs/{run}/{name}")

    def put(self, store: Store, key: str, moved: Callable[[int], None]) -> None:
        """Copy an artifact here; what an earlier attempt has brought is not sent again.

        Raises:
            MissingArtifact: it is damaged, and has been put aside.
        """
        artifact = store.open(key)
        for name, item in artifact.meta.files.items():
            self._send(artifact.path(name), self._sharded("blobs", item["sha256"]), moved, again=False)
        if store.record(key):
            self._send(store.record_path(key), self._sharded("records", f"{key}.json"), moved)
        self._send(artifact.folder / META, self._sharded("artifacts", f"{key}.json"), moved)

    def put_run(self, store: Store, run: str) -> bool:
        """Copy what a report needs of a run here, its record last; whether anything of it was not there as it is."""
        new = False
        kept = [KEPT] if (store.runs / run / KEPT).is_file() else []  # older runs keep no code
        for name in (*kept, *RUN_FILES):
            path, target = store.runs / run / name, f"{self._root}/runs/{run}/{name}"
            if not self._equal(path, target):
                self._send(path, target, lambda _: None)
                new = True
        return new

    def _equal(self, path: Path, target: str) -> bool:
        here = path.read_bytes()  # outside of the next: that it is missing is no fault of the other store
        with self._told("read"):
            return self._size(target) == len(here) and self._fs.cat_file(target) == here

    def _send(self, path: Path, target: str, moved: Callable[[int], None], *, again: bool = True) -> None:
        """Copy a file; unless ``again``, its name is its checksum and one of its size that is there stays."""
        size = path.stat().st_size
        with self._told("write to"):
            if again or self._size(target) != size:
                self._fs.makedirs(target.rsplit("/", 1)[0], exist_ok=True)
                self._fs.put_file(str(path), target)
        moved(size)

    def _size(self, target: str) -> int | None:
        try:
            size = self._fs.info(target).get("size")
        except FileNotFoundError:
            return None
        return None if size is None else int(size)

    def _open(self, path: str) -> BinaryIO:
        with _reaching():
            stream: BinaryIO = self._fs.open(path, "rb")
        if isinstance(stream, BytesIO):  # fsspec's memory hands every reader the same one, with its position
            return BytesIO(stream.getvalue())
        return BufferedReader(_Stream(stream))

    def _found(self, folder: str) -> list[str]:
        """Paths of all files below a folder; fsspec's ``find`` takes what it cannot list for empty, ``ls`` does not."""
        path = f"{self._root}/{folder}"
        with self._told("read"):
            try:
                found: list[str] = self._fs.find(path)
                if not found:
                    self._fs.ls(path)
            except FileNotFoundError:
                return []
        return found

    @contextmanager
    def _told(self, what: str) -> Iterator[None]:
        """Trouble on the way there as a message that names it."""
        try:
            with _reaching():
                yield
        except OSError as error:
            raise UserError(f"cannot {what} {self.name}: {error}") from None

    def _sharded(self, folder: str, name: str) -> str:
        return f"{self._root}/{folder}/{name[:2]}/{name}"


@contextmanager
def _reaching() -> Iterator[None]:
    """Turn what libraries of object stores raise of their own, over a network, into :class:`OSError`."""
    try:
        yield
    except (OSError, MemoryError):
        raise
    except Exception as error:
        raise OSError(f"{type(error).__name__}: {error}") from error


class _Stream(RawIOBase):
    """A stream of an object store, read under :func:`_reaching`."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        with _reaching():
            block = self._stream.read(len(buffer))
        buffer[: len(block)] = block
        return len(block)

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
        super().close()


def open_objects(url: str) -> Objects:
    """The store behind a URL; credentials and options are fsspec's own business.

    Raises:
        UserError: fsspec, or its package for this kind of URL, is not installed, or the URL cannot be used.
    """
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise UserError("a URL as a target needs fsspec: pip install 'equad-bench[remote]'") from None
    try:
        filesystem, root = url_to_fs(url)
    except (ImportError, ValueError, OSError) as error:
        raise UserError(f"cannot use {url}: {error}") from None
    return Objects(filesystem, root, url)
