"""Run the analyses of a run: measure its cells (cached), then table and figure into the run folder. No torch here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.analysis import Analysis, Cost, Findings, MeasuredCell, Study
from harness.errors import BenchError
from harness.plan.analyses import ChosenCell, chosen_cells
from harness.registry.discovery import load_one
from harness.registry.returned import ReturnedError, expect, expect_texts
from harness.results.findings import FOLDER, Finding, load_findings, plain_cell, save_finding
from harness.results.rows import RunResults
from harness.run.session import Session
from harness.safe_io import file_name
from harness.store.stage import Failure, Stage
from harness.store.store import Store
from harness.suite.spec import AnalysisSpec

if TYPE_CHECKING:
    from harness.data import Array, Declaration

RunStages = Callable[[Sequence[Stage]], Mapping[str, Failure]]
"""Runs the stages that are not stored, and tells those that failed."""


def analyse(
    session: Session, results: RunResults, specs: Sequence[AnalysisSpec], folder: Path, run: RunStages
) -> list[Finding]:
    """Measure what is not measured yet, then present each analysis.

    Args:
        session: the opened suite.
        results: its results as they stand.
        specs: the analyses.
        folder: the run folder; tables and figures go to ``analyses`` below it.
        run: runs stages.

    Returns:
        one finding for each analysis, failed ones too.
    """
    chosen = {
        spec.label: chosen_cells(spec, session.plan, session.catalog, results, partial(_oracle_of, session))
        for spec in specs
    }
    stages = {item.stage.key: item.stage for cells in chosen.values() for item in cells if item.stage is not None}
    missing = [stage for stage in stages.values() if not session.store.has(stage.key)]
    failures = run(missing) if missing else {}
    found = []
    for spec in specs:
        target = place_for(spec.label, folder)
        finding = _present(session, results, spec, chosen[spec.label], failures, target)
        save_finding(finding, target)
        found.append(finding)
    return found


def _oracle_of(session: Session, dataset: str) -> tuple[str, ...]:
    return session.facts.declare(session.suite.dataset(dataset).component).oracle


def place_for(label: str, run: Path) -> Path:
    """The folder of an analysis in a run folder: the one that has its label, else a new one behind the others."""
    there = load_findings(run)
    known = next((folder for finding, folder in there if finding.label == label), None)
    return known or run / FOLDER / f"{len(there) + 1:02d}-{file_name(label.lower(), longest=60)}"


def _present(
    session: Session,
    results: RunResults,
    spec: AnalysisSpec,
    chosen: Sequence[ChosenCell],
    failures: Mapping[str, Failure],
    folder: Path,
) -> Finding:
    """Ask the component for table and figure; what goes wrong in it is this analysis's failure, nothing else's."""
    entry = session.catalog.get("analysis", spec.component.name)
    opens = _opens(entry.traits, chosen, results)
    base = Finding(spec.label, spec.component.name, dict(spec.component.params), opens=opens)
    if not chosen:
        return base.failed(_nothing(session, results))
    lost = {item.stage.key: item.stage for item in chosen if item.stage and item.stage.key in failures}
    if lost:
        first = failures[next(iter(lost))]
        more = f" (and {len(lost) - 1} more)" if len(lost) > 1 else ""
        base = base.failed(f"{next(iter(lost.values())).title}: {first.reason}{first.remark}{more}", first.traceback)
    left = [item for item in chosen if item.stage is None or item.stage.key not in lost]
    if not left:
        return base
    opens_test = bool(entry.traits.get("opens_test"))
    cells = tuple(measured(session, results, item, opens_test, *_answers(session.store, item)) for item in left)
    study = Study(spec.label, results, cells, tuple(costs(session)))
    analysis: Analysis = load_one(entry)(**spec.component.params)
    try:
        findings = presented(analysis, study)
        figures, note = _figures(analysis, study, folder)
        return base.done(findings.columns, findings.rows, (*findings.notes, *([note] if note else [])), figures)
    except BenchError as error:
        return base.failed(str(error))
    except Exception as error:
        from harness.engine.failures import short_traceback

        return base.failed(f"{type(error).__name__}: {error}", short_traceback(error))


def presented(analysis: Analysis, study: Study) -> Findings:
    """What ``present`` gives.

    Raises:
        ReturnedError: it is no ``Findings`` of texts and numbers.
    """
    found: Any = analysis.present(study)
    if not isinstance(found, Findings):
        raise ReturnedError(f"analysis '{analysis.name}': 'present' returned {type(found).__name__}, not Findings")
    expect_texts(analysis, "present, columns", found.columns)
    expect_texts(analysis, "present, notes", found.notes)
    for number, row in enumerate(found.rows):
        for column, cell in zip(found.columns, row, strict=True):
            try:
                plain_cell(cell)
            except TypeError as error:
                where = f"present, row {number}, column '{column}'"
                raise ReturnedError(f"analysis '{analysis.name}', {where}: {error}") from None
    return found


def _drawn(analysis: Analysis, study: Study) -> Any:
    """What ``figure`` gives, where it is a figure or None."""
    from matplotlib.figure import Figure

    found = analysis.figure(study)
    expect(found is None or isinstance(found, Figure), analysis, "figure", found, "a matplotlib Figure or None")
    return found


def _nothing(session: Session, results: RunResults) -> str:
    """Why there is no cell to look at."""
    ids = {cell.id for cell in session.plan.cells}
    if any(row.status == "ok" and row.cell not in ids for row in results.rows):
        return "the run's cells were made with other code or data than now; run the suite again, then analyse it"
    return "no cell to look at: none of the chosen datasets and methods has a result that it can use"


def _opens(traits: Mapping[str, Any], chosen: Sequence[ChosenCell], results: RunResults) -> tuple[str, ...]:
    sealed = ["test labels"] if traits.get("opens_test") else []
    entries = [results.entry(item.cell.dataset, item.cell.method) for item in chosen]
    if any(entry is not None and entry.tuned and entry.select.config == "oracle" for entry in entries):
        sealed.append("test scores to choose the configuration")
    fields = {name for item in chosen if item.stage is not None for name in item.stage.payload["fields"]}
    return (*sealed, *sorted(fields))


def _figures(analysis: Analysis, study: Study, folder: Path) -> tuple[tuple[str, ...], str]:
    """File names of the figure, and a remark where there is none."""
    if type(analysis).figure is Analysis.figure:
        return (), ""
    try:
        from harness.run.drawing import draw
    except ImportError:
        return (), "No figure: matplotlib is missing; install it with `pip install equad-bench[figures]`."
    return draw(partial(_drawn, analysis, study), folder), ""


@dataclass(frozen=True)
class _Truth:
    """What the parent process may read of a cell: from the open tier, and for test splits from the sealed one."""

    store: Store
    data: str
    sealed: str
    train: str
    rule: str
    declared: Declaration
    opens_test: bool

    def labels(self, split: str) -> Array | None:
        """``y`` of a split."""
        return self._field("y", split)

    def environments(self, split: str) -> Array | None:
        """``env`` of a split."""
        return self._field("env", split)

    def num_nodes(self, split: str) -> Array | None:
        """Sizes of a split's graphs."""
        return self._arrays(self.data, split)["node_ptr"][1:] - self._arrays(self.data, split)["node_ptr"][:-1]

    def logits(self, split: str) -> Array | None:
        """Predictions for a split."""
        return self._arrays(self.train, "predictions")[f"{self.rule}/{split}"]

    def _field(self, name: str, split: str) -> Array | None:
        test = self.declared.splits[split] == "test"
        if test and not self.opens_test:
            raise PermissionError(f"'{split}' is a test split: an analysis that reads it declares opens_test = True")
        return self._arrays(self.sealed if test else self.data, split).get(name)

    def _arrays(self, key: str, name: str) -> dict[str, Array]:
        from harness.stages.reading_numpy import read_arrays

        return read_arrays(self.store.open(key).path(name))


def _answers(store: Store, item: ChosenCell) -> tuple[Mapping[str, Any], Mapping[str, Array]]:
    """Values and arrays that a cell was measured to have; nothing for an analysis that measures nothing."""
    from harness.stages.reading_numpy import read_arrays

    if item.stage is None:
        return {}, {}
    artifact = store.open(item.stage.key)
    return artifact.read_json("values"), read_arrays(artifact.path("arrays"))


def measured(
    session: Session,
    results: RunResults,
    item: ChosenCell,
    opens_test: bool,
    values: Mapping[str, Any],
    arrays: Mapping[str, Array],
) -> MeasuredCell:
    """A cell as the parent process sees it, with what was measured of it."""
    cell, plan = item.cell, session.plan
    train = plan.stages[cell.train]
    declared = session.facts.declare(session.suite.dataset(cell.dataset).component)
    prepared = plan.stages[plan.producers[train.payload["data"]]]
    truth = _Truth(session.store, prepared.key, prepared.outputs[1], train.key, item.rule, declared, opens_test)
    entry = results.entry(cell.dataset, cell.method)
    assert entry is not None
    return MeasuredCell(
        dataset=cell.dataset,
        method=cell.method,
        seed=cell.seed,
        config_id=cell.configuration.id,
        task=declared.task,
        splits=dict(declared.splits),
        validation_split=results.validation_split(entry),
        values=values,
        arrays=arrays,
        truth={
            "y": truth.labels,
            "env": truth.environments,
            "num_nodes": truth.num_nodes,
            "logits": truth.logits,
        },
    )


def costs(session: Session) -> list[Cost]:
    """Every stage of the plan, with what its execution took, where the store knows it."""
    plan, users = session.plan, dict[str, list[tuple[str, str, int]]]()
    for cell in plan.cells:
        for key in plan.ancestry(cell.score):
            users.setdefault(key, []).append((cell.dataset, cell.method, cell.seed))
    found = []
    for key, stage in plan.stages.items():
        took = session.store.record(key)
        found.append(
            Cost(
                kind=stage.kind,
                title=stage.title,
                cells=tuple(users.get(key, ())),
                seconds=took.get("seconds"),
                cpu_seconds=took.get("cpu_seconds"),
                peak_memory=took.get("peak_memory"),
                peak_device_memory=took.get("peak_device_memory"),
            )
        )
    return found
