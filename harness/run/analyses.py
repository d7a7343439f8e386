"""Run the analyses of a run: measure its cells (cached), then table and figure into the run folder. No torch here."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.analysis import Analysis, Cost, Findings, MeasuredCell, Study
from harness.engine import StageOutcomes
from harness.engine.failures import failure_of
from harness.plan.analyses import ChosenCell, chosen_cells
from harness.registry.discovery import load_one
from harness.registry.planned_code import KeptCode
from harness.registry.returned import ReturnedError, expect, expect_texts
from harness.results.rows import RunResults
from harness.results.run_record import FOLDER, Finding, load_findings, plain_cell, save_finding
from harness.run.session import Session
from harness.safe_io import file_name
from harness.store import COSTS, Failure, Stage, Store
from harness.suite.spec import AnalysisSpec

if TYPE_CHECKING:
    from harness.analysis import Reader
    from harness.data import Array, Declaration

FORMATS = ("svg", "pdf", "png")
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#888888")
"""Colours that colour-blind readers can tell apart: Okabe and Ito, *Color Universal Design*, 2008, with a grey in place
of their yellow, which is hard to see on white."""
STYLE: Any = {
    "axes.prop_cycle": f"cycler('color', {PALETTE})",
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.linewidth": 0.6,
    "grid.alpha": 0.3,
    "grid.linewidth": 0.5,
    "lines.linewidth": 1.2,
    "font.size": 7.5,
    **dict.fromkeys(("axes.titlesize", "axes.labelsize", "figure.labelsize"), 7.5),
    **dict.fromkeys(("xtick.labelsize", "ytick.labelsize", "legend.fontsize"), 7.0),
    "legend.frameon": False,
    "figure.constrained_layout.use": True,
    "savefig.dpi": 300.0,
    "svg.fonttype": "none",
    "svg.hashsalt": "bench",
    "pdf.fonttype": 42,
    "image.cmap": "viridis",
}
"""Settings of matplotlib, the same for every figure: no text is below 7 points."""


def analyse(
    session: Session,
    results: RunResults,
    specs: Sequence[AnalysisSpec],
    folder: Path,
    run: Callable[[Sequence[Stage]], StageOutcomes],
) -> list[Finding]:
    """Measure what is not measured yet, then present each analysis.

    Args:
        folder: the run folder; tables and figures go to ``analyses`` below it.
        run: runs the stages that are not stored.

    Returns:
        a finding for each analysis, failed ones too.
    """
    chosen = {spec.label: chosen_cells(spec, session.plan, session.catalog, results, session.facts) for spec in specs}
    stages = {item.stage.key: item.stage for cells in chosen.values() for item in cells if item.stage is not None}
    missing = [stage for stage in stages.values() if not session.store.has(stage.key)]
    failures = run(missing).failures if missing else {}
    findings, kept = [], KeptCode.read(folder)
    for spec in specs:
        target = _folder_of(spec.label, folder)
        finding = _present(session, results, spec, chosen[spec.label], failures, target, kept)
        save_finding(finding, target)
        findings.append(finding)
    return findings


def _folder_of(label: str, run: Path) -> Path:
    """Return the folder of an analysis: the one that has its label, else a new one behind the others."""
    stored = load_findings(run)
    known = next((folder for finding, folder in stored if finding.label == label), None)
    return known or run / FOLDER / f"{len(stored) + 1:02d}-{file_name(label.lower(), longest=60)}"


def _present(
    session: Session,
    results: RunResults,
    spec: AnalysisSpec,
    chosen: Sequence[ChosenCell],
    failures: Mapping[str, Failure],
    folder: Path,
    kept: KeptCode,
) -> Finding:
    """Ask the component for table and figure; what goes wrong in it is this analysis's failure, nothing else's."""
    entry = session.catalog.get("analysis", spec.component.name)
    opens = _opens(entry.traits, chosen, results)
    base = Finding(spec.label, spec.component.name, dict(spec.component.params), opens=opens)
    if not chosen:
        reason = (
            "no cell to look at: none of the chosen datasets and methods has a result that it can use; where cells "
            "were made with other code or data than now, run the suite again"
        )
        return replace(base, status="failed", reason=reason)
    lost = [item.stage for item in chosen if item.stage and item.stage.key in failures]
    if lost:
        failure, more = failures[lost[0].key], f" (and {len(lost) - 1} more)" if len(lost) > 1 else ""
        reason = f"{lost[0].title}: {failure.reason}{failure.remark}{more}"
        base = replace(base, status="failed", reason=reason, traceback=failure.traceback)
    there = [item for item in chosen if item.stage not in lost]
    if not there:
        return base
    try:
        cells = tuple(_measured_cells(session, results, there, entry.traits))
        study = Study(spec.label, results, cells, tuple(costs(session)))
        with redirect_stdout(sys.stderr):  # standard output is for what the command answers
            analysis: Analysis = load_one(entry, kept)(**spec.component.params)
            findings = presented(analysis, study)
            figures, note = _figures(analysis, study, folder)
        rows = tuple(tuple(map(plain_cell, row)) for row in findings.rows)
        return replace(
            base, columns=tuple(findings.columns), rows=rows, notes=(*findings.notes, *note), figures=figures
        )
    except (Exception, SystemExit) as error:
        failure = failure_of(error)
        return replace(base, status="failed", reason=failure.reason, traceback=failure.traceback)


def presented(analysis: Analysis, study: Study) -> Findings:
    """Ask an analysis for its table.

    Raises:
        ReturnedError: ``present`` gave no ``Findings`` of texts and numbers.
    """
    findings: Any = analysis.present(study)
    if not isinstance(findings, Findings):
        raise ReturnedError(f"analysis '{analysis.name}': 'present' returned {type(findings).__name__}, not Findings")
    expect_texts(analysis, "present, columns", findings.columns)
    expect_texts(analysis, "present, notes", findings.notes)
    for number, row in enumerate(findings.rows):
        for column, cell in zip(findings.columns, row, strict=True):
            try:
                plain_cell(cell)
            except TypeError as error:
                where = f"present, row {number}, column '{column}'"
                raise ReturnedError(f"analysis '{analysis.name}', {where}: {error}") from None
    return findings


def _opens(traits: Mapping[str, Any], chosen: Sequence[ChosenCell], results: RunResults) -> tuple[str, ...]:
    sealed = ["test labels"] if traits.get("opens_test") else []
    entries = [results.entry(item.cell.dataset, item.cell.method) for item in chosen]
    if any(entry is not None and entry.tuned and entry.select.config == "oracle" for entry in entries):
        sealed.append("test scores to choose the configuration")
    fields = {name for item in chosen for name in item.fields}
    return (*sealed, *sorted(fields))


def _figures(analysis: Analysis, study: Study, folder: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Draw the figure as SVG, PDF and PNG; returns their file names, and a remark where matplotlib is missing."""
    if type(analysis).figure is Analysis.figure:
        return (), ()
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError:
        return (), ("No figure: matplotlib is missing; install it with `pip install equad-bench[figures]`.",)
    with mpl.rc_context(STYLE):
        figure = analysis.figure(study)
        expect(figure is None or isinstance(figure, Figure), analysis, "figure", figure, "a matplotlib Figure or None")
        if figure is None:
            return (), ()
        folder.mkdir(parents=True, exist_ok=True)
        undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}  # the same figure is the same file
        for suffix in FORMATS:
            bare = suffix != "png"  # a drawing stands on the page's own background
            figure.savefig(folder / f"figure.{suffix}", metadata=undated.get(suffix), transparent=bare)
    return tuple(f"figure.{suffix}" for suffix in FORMATS), ()


def _measured_cells(
    session: Session, results: RunResults, chosen: Sequence[ChosenCell], traits: Mapping[str, Any]
) -> Iterator[MeasuredCell]:
    """Read what was measured of each cell; nothing for an analysis that measures nothing."""
    for item in chosen:
        values: Mapping[str, Any] = {}
        arrays: Mapping[str, Array] = {}
        if item.stage is not None:
            values = session.store.open(item.stage.key).read_json("values")
            arrays = _arrays(session.store, item.stage.key, "arrays")
        yield measured(session, results, item, bool(traits.get("opens_test")), values, arrays)


def measured(
    session: Session,
    results: RunResults,
    item: ChosenCell,
    opens_test: bool,
    values: Mapping[str, Any],
    arrays: Mapping[str, Array],
) -> MeasuredCell:
    """Return a cell as the parent process sees it, with what was measured of it."""
    cell = item.cell
    declared = session.facts.declare(session.suite.dataset(cell.dataset).component)
    entry = results.entry(cell.dataset, cell.method)
    assert entry is not None
    return MeasuredCell(
        *cell.coordinates,
        task=declared.task,
        splits=dict(declared.splits),
        validation_split=results.validation_split(entry),
        values=values,
        arrays=arrays,
        read=_reader(session, item, declared, opens_test),
    )


def _reader(session: Session, item: ChosenCell, declared: Declaration, opens_test: bool) -> Reader:
    """Return what reads a cell's fields: from the open tier, and for test splits from the sealed one."""
    plan, store = session.plan, session.store
    train = plan.stages[item.cell.train]
    prepared = plan.stages[plan.producers[train.payload.data]]

    def read(name: str, split: str) -> Array | None:
        import numpy as np

        if name == "history":  # of which a series is asked for
            rows = store.open(train.key).read_json("history")
            return np.array([row.get(split) for row in rows], float) if any(split in row for row in rows) else None
        if name == "logits":
            return _arrays(store, train.key, "predictions")[f"{item.rule}/{split}"]
        if name == "num_nodes":
            return np.diff(_arrays(store, prepared.key, split)["node_ptr"])
        if name not in ("y", "env", *item.fields):
            return None
        test = declared.splits[split] == "test"
        if test and not opens_test:
            raise PermissionError(f"'{split}' is a test split: an analysis that reads it declares opens_test = True")
        open_tier = prepared.outputs[0] if name in item.fields else prepared.key
        return _arrays(store, prepared.outputs[1] if test else open_tier, split).get(name)

    return read


def _arrays(store: Store, key: str, name: str) -> dict[str, Array]:
    from harness.stages.reading_numpy import read_arrays

    return read_arrays(store.open(key).path(name))


def costs(session: Session) -> list[Cost]:
    """Return every stage of the plan, with what its execution took, where the store knows it."""
    plan, users = session.plan, dict[str, list[tuple[str, str, int]]]()
    for cell in plan.cells:
        for key in plan.ancestry(cell.score):
            users.setdefault(key, []).append((cell.dataset, cell.method, cell.seed))
    recorded = {key: session.store.record(key) for key in plan.stages}
    return [
        Cost(
            kind=stage.kind,
            title=stage.title,
            cells=tuple(users.get(key, ())),
            **{name: recorded[key].get(name) for name in COSTS},
        )
        for key, stage in plan.stages.items()
    ]
