"""Parts of the toy run as an analysis sees them, with what it must not do watched."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import torch

from harness.analysis import Analysis, Findings, MeasuredCell, Study
from harness.data import Array
from harness.plan.analyses import ChosenCell, chosen_cells
from harness.randomness import seeded
from harness.registry.catalog import Catalog
from harness.results.rows import ResultRow, RunResults, dumps, loads
from harness.run.analyses import costs, measured, presented
from harness.stages.analyse import answered
from harness.stages.cell import TrainedCell
from harness.suite.spec import AnalysisSpec, ComponentSpec
from harness.testing.settings import EVERYWHERE
from harness.testing.toy_run import SEVERAL_TASKS, USUAL, ToyRun, kit_entry, toy_run


@dataclass(frozen=True)
class Part:
    """A part of the toy run.

    Attributes:
        datasets, methods: globs, empty for all.
        seeds: training seeds.
        lost: the method whose last seed is made a failure.
        suite: which toy run.
    """

    datasets: tuple[str, ...] = ("Usual",)
    methods: tuple[str, ...] = ()
    seeds: tuple[int, ...] = (1, 2)
    lost: str = ""
    suite: str = USUAL


WHOLE = Part()
SMALL = Part(seeds=(1,))
PIPELINE, TUNED = (Part(methods=(method,), seeds=(1,)) for method in ("Pipeline", "Tuned"))
TASKS = Part(datasets=(), suite=SEVERAL_TASKS)


class Watched(TrainedCell):
    """A trained cell that keeps what it handed over, and what it refused.

    Attributes:
        handed: what, in words; the array; a copy of it.
        refused: what was asked for and is not allowed.
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.handed: list[tuple[str, Array, Array]] = []
        self.refused: list[str] = []

    def _keep(self, what: str, read: Callable[[], Any]) -> Any:
        try:
            found = read()
        except PermissionError as error:
            self.refused.append(str(error))
            raise
        self.handed.append((what, found, found.copy()))
        return found

    def labels(self, split: str) -> Array:
        """As the base class."""
        return self._keep(f"labels('{split}')", partial(super().labels, split))  # type: ignore[no-any-return]

    def oracle(self, name: str, split: str) -> Array:
        """As the base class."""
        return self._keep(f"oracle('{name}', '{split}')", partial(super().oracle, name, split))  # type: ignore[no-any-return]

    def embeddings(self, split: str) -> Any:
        """As the base class."""
        return self._keep(f"embeddings('{split}')", partial(super().embeddings, split))

    def state(self) -> dict[str, Any]:
        """The network's weights and whether it is in training mode."""
        weights = {name: value.clone() for name, value in self.learner.state_dict().items()}
        return {**weights, "training": torch.tensor(self.learner.training)}


Answer = tuple[Mapping[str, Any], Mapping[str, Array]]


@dataclass
class AnalysisSubject:
    """An analysis's class, and what it measured so far.

    Attributes:
        refused: what it asked for while it presented and may not read.
        opened: whether it read labels or domains of a test split.
    """

    cls: type[Analysis]
    refused: list[str] = field(default_factory=list)
    opened: bool = False
    _measured: dict[str, Answer] = field(default_factory=dict, repr=False)

    @property
    def base(self) -> dict[str, Any]:
        """The settings of ``probes["*"]``."""
        return dict(self.cls.probes.get(EVERYWHERE, {}))

    def make(self, values: Mapping[str, Any] | None = None) -> Analysis:
        """An instance."""
        return self.cls(**{**self.base, **(values or {})})

    def chosen(self, part: Part) -> tuple[ToyRun, RunResults, list[ChosenCell]]:
        """The cells of a part that the analysis would look at."""
        run = toy_run(part.suite)
        results = _results(run.results, part)
        catalog = Catalog([*run.session.catalog, kit_entry(self.cls)])
        component = ComponentSpec("analysis", self.cls.name, self.base)
        spec = AnalysisSpec(self.cls.name, component, part.datasets, part.methods)

        def oracle_of(label: str) -> tuple[str, ...]:
            return run.session.facts.declare(run.session.suite.dataset(label).component).oracle

        return run, results, chosen_cells(spec, run.session.plan, catalog, results, oracle_of)

    def cell(self, run: ToyRun, item: ChosenCell) -> Watched:
        """One cell as ``measure`` gets it."""
        assert item.stage is not None
        return Watched(run.context, item.stage.payload, item.stage.payload["fields"])

    def answer(self, run: ToyRun, item: ChosenCell, values: Mapping[str, Any]) -> Answer:
        """What ``measure`` says of a cell, as it comes back from the store; asked once."""
        if item.stage is None:
            return {}, {}
        name = json.dumps([item.stage.key, dict(values)], sort_keys=True)
        if name not in self._measured:
            self._measured[name] = measure(self.make(values), self.cell(run, item))
        return self._measured[name]

    def study(self, part: Part, values: Mapping[str, Any] | None = None) -> Study | None:
        """What ``present`` gets of a part; None where the analysis has nothing to look at there."""
        run, results, chosen = self.chosen(part)
        if not chosen:
            return None
        cells = []
        for item in chosen:
            told, arrays = self.answer(run, item, values or {})
            copies = {name: array.copy() for name, array in arrays.items()}
            cell = measured(run.session, results, item, self.cls.opens_test, loads(dumps(dict(told))), copies)
            cells.append(self._guarded(cell))
        return Study(self.cls.name, results, tuple(cells), tuple(costs(run.session)))

    def _guarded(self, cell: MeasuredCell) -> MeasuredCell:
        """The cell, with a note of each reading of what is sealed."""

        def reading(name: str, read: Callable[[str], Array | None], split: str) -> Array | None:
            if name in ("y", "env") and cell.splits[split] == "test":
                self.opened = True
                if not self.cls.opens_test:
                    self.refused.append(f"'{name}' of '{split}'")
            return read(split)

        return replace(cell, truth={name: partial(reading, name, read) for name, read in cell.truth.items()})


def measure(analysis: Analysis, cell: TrainedCell) -> Answer:
    """Ask ``measure`` in the way a worker does, warnings being errors."""
    with warnings.catch_warnings(), seeded(cell.seed, "analysis"):
        warnings.simplefilter("error")
        found = answered(analysis, cell)
    arrays = {name: np.array(value) for name, value in found.items() if isinstance(value, np.ndarray)}
    for value in arrays.values():
        torch.from_numpy(value)  # what torch cannot hold cannot be stored
    return {name: value for name, value in found.items() if name not in arrays}, arrays


def present(analysis: Analysis, study: Study) -> Findings:
    """Ask for the table, warnings being errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return presented(analysis, study)


def _results(results: RunResults, part: Part) -> RunResults:
    """The flat table of a part: without other seeds, and with a failure if one is asked for."""
    rows = (row for row in results.rows if row.seed in part.seeds)
    lost = list(_lost(rows, part)) if part.lost else list(rows)
    return replace(results, seeds=part.seeds, rows=tuple(lost))


def _lost(rows: Iterator[ResultRow], part: Part) -> Iterator[ResultRow]:
    for row in rows:
        gone = row.method == part.lost and row.seed == part.seeds[-1]
        yield replace(row, value=None, status="failed", reason="ValueError: lost") if gone else row
