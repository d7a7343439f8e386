"""The results of a run as plain data: one flat table, and what a report must know beside it. No torch, no NumPy.

The table is in tidy long form: a row is one value, that of one cell (dataset, method, configuration, seed) on one
split under one checkpoint rule. A cell without results has the same rows, with ``value`` null, a ``status`` and a
``reason``; a cell that has not run has none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from harness.data import Role
from harness.errors import DataError
from harness.safe_io import csv_text, json_text, parse_json_as, shown, write_text
from harness.suite.settings import SelectSettings, TuneSettings
from harness.suite.spec import Unsupported


@dataclass(frozen=True)
class CellId:
    """One (dataset, method, configuration, seed) of a suite, by its labels.

    ``config_id`` is the short name of a method's configuration, ``-`` where there is only one.
    """

    dataset: str
    method: str
    config_id: str
    seed: int

    @property
    def coordinates(self) -> tuple[str, str, str, int]:
        """Dataset, method, configuration and seed, as a key of mappings."""
        return self.dataset, self.method, self.config_id, self.seed

    @property
    def name(self) -> str:
        """``method on dataset, seed 1``, with the configuration where there are several."""
        chosen = "" if self.config_id == "-" else f" ({self.config_id})"
        return f"{self.method}{chosen} on {self.dataset}, seed {self.seed}"


LOST = ("failed", "memory", "timeout", "diverged", "undefined", "skipped", "missing")
"""What a cell has instead of a value; where seeds ended differently, the first of these counts."""
STATUSES = ("ok", *LOST)
METRICS = {"accuracy": "accuracy", "rocauc": "ROC-AUC", "mcc": "Matthews correlation"}
"""The metrics in words."""


@dataclass(frozen=True)
class ResultRow(CellId):
    """One value of one cell.

    Attributes:
        hyperparameters: the configuration's tuned values by axis.
        split: where it was measured; ``checkpoint`` the rule that chose the weights (see ``suite.settings``).
        metric: ``accuracy``, ``rocauc`` or ``mcc``; ``value`` a fraction, None unless ``status`` is ``ok``.
        epoch: the chosen checkpoint's epoch, from 0.
        status: one of :data:`STATUSES`; ``reason`` one line, ``traceback`` short.
        selected: whether the suite's selection rule takes this configuration for this checkpoint rule.
        environments: what supplies environment ids, e.g. ``random(2)``; empty for none.
        oracle: oracle fields that were opened; ``uses_validation_labels``: validation labels shaped training.
        cell, key: the short id of the cell, and the key of its last stage.
        seconds, cpu_seconds: wall and processor time of the training stage; ``peak_memory`` its bytes.
        device: the name of the GPU that it ran on, empty for the CPU; ``peak_device_memory`` the bytes taken there.
    """

    split: str
    metric: str
    checkpoint: str
    value: float | None = None
    status: str = "ok"
    reason: str = ""
    epoch: int | None = None
    selected: bool = False
    hyperparameters: Mapping[str, Any] = field(default_factory=dict)
    environments: str = ""
    oracle: tuple[str, ...] = ()
    uses_validation_labels: bool = False
    protocol: str = ""
    cell: str = ""
    key: str = ""
    seconds: float | None = None
    cpu_seconds: float | None = None
    peak_memory: int | None = None
    device: str = ""
    peak_device_memory: int | None = None
    traceback: str = ""

    def __post_init__(self) -> None:
        if self.status not in STATUSES:
            raise ValueError(f"unknown status '{self.status}'; there are: {', '.join(STATUSES)}")
        if self.value is not None and not math.isfinite(self.value):
            object.__setattr__(self, "value", None)
            if self.status == "ok":
                object.__setattr__(self, "status", "undefined")
                object.__setattr__(self, "reason", self.reason or "not a finite number")
        if (self.value is None) == (self.status == "ok"):
            raise ValueError(f"status '{self.status}' does not go with value {self.value}")


@dataclass(frozen=True)
class DatasetFacts:
    """The facts of a dataset that a report shows (see :class:`harness.data.Declaration`).

    ``seed`` and ``split_seed`` are the dataset's own, None where it draws nothing; ``version`` says which edition of
    the data it is; ``departures`` says how they differ from those that go by their name; ``licence`` and ``citation``
    are those of its downloads. Known once the data are built:
    ``fingerprint``, a digest of the content; ``skipped``, rows of its files that were left out, with the reason;
    ``component`` and ``values``, the component and its values that differ from the defaults.
    """

    label: str
    metric: str = "accuracy"
    task: str = "multiclass"
    splits: Mapping[str, Role] = field(default_factory=lambda: {"train": "train", "val": "val", "test": "test"})
    default_val: str = "val"
    validation: str = ""
    variant: str = ""
    departures: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    seed: int | None = None
    split_seed: int | None = None
    version: str = ""
    licence: str = ""
    citation: str = ""
    fingerprint: str = ""
    skipped: tuple[str, ...] = ()
    component: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)

    @property
    def test_splits(self) -> list[str]:
        """The splits with the role ``test``, in order of display."""
        return [name for name, role in self.splits.items() if role == "test"]


@dataclass(frozen=True)
class MethodFacts:
    """The facts of one method on one dataset that a report shows.

    Attributes:
        configurations: configuration id -> its tuned values, in the order of declaration.
        select: how checkpoint and configuration are chosen.
        environments, oracle: as in :class:`ResultRow`; ``shaped_by_validation``: ids of the configurations whose
            training validation labels shape.
        departures: settings that are not the protocol's, e.g. ``epochs 6 (protocol 50)``, without what was tuned.
        settings: network and training by path (``train.epochs``), without what was tuned, and of the backbone only what
            differs from its defaults; empty until a cell has been trained.
        tuned_settings: configuration id -> what it tuned of network and training, written like ``settings``.
        pending: trials of the search that are still to be chosen.
    """

    dataset: str
    method: str
    configurations: Mapping[str, Mapping[str, Any]]
    select: SelectSettings = field(default_factory=SelectSettings)
    environments: str = ""
    oracle: tuple[str, ...] = ()
    shaped_by_validation: tuple[str, ...] = ()
    departures: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    tuned_settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    pending: int = 0

    @property
    def tuned(self) -> bool:
        """True if there is more than one configuration to choose from."""
        return len(self.configurations) + self.pending > 1


@dataclass(frozen=True)
class RunResults:
    """All that a report needs; a run folder holds it as one JSON file.

    Attributes:
        datasets, methods: in the suite's order; ``entries`` has one for each pair that the suite runs.
        unsupported: the pairs of the suite that cannot run.
        overrides: what the command line changed, as text.
        reference: the method that differences are taken to, or None.
        published: name of the published numbers to stand beside ours, or None.
        statistics: True if reports have statistics unless asked otherwise.
        tune: how the configurations of tuned methods were drawn, None for whole grids or a budget.
        status: of the run: ``running``, ``finished``, ``failed`` (some cells) or ``interrupted``; empty if unknown.
        stored: cell -> when it failed, for those that failed in an earlier run and were not tried again.
    """

    suite: str
    run: str
    protocol: str
    seeds: tuple[int, ...]
    datasets: tuple[DatasetFacts, ...]
    methods: tuple[str, ...]
    entries: tuple[MethodFacts, ...]
    unsupported: tuple[Unsupported, ...] = ()
    overrides: tuple[str, ...] = ()
    reference: str | None = None
    published: str | None = None
    statistics: bool = False
    tune: TuneSettings | None = None
    status: str = ""
    stored: Mapping[str, str] = field(default_factory=dict)
    rows: tuple[ResultRow, ...] = ()

    def dataset(self, label: str) -> DatasetFacts:
        """Return the dataset with this label."""
        return self._by_label[label]

    def entry(self, dataset: str, method: str) -> MethodFacts | None:
        """Return the facts of a method on a dataset, or None if the suite does not run it there."""
        return self._by_row.get((dataset, method))

    def why_not(self, dataset: str, method: str) -> str:
        """Return why a method cannot run on a dataset; empty where it can."""
        reasons = (one.reason for one in self.unsupported if (one.dataset, one.method) == (dataset, method))
        return next(reasons, "")

    @cached_property
    def _by_label(self) -> dict[str, DatasetFacts]:
        return {dataset.label: dataset for dataset in self.datasets}

    @cached_property
    def _by_row(self) -> dict[tuple[str, str], MethodFacts]:
        return {(entry.dataset, entry.method): entry for entry in self.entries}

    def validation_split(self, entry: MethodFacts) -> str:
        """Return the split that checkpoint and configuration are chosen on."""
        return entry.select.split if entry.select.split != "auto" else self.dataset(entry.dataset).default_val

    def with_rows(self, rows: Iterable[ResultRow]) -> RunResults:
        """Return the same run with other rows."""
        return replace(self, rows=tuple(rows))

    def of(self, datasets: Collection[str], methods: Collection[str]) -> RunResults:
        """Return the same run with these datasets and methods alone."""

        def kept(one: MethodFacts | ResultRow | Unsupported) -> bool:
            return one.dataset in datasets and one.method in methods

        return replace(
            self,
            datasets=tuple(dataset for dataset in self.datasets if dataset.label in datasets),
            methods=tuple(method for method in self.methods if method in methods),
            entries=tuple(filter(kept, self.entries)),
            unsupported=tuple(filter(kept, self.unsupported)),
            rows=tuple(filter(kept, self.rows)),
        )

    def check_labels(self) -> None:
        """Refuse names that no suite can give, and rows of datasets that are not there.

        Raises:
            ValueError: it is so.
        """
        known = {dataset.label for dataset in self.datasets}
        used = {entry.dataset for entry in self.entries} | {row.dataset for row in self.rows}
        if used - known:
            raise ValueError(f"there is no dataset {min(used - known)!r}")
        for label in {self.suite, self.run, *known, *self.methods, *(row.method for row in self.rows)}:
            if not label.isprintable():
                raise ValueError(f"{shown(label)} is no printable name")

    def text(self, kept: Callable[[ResultRow], Any] = lambda row: row) -> str:
        """Return strict JSON with a line for each row, or for what is ``kept`` of it."""
        head = json_text(self.with_rows(()), indent=None).rstrip().removesuffix("]}")
        rows = ",\n".join(json_text(kept(row), indent=None).rstrip() for row in self.rows)
        return f"{head}\n{rows}\n]}}\n"

    def save(self, path: Path) -> None:
        """Write :meth:`text`, whole or not at all."""
        write_text(path, self.text())

    @classmethod
    def load(cls, path: Path) -> RunResults:
        """Read what :meth:`save` wrote. Fields that are not known are ignored.

        Raises:
            DataError: the file is missing, not strict JSON, or not a results file.
        """
        try:
            results = parse_json_as(cls, path.read_text(encoding="utf-8"))
            results.check_labels()
            return results
        except (OSError, ValueError) as error:
            raise DataError(f"{path}: not a readable results file ({type(error).__name__}: {error})") from error


def rows_to_csv(rows: Iterable[ResultRow]) -> str:
    """Write the flat table as CSV with a header."""
    names = [item.name for item in fields(ResultRow)]
    return csv_text([names, *([getattr(row, name) for name in names] for row in rows)])
