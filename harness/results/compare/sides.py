"""One of the two runs of a comparison, and which of its stages stand behind a cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any

from harness.errors import UserError, did_you_mean
from harness.report.table import Table, TableRow, build_table
from harness.results.rows import RunResults
from harness.results.run_record import CellRecord, RunRecord
from harness.store import Store


@dataclass(frozen=True)
class Side:
    """A run with its store, its results and their table."""

    record: RunRecord
    store: Store
    table: Table
    _cells: Mapping[tuple[Any, ...], CellRecord] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        cells = {cell.coordinates: cell for cell in self.record.cells}
        object.__setattr__(self, "_cells", cells)

    @property
    def results(self) -> RunResults:
        """The run's results."""
        return self.table.results

    @property
    def name(self) -> str:
        """The run's id."""
        return self.record.id

    def cell(self, row: TableRow, seed: int) -> CellRecord | None:
        """The cell behind a table row, of the configuration that it shows."""
        return self._cells.get((row.dataset, row.method, row.config_id, seed))

    def made(self, cell: CellRecord) -> list[tuple[str, Mapping[str, Any]]]:
        """(place, preimage) of every stage a cell builds on that the store holds, inputs first."""
        found = []
        for key in cell.needs:
            meta = self.store.meta(key)
            if meta is not None:
                found.append((meta.place, meta.preimage))
        return found

    def versions(self, cell: CellRecord) -> Mapping[str, str]:
        """Versions of the packages that trained a cell; those of the run where nothing was kept."""
        kept = self.store.record(cell.train).get("provenance") or self.record.provenance
        versions: Mapping[str, str] = kept.get("versions", {})
        return versions


def open_side(record: RunRecord, results: RunResults, store: Store, checkpoint: str | None = None) -> Side:
    """Return one side of a comparison.

    Args:
        results: the run's results as they stand in its store.
        checkpoint: ``best-val`` or ``last`` for all methods, instead of each one's own setting.
    """
    return Side(record, store, build_table(results, checkpoint))


def narrowed(side: Side, datasets: Sequence[str], methods: Sequence[str]) -> Side:
    """The side with only the columns and rows that fit one of the patterns; all where there are none.

    Raises:
        UserError: a pattern fits nothing.
    """
    results = side.results
    columns = _fitting([d.label for d in results.datasets], datasets, "column", side)
    rows = _fitting(list(results.methods), methods, "row", side)
    kept = tuple(row for row in side.table.rows if row.dataset in columns and row.method in rows)
    shown = replace(
        results,
        datasets=tuple(d for d in results.datasets if d.label in columns),
        methods=tuple(m for m in results.methods if m in rows),
    )
    table_columns = tuple(c for c in side.table.columns if c.dataset in columns)
    return Side(side.record, side.store, replace(side.table, results=shown, columns=table_columns, rows=kept))


def _fitting(labels: list[str], patterns: Sequence[str], what: str, side: Side) -> set[str]:
    for pattern in patterns:
        if not any(fnmatchcase(label, pattern) for label in labels):
            raise UserError(f"'{pattern}' fits no {what} of run {side.name}{did_you_mean(pattern, labels)}")
    return {label for label in labels if not patterns or any(fnmatchcase(label, pattern) for pattern in patterns)}
