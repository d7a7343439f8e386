"""What planning asks of dataset components: their declaration and the digests of their input files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.catalog import Catalog
from harness.data import Dataset, Declaration
from harness.errors import DataError
from harness.keys import digest
from harness.registry import load_one
from harness.spec import ComponentSpec


class DatasetFacts:
    """Answers for each dataset once, by value."""

    def __init__(self, catalog: Catalog, data_dir: Path | None, file_digest: Callable[[Path], str]) -> None:
        self._catalog, self._data_dir, self._file_digest = catalog, data_dir, file_digest
        self._made: dict[str, Dataset] = {}
        self._declared: dict[str, Declaration] = {}

    def _dataset(self, spec: ComponentSpec) -> tuple[str, Dataset]:
        name = json.dumps([spec.name, dict(spec.params)], sort_keys=True)
        if name not in self._made:
            self._made[name] = load_one(self._catalog.get("dataset", spec.name))(**spec.params)
        return name, self._made[name]

    def declare(self, spec: ComponentSpec) -> Declaration:
        """The dataset's declaration."""
        name, dataset = self._dataset(spec)
        if name not in self._declared:
            with self._advising(spec, dataset):
                self._declared[name] = dataset.declare(self._data_dir)
        return self._declared[name]

    @contextmanager
    def _advising(self, spec: ComponentSpec, dataset: Dataset) -> Iterator[None]:
        """Tell with a fault of the data how to get what is missing."""
        try:
            yield
        except DataError as error:
            from harness.downloads.advice import advised

            raise DataError(advised(dataset, spec.params, self._data_dir, str(error))) from None

    def paths(self, spec: ComponentSpec) -> list[Path]:
        """The input files.

        Raises:
            DataError: one is missing; the text says how to get it.
        """
        dataset = self._dataset(spec)[1]
        with self._advising(spec, dataset):
            return dataset.files(self._data_dir)

    def files(self, spec: ComponentSpec) -> list[dict[str, str]]:
        """Name and content digest of each input file, in the dataset's order. Paths do not enter.

        Raises:
            DataError: a file is missing or cannot be read.
        """
        found = []
        for path in self.paths(spec):
            try:
                found.append({"name": path.name, "sha256": self._file_digest(path)})
            except OSError as error:
                raise DataError(f"cannot read {path}: {error.strerror or error}") from None
        return found

    def identity(self, spec: ComponentSpec) -> str:
        """A short digest of the files of a dataset, for messages."""
        return digest(self.files(spec))[:12]
