"""One artifact of the store: a folder written once, with checksums, and read back as JSON and tensors. No torch."""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING, Any, NoReturn

from harness.errors import BenchError, UserError
from harness.safe_io import FILE_NAME, check_types, parse_json, read_text
from harness.store.keys import hash_file

if TYPE_CHECKING:
    from torch import Tensor

META = "meta.json"
TENSORS = ".safetensors"
JSON = ".json"
MOST_META = 64 << 20
"""Bytes of a description."""
_ENCODE = json.JSONEncoder(allow_nan=False).encode
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class StoreError(UserError):
    """The store's folder cannot be used as asked; the text names the path."""


class DiskFullError(BenchError):
    """There is no room left for what is written: no result of a stage, and no fault in what the user asked."""


class MissingArtifact(BenchError):
    """An artifact is not in the store, or was found damaged and put aside; its stage must run again."""

    def __init__(self, key: str, text: str) -> None:
        super().__init__(key, text)
        self.key = key

    def __str__(self) -> str:
        return str(self.args[1])


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn an :class:`OSError` of a block that writes into a :class:`StoreError` or :class:`DiskFullError`.

    The text names the path.
    """
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise DiskFullError(f"the disk is full: cannot write {path}") from error
        raise StoreError(f"cannot write {path}: {error.strerror or error}") from error


def strict(value: Any) -> Any:
    """The value as JSON that parses strictly: NaN and infinities become null, arrays and tuples lists."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): strict(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [strict(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted(strict(item) for item in value)
    return str(value) if isinstance(value, os.PathLike) else value


def dump(value: Any) -> str:
    """Strict JSON text (see :func:`strict`), keys in the order given; a line for each entry of the outermost mapping.

    Python's own indentation would take the encoder written in C out of use, and a run writes a dozen files a cell.
    """
    plain = strict(value)
    if not isinstance(plain, dict) or not plain:
        return _ENCODE(plain) + "\n"
    return "{\n " + ",\n ".join(f"{_ENCODE(key)}: {_ENCODE(item)}" for key, item in plain.items()) + "\n}\n"


@dataclass(frozen=True)
class Meta:
    """What an artifact says of itself.

    Attributes:
        key, kind, place, title: as in :class:`harness.store.stage.Stage`.
        preimage: what the key is a digest of.
        created: seconds since 1970.
        provenance: versions and the like, as given by the writer.
        files: name -> size in bytes and SHA-256.
    """

    key: str
    kind: str
    place: str
    title: str
    preimage: Mapping[str, Any]
    created: float
    provenance: Mapping[str, Any]
    files: Mapping[str, Mapping[str, Any]]

    @classmethod
    def read(cls, folder: Path) -> Meta:
        """The description in a folder.

        Raises:
            OSError, ValueError: there is none, or it is damaged.
        """
        return cls.parse(read_text(folder / META, MOST_META))

    @classmethod
    def parse(cls, text: str) -> Meta:
        """The description in a text that :meth:`Draft.describe` wrote.

        Raises:
            ValueError: it is damaged, or no description at all.
        """
        data = parse_json(_verified(text))
        try:
            check_types(cls, [data])
            meta = cls(**data)
            for name, item in meta.files.items():
                int(item["size"]), str(item["sha256"])
                if not FILE_NAME.fullmatch(name):  # a path would lead out of the artifact
                    raise ValueError(f"{name!r} cannot name a file of an artifact")
        except (TypeError, KeyError, ValueError) as error:
            raise ValueError(f"{META} is damaged ({error})") from None
        return meta

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(int(item["size"]) for item in self.files.values())


_CHECK = re.compile(r'\{\n "check": "([0-9a-f]{64})",\n')


def _with_check(text: str) -> str:
    """A description with its own checksum in front, which makes a flipped bit in it known."""
    body = text.removeprefix("{\n")
    return f'{{\n "check": "{_sha256(body)}",\n{body}'


def _verified(text: str) -> str:
    """A description without its checksum; the first version wrote none.

    Raises:
        ValueError: its checksum differs.
    """
    found = _CHECK.match(text)
    if found is None:
        return text
    body = text[found.end() :]
    if _sha256(body) != found[1]:
        raise ValueError(f"the checksum of {META} differs")
    return "{\n" + body


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


class Draft:
    """An artifact being written. Names carry no suffix: the kind of content gives it."""

    def __init__(self, folder: Path, provenance: Mapping[str, Any]) -> None:
        self.folder = folder
        self.provenance = dict(provenance)
        """Versions and the like; may be added to until the draft is committed."""

    def path(self, name: str) -> Path:
        """Where to write a file of another format; ``name`` with its suffix."""
        if name == META or name.startswith(".") or Path(name).name != name or "\\" in name:
            raise ValueError(f"'{name}' cannot name a file of an artifact")
        return self.folder / name

    def write_json(self, name: str, value: Any) -> None:
        """Write a value as strict JSON: NaN and infinities become null."""
        path = self.path(name + JSON)
        with writing(path):
            path.write_text(dump(value), encoding="utf-8")

    def write_tensors(self, name: str, tensors: Mapping[str, Tensor]) -> None:
        """Write tensors by name; views and tensors that share memory are written out in full."""
        from safetensors import SafetensorError
        from safetensors.torch import save_file

        path = self.path(name + TENSORS)
        own = _owning(tensors)
        with writing(path):
            try:
                save_file(own, path)
            except SafetensorError as error:
                raise _as_os_error(error) from error

    def describe(self, **fields: Any) -> None:
        """Write the description with every file's size and checksum: the last file of an artifact."""
        with writing(self.folder):
            files = {
                path.name: {"size": path.stat().st_size, "sha256": hash_file(path)}
                for path in sorted(self.folder.iterdir())
            }
            text = _with_check(dump({**fields, "provenance": self.provenance, "files": files}))
            (self.folder / META).write_text(text, encoding="utf-8")


def _owning(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors on the CPU, contiguous, each with memory of its own; copies only those that are not so already."""
    found: dict[str, Tensor] = {}
    taken: set[int] = set()
    for name, tensor in tensors.items():
        plain = tensor.detach().cpu().contiguous()
        storage = plain.untyped_storage()
        if storage.data_ptr() in taken or storage.nbytes() != plain.numel() * plain.element_size():
            plain = plain.clone()
        taken.add(plain.untyped_storage().data_ptr())
        found[name] = plain
    return found


def _as_os_error(error: Exception) -> OSError:
    """The system error behind a safetensors one, which carries it as text only."""
    number = next((code for code in _FULL if f"os error {code}" in str(error)), errno.EIO)
    return OSError(number, str(error))


class Artifact:
    """A complete artifact. Each file is checked against its checksum when a process first reads it.

    Every reader raises :class:`MissingArtifact` where a file is damaged; the artifact has then been put aside.
    """

    def __init__(self, folder: Path, meta: Meta, put_aside: Callable[[str, str], None]) -> None:
        self.folder, self.meta = folder, meta
        self._put_aside = put_aside

    @property
    def key(self) -> str:
        """Its content address."""
        return self.meta.key

    def path(self, name: str) -> Path:
        """A file by its full name, or a tensor or JSON file by its name without suffix.

        Raises:
            KeyError: the artifact has no such file.
        """
        for full in (name, name + TENSORS, name + JSON):
            if full in self.meta.files:
                return self._checked(full)
        raise KeyError(f"no file '{name}' in {self.meta.title or self.key}; there are: {', '.join(self.meta.files)}")

    def read_json(self, name: str) -> Any:
        """The value written by :meth:`Draft.write_json`."""
        path = self.path(name + JSON)
        try:
            return parse_json(read_text(path))
        except ValueError as error:
            self._damaged(path.name, str(error))

    def tensors(self, name: str) -> dict[str, Tensor]:
        """The tensors written by :meth:`Draft.write_tensors`, memory-mapped.

        The mapping is private to the process: writing into a tensor never changes the artifact.
        """
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        path = self.path(name + TENSORS)
        try:
            return load_file(path)
        except SafetensorError as error:
            self._damaged(path.name, str(error))

    def _checked(self, name: str) -> Path:
        path, expected = self.folder / name, self.meta.files[name]
        try:
            stat = path.lstat()
            if not S_ISREG(stat.st_mode):
                self._damaged(name, "it is a link or a folder")
            if stat.st_size != expected["size"]:
                self._damaged(name, f"{stat.st_size} bytes instead of {expected['size']}")
            mark = (stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino, stat.st_size)
            if _checksum(str(path), mark) != expected["sha256"]:
                self._damaged(name, "its checksum differs")
        except OSError as error:
            self._damaged(name, error.strerror or str(error))
        return path

    def _damaged(self, name: str, why: str) -> NoReturn:
        self._put_aside(self.key, f"{name}: {why}")
        raise MissingArtifact(self.key, f"the artifact of '{self.meta.title or self.key}' is damaged ({name}: {why})")


@lru_cache(maxsize=4096)
def _checksum(path: str, mark: tuple[int, ...]) -> str:
    """Checksum of a file in the state that ``mark`` tells: each is read once per process."""
    del mark
    return hash_file(Path(path))
