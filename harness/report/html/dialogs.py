"""The contents of the dialog behind each cell of a table, as plain data for the page's script."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from functools import cache
from typing import Any

from harness.errors import BenchError
from harness.report.build import Section
from harness.report.table import ORACLE_FLAG, one_line, summary_text, value_text
from harness.results.aggregate import TableRow
from harness.results.compare import components, differences
from harness.results.rows import MethodFacts, ResultRow, RunResults
from harness.results.run_record import CellRecord, RunRecord
from harness.results.selection import ScoreTable
from harness.results.summary import Summary
from harness.safe_io import size_text
from harness.store import STAGE_KINDS, Store

MOST_CONFIGURATIONS = 60
"""Configurations of one method that a cell lists; the rest is counted."""
BUDGET = 450_000
"""Most numbers of all curves together, as long as no curve falls below the least: under two megabytes in the page."""
SERIES = 4
"""Curves per training that the budget assumes."""
LEAST, MOST = 16, 200
"""Fewest and most points of one curve."""
Place = tuple[str, str, str, int]
"""Dataset, method, configuration, seed."""


class Dialogs:
    """Builds the cells of every section, and the trainings behind them, numbered as they are asked for.

    A seed is a list: test value, validation value (fractions or None), number of its training, epoch of the
    checkpoint (None without one), and, unless all is well, status and number of the reason in ``texts``.

    Attributes:
        texts, settings, differences: values that the page keeps once and refers to by number.
        trainings: one mapping for each; ``settings`` is a number in the pool of settings, pairs of name and value.
        curves: number of a training -> its learning curves.
        components: (kind, name, digest of the source) of the components that took part.
    """

    def __init__(
        self, record: RunRecord, results: RunResults, store: Store, costs: Mapping[str, Mapping[str, Any]]
    ) -> None:
        self._results, self._scores, self._store, self._costs = results, ScoreTable(results), store, costs
        self._cells = {cell.coordinates: cell for cell in record.cells}
        self._rows: dict[Place, ResultRow] = {row.coordinates: row for row in reversed(results.rows)}
        self._numbers: dict[Place, int] = {}
        self._preimage = cache(self._read_preimage)
        self._limit = points(len(results.entries) * len(results.seeds))
        self.texts: dict[str, int] = {}
        self.settings: dict[tuple[tuple[str, str], ...], int] = {}
        self.differences: dict[tuple[tuple[str, Any, Any], ...], int] = {}
        self.trainings: list[dict[str, Any]] = []
        self.curves: dict[str, Any] = {}
        self.components: set[tuple[str, str, str]] = set()

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
        cell: dict[str, Any] = {
            "value": value_text(row) + (f" {ORACLE_FLAG}" if row.uses_oracle else ""),
            "validation": f"{summary_text(row.validation)} on {row.validation_split}",
            "configuration": row.config_id,
            "seeds": self._seeds(row),
        }
        if row.difference is not None:
            cell["difference"] = summary_text(row.difference, signed=True)
        if row.environments:
            cell["environments"] = row.environments
        if row.configurations > 1:
            cell["grid"] = self._grid(row)
            cell["configurations"] = row.configurations
        settings = self._settings_of(row)
        if settings is not None:
            cell["settings"] = settings
            theirs = None if reference is None or reference.method == row.method else self._settings_of(reference)
            if theirs is not None:
                known = list(self.settings)
                changes = differences(dict(known[settings]), dict(known[theirs]), "")
                cell["against"] = _number(self.differences, tuple(changes))
        return cell

    def _entry(self, row: TableRow) -> MethodFacts:
        entry = self._results.entry(row.dataset, row.method)
        assert entry is not None
        return entry

    def _shown(self, row: TableRow) -> str:
        """Return the configuration that a cell is about: the selected one, or the first if none could be selected."""
        return row.config_id or next(iter(self._entry(row).configurations), "")

    def _settings_of(self, row: TableRow) -> int | None:
        """Return the number of a cell's settings, by its first training that is in the store."""
        numbers = (self._training(row, seed) for seed in self._results.seeds)
        facts = (self.trainings[number] for number in numbers if number is not None)
        return next((fact["settings"] for fact in facts if "settings" in fact), None)

    def _seeds(self, row: TableRow) -> list[list[Any]]:
        tests = self._scores.rows(self._entry(row), self._shown(row), row.split, row.checkpoint)
        lines: list[list[Any]] = []
        for place, seed in enumerate(self._results.seeds):
            test = tests[place]
            reason = one_line(row.reasons[place] or (test.reason if test else ""))
            line: list[Any] = [_rounded(row.test.values[place]), _rounded(row.validation.values[place])]
            line += [self._training(row, seed), test.epoch if test else None]
            if row.statuses[place] != "ok" or reason:
                line += [row.statuses[place], _number(self.texts, reason) if reason else None]
            lines.append(line)
        return lines

    def _grid(self, row: TableRow) -> list[list[Any]]:
        """Return each configuration, the selected one first: name, difference to it, validation, test, lost seeds."""
        entry = self._entry(row)
        chosen = entry.configurations.get(row.config_id or "", {})
        lines = []
        listed = sorted(entry.configurations.items(), key=lambda item: item[0] != row.config_id)
        for name, values in listed[:MOST_CONFIGURATIONS]:
            validation = self._scores.candidate(entry, name, row.validation_split, row.checkpoint)
            test = self._scores.candidate(entry, name, row.split, row.checkpoint)
            rows = self._scores.rows(entry, name, row.validation_split, row.checkpoint)
            lost = Counter(
                (one.status, one.reason) if one else ("missing", "") for one in rows if not one or one.status != "ok"
            )
            changes = ", ".join(f"{what}: {old} → {new}" for what, old, new in differences(chosen, values, "–"))
            means = _rounded(Summary(validation.values).mean), _rounded(Summary(test.values).mean)
            told = "; ".join(f"{n} {status}{why and f': {one_line(why)}'}" for (status, why), n in lost.items())
            lines.append([_number(self.texts, name), _number(self.texts, changes), *means, told])
        return lines

    def _training(self, row: TableRow, seed: int) -> int | None:
        """Return the number of the training behind a seed of a cell; None if the run has no such cell."""
        place = row.dataset, row.method, self._shown(row), seed
        cell = self._cells.get(place)
        if cell is None:
            return None
        if place not in self._numbers:
            self._numbers[place] = number = len(self.trainings)
            facts = self._describe(cell, self._rows.get(place))
            self.trainings.append(facts)
            drawn = self._read(cell.train, facts)
            if drawn is not None:
                self.curves[str(number)] = drawn
        return self._numbers[place]

    def _describe(self, cell: CellRecord, row: ResultRow | None) -> dict[str, Any]:
        """Return the facts of a training: its cell, the seconds of all stages by kind, settings and cost."""
        stages: dict[str, float] = defaultdict(float)
        for key, title in cell.needs.items():
            seconds = self._costs.get(key, {}).get("seconds")
            if isinstance(seconds, (int, float)):
                stages[kind_of(title)] += seconds
        facts: dict[str, Any] = {"cell": cell.id, "stages": {kind: round(total, 2) for kind, total in stages.items()}}
        settings = self._settings(cell)
        if settings:
            facts["settings"] = _number(self.settings, tuple(settings.items()))
        if row is not None:
            texts = {
                "seconds": row.seconds and round(row.seconds, 2),
                "memory": row.peak_memory and size_text(row.peak_memory),
                "traceback": row.traceback,
            }
            facts |= {name: value for name, value in texts.items() if value}
        return facts

    def _settings(self, cell: CellRecord) -> dict[str, str]:
        """Return the settings of all stages that the cell builds on; empty unless its training is in the store."""
        settings: dict[str, str] = {}
        for key in cell.needs if self._preimage(cell.train) else ():
            preimage = self._preimage(key)
            for component in components(preimage):
                kind, name = str(component["kind"]), str(component["name"])
                self.components.add((kind, name, str(component["source"])))
                settings |= {kind: name, **_texts(kind, component.get("params"))}
            for part in ("model", "train"):
                settings |= _texts(part, preimage.get(part))
        return settings

    def _read_preimage(self, key: str) -> Mapping[str, Any]:
        try:
            meta = self._store.meta(key)
        except BenchError:
            return {}
        return meta.preimage if meta is not None and isinstance(meta.preimage, Mapping) else {}

    def _read(self, key: str, facts: dict[str, Any]) -> dict[str, Any] | None:
        """Return the curves of a training; also adds to the facts what its artifact says."""
        try:
            if not self._store.has(key):
                return None
            artifact = self._store.open(key)
            info, chosen = artifact.read_json("info"), artifact.read_json("checkpoints")
            facts |= {name: info[name] for name in ("parameters", "environments") if info.get(name)}
            epochs = [checkpoint["epoch"] for checkpoint in chosen.values()]
            return curves(artifact.read_json("history"), self._limit, epochs)
        except (BenchError, KeyError, ValueError, TypeError, AttributeError):  # another's, of another form
            return None


def _number(pool: dict[Any, int], value: Hashable) -> int:
    """Return the number of a value that the page keeps once."""
    return pool.setdefault(value, len(pool))


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)


def _texts(prefix: str, values: Any) -> dict[str, str]:
    if not isinstance(values, Mapping):
        return {}
    return {
        f"{prefix}.{name}": value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for name, value in values.items()
    }


def kind_of(title: str) -> str:
    """Return the kind of a stage, by its title."""
    first = title.partition(" ")[0]
    return first if first in STAGE_KINDS else "analyse"


def points(trainings: int) -> int:
    """Return the number of points that a curve may have, given the number of trainings shown."""
    return max(LEAST, min(MOST, BUDGET // (SERIES * max(trainings, 1))))


def curves(history: Sequence[Mapping[str, Any]], limit: int, keep: Sequence[int] = ()) -> dict[str, Any]:
    """Return a history as ``epochs`` and ``series``: name -> values, None if undefined, rounded to what can be seen.

    The scores come first. ``loss`` is left out if it is the only term's sum.

    Args:
        history: one row per epoch: ``epoch``, loss terms, ``score/SPLIT``.
        limit: most points, evenly spaced, the first and the last among them.
        keep: epochs that must be among them, beyond the limit.
    """
    count = len(history)
    chosen = set(range(count))
    if count > limit:
        chosen = {round(step * (count - 1) / (limit - 1)) for step in range(limit)}
        chosen |= {place for place, row in enumerate(history) if row["epoch"] in keep}
    rows = [history[place] for place in sorted(chosen)]
    names = {name for row in history for name in row if name != "epoch"}
    ordered = sorted(names, key=lambda name: (not name.startswith("score/"), name == "loss", name))
    digits = 4 if limit == MOST else 3
    series = {name: [_short(row.get(name), digits) for row in rows] for name in ordered}
    terms = [name for name in ordered if not name.startswith("score/") and name != "loss"]
    if len(terms) == 1 and series.get("loss") == series[terms[0]]:
        del series["loss"]
    return {"epochs": [row["epoch"] for row in rows], "series": series}


def _short(value: Any, digits: int) -> float | None:
    return float(f"{value:.{digits}g}") if isinstance(value, (int, float)) else None
