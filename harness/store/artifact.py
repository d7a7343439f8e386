"""Artifacts of the store: folders written once, with checksums, and read back as JSON and tensors. No torch.

What a dataset reads once is kept as one too, until what it follows from changes.
"""

from __future__ import annotations

import errno
import json
import math
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from stat import S_ISREG
from typing import TYPE_CHECKING, Any, NoReturn

from harness.errors import BenchError
from harness.safe_io import DISK_FULL, FILE_NAME, parse_json, parse_json_as, writing
from harness.store.keys import DIGEST, digest, hash_file
from harness.store.stage import Stage

if TYPE_CHECKING:
    from torch import Tensor

    from harness.store.store import Store

META = "meta.json"
TENSORS = ".safetensors"
JSON = ".json"


class MissingArtifact(BenchError):
    """An artifact is not in the store, or was found damaged and put aside; its stage must run again."""


def strict(value: Any) -> Any:
    """Return the value as JSON that parses strictly: NaN and infinities become null, arrays and tuples lists."""
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
    """Return strict JSON text, see :func:`strict`."""
    return json.dumps(strict(value), allow_nan=False) + "\n"


@dataclass(frozen=True)
class Meta:
    """The description of an artifact.

    Attributes:
        key, kind, place, title: as in :class:`harness.store.stage.Stage`.
        preimage: what the key is a digest of.
        created: seconds since 1970.
        files: name -> size in bytes and SHA-256.
    """

    key: str
    kind: str
    place: str
    title: str
    preimage: Mapping[str, Any]
    created: float
    files: Mapping[str, Mapping[str, Any]]

    @classmethod
    def read(cls, folder: Path) -> Meta:
        """Read the description in a folder.

        Raises:
            OSError, ValueError: there is none, or it is damaged.
        """
        return cls.parse((folder / META).read_text(encoding="utf-8"))

    @classmethod
    def parse(cls, text: str) -> Meta:
        """Read the description in a text that :meth:`Draft.describe` wrote.

        Raises:
            ValueError: it is damaged, or no description at all.
        """
        try:
            meta = parse_json_as(cls, text)
            described = parse_json(text)
            if "check" not in described and described.pop("digest", None) != digest(described):  # check: of old stores
                raise ValueError("its digest differs")
        except ValueError as error:
            raise ValueError(f"{META} is damaged ({error})") from None
        for name, item in meta.files.items():
            if name == META or not FILE_NAME.fullmatch(name):  # a path would lead out of the artifact
                raise ValueError(f"{name!r} cannot name a file of an artifact")
            if type(item.get("size")) is not int or not DIGEST.fullmatch(str(item.get("sha256"))):
                raise ValueError(f"{META} is damaged ({name} has no size or checksum)")
        return meta

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(int(item["size"]) for item in self.files.values())


class Draft:
    """An artifact that is being written. Names carry no suffix: the kind of content gives it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, name: str) -> Path:
        """Return the path for a file of another format; ``name`` has its suffix."""
        if name == META or not FILE_NAME.fullmatch(name):
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
            except SafetensorError as error:  # it carries the system error as text only
                number = next((code for code in DISK_FULL if f"os error {code}" in str(error)), errno.EIO)
                raise OSError(number, str(error)) from error

    def describe(self, **fields: Any) -> None:
        """Write the description with every file's size and checksum: the last file of an artifact."""
        with writing(self.folder):
            files = {
                path.name: {"size": path.stat().st_size, "sha256": hash_file(path)}
                for path in sorted(self.folder.iterdir())
            }
            described = strict({**fields, "files": files})
            text = dump({**described, "digest": digest(described)})
            (self.folder / META).write_text(text, encoding="utf-8")


def _owning(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors on the CPU, contiguous, each with memory of its own; copy only where needed."""
    owning: dict[str, Tensor] = {}
    taken: set[int] = set()
    for name, tensor in tensors.items():
        plain = tensor.detach().cpu().contiguous()
        storage = plain.untyped_storage()
        if storage.data_ptr() in taken or storage.nbytes() != plain.numel() * plain.element_size():
            plain = plain.clone()
        taken.add(plain.untyped_storage().data_ptr())
        owning[name] = plain
    return owning


class Artifact:
    """A complete artifact. A process checks each file against its checksum when it first reads it.

    Every reader raises :class:`MissingArtifact` where a file is damaged, after the artifact was put aside.
    """

    def __init__(self, folder: Path, meta: Meta, put_aside: Callable[[str, str], None]) -> None:
        self.folder, self.meta = folder, meta
        self._put_aside = put_aside

    def path(self, name: str) -> Path:
        """Return the path of a file by its full name, or of a tensor or JSON file by its name without suffix.

        Raises:
            KeyError: the artifact has no such file.
        """
        for full in (name, name + TENSORS, name + JSON):
            if full in self.meta.files:
                return self._checked(full)
        of, there = self.meta.title or self.meta.key, ", ".join(self.meta.files)
        raise KeyError(f"no file '{name}' in {of}; there are: {there}")

    def read_json(self, name: str) -> Any:
        """Read the value written by :meth:`Draft.write_json`."""
        path = self.path(name + JSON)
        try:
            return parse_json(path.read_text(encoding="utf-8"))
        except ValueError as error:
            self._damaged(path.name, str(error))

    def tensors(self, name: str) -> dict[str, Tensor]:
        """Map the tensors written by :meth:`Draft.write_tensors` into memory.

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
        self._put_aside(self.meta.key, f"{name}: {why}")
        raise MissingArtifact(f"the artifact of '{self.meta.title or self.meta.key}' is damaged ({name}: {why})")


@lru_cache(maxsize=4096)
def _checksum(path: str, mark: tuple[int, ...]) -> str:
    """Return the checksum of a file in the state that ``mark`` identifies; a process reads each once."""
    del mark
    return hash_file(Path(path))


Sources = Mapping[str, Any]


def reading(
    store: Store,
    dataset: str,
    request: Mapping[str, Any],
    holds: Callable[[Sources], bool],
    read: Callable[[Path], Sources],
) -> Artifact:
    """Return the artifact of a request: one that is sound and still holds, else a new one. One process at a time reads.

    Args:
        dataset: the component's name.
        request: what is to be read, as JSON.
        holds: returns True if what an artifact follows from, as ``read`` returned it, is as it was.
        read: writes JSON and safetensors files into a folder and returns what they follow from, as JSON.

    Raises:
        FileError: the store cannot be written.
        Exception: whatever ``read`` raises; nothing is kept then.
    """
    place = f"read/{dataset}/{digest(request)}"
    if (artifact := _kept(store, place, holds)) is not None:
        return artifact
    while (lease := store.try_lease(digest(place))) is None:
        time.sleep(0.1)
    with lease:
        if (artifact := _kept(store, place, holds)) is not None:
            return artifact
        with store.draft_folder("read") as folder:
            preimage = {"reading": place, "sources": read(folder)}
            stage = Stage("prepare", digest(preimage), place, preimage, title=f"read {dataset}")
            with store.create(stage) as draft:
                for path in folder.iterdir():
                    path.rename(draft.path(path.name))
        return store.open(stage.key)


def _kept(store: Store, place: str, holds: Callable[[Sources], bool]) -> Artifact | None:
    """Return the latest artifact that holds and of which every file is as it was written; put damaged ones aside."""
    for key, preimage in reversed(store.preimages(place)):
        if holds(preimage["sources"]):
            try:
                artifact = store.open(key)
                for name in artifact.meta.files:
                    artifact.path(name)
            except MissingArtifact:
                continue
            return artifact
    return None
