"""The rig of analyses: parts of the toy run, and cells that note forbidden reads."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch

from harness.analysis import Analysis, Findings, MeasuredCell, Study
from harness.data import Array
from harness.errors import BenchError
from harness.plan.analyses import ChosenCell, chosen_cells
from harness.randomness import seeded
from harness.registry.catalog import Catalog
from harness.results.rows import ResultRow, RunResults
from harness.run.analyses import costs, measured, presented
from harness.safe_io import json_text, parse_json
from harness.stages.analyse import answered
from harness.stages.cell import TrainedCell
from harness.suite.spec import AnalysisSpec, ComponentSpec
from harness.testing.figures import drawn
from harness.testing.rig import Rig, Trial
from harness.testing.toys import SEVERAL_TASKS, USUAL, ToyRun, kit_entry, toy_run

Answer = tuple[Mapping[str, Any], Mapping[str, Array]]


@dataclass(frozen=True)
class StudyPart:
    """A part of the toy run.

    Attributes:
        datasets, methods: globs, empty for all.
        seeds: training seeds.
        lost: the method whose last seed is made a failure.
        suite: the toy run's suite.
    """

    datasets: tuple[str, ...] = ("Usual",)
    methods: tuple[str, ...] = ()
    seeds: tuple[int, ...] = (1, 2)
    lost: str = ""
    suite: str = USUAL


WHOLE = StudyPart()
SMALL = StudyPart(seeds=(1,))
PIPELINE, TUNED = (StudyPart(methods=(method,), seeds=(1,)) for method in ("Pipeline", "Tuned"))
TASKS = StudyPart(datasets=(), suite=SEVERAL_TASKS)


class WatchedCell(TrainedCell):
    """A trained cell that notes what it returns, and what it refuses.

    Attributes:
        returned: name, array and a copy of the array.
        refused: reads that are not allowed.
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.returned: list[tuple[str, Array, Array]] = []
        self.refused: list[str] = []

    def _noted(self, what: str, read: Callable[[], Any]) -> Any:
        try:
            array = read()
        except PermissionError as error:
            self.refused.append(str(error))
            raise
        self.returned.append((what, array, array.copy()))
        return array

    def labels(self, split: str) -> Array:
        """As the base class."""
        return self._noted(f"labels('{split}')", partial(super().labels, split))  # type: ignore[no-any-return]

    def oracle(self, name: str, split: str) -> Array:
        """As the base class."""
        return self._noted(f"oracle('{name}', '{split}')", partial(super().oracle, name, split))  # type: ignore[no-any-return]

    def embeddings(self, split: str) -> Any:
        """As the base class."""
        return self._noted(f"embeddings('{split}')", partial(super().embeddings, split))

    def state(self) -> dict[str, Any]:
        """Return the network's weights and its mode."""
        weights = {name: value.clone() for name, value in self.learner.state_dict().items()}
        return {**weights, "training": torch.tensor(self.learner.training)}


@dataclass
class AnalysisRig(Rig[Analysis, Trial]):
    """An analysis under test; its outputs are the findings of two parts of the toy run.

    Attributes:
        refused: forbidden reads while it presented.
        opened: True if it read labels or domains of a test split.
    """

    refused: list[str] = field(default_factory=list)
    opened: bool = False
    _measured: dict[str, Answer] = field(default_factory=dict, repr=False)

    def trial(self, values: Mapping[str, Any], seed: int) -> Trial:
        """Present a pipeline, and tuned methods."""
        del seed
        parts = {"pipeline": PIPELINE, "tuned": TUNED}
        return Trial({name: self._result(present, part, values) for name, part in parts.items()})

    def differ(self, one: Mapping[str, Any], two: Mapping[str, Any]) -> bool:
        """Return True if two settings lead to other findings, or to other figures."""
        if super().differ(one, two):
            return True
        return any(self._result(drawn, part, one) != self._result(drawn, part, two) for part in (PIPELINE, TUNED))

    def _result(self, function: Callable[[Analysis, Study], Any], part: StudyPart, values: Mapping[str, Any]) -> Any:
        """Call a function of an analysis and a study; an error of the harness's own kinds is a result too."""
        study = self.study(part, values)
        if study is None:
            return None
        try:
            return function(self.make(values), study)
        except BenchError as error:
            return str(error)

    @cached_property
    def presents(self) -> bool:
        """True if an ordinary run gives a table with rows."""
        try:
            study = self.study(WHOLE)
            return study is not None and bool(present(self.make(), study).rows)
        except Exception:
            return False

    def chosen(self, part: StudyPart) -> tuple[ToyRun, RunResults, list[ChosenCell]]:
        """Return the cells of a part that the analysis would measure."""
        run = toy_run(part.suite)
        results = _results(run.results, part)
        catalog = Catalog([*run.session.catalog, kit_entry(self.cls)])
        component = ComponentSpec("analysis", self.cls.name, self.base)
        spec = AnalysisSpec(self.cls.name, component, part.datasets, part.methods)

        def oracle_of(label: str) -> tuple[str, ...]:
            return run.session.facts.declare(run.session.suite.dataset(label).component).oracle

        return run, results, chosen_cells(spec, run.session.plan, catalog, results, oracle_of)

    def cells(self, part: StudyPart) -> Iterator[tuple[ChosenCell, WatchedCell]]:
        """Yield the trained cells of a part as ``measure`` gets them."""
        run, _, chosen = self.chosen(part)
        for item in chosen:
            if item.stage is not None:
                yield item, WatchedCell(run.context, item.stage.payload, item.stage.payload.fields)

    def answer(self, run: ToyRun, item: ChosenCell, values: Mapping[str, Any]) -> Answer:
        """Return the answer of ``measure`` about a cell as it comes back from the store; asked once."""
        if item.stage is None:
            return {}, {}
        name = json.dumps([item.stage.key, dict(values)], sort_keys=True)
        if name not in self._measured:
            cell = WatchedCell(run.context, item.stage.payload, item.stage.payload.fields)
            self._measured[name] = measure(self.make(values), cell)
        return self._measured[name]

    def study(self, part: StudyPart, values: Mapping[str, Any] | None = None) -> Study | None:
        """Return the argument of ``present`` for a part; None if the analysis measures nothing there."""
        run, results, chosen = self.chosen(part)
        if not chosen:
            return None
        cells = []
        for item in chosen:
            answers, arrays = self.answer(run, item, values or {})
            copies = {name: array.copy() for name, array in arrays.items()}
            cell = measured(run.session, results, item, self.cls.opens_test, parse_json(json_text(answers)), copies)
            cells.append(self._guarded(cell))
        return Study(self.cls.name, results, tuple(cells), tuple(costs(run.session)))

    def _guarded(self, cell: MeasuredCell) -> MeasuredCell:
        """Note each read of sealed data."""

        def reading(name: str, read: Callable[[str], Array | None], split: str) -> Array | None:
            if name in ("y", "env") and cell.splits[split] == "test":
                self.opened = True
                if not self.cls.opens_test:
                    self.refused.append(f"'{name}' of '{split}'")
            return read(split)

        return replace(cell, truth={name: partial(reading, name, read) for name, read in cell.truth.items()})


def measure(analysis: Analysis, cell: TrainedCell) -> Answer:
    """Call ``measure`` in the way a worker does, warnings being errors."""
    with warnings.catch_warnings(), seeded(cell.seed, "analysis"):
        warnings.simplefilter("error")
        answers = answered(analysis, cell)
    arrays = {name: np.array(value) for name, value in answers.items() if isinstance(value, np.ndarray)}
    for value in arrays.values():
        torch.from_numpy(value)  # torch must be able to hold it, else it cannot be stored
    return {name: value for name, value in answers.items() if name not in arrays}, arrays


def present(analysis: Analysis, study: Study) -> Findings:
    """Call ``present``, warnings being errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return presented(analysis, study)


def _results(results: RunResults, part: StudyPart) -> RunResults:
    """Return the flat table of a part: without other seeds, and with the failure that it asks for."""

    def lost(row: ResultRow) -> ResultRow:
        if part.lost and row.method == part.lost and row.seed == part.seeds[-1]:
            return replace(row, value=None, status="failed", reason="ValueError: lost")
        return row

    return replace(results, seeds=part.seeds, rows=tuple(lost(row) for row in results.rows if row.seed in part.seeds))
