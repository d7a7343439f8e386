"""Checks of analyses, on parts of a small finished run."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any

import numpy as np

from harness.analysis import Analysis, Findings, Study
from harness.data import Array
from harness.errors import BenchError
from harness.plan.analyses import ChosenCell, chosen_cells
from harness.randomness import seeded
from harness.registry.catalog import Catalog, Entry
from harness.results.rows import ResultRow, RunResults
from harness.run.analyses import costs, measured, presented
from harness.safe_io import json_text, parse_json
from harness.stages.analyse import answered
from harness.stages.cell import TrainedCell
from harness.suite.spec import AnalysisSpec, ComponentSpec
from harness.testing.report import CheckFunction
from harness.testing.rig import Rig, Trial, global_state, hyperparameters_matter, noting_draws, same_seed
from harness.testing.toys import SEVERAL_TASKS, USUAL, ToyRun, kit_entry, toy_run

_USUAL: Mapping[str, Any] = MappingProxyType({})
Answer = tuple[Mapping[str, Any], Mapping[str, Array]]


@dataclass(frozen=True)
class Part:
    """A part of a toy run.

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


ODD: Mapping[str, Part] = {
    "one seed": Part(seeds=(1,)),
    "datasets that differ": Part(datasets=("Usual", "Bare")),
    "a pipeline alone": Part(methods=("Pipeline",)),
    "a method without encoder": Part(methods=("Plain",)),
    "graphs of one class": Part(datasets=("One class",)),
    "a dataset without environments and ground truth": Part(datasets=("Bare",)),
    "a failed cell of a pipeline": Part(lost="Pipeline"),
    "a failed cell": Part(lost="Plain"),
    "several tasks": Part(datasets=(), suite=SEVERAL_TASKS),
}


@dataclass
class AnalysisRig(Rig[Analysis, Trial]):
    """An analysis under test; its outputs are its answers and tables of one seed of the toy run."""

    _answers: dict[str, Answer] = field(default_factory=dict, repr=False)

    def trial(self, values: Mapping[str, Any], seed: int) -> Trial:
        """Measure and present two methods, each by itself; an error of the harness's own kinds is a result too."""
        del seed
        self._answers.clear()
        draws: list[str] = []
        found = {method: self._results(method, values, draws) for method in ("Pipeline", "Tuned")}
        return Trial({f"{method}, {name}": v for method in found for name, v in found[method].items()}, draws=draws)

    def _results(self, method: str, values: Mapping[str, Any], draws: list[str]) -> dict[str, Any]:
        analysis = self.make(values)
        try:
            study = self.study(Part(methods=(method,), seeds=(1,)), values, draws)
            if study is None:
                return {}
            with noting_draws("present() or figure()", draws):
                shown = present(analysis, study)
        except BenchError as error:
            return {"error": str(error)}
        arrays = {name: array for cell in study.cells for name, array in cell.arrays.items()}
        return {"table or figure": repr(shown), "values": repr([cell.values for cell in study.cells]), **arrays}

    def study(self, part: Part, values: Mapping[str, Any] = _USUAL, draws: list[str] | None = None) -> Study | None:
        """Return the argument of ``present`` for a part; None if the analysis looks at nothing there."""
        run = toy_run(part.suite)
        results = _results_of(run.results, part)
        cells = []
        for item in self._chosen(run, results, part):
            answers, arrays = self._answer(run, item, values, [] if draws is None else draws)
            copies = {name: array.copy() for name, array in arrays.items()}
            read = parse_json(json_text(answers))
            cells.append(measured(run.session, results, item, self.cls.opens_test, read, copies))
        return Study(self.cls.name, results, tuple(cells), tuple(costs(run.session))) if cells else None

    @cached_property
    def _entry(self) -> Entry:
        """The class's row of the catalog, made once, as that reads all the code that the class uses."""
        return kit_entry(self.cls)

    def _chosen(self, run: ToyRun, results: RunResults, part: Part) -> Sequence[ChosenCell]:
        session = run.session
        catalog = Catalog([*session.catalog, self._entry])
        component = ComponentSpec("analysis", self.cls.name, self.base)
        spec = AnalysisSpec(self.cls.name, component, part.datasets, part.methods)
        return chosen_cells(spec, session.plan, catalog, results, session.facts)

    def _answer(self, run: ToyRun, item: ChosenCell, values: Mapping[str, Any], draws: list[str]) -> Answer:
        """Return the answer of ``measure`` about a cell as a worker gives it; asked once in a trial."""
        if item.stage is None:
            return {}, {}
        name = json.dumps([item.stage.key, dict(values)], sort_keys=True)
        if name not in self._answers:
            cell = TrainedCell(run.context, item.stage.payload, item.stage.payload.fields)
            with _strictly(), seeded(cell.seed, "analysis"), noting_draws("measure()", draws):
                found = answered(self.make(values), cell)
            arrays = {name: np.array(value) for name, value in found.items() if isinstance(value, np.ndarray)}
            self._answers[name] = {key: value for key, value in found.items() if key not in arrays}, arrays
        return self._answers[name]


@contextmanager
def _strictly() -> Iterator[None]:
    """Run a block, warnings being errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def present(analysis: Analysis, study: Study) -> tuple[Findings, list[str]]:
    """Return the table, and the texts of the figure where there is one and matplotlib is installed."""
    with _strictly():
        findings = presented(analysis, study)
        drawn = type(analysis).figure is not Analysis.figure and find_spec("matplotlib") is not None
        figure = analysis.figure(study) if drawn else None
    texts = [] if figure is None else figure.findobj(lambda artist: hasattr(artist, "get_text"))
    return findings, [text.get_text() for text in texts]


def _results_of(results: RunResults, part: Part) -> RunResults:
    """Return the flat table of a part: without other seeds, and with the failure that it asks for."""

    def lost(row: ResultRow) -> ResultRow:
        if part.lost and row.method == part.lost and row.seed == part.seeds[-1]:
            return replace(row, value=None, status="failed", reason="ValueError: lost")
        return row

    return replace(results, seeds=part.seeds, rows=tuple(lost(row) for row in results.rows if row.seed in part.seeds))


def gives_a_table(rig: AnalysisRig) -> Iterator[str]:
    """Of an ordinary run it gives a table with rows; numbers in it are finite, and None says that there is none."""
    rig.outcome()
    study = rig.study(Part())
    if study is None:
        yield "it looks at no cell of an ordinary run"
        return
    findings, _ = present(rig.make(), study)
    if not findings.rows:
        yield "the table of an ordinary run has no row"
    yield from _not_finite(findings)


def odd_runs(rig: AnalysisRig) -> Iterator[str]:
    """One seed, method or class, datasets that differ, a failed cell: a table, or an error that says why not."""
    rig.outcome()
    for what, part in ODD.items():
        try:
            study = rig.study(part)
            findings = None if study is None else present(rig.make(), study)[0]
        except BenchError:
            continue
        except Exception as error:
            error.add_note(what)
            raise
        if findings is not None:
            if not findings.rows and not findings.notes:
                yield f"{what}: an empty table, and no note that says why"
            yield from (f"{what}: {problem}" for problem in _not_finite(findings))


def _not_finite(findings: Findings) -> Iterator[str]:
    for row in findings.rows:
        for column, value in zip(findings.columns, row, strict=True):
            if isinstance(value, (float, np.floating)) and not math.isfinite(value):
                yield f"column '{column}' holds {value}: give None where there is no number, and say why in a note"
                return


CHECKS: tuple[CheckFunction, ...] = (
    gives_a_table,
    same_seed,
    global_state,
    odd_runs,
    hyperparameters_matter,
)
