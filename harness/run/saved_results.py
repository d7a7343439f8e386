"""Where a run's scores are: in the store, and where they are gone from it, in the run's own folder. No torch."""

from __future__ import annotations

import logging
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from harness.errors import BenchError, DataError
from harness.results.rows import ResultRow, RunResults
from harness.results.run_record import RESULTS, RunRecord
from harness.safe_io import check_types, shown
from harness.store.store import Store

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ScoreRow:
    """A row of what the stage ``score`` writes, for the check of one that may be another's."""

    split: str
    rule: str
    epoch: int | None
    metric: str
    value: float | None
    status: str
    reason: str


_NAMES = frozenset(field.name for field in fields(ScoreRow))


def read_scores(store: Store, key: str) -> list[dict[str, Any]] | None:
    """The rows of a score's artifact; None where there is none, or a damaged one, which is put aside."""
    if not store.has(key):
        return None
    try:
        rows = store.open(key).read_json("scores")
        _check(rows)
    except BenchError:
        return None
    except (KeyError, ValueError) as error:
        store.put_aside(key, f"these are no scores: {error.args[0]}")
        return None
    found: list[dict[str, Any]] = rows
    return found


def _check(rows: Any) -> None:
    """Refuse what the stage cannot have written, whatever its checksum: every metric lies between -1 and 1.

    Raises:
        ValueError: says what is wrong.
    """
    if not isinstance(rows, list):
        raise ValueError(f"a {type(rows).__name__} is no list of rows")
    check_types(ScoreRow, rows)
    for row in rows:
        lacking = min(_NAMES - row.keys(), default=None)
        if lacking is not None:
            raise ValueError(f"a row lacks '{lacking}'")
        if row["status"] not in ("ok", "undefined") or (row["value"] is None) == (row["status"] == "ok"):
            raise ValueError(f"status {shown(row['status'])} does not go with value {row['value']}")
        if row["value"] is not None and not -1 <= row["value"] <= 1:
            raise ValueError(f"{row['value']} is no {shown(row['metric'])}")


class Kept:
    """What a run's folder holds of its results: what was there when it ended, whatever became of the store since."""

    def __init__(self, record: RunRecord, store: Store) -> None:
        self._path = store.runs / record.id / RESULTS

    @cached_property
    def results(self) -> RunResults | None:
        """The results as they were saved; None where none were, or where they cannot be read."""
        if not self._path.is_file():
            return None
        try:
            return RunResults.load(self._path)
        except DataError as error:
            _log.warning("%s", error)
            return None

    @cached_property
    def _by_cell(self) -> dict[tuple[str, str], list[ResultRow]]:
        found: dict[tuple[str, str], list[ResultRow]] = {}
        for row in self.results.rows if self.results else ():
            found.setdefault((row.cell, row.key), []).append(row)
        return found

    def rows(self, cell: str, key: str) -> list[ResultRow]:
        """The rows of a cell, by its id and the key of its score."""
        return self._by_cell.get((cell, key), [])

    def dataset(self, label: str) -> dict[str, Any]:
        """What of a dataset is known only once it is built."""
        found = next((one for one in self.results.datasets if one.label == label), None) if self.results else None
        names = ("fingerprint", "notes", "skipped", "component", "values")
        return {name: getattr(found, name) for name in names} if found else {}

    def settings(self, dataset: str, method: str) -> dict[str, Any]:
        """The settings of a method on a dataset, as its trainings told them."""
        entry = self.results.entry(dataset, method) if self.results else None
        return dict(entry.settings) if entry else {}
