"""What stands behind each cell of a table, as plain data for the page's script."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.report.build import Section
from harness.report.html.settings import Settings, differences
from harness.report.html.trainings import Trainings
from harness.report.summary import Summary
from harness.report.table import TableRow
from harness.report.text import difference_text, one_line, validation_text, value_text
from harness.results.rows import LAST, MethodFacts
from harness.results.selection import ScoreTable

MOST_CONFIGURATIONS = 60
"""Configurations of one method that a cell lists; the rest is counted."""


class Pool:
    """Values that are kept once and referred to by number."""

    def __init__(self) -> None:
        self.items: list[Any] = []
        self._numbers: dict[Any, int] = {}

    def number(self, item: Any) -> int:
        """The number of a value."""
        if item not in self._numbers:
            self._numbers[item] = len(self.items)
            self.items.append(item)
        return self._numbers[item]


class Cells:
    """Builds the cells of every section.

    A seed is a list: test value, validation value (fractions or None), number of its training, epoch of the
    checkpoint (None where there is none), and, unless all is well, status and number of the reason in ``texts``.
    """

    def __init__(self, scores: ScoreTable, settings: Settings, trainings: Trainings) -> None:
        self._scores, self._settings, self._trainings = scores, settings, trainings
        self._entries = {(entry.dataset, entry.method): entry for entry in scores.results.entries}
        self.texts, self.differences = Pool(), Pool()

    def section(self, section: Section) -> list[list[Any]]:
        """Method -> column -> cell, None where the suite does not run the method there."""
        table = section.table
        reference = table.results.reference or ""
        bases = [table.cell(reference, column) for column in table.columns]
        columns = list(zip(table.columns, bases, strict=True))
        return [
            [self._cell(row, base) if (row := table.cell(method, column)) else None for column, base in columns]
            for method in table.results.methods
        ]

    def _cell(self, row: TableRow, reference: TableRow | None) -> dict[str, Any]:
        entry = self._entries[row.dataset, row.method]
        cell: dict[str, Any] = {
            "value": value_text(row),
            "validation": f"{validation_text(row)} on {row.validation_split}",
            "configuration": row.config_id,
            "notes": [self.texts.number(note) for note in _notes(row)],
            "seeds": self._seeds(row, entry),
        }
        if row.difference is not None:
            cell["difference"] = difference_text(row)
        if row.environments:
            cell["environments"] = row.environments
        if row.configurations > 1:
            cell["grid"] = self._grid(row, entry)
            cell["configurations"] = row.configurations
        return cell | self._configured(row, entry, reference)

    def _seeds(self, row: TableRow, entry: MethodFacts) -> list[list[Any]]:
        results = self._scores.results
        shown = _shown(entry, row)
        tests = self._scores.rows(entry, shown, row.split, row.checkpoint)
        lines: list[list[Any]] = []
        for place, seed in enumerate(results.seeds):
            test = tests[place]
            reason = one_line(row.reasons[place] or (test.reason if test else ""))
            training = self._trainings.number((row.dataset, row.method, shown, seed))
            line: list[Any] = [_short(row.test.values[place]), _short(row.validation.values[place])]
            line += [training, test.epoch if test else None]
            if row.statuses[place] != "ok" or reason:
                line += [row.statuses[place], self.texts.number(reason) if reason else None]
            lines.append(line)
        return lines

    def _grid(self, row: TableRow, entry: MethodFacts) -> list[list[Any]]:
        """Each configuration: name, how it differs from the selected one, validation, test, what went wrong."""
        chosen = entry.configurations.get(row.config_id or "", {})
        lines = []
        for name, values in list(entry.configurations.items())[:MOST_CONFIGURATIONS]:
            validation = self._scores.candidate(entry, name, row.validation_split, row.checkpoint)
            test = self._scores.candidate(entry, name, row.split, row.checkpoint)
            lost = [status for status in validation.statuses if status != "ok"]
            lines.append(
                [
                    self.texts.number(name),
                    self.texts.number(_changes(chosen, values)),
                    _short(Summary(validation.values).mean),
                    _short(Summary(test.values).mean),
                    ", ".join(f"{lost.count(status)} {status}" for status in dict.fromkeys(lost)),
                ]
            )
        return lines

    def _configured(self, row: TableRow, entry: MethodFacts, reference: TableRow | None) -> dict[str, Any]:
        """Numbers of the cell's settings and of their difference to the reference row's."""
        mine = self._settings.number(row.dataset, row.method, _values(entry, row))
        if mine is None or reference is None or reference.method == row.method:
            return {} if mine is None else {"settings": mine}
        other = self._entries[row.dataset, reference.method]
        theirs = self._settings.number(row.dataset, reference.method, _values(other, reference))
        if theirs is None:
            return {"settings": mine}
        pool = self._settings.pool
        return {"settings": mine, "against": self.differences.number(tuple(differences(pool[mine], pool[theirs])))}


def _shown(entry: MethodFacts, row: TableRow) -> str:
    """The configuration that a cell is about: the selected one, or the first where none could be selected."""
    return row.config_id or next(iter(entry.configurations), "")


def _values(entry: MethodFacts, row: TableRow) -> Mapping[str, Any]:
    return entry.configurations.get(_shown(entry, row), {})


def _notes(row: TableRow) -> list[str]:
    rule = (
        "the last epoch" if row.checkpoint == LAST else f"the first epoch with the best score on {row.validation_split}"
    )
    notes = [f"Checkpoint: {rule}."]
    if row.configurations > 1 and row.config_id is not None:
        by = "mean TEST score (oracle, ‡)" if row.oracle_selection else f"mean score on {row.validation_split}"
        notes.append(f"Configuration: best of {row.configurations} by {by}.")
    if row.provisional:
        notes.append("Provisional: the search is unfinished, and another configuration may be selected.")
    if row.uses_validation_labels:
        notes.append("† The method used validation labels before or during training, beyond these choices.")
    if row.oracle:
        notes.append(f"‡ The method opened oracle information: {', '.join(row.oracle)}.")
    if row.status != "ok" and row.reason:
        notes.append(f"{row.status.capitalize()}: {one_line(row.reason)}")
    return notes


def _changes(chosen: Mapping[str, Any], values: Mapping[str, Any]) -> str:
    """``penalty: 0.1 → 1``; empty for the selected configuration itself."""
    names = [*chosen, *(name for name in values if name not in chosen)]
    return ", ".join(
        f"{name}: {chosen.get(name, '–')} → {values.get(name, '–')}"
        for name in names
        if chosen.get(name) != values.get(name)
    )


def _short(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
