"""The data folder: the state of each dataset's files, and advice on what is missing."""

from __future__ import annotations

import gzip
import json
import shlex
import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from harness.data import Dataset, Download
from harness.errors import BenchError, DataError
from harness.registry.catalog import Catalog, Entry
from harness.registry.discovery import load_one
from harness.store import data_root, hash_file

HINT = " (--data-dir or BENCH_DATA name another data folder)"


def command(verb: str, name: str, params: Mapping[str, Any], root: Path | None = None) -> str:
    """Return a ``bench data`` command line to be typed; ``root`` where it may not be the default folder."""
    settings = (f"{key}={value if isinstance(value, str) else json.dumps(value)}" for key, value in params.items())
    folder = [] if root is None or root == data_root() else ["--data-dir", str(root)]
    return shlex.join(["bench", "data", verb, name, *(word for item in settings for word in ("--set", item)), *folder])


def advised(dataset: Dataset, params: Mapping[str, Any], root: Path | None, error: str) -> str:
    """Add to a dataset's message, where files are missing, the command that fetches them and the data folder."""
    if root is None:
        return error
    first, *rest = error.splitlines() or [""]
    missing = [item for item in dataset.downloads(root) if not (root / item.path).exists()]
    if missing:
        does = "fetches it" if all(item.url is not None for item in missing) else "tells how to get it"
        rest.insert(0, f"`{command('fetch', dataset.name, params, root)}` {does}")
    if str(root) in error and "--data-dir" not in error:
        rest.append(f"the data folder is {root}; --data-dir FOLDER or BENCH_DATA name another")
    return "\n".join([first, *rest])


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
            tested with) or ``""`` (nothing is known).
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
    return known


_DIFFERS = {
    "promised": "the source promises another content: damaged or edited",
    "tested": "it is not the copy that this code was tested with: damaged, edited or another release",
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
