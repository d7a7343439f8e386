"""The contents of the dialog behind each cell of a table, as plain data for the page's script."""

from __future__ import annotations

from typing import Any

from harness.report.build import Section
from harness.report.caption import checkpoint_words
from harness.report.html.trainings import Pool, Trainings
from harness.report.text import one_line, summary_text, value_text
from harness.results.aggregate import TableRow
from harness.results.compare import differences
from harness.results.rows import MethodFacts, RunResults
from harness.results.selection import ScoreTable
from harness.results.summary import Summary

MOST_CONFIGURATIONS = 60
"""Configurations of one method that a cell lists; the rest is counted."""


class CellPages:
    """Builds the cells of every section.

    A seed is a list: test value, validation value (fractions or None), number of its training, epoch of the
    checkpoint (None without one), and, unless all is well, status and number of the reason in ``texts``.
    """

    def __init__(self, results: RunResults, trainings: Trainings) -> None:
        self._results, self._scores, self._trainings = results, ScoreTable(results), trainings
        self.texts, self.differences = Pool(), Pool()

    def section(self, section: Section) -> list[list[Any]]:
        """Return method -> column -> cell, None if the suite does not run the method there."""
        table = section.table
        bases = [table.cell(table.results.reference or "", column) for column in table.columns]
        columns = list(zip(table.columns, bases, strict=True))
        return [
            [self._cell(row, base) if (row := table.cell(method, column)) else None for column, base in columns]
            for method in table.results.methods
        ]

    def _cell(self, row: TableRow, reference: TableRow | None) -> dict[str, Any]:
        entry = self._entry(row)
        cell: dict[str, Any] = {
            "value": value_text(row),
            "validation": f"{summary_text(row.validation)} on {row.validation_split}",
            "configuration": row.config_id,
            "notes": [self.texts.number(note) for note in _notes(row)],
            "seeds": self._seeds(row, entry),
        }
        if row.difference is not None:
            cell["difference"] = summary_text(row.difference, signed=True)
        if row.environments:
            cell["environments"] = row.environments
        if row.configurations > 1:
            cell["grid"] = self._grid(row, entry)
            cell["configurations"] = row.configurations
        settings = self._settings(row)
        if settings is not None:
            cell["settings"] = settings
            theirs = None if reference is None or reference.method == row.method else self._settings(reference)
            if theirs is not None:
                pool = self._trainings.settings.items
                changes = differences(dict(pool[settings]), dict(pool[theirs]), "")
                cell["against"] = self.differences.number(tuple(changes))
        return cell

    def _entry(self, row: TableRow) -> MethodFacts:
        entry = self._results.entry(row.dataset, row.method)
        assert entry is not None
        return entry

    def _training(self, row: TableRow, seed: int) -> int | None:
        return self._trainings.number((row.dataset, row.method, _shown(row, self._entry(row)), seed))

    def _settings(self, row: TableRow) -> int | None:
        """Return the number of a cell's settings, by its first training that is in the store."""
        trainings = (self._training(row, seed) for seed in self._results.seeds)
        facts = (self._trainings.facts[number] for number in trainings if number is not None)
        return next((fact["settings"] for fact in facts if "settings" in fact), None)

    def _seeds(self, row: TableRow, entry: MethodFacts) -> list[list[Any]]:
        tests = self._scores.rows(entry, _shown(row, entry), row.split, row.checkpoint)
        lines: list[list[Any]] = []
        for place, seed in enumerate(self._results.seeds):
            test = tests[place]
            reason = one_line(row.reasons[place] or (test.reason if test else ""))
            line: list[Any] = [_short(row.test.values[place]), _short(row.validation.values[place])]
            line += [self._training(row, seed), test.epoch if test else None]
            if row.statuses[place] != "ok" or reason:
                line += [row.statuses[place], self.texts.number(reason) if reason else None]
            lines.append(line)
        return lines

    def _grid(self, row: TableRow, entry: MethodFacts) -> list[list[Any]]:
        """Return each configuration: name, difference to the selected one, validation, test, lost seeds."""
        chosen = entry.configurations.get(row.config_id or "", {})
        lines = []
        for name, values in list(entry.configurations.items())[:MOST_CONFIGURATIONS]:
            validation = self._scores.candidate(entry, name, row.validation_split, row.checkpoint)
            test = self._scores.candidate(entry, name, row.split, row.checkpoint)
            lost = [status for status in validation.statuses if status != "ok"]
            changes = ", ".join(f"{what}: {old} → {new}" for what, old, new in differences(chosen, values, "–"))
            lines.append(
                [
                    self.texts.number(name),
                    self.texts.number(changes),
                    _short(Summary(validation.values).mean),
                    _short(Summary(test.values).mean),
                    ", ".join(f"{lost.count(status)} {status}" for status in dict.fromkeys(lost)),
                ]
            )
        return lines


def _shown(row: TableRow, entry: MethodFacts) -> str:
    """Return the configuration that a cell is about: the selected one, or the first if none could be selected."""
    return row.config_id or next(iter(entry.configurations), "")


def _notes(row: TableRow) -> list[str]:
    notes = [f"Checkpoint: the {checkpoint_words(row)}."]
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


def _short(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
