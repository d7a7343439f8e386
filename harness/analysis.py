"""The base class of analyses, and the cells and costs that they read. No torch.

An analysis works in two steps. ``measure`` runs in a worker, once for each cell, and its answer is cached like any
other stage; it sees no label or domain of a test split. ``present`` and ``figure`` run in the parent process on the
answers of all cells, and there an analysis that declares ``opens_test`` may read those too, as scoring does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from harness.component import Component
from harness.results.rows import CellId

if TYPE_CHECKING:
    from harness.data import Array, Task
    from harness.results.aggregate import TableRow
    from harness.results.rows import RunResults
    from harness.results.statistics import Interval
    from harness.stages.cell import TrainedCell

    Reader = Callable[[str, str], Array | None]

Cell = str | int | float | None


@dataclass(frozen=True)
class Findings:
    """A table with remarks for its reader.

    Attributes:
        columns: header of each column, with units.
        rows: as many cells each; a number is shown with three decimals, None as a dash.
        notes: one sentence a fact: what was measured, on what, and what it cannot tell.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if any(len(row) != len(self.columns) for row in self.rows):
            raise ValueError(f"a row has not {len(self.columns)} cells, one for each column")


@dataclass(frozen=True)
class MeasuredCell(CellId):
    """One selected cell of a run, as the parent process sees it.

    Attributes:
        task: what is predicted.
        splits: split name -> role.
        validation_split: the split that chose the checkpoint.
        values, arrays: what ``measure`` returned: plain values, and arrays. Empty without ``measure``.
        read: gives ``y``, ``env``, ``num_nodes``, ``logits`` or a declared oracle field of a split, and of
            ``history`` a series; see the methods.
    """

    task: Task
    splits: Mapping[str, str]
    validation_split: str
    values: Mapping[str, Any] = field(default_factory=dict)
    arrays: Mapping[str, Array] = field(default_factory=dict)
    read: Reader = lambda _name, _split: None

    @property
    def test_splits(self) -> list[str]:
        """Return the splits with the role ``test``, in order of display."""
        return [name for name, role in self.splits.items() if role == "test"]

    def labels(self, split: str) -> Array:
        """(n,) or (n, T) labels.

        Raises:
            PermissionError: of a test split, for an analysis that does not declare ``opens_test``.
        """
        return self._there("y", split)

    def environments(self, split: str) -> Array | None:
        """(n,) the dataset's own environment ids; None where it has none. Raises as :meth:`labels`."""
        return self.read("env", split)

    def oracle(self, name: str, split: str) -> Array | None:
        """(n,) a declared oracle field; None where the dataset has none. Raises as :meth:`labels`."""
        return self.read(name, split)

    def num_nodes(self, split: str) -> Array:
        """(n,) nodes of each graph."""
        return self._there("num_nodes", split)

    def score(self, split: str, probabilities: Array, rows: Array | None = None) -> float | None:
        """Return the task's metric of (n, C) class probabilities, or (n, T) of positive labels; None if undefined.

        Args:
            split: whose labels.
            probabilities: of all graphs of the split, or of those in ``rows``.
            rows: (n,) positions within the split; None for all.

        Raises:
            PermissionError: as :meth:`labels`.
        """
        from harness.training.metrics import score_probabilities

        labels = self.labels(split)
        return score_probabilities(probabilities, labels if rows is None else labels[rows], self.task).value

    def logits(self, split: str) -> Array:
        """(n, C) or (n, T) outputs of the checkpoint that the method's row reports."""
        return self._there("logits", split)

    def history(self, name: str) -> Array | None:
        """(E,) values after each epoch of a loss term or of ``score/SPLIT`` of a validation split, NaN where undefined.

        None of what training did not record, such as test scores.
        """
        return self.read("history", name)

    def _there(self, name: str, split: str) -> Array:
        found = self.read(name, split)
        assert found is not None
        return found


@dataclass(frozen=True)
class Cost:
    """The cost of one stage.

    Attributes:
        kind: ``prepare``, ``encode``, ``quantify``, ``annotate``, ``train`` or ``score``.
        title: for people.
        cells: (dataset, method, seed) of every cell that builds on it.
        seconds, cpu_seconds: wall and processor time, None where not recorded; ``peak_memory`` bytes, and
            ``peak_device_memory`` those on a GPU, None where it had none.
    """

    kind: str
    title: str
    cells: tuple[tuple[str, str, int], ...]
    seconds: float | None = None
    cpu_seconds: float | None = None
    peak_memory: int | None = None
    peak_device_memory: int | None = None


@dataclass(frozen=True)
class Study:
    """The facts that an analysis may present.

    Attributes:
        label: the analysis's name in the suite.
        results: the run's flat table, with the selected configurations marked.
        cells: the chosen cells: of each chosen dataset and method the selected configuration, every seed with a result.
        costs: every stage of the run.
    """

    label: str
    results: RunResults
    cells: tuple[MeasuredCell, ...]
    costs: tuple[Cost, ...] = ()

    def groups(self) -> dict[tuple[str, str], list[MeasuredCell]]:
        """(dataset, method) -> its cells, one for each seed, in the run's order."""
        found: dict[tuple[str, str], list[MeasuredCell]] = {}
        for cell in self.cells:
            found.setdefault((cell.dataset, cell.method), []).append(cell)
        return found

    def checkpoint_rule(self, dataset: str, method: str) -> str:
        """Return the checkpoint that a row of the table reports, in the flat table's words: ``last`` or ``best@SPLIT``.

        Raises:
            KeyError: the suite does not run the method on the dataset.
        """
        from harness.results.selection import rule_of

        entry = self.results.entry(dataset, method)
        if entry is None:
            raise KeyError((dataset, method))
        return rule_of(self.results, entry)

    def intervals(self) -> list[tuple[TableRow, Interval]]:
        """Return the table's rows of the cells, each with the confidence interval of its test mean, in percent."""
        from harness.results.aggregate import build_table
        from harness.results.statistics import mean_interval

        rows = [row for row in build_table(self.results).rows if (row.dataset, row.method) in self.groups()]
        return [(row, mean_interval(row.test.values).times(100)) for row in rows]

    @property
    def datasets(self) -> list[str]:
        """Return the datasets of the cells, in the run's order."""
        return list(dict.fromkeys(cell.dataset for cell in self.cells))

    @property
    def metric(self) -> str:
        """Return the metric of the datasets in words; ``score`` where they have several."""
        from harness.results.rows import METRICS

        found = {METRICS[self.results.dataset(label).metric] for label in self.datasets}
        return found.pop() if len(found) == 1 else "score"


class Analysis(Component):
    """Base class of analyses."""

    kind: ClassVar[str] = "analysis"
    measures: ClassVar[bool] = True
    """False for an analysis of results, predictions and costs alone, which overrides no :meth:`measure`."""
    opens_test: ClassVar[bool] = False
    """True if :meth:`present` reads labels or domains of test splits; every output says so."""
    tasks: ClassVar[frozenset[str]] = frozenset({"binary", "multiclass", "multitask"})
    """Kinds of task it makes sense for; cells of other datasets are left out."""
    needs_pipeline: ClassVar[bool] = False
    """True if it makes sense only for methods with encoder and quantifier; others are left out."""
    oracle_where_there: ClassVar[frozenset[str]] = frozenset()
    """Oracle fields that it reads of datasets that have them (``cell.oracle_fields`` tells :meth:`measure` which)."""
    first_seeds: ClassVar[int] = 0
    """Look at the first so many seeds of each method only; 0 for all."""

    def measure(self, cell: TrainedCell) -> Mapping[str, Any]:
        """Measure one trained cell, in a worker. Cached.

        Returns:
            name -> NumPy array, or anything that is JSON.
        """
        raise NotImplementedError

    def present(self, study: Study) -> Findings:
        """Return the table, from the answers of all cells."""
        raise NotImplementedError

    def figure(self, study: Study) -> Any:
        """Return a ``matplotlib.figure.Figure``, or None for no figure. Axes carry labels with units."""
        del study
        return None
