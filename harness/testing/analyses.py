"""Checks of analyses, on parts of a small finished run."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np

from harness.analysis import Analysis, Findings, Study
from harness.errors import BenchError
from harness.testing import figures
from harness.testing.imports import HEAVY, loaded_at_import, without
from harness.testing.report import CheckFunction, Note, Skip
from harness.testing.rig import all_states, hyperparameters_matter
from harness.testing.studies import SMALL, TASKS, WHOLE, AnalysisRig, StudyPart, measure, present

PARENT = ("torch", "torch_geometric")
"""Packages that the process that presents does not load."""


def gives_a_table(rig: AnalysisRig) -> Iterator[str]:
    """Of an ordinary run it gives a table with rows; numbers in it are finite, and None says that there is none."""
    study = rig.study(WHOLE)
    if study is None:
        yield "it looks at no cell of an ordinary run"
        return
    findings = present(rig.make(), study)
    if not findings.rows:
        yield "the table of an ordinary run has no row"
    yield from _bad_cells(findings)


def figure_reads_well(rig: AnalysisRig) -> Iterator[str]:
    """Its figure is drawn without a warning, and every axis says what it shows."""
    if rig.cls.figure is Analysis.figure:
        raise Skip("it draws no figure")
    yield from figures.problems(rig.make(), _whole(rig))


def same_twice(rig: AnalysisRig) -> Iterator[str]:
    """Measuring, presenting and drawing twice gives the same."""
    study = _whole(rig)
    for item, cell in rig.cells(SMALL):
        if not _equal(rig.answer(rig.chosen(SMALL)[0], item, {}), measure(rig.make(), cell)):
            yield f"a second measure() of '{item.cell.method}' gives something else"
    if present(rig.make(), study) != present(rig.make(), study):
        yield "a second present() gives another table"
    if figures.drawn(rig.make(), study) != figures.drawn(rig.make(), study):
        yield "a second figure() draws another figure"


def global_state(rig: AnalysisRig) -> Iterator[str]:
    """Global generators are neither seeded nor drawn from."""
    study = _whole(rig)
    calls: list[tuple[str, Any, Any]] = [("present", present, study), ("figure", figures.made, study)]
    calls += [("measure", lambda analysis, cell: analysis.measure(cell), cell) for _, cell in [*rig.cells(SMALL)][:1]]
    for name, call, argument in calls:
        before = all_states()
        call(rig.make(), argument)
        if all_states() != before:
            yield f"{name}() changes the state of torch's, NumPy's or Python's global generator"


def leaves_inputs(rig: AnalysisRig) -> Iterator[str]:
    """Its inputs stay as they were: arrays, values, the trained network."""
    study = _whole(rig)
    for _, cell in rig.cells(SMALL):
        before = cell.state()
        measure(rig.make(), cell)
        changed = [what for what, now, then in cell.returned if not np.array_equal(now, then, equal_nan=_floats(now))]
        yield from (f"measure() changes the array that {what} gave it" for what in dict.fromkeys(changed))
        after = cell.state()
        if any(not bool((after[name] == value).all()) for name, value in before.items()):
            yield "measure() changes the trained network, or leaves it in training mode"
    study, again = (rig.study(WHOLE) or study for _ in range(2))  # as they were, not presented yet
    for name, call in (("present", present), ("figure", figures.made)):
        call(rig.make(), study)
        for one, two in zip(study.cells, again.cells, strict=True):
            if not _equal((one.values, one.arrays), (two.values, two.arrays)):
                yield f"{name}() changes the values or arrays of a measured cell"
                return
        if study.results != again.results:
            yield f"{name}() changes the run's results"
            return


def sealed(rig: AnalysisRig) -> Iterator[str]:
    """It asks for labels, domains and ground truth only where it declares so."""
    _whole(rig)
    for _, cell in rig.cells(SMALL):
        with suppress(PermissionError):  # the cell notes it, as it does one that measure() hides
            rig.make().measure(cell)
        yield from (f"measure() asks for what it may not see: {text}" for text in dict.fromkeys(cell.refused))
    rig.refused.clear()
    rig.opened = False
    study = _whole(rig)
    with suppress(PermissionError):
        present(rig.make(), study)
        figures.made(rig.make(), study)
    asked = ", ".join(dict.fromkeys(rig.refused))
    if asked:
        yield f"present() or figure() asks for {asked} without opens_test = True"
    if rig.cls.opens_test and not rig.opened:
        yield Note("it declares opens_test, and read no label or domain of a test split of the toy run itself")


def imports_what_it_uses(rig: AnalysisRig) -> Iterator[str]:
    """Importing its module loads no heavy package, and presenting a table neither torch nor matplotlib."""
    loaded = loaded_at_import(rig.cls, HEAVY)
    if loaded:
        yield f"importing the module loads {', '.join(loaded)}: import it inside of the method that uses it"
    study = _whole(rig)
    for name, call, packages in (("present", present, (*PARENT, "matplotlib")), ("figure", figures.made, PARENT)):
        try:
            with without(packages):
                call(rig.make(), study)
        except ImportError as error:
            yield f"{name}() imports {error.name}: measure() may, in a worker"


def one_seed(rig: AnalysisRig) -> Iterator[str]:
    """A run of one seed gives a table, without spreads, or an error that says why not."""
    yield from _part(rig, StudyPart(seeds=(1,)))


def datasets_that_differ(rig: AnalysisRig) -> Iterator[str]:
    """Several datasets give a table, also where one has fewer classes, and neither environments nor ground truth."""
    yield from _part(rig, StudyPart(datasets=("Usual", "Bare")))


def one_method(rig: AnalysisRig) -> Iterator[str]:
    """One method by itself gives a table, or an error that says why not: a pipeline, and one without encoder."""
    for method in ("Pipeline", "Plain"):
        yield from _part(rig, StudyPart(methods=(method,)))


def one_class(rig: AnalysisRig) -> Iterator[str]:
    """Data with graphs of one class alone give a table, or an error that says why not."""
    yield from _part(rig, StudyPart(datasets=("One class",)))


def without_environments(rig: AnalysisRig) -> Iterator[str]:
    """A dataset without environments and ground truth gives a table, or an error that says why not."""
    yield from _part(rig, StudyPart(datasets=("Bare",)))


def a_failed_cell(rig: AnalysisRig) -> Iterator[str]:
    """A failed cell costs itself alone: the others still give a table."""
    for method in ("Pipeline", "Plain"):
        yield from _part(rig, StudyPart(lost=method))


def several_tasks(rig: AnalysisRig) -> Iterator[str]:
    """Data with several tasks and missing labels give a table, where it is for such data."""
    if "multitask" not in rig.cls.tasks:
        raise Skip("it is not for several tasks")
    yield from _part(rig, TASKS)


def _whole(rig: AnalysisRig) -> Study:
    """Return an ordinary run.

    Raises:
        Skip: it gives no table; one check reports it, not all.
    """
    study = rig.study(WHOLE) if rig.presents else None
    if study is None:
        raise Skip("an ordinary run gives no table")
    return study


def _part(rig: AnalysisRig, part: StudyPart) -> Iterator[str]:
    """Yield the problems of a part's table and figure; an error of the harness's own kinds is an answer."""
    study = rig.study(part)
    if study is None:
        return
    try:
        findings = present(rig.make(), study)
        figures.drawn(rig.make(), study)
    except BenchError as error:
        if not str(error).strip():
            yield f"an error without a text: {type(error).__name__}"
        return
    if not findings.rows and not findings.notes:
        yield "an empty table, and no note that says why"
    yield from _bad_cells(findings)


def _bad_cells(findings: Findings) -> Iterator[str]:
    for row in findings.rows:
        for column, value in zip(findings.columns, row, strict=True):
            plain: Any = value.item() if isinstance(value, np.generic) else value
            if isinstance(plain, float) and not math.isfinite(plain):
                yield f"column '{column}' holds {plain}: give None where there is no number, and say why in a note"
                return
            if plain is not None and not isinstance(plain, (str, int, float)):
                yield f"column '{column}' holds a {type(value).__name__}: a text, a number or None is expected"
                return


def _floats(array: Any) -> bool:
    return np.asarray(array).dtype.kind == "f"


def _equal(left: Any, right: Any) -> bool:
    """Return True if two answers of measure() are the same, bit for bit."""
    (values, arrays), (other_values, other_arrays) = left, right
    same = repr(values) == repr(other_values) and arrays.keys() == other_arrays.keys()
    return same and all(
        np.array_equal(arrays[name], other_arrays[name], equal_nan=_floats(arrays[name])) for name in arrays
    )


CHECKS: tuple[CheckFunction, ...] = (
    gives_a_table,
    figure_reads_well,
    same_twice,
    global_state,
    leaves_inputs,
    sealed,
    imports_what_it_uses,
    one_seed,
    datasets_that_differ,
    one_method,
    one_class,
    without_environments,
    a_failed_cell,
    several_tasks,
    hyperparameters_matter,
)
