"""The resolved form of a suite: plain, immutable data that everything after the YAML works on. No torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.engine.cluster import Profile
from harness.suite.settings import SelectSettings, TrainSettings, TuneSettings, declared, setting


@dataclass(frozen=True)
class ComponentSpec:
    """A component with values: only those that the suite gives, coerced to their declared types."""

    kind: str
    name: str
    params: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ModelSettings:
    """The suite's network: a backbone with its values (``layers``, ``hidden``, ``dropout`` …), readout and head."""

    backbone: ComponentSpec
    readout: str = setting("sum", "how node embeddings become a graph embedding", choices=("sum", "mean", "max"))
    head_layers: int = setting(2, "hidden layers of the classifier head", low=0)


MODEL = declared(ModelSettings)


@dataclass(frozen=True)
class Pipeline:
    """EQuAD's three steps. ``encoders`` are the pool's architectures, whose candidates are pooled."""

    encoders: tuple[ComponentSpec, ...]
    quantifier: ComponentSpec
    decorrelator: ComponentSpec


@dataclass(frozen=True)
class Configuration:
    """One point of a method's search: everything that a training needs besides dataset and seed.

    Attributes:
        id: short text that names what was tuned (``penalty=1, layers=3``), or ``-`` where nothing was.
        values: the tuned values by axis, e.g. ``{"baseline.penalty": 1.0}``.
        learner: the baseline, or the pipeline's decorrelator.
        pipeline: the three steps, or None for a baseline.
        environment: what supplies environment ids, or None.
        model, train: the settings after all overrides.
    """

    id: str
    values: Mapping[str, Any]
    learner: ComponentSpec
    pipeline: Pipeline | None
    environment: ComponentSpec | None
    model: ModelSettings
    train: TrainSettings


Ask = Callable[[Sequence[Configuration], Sequence[float]], Configuration]
"""Gives the next trial of a search, by the configurations so far and the score of each, more being better."""


@dataclass(frozen=True)
class DatasetSpec:
    """One column of the table."""

    label: str
    component: ComponentSpec


@dataclass(frozen=True)
class Row:
    """One method on one dataset: its configurations and how one of them is selected.

    Attributes:
        configurations: those that are known; ``ask`` gives the ``pending`` others, one by one.
        departures: settings that are not the protocol's, e.g. ``epochs 6 (protocol 50)``, without what is tuned.
    """

    method: str
    dataset: str
    configurations: tuple[Configuration, ...]
    select: SelectSettings
    tuned: tuple[str, ...] = ()
    departures: tuple[str, ...] = ()
    pending: int = 0
    ask: Ask | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Unsupported:
    """A method that cannot run on a dataset: which component of it, and why.

    Its entry of the table is ``n/a``, and it has no stages.
    """

    dataset: str
    method: str
    component: str
    reason: str

    def __str__(self) -> str:
        return f"n/a: {self.method} on {self.dataset}: {self.component} {self.reason}"


@dataclass(frozen=True)
class AnalysisSpec:
    """An analysis of the suite: its label, and the datasets and methods it looks at (globs; empty for all)."""

    label: str
    component: ComponentSpec
    datasets: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()


@dataclass(frozen=True)
class ReportSettings:
    """The contents of the report: the reference row for differences, published numbers, statistics."""

    reference: str | None = None
    published: str | None = None
    statistics: bool = False


@dataclass(frozen=True)
class Suite:
    """A suite after includes, overrides, ``like``, ``matrix``, ``pool``, ``tune`` and budget.

    Attributes:
        rows: one per (dataset, method), datasets outermost, in the order of the file, but those in ``unsupported``.
        tune: how the configurations are drawn, or None for whole grids or a budget.
        overrides: what the command line changed, as text, for captions.
        files: every file of the suite with its digest, see :meth:`harness.suite.files.Gathered.digests`.
        departures: what of the whole suite is not the protocol's, e.g. ``seeds 1 (protocol 3)``.
        resolved: the fully resolved YAML tree, for the run folder.
        cluster: where ``--engine dask`` runs it; not part of ``resolved``, as it says nothing of results.
    """

    name: str
    path: Path
    protocol: str
    seeds: tuple[int, ...]
    datasets: tuple[DatasetSpec, ...]
    methods: tuple[str, ...]
    rows: tuple[Row, ...]
    unsupported: tuple[Unsupported, ...] = ()
    tune: TuneSettings | None = None
    report: ReportSettings = ReportSettings()
    analyses: tuple[AnalysisSpec, ...] = ()
    trackers: tuple[ComponentSpec, ...] = ()
    cluster: Profile | None = None
    plugins: tuple[Path, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    overrides: tuple[str, ...] = ()
    departures: tuple[str, ...] = ()
    resolved: Mapping[str, Any] = field(default_factory=dict)

    @property
    def cells(self) -> int:
        """The number of cells, those of pending trials included."""
        return len(self.seeds) * sum(len(row.configurations) + row.pending for row in self.rows)

    @property
    def pending(self) -> int:
        """The number of trials that are still to be chosen."""
        return sum(row.pending for row in self.rows)

    def dataset(self, label: str) -> DatasetSpec:
        """The dataset with this label."""
        return next(dataset for dataset in self.datasets if dataset.label == label)
