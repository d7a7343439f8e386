"""The facts of dataset components for planning: their declaration and the digests of their input files."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.data import Dataset, Declaration, Download, check_declaration, check_files
from harness.errors import BenchError, DataError, UserError, bounded
from harness.hparams import effective
from harness.registry.catalog import Catalog, Entry
from harness.registry.discovery import load_one, plugins_off
from harness.registry.importing import told
from harness.registry.returned import expect
from harness.store import FileMark, file_mark
from harness.suite.spec import ComponentSpec

if TYPE_CHECKING:
    from harness.store import Store


class Declarations:
    """Reads declarations and files of datasets, each once, by value.

    Args:
        store: remembers digests of files, and keeps what a dataset reads once.
        naming: is called with a dataset and the code that it names, before that runs.
    """

    def __init__(
        self,
        catalog: Catalog,
        data_dir: Path | None,
        store: Store,
        naming: Callable[[str, str], None] | None = None,
    ) -> None:
        self._naming = naming
        self._catalog, self._data_dir, self._store = catalog, data_dir, store
        self._made: dict[str, Dataset] = {}
        self._declared: dict[str, Declaration] = {}
        self._marks: dict[str, dict[Path, FileMark]] = {}

    def _dataset(self, spec: ComponentSpec) -> tuple[str, Dataset]:
        name = json.dumps([spec.name, dict(spec.params)], sort_keys=True)
        if name not in self._made:
            entry = self._catalog.get("dataset", spec.name)
            self._tell_code(entry, spec)
            with self._telling(spec):
                made = load_one(entry)(**spec.params)
            made.store = self._store
            for value, why in effective(made.hparams, made.values)[1].items():
                if made.values[value] != made.hparams[value].default:  # who names a split column expects that split
                    raise DataError(f"dataset '{made.name}': {why.text}")
            self._made[name] = made
        return name, self._made[name]

    def _tell_code(self, entry: Entry, spec: ComponentSpec) -> None:
        """Tell of the code that a dataset names, or refuse it."""
        for name in entry.traits.get("names_code", ()):
            target = spec.params.get(name, entry.hparams[name].default)
            if plugins_off():
                raise DataError(f"dataset '{spec.name}' would run code that '{name}' names, which --no-plugins forbids")
            if target and self._naming is not None:
                self._naming(spec.name, str(target))

    def declare(self, spec: ComponentSpec) -> Declaration:
        """Return the dataset's declaration.

        Raises:
            DataError: it cannot be declared, or a value was chosen that has no meaning beside the others.
        """
        name, dataset = self._dataset(spec)
        if name not in self._declared:
            with self._advising(spec, dataset):
                self._declared[name] = check_declaration(dataset, dataset.declare(self._data_dir))
            with suppress(DataError):  # a dataset may be declared without its files
                self._marks[name] = _marks(self.paths(spec))
        return self._declared[name]

    @contextmanager
    def _advising(self, spec: ComponentSpec, dataset: Dataset) -> Iterator[None]:
        """Tell with a fault of the data how to get what is missing."""
        with self._telling(spec):
            try:
                yield
            except DataError as error:
                from harness.downloads.files import advised

                raise DataError(advised(dataset, spec.params, self._data_dir, bounded(str(error)))) from None

    @contextmanager
    def _telling(self, spec: ComponentSpec) -> Iterator[None]:
        """Tell of whatever else a dataset raises where that was; what it prints is none of the command's answer."""
        try:
            with redirect_stdout(sys.stderr):
                yield
        except BenchError:
            raise
        except (Exception, SystemExit) as error:
            file = Path(self._catalog.get("dataset", spec.name).file)
            raise UserError(f"describing it raised {told(error, file)}") from error

    def paths(self, spec: ComponentSpec) -> list[Path]:
        """Return the input files.

        Raises:
            DataError: one is missing; the text says how to get it.
        """
        dataset = self._dataset(spec)[1]
        with self._advising(spec, dataset):
            return check_files(dataset, dataset.files(self._data_dir))

    def files(self, spec: ComponentSpec) -> list[dict[str, str]]:
        """Return name and content digest of each input file, in the dataset's order, without paths.

        Raises:
            DataError: a file is missing, cannot be read, or has changed since the dataset was declared.
        """
        found, paths = [], self.paths(spec)
        for path in paths:
            try:
                found.append({"name": path.name, "sha256": self._store.file_digest(path)})
            except OSError as error:
                raise DataError(f"cannot read {path}: {error.strerror or error}") from None
        now = _marks(paths)
        for path, mark in self._marks.get(self._dataset(spec)[0], now).items():
            if now.get(path) != mark:
                raise DataError(f"changed while the suite was planned: {path}")
        return found

    def downloads(self, spec: ComponentSpec) -> Sequence[Download]:
        """Return addresses, licences and citations of the dataset's files."""
        dataset = self._dataset(spec)[1]
        with self._telling(spec):
            found: Any = dataset.downloads(self._data_dir)
        listed = isinstance(found, (list, tuple)) and all(isinstance(item, Download) for item in found)
        expect(listed, dataset, "downloads", found, "a list of Download")
        return list(found)


def _marks(paths: Iterable[Path]) -> dict[Path, FileMark]:
    """Return path -> a mark that changes when the file is written; who reads an unreadable file reports it."""
    found = {}
    for path in paths:
        with suppress(OSError):
            found[path] = file_mark(path)
    return found
