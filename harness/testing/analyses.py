"""Checks of analyses, on parts of a small finished run."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from harness.analysis import Analysis, Findings, Study
from harness.errors import BenchError
from harness.testing import figures
from harness.testing.imports import HEAVY, loaded_at_import, without
from harness.testing.report import CheckFunction, Note, Skip
from harness.testing.rng import all_states
from harness.testing.settings import effects_as_declared
from harness.testing.studies import PIPELINE, SMALL, TASKS, TUNED, WHOLE, AnalysisSubject, Part, measure, present

PARENT = ("torch", "torch_geometric")
"""What the process that presents does not load."""


def gives_a_table(subject: AnalysisSubject) -> Iterator[str]:
    """Of an ordinary run it gives a table with rows; numbers in it are finite, and None says that there is none.

    Cause: a mean over nothing, a division by zero, or a class or group that one cell lacks.

    Look at: present, measure
    """
    study = subject.study(WHOLE)
    if study is None:
        yield "it looks at no cell of an ordinary run"
        return
    findings = present(subject.make(), study)
    if not findings.rows:
        yield "the table of an ordinary run has no row"
    yield from _bad_cells(findings)


def figure_reads_well(subject: AnalysisSubject) -> Iterator[str]:
    """Its figure is drawn without a warning, and every axis says what it shows.

    Cause: no `set_xlabel` or `set_ylabel`; a logarithm of zero; `pyplot`, which keeps every figure open.

    Look at: figure
    """
    if subject.cls.figure is Analysis.figure:
        raise Skip("it draws no figure")
    yield from figures.problems(subject.make(), _whole(subject))


def same_twice(subject: AnalysisSubject) -> Iterator[str]:
    """Measuring, presenting and drawing twice gives the same.

    Cause: a generator without a seed (use `cell.seed`), the time, or the order of a set.

    Look at: measure, present, figure
    """
    study = _whole(subject)
    run, _, chosen = subject.chosen(SMALL)
    for item in chosen:
        if item.stage is not None and not _equal(
            subject.answer(run, item, {}), measure(subject.make(), subject.cell(run, item))
        ):
            yield f"a second measure() of '{item.cell.method}' gives something else"
    if present(subject.make(), study) != present(subject.make(), study):
        yield "a second present() gives another table"
    if figures.drawn(subject.make(), study) != figures.drawn(subject.make(), study):
        yield "a second figure() draws another figure"


def global_state(subject: AnalysisSubject) -> Iterator[str]:
    """Global generators are neither seeded nor drawn from.

    Cause: `np.random.…` or `torch.rand…` instead of a generator made of `cell.seed`.

    Look at: measure, present, figure
    """
    study = _whole(subject)
    run, _, chosen = subject.chosen(SMALL)
    for item in chosen[:1]:
        if item.stage is not None:
            cell = subject.cell(run, item)
            before = all_states()
            subject.make().measure(cell)
            if all_states() != before:
                yield "measure() changes the state of torch's, NumPy's or Python's global generator"
    for name, call in (("present", present), ("figure", figures.made)):
        before = all_states()
        call(subject.make(), study)
        if all_states() != before:
            yield f"{name}() changes the state of torch's, NumPy's or Python's global generator"


def leaves_inputs(subject: AnalysisSubject) -> Iterator[str]:
    """What it is handed stays as it was: arrays, values, the trained network.

    Cause: an operation in place (`+=`, `sort()`, `out=…`) on something that is not its own.

    Look at: measure, present, figure
    """
    study = _whole(subject)
    run, _, chosen = subject.chosen(SMALL)
    for item in chosen:
        if item.stage is None:
            continue
        cell = subject.cell(run, item)
        before = cell.state()
        measure(subject.make(), cell)
        changed = [what for what, now, then in cell.handed if not np.array_equal(now, then, equal_nan=_floats(now))]
        yield from (f"measure() changes the array that {what} gave it" for what in dict.fromkeys(changed))
        after = cell.state()
        if any(not bool((after[name] == value).all()) for name, value in before.items()):
            yield "measure() changes the trained network, or leaves it in training mode"
    study, again = (subject.study(WHOLE) or study for _ in range(2))  # as they were, not presented yet
    for name, call in (("present", present), ("figure", figures.made)):
        call(subject.make(), study)
        for one, two in zip(study.cells, again.cells, strict=True):
            if not _equal((one.values, one.arrays), (two.values, two.arrays)):
                yield f"{name}() changes the values or arrays of a measured cell"
                return
        if study.results != again.results:
            yield f"{name}() changes the run's results"
            return


def sealed(subject: AnalysisSubject) -> Iterator[str]:
    """It asks for labels, domains and ground truth only where it declares so.

    Cause: `opens_test = True`, or a field in `oracle` or `oracle_where_there`, is missing.

    Look at: present, measure
    """
    study = _whole(subject)
    run, _, chosen = subject.chosen(SMALL)
    for item in chosen:
        if item.stage is None:
            continue
        cell = subject.cell(run, item)
        with suppress(PermissionError):  # the cell notes it, as it does one that measure() hides
            subject.make().measure(cell)
        yield from (f"measure() asks for what it may not see: {text}" for text in dict.fromkeys(cell.refused))
    subject.refused.clear()
    subject.opened = False
    study = _whole(subject)
    with suppress(PermissionError):
        present(subject.make(), study)
        figures.made(subject.make(), study)
    asked = ", ".join(dict.fromkeys(subject.refused))
    if asked:
        yield f"present() or figure() asks for {asked} without opens_test = True"
    if subject.cls.opens_test and not subject.opened:
        yield Note("it declares opens_test, and read no label or domain of a test split of the toy run itself")


def imports_what_it_uses(subject: AnalysisSubject) -> Iterator[str]:
    """Importing its module loads no heavy package, and presenting a table neither torch nor matplotlib.

    Cause: an import at the top of the module; import inside of the method that needs it.

    Look at: present, figure
    """
    found = loaded_at_import(subject.cls, HEAVY)
    if found:
        yield f"importing the module loads {', '.join(found)}: import it inside of the method that uses it"
    study = _whole(subject)
    for name, call, packages in (
        ("present", present, (*PARENT, "matplotlib")),
        ("figure", figures.made, PARENT),
    ):
        with without(packages) as asked, suppress(ImportError):
            call(subject.make(), study)
        if asked:
            yield f"{name}() imports {', '.join(dict.fromkeys(asked))}: measure() may, in a worker"


def one_seed(subject: AnalysisSubject) -> Iterator[str]:
    """A run of one seed gives a table, without spreads, or an error that says why not.

    Cause: a standard deviation of a single value.

    Look at: present, figure
    """
    yield from _part(subject, Part(seeds=(1,)))


def datasets_that_differ(subject: AnalysisSubject) -> Iterator[str]:
    """Several datasets give a table, also where one has fewer classes, and neither environments nor ground truth.

    Cause: what the first cell has is taken for what all have; a grid of panels for one dataset.

    Look at: present, figure
    """
    yield from _part(subject, Part(datasets=("Usual", "Bare")))


def one_method(subject: AnalysisSubject) -> Iterator[str]:
    """One method by itself gives a table, or an error that says why not: a pipeline, and one without encoder.

    Cause: something is compared with a method that is not there; `cell.encoders` may be empty.

    Look at: measure, present, figure
    """
    for method in ("Pipeline", "Plain"):
        yield from _part(subject, Part(methods=(method,)))


def one_class(subject: AnalysisSubject) -> Iterator[str]:
    """Data with graphs of one class alone give a table, or an error that says why not.

    Cause: a mean over the graphs of a class that has none; a score that needs two classes.

    Look at: measure, present, figure
    """
    yield from _part(subject, Part(datasets=("One class",)))


def without_environments(subject: AnalysisSubject) -> Iterator[str]:
    """A dataset without environments and ground truth gives a table, or an error that says why not.

    Cause: `environments()` is None there, and `oracle_fields` is empty.

    Look at: measure, present, figure
    """
    yield from _part(subject, Part(datasets=("Bare",)))


def a_failed_cell(subject: AnalysisSubject) -> Iterator[str]:
    """A failed cell costs itself alone: the others still give a table.

    Cause: one cell for each seed, or a value in each row of the results, is taken for granted.

    Look at: present, figure
    """
    for method in ("Pipeline", "Plain"):
        yield from _part(subject, Part(lost=method))


def several_tasks(subject: AnalysisSubject) -> Iterator[str]:
    """Data with several tasks and missing labels give a table, where it is for such data.

    Cause: labels taken for class numbers; leave `multitask` out of `tasks` where it makes no sense.

    Look at: measure, present, figure
    """
    if "multitask" not in subject.cls.tasks:
        raise Skip("it is not for several tasks")
    yield from _part(subject, TASKS)


def hyperparameters_matter(subject: AnalysisSubject) -> Iterator[str]:
    """Changing a hyperparameter, where it is declared active, changes what is found.

    Cause: it is never read, or it matters only with other values (`active`, `probes`).

    Look at: measure, present, figure
    """

    yield from effects_as_declared(
        subject.cls, subject.base, lambda one, two: any(_differ(subject, part, one, two) for part in (PIPELINE, TUNED))
    )


def _differ(subject: AnalysisSubject, part: Part, one: Mapping[str, Any], two: Mapping[str, Any]) -> bool:
    """Whether two settings find different things of a part; not so where the first finds nothing."""
    left = subject.study(part, one)
    try:
        first = None if left is None else present(subject.make(one), left)
    except BenchError:
        first = None
    if left is None or first is None:
        return False
    right = subject.study(part, two)
    assert right is not None
    if present(subject.make(two), right) != first:
        return True
    return figures.drawn(subject.make(one), left) != figures.drawn(subject.make(two), right)


def _whole(subject: AnalysisSubject) -> Study:
    """An ordinary run.

    Raises:
        Skip: it gives no table; one check tells of it, not all.
    """
    try:
        study = subject.study(WHOLE)
        rows = () if study is None else present(subject.make(), study).rows
    except Exception:
        study, rows = None, ()
    if study is None or not rows:
        raise Skip("an ordinary run gives no table")
    return study


def _part(subject: AnalysisSubject, part: Part) -> Iterator[str]:
    """What is wrong with table and figure of a part; an error of the harness's own kinds is an answer."""
    study = subject.study(part)
    if study is None:
        return
    try:
        findings = present(subject.make(), study)
        figures.drawn(subject.make(), study)
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
    """Whether two answers of measure() are the same, bit for bit."""
    (told, arrays), (told_too, arrays_too) = left, right
    same = repr(told) == repr(told_too) and arrays.keys() == arrays_too.keys()
    return same and all(
        np.array_equal(arrays[name], arrays_too[name], equal_nan=_floats(arrays[name])) for name in arrays
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
