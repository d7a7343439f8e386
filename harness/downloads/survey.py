"""The state of the files of each dataset in the data folder, and checking them. No torch."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from harness.data import Dataset, Download
from harness.downloads.files import advised, below, read_receipt
from harness.errors import BenchError, DataError
from harness.registry.catalog import Catalog, Entry
from harness.registry.discovery import load_one
from harness.store import hash_file

State = Literal["generated", "present", "missing", "own files", "faulty"]
_GZIP = b"\x1f\x8b"
_CHUNK = 1 << 20


@dataclass(frozen=True)
class DataState:
    """A dataset with its settings, and the state of its files.

    Attributes:
        name: the component.
        params: its settings that differ from the defaults, and those by which it is listed.
        state: ``generated`` (reads no file), ``present``, ``missing``, ``own files`` (reads what a setting names) or
            ``faulty`` (its plugin fails).
        files: the input files; empty unless present.
        size: bytes of the files.
        downloads: how to get them.
        reason: why it is not present.
    """

    name: str
    params: Mapping[str, Any]
    state: State
    files: Sequence[Path] = ()
    size: int = 0
    downloads: Sequence[Download] = ()
    reason: str = ""

    @property
    def fetchable(self) -> bool:
        """Return True if all that is missing has an address."""
        return bool(self.downloads) and all(download.url is not None for download in self.downloads)


def make_dataset(entry: Entry, params: Mapping[str, Any]) -> Dataset:
    """Make the dataset component with these settings."""
    dataset: Dataset = load_one(entry)(**params)
    return dataset


def survey(catalog: Catalog, root: Path) -> Iterator[DataState]:
    """Yield the state of every dataset, with each of the settings that it lists."""
    for entry in catalog.of_kind("dataset"):
        listed: Sequence[Mapping[str, Any]] = entry.traits.get("listed", ()) or ({},)
        for params in listed:
            try:
                yield state_of(make_dataset(entry, params), params, root)
            except Exception as error:
                text = str(error) if isinstance(error, BenchError) else f"{type(error).__name__}: {error}"
                yield DataState(entry.name, params, "faulty", reason=text)


def state_of(dataset: Dataset, params: Mapping[str, Any], root: Path) -> DataState:
    """Return the state of one dataset."""
    downloads = tuple(dataset.downloads(root))
    try:
        files = dataset.files(root)
        size = sum(path.stat().st_size for path in files)
    except (DataError, OSError) as error:
        state: State = "missing" if downloads else "own files"
        return DataState(dataset.name, params, state, downloads=downloads, reason=str(error))
    kind: State = "present" if files or downloads else "generated"
    return DataState(dataset.name, params, kind, files, size, downloads)


@dataclass
class Verdict:
    """The result of checking a dataset's files.

    Attributes:
        files: path -> what it was compared with: ``tested`` (the copy this code was tested with), ``fetched`` (as it
            was when fetched), ``promised`` (by the source) or ``""`` (nothing is known).
        problems: what is wrong.
    """

    files: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def verify(dataset: Dataset, params: Mapping[str, Any], root: Path) -> Verdict:
    """Read every file in full, compare it with what is known, and let the dataset read its header.

    Args:
        dataset: the dataset.
        params: its settings, for messages.
        root: the data folder.
    """
    verdict = Verdict()
    try:
        files = dataset.files(root)
    except DataError as error:
        verdict.problems.append(advised(dataset, params, root, str(error)))
        return verdict
    known = _known_digests(dataset.downloads(root), root)
    for path in files:
        _check_file(path, known.get(_name(path), {}), verdict)
    if not verdict.problems:
        try:
            dataset.declare(root)
        except DataError as error:
            verdict.problems.append(str(error))
    return verdict


def _name(path: Path) -> str:
    return os.path.abspath(path)  # noqa: PTH100 - keeps symbolic links


def _known_digests(downloads: Sequence[Download], root: Path) -> dict[str, dict[str, str]]:
    """Return path -> whose digest -> the digest."""
    known: dict[str, dict[str, str]] = {}
    for download in downloads:
        if download.sha256 is not None and download.is_as_sent:
            known.setdefault(_name(below(root, download.path)), {})["promised"] = download.sha256
        for name, digest in download.tested.items():
            known.setdefault(_name(below(root, name)), {})["tested"] = digest
        receipt = read_receipt(root, download.path)
        for name, digest in (receipt.files if receipt else {}).items():
            known.setdefault(_name(root / name), {})["fetched"] = digest
    return known


_DIFFERS = {
    "promised": "the source promises another content ({expected:.12}… instead of {found:.12}…): damaged or edited",
    "fetched": "it has changed since it was fetched ({found:.12}… instead of {expected:.12}…)",
    "tested": "it is not the copy that this code was tested with ({found:.12}… instead of {expected:.12}…): "
    "damaged, edited or another release",
}


def _check_file(path: Path, known: Mapping[str, str], verdict: Verdict) -> None:
    try:
        if path.stat().st_size == 0:
            verdict.problems.append(f"{path}: the file is empty")
            return
        digest = hash_file(path)
        damage = _gzip_damage(path)
    except OSError as error:
        verdict.problems.append(f"{path}: cannot be read: {error.strerror or error}")
        return
    if damage:
        verdict.problems.append(f"{path}: {damage}")
    wrong = [whose for whose, expected in known.items() if expected != digest]
    for whose in wrong:
        text = _DIFFERS[whose].format(expected=known[whose], found=digest)
        verdict.problems.append(f"{path}: {text}")
    verdict.files[str(path)] = next((whose for whose in ("promised", "tested", "fetched") if whose in known), "")


def _gzip_damage(path: Path) -> str:
    with path.open("rb") as stream:
        if stream.read(2) != _GZIP:
            return ""
    try:
        with gzip.open(path) as opened:
            while opened.read(_CHUNK):
                pass
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        return f"the gzip file is truncated or damaged ({error})"
    return ""
