"""The state of the files of each dataset in the data folder, and checking them. No torch."""

from __future__ import annotations

import gzip
import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from harness.data import Dataset, Download
from harness.downloads.files import advised, fetched_digests
from harness.errors import BenchError, DataError
from harness.registry.catalog import Catalog, Entry
from harness.registry.discovery import load_one
from harness.store import hash_file

State = Literal["generated", "present", "missing", "own files", "faulty"]


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
        files: path -> what it was compared with: ``promised`` (by the source), ``tested`` (the copy this code was
            tested with), ``fetched`` (as it was when fetched) or ``""`` (nothing is known).
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
        _check_file(path, known.get(path.absolute(), {}), verdict)
    if not verdict.problems:
        try:
            dataset.declare(root)
        except DataError as error:
            verdict.problems.append(str(error))
    return verdict


def _known_digests(downloads: Sequence[Download], root: Path) -> dict[Path, dict[str, str]]:
    """Return path -> whose digest -> the digest."""
    known: dict[Path, dict[str, str]] = defaultdict(dict)
    for download in downloads:
        if download.sha256 is not None and download.is_as_sent:
            known[(root / download.path).absolute()]["promised"] = download.sha256
        for name, digest in download.tested.items():
            known[(root / name).absolute()]["tested"] = digest
        for name, digest in fetched_digests(root, download.path).items():
            known[(root / name).absolute()]["fetched"] = digest
    return known


_DIFFERS = {
    "promised": "the source promises another content: damaged or edited",
    "tested": "it is not the copy that this code was tested with: damaged, edited or another release",
    "fetched": "it has changed since it was fetched",
}


def _check_file(path: Path, known: Mapping[str, str], verdict: Verdict) -> None:
    try:
        if path.stat().st_size == 0:
            verdict.problems.append(f"{path}: the file is empty")
            return
        digest = hash_file(path)
        _read_gzip(path)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        verdict.problems.append(f"{path}: the gzip file is truncated or damaged ({error})")
        return
    except OSError as error:
        verdict.problems.append(f"{path}: cannot be read: {error.strerror or error}")
        return
    for whose, expected in known.items():
        if expected != digest:
            told = f"{_DIFFERS[whose]} (SHA-256 {digest:.12}… instead of {expected:.12}…)"
            verdict.problems.append(f"{path}: {told}")
    verdict.files[str(path)] = next((whose for whose in _DIFFERS if whose in known), "")


def _read_gzip(path: Path) -> None:
    """Read a gzip file to its end."""
    with path.open("rb") as stream:
        packed = stream.read(2) == b"\x1f\x8b"
    if packed:
        with gzip.open(path) as opened:
            while opened.read(1 << 20):
                pass
