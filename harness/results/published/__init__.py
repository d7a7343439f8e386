"""Numbers that papers print, to stand beside our own: one YAML file for each paper, in this folder. No torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

from harness.errors import UserError, did_you_mean

_FOLDER = Path(__file__).resolve().parent


@dataclass(frozen=True)
class PublishedValue:
    """One cell: ``mean`` and, where it is printed, ``spread``, both in the unit of the table."""

    mean: float
    spread: float | None = None


@dataclass(frozen=True)
class PublishedColumn:
    """The data and settings behind a column's numbers, as far as they are known.

    Attributes:
        component, values: the data as a component of ours and its values that differ from the defaults; empty where
            none of ours stands for them.
        version: the edition of the data, e.g. ``ChEMBL 30``; ours must begin with it.
        settings: network and training by path, of a backbone only what differs from its defaults, as in
            :class:`harness.results.rows.MethodFacts`.
        split: ``out-of-distribution`` or ``in-distribution``.
        note: a sentence that belongs to every comparison with the column.
    """

    component: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    version: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    split: str = "out-of-distribution"
    note: str = ""


@dataclass(frozen=True)
class PublishedTable:
    """One table of a paper.

    Attributes:
        name: short name within the publication.
        source: its number or place in the paper.
        unit: ``percent`` or ``seconds``.
        runs: how many trainings a cell averages; None where that is not stated.
        columns: dataset labels, as in the suites that come with the package.
        metrics: column -> ``accuracy``, ``rocauc``, ``mcc`` or ``time``.
        rows: method label -> column -> value; cells without a printed number are left out.
        printed: method label -> the paper's own name of the row, where it is another.
        notes: method label -> what a reader must know; ``*`` for the whole table.
        spread: what stands behind the ± sign, ``standard deviation`` or ``standard error``.
        protocol: ours that the paper's is; ``checkpoint`` the rule that chose the weights, ``best-val`` or ``last``.
        tuned: whether hyperparameters were selected on validation.
        conditions: column -> the data and settings behind its numbers.
    """

    name: str
    source: str
    unit: str
    runs: int | None
    columns: tuple[str, ...]
    metrics: Mapping[str, str]
    rows: Mapping[str, Mapping[str, PublishedValue]]
    printed: Mapping[str, str] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    spread: str = "standard deviation"
    protocol: str = ""
    checkpoint: str = ""
    tuned: bool | None = None
    conditions: Mapping[str, PublishedColumn] = field(default_factory=dict)

    def value(self, method: str, column: str) -> PublishedValue | None:
        """Return the printed number, or None."""
        return self.rows.get(method, {}).get(column)


@dataclass(frozen=True)
class Publication:
    """The tables of one paper.

    Attributes:
        spread: what stands behind the ± sign where a table says nothing else.
        remarks: sentences that belong to every comparison with these numbers.
        free: names of values of data and training that change no number's meaning, such as seeds.
    """

    name: str
    citation: str
    spread: str
    tables: tuple[PublishedTable, ...]
    remarks: tuple[str, ...] = ()
    free: tuple[str, ...] = ()

    def table(self, name: str) -> PublishedTable:
        """The table with this name.

        Raises:
            KeyError: there is none.
        """
        return {table.name: table for table in self.tables}[name]

    def find(self, method: str, column: str, metric: str) -> tuple[PublishedTable, PublishedValue] | None:
        """Return the first number for a method and a dataset in this metric, else the first score in another one."""
        cells = [(table, value) for table in self.tables if (value := table.value(method, column)) is not None]
        in_metric = (cell for cell in cells if cell[0].metrics[column] == metric)
        return next(in_metric, next((cell for cell in cells if cell[0].unit == "percent"), None))


def publications() -> list[str]:
    """Return the names that ``report.published`` of a suite may take."""
    return sorted(path.stem for path in _FOLDER.glob("*.yaml"))


@cache
def load_published(name: str) -> Publication:
    """Read a publication's numbers.

    Raises:
        UserError: none has this name; the text lists those there are.
    """
    if name not in publications():
        raise UserError(
            f"no published numbers are called '{name}'{did_you_mean(name, publications())}; "
            f"there are: {', '.join(publications())}"
        )
    return read_published(_FOLDER / f"{name}.yaml")


def read_published(path: Path) -> Publication:
    """Read a file of published numbers.

    Raises:
        ValueError: a row has more or fewer cells than there are columns, a cell is no number, or a column has not
            exactly one metric.
    """
    import yaml

    data = yaml.safe_load(path.read_text(encoding="utf-8"))
    shared = {name: data[name] for name in ("spread", "protocol", "checkpoint", "tuned") if name in data}
    tables = tuple(_table({**shared, **table}, data.get("columns", {})) for table in data["tables"])
    remarks, free = tuple(data.get("remarks", ())), tuple(data.get("free", ()))
    return Publication(data["name"], data["citation"], data["spread"], tables, remarks, free)


def _table(data: dict[str, Any], patterns: Mapping[str, Mapping[str, Any]]) -> PublishedTable:
    columns, metric, rows = tuple(data.pop("columns")), data.pop("metric"), data.pop("rows")
    metrics = {"*": metric} if isinstance(metric, str) else metric
    return PublishedTable(
        **{"runs": None, **data},
        columns=columns,
        metrics={column: _metric(column, metrics) for column in columns},
        rows={method: _row(cells, columns) for method, cells in rows.items()},
        conditions={column: _column(column, patterns) for column in columns},
    )


def _column(column: str, patterns: Mapping[str, Mapping[str, Any]]) -> PublishedColumn:
    """Merge the facts of the patterns that match a column; the later of two that say the same thing counts."""
    merged: dict[str, Any] = {}
    for pattern, facts in patterns.items():
        if fnmatchcase(column, pattern):
            for name, value in facts.items():
                merged[name] = {**merged.get(name, {}), **value} if isinstance(value, Mapping) else value
    return PublishedColumn(**merged)


def _metric(column: str, patterns: Mapping[str, str]) -> str:
    (metric,) = [metric for pattern, metric in patterns.items() if fnmatchcase(column, pattern)]
    return metric


def _row(cells: list[Any], columns: tuple[str, ...]) -> dict[str, PublishedValue]:
    pairs = zip(columns, cells, strict=True)
    return {column: _value(cell) for column, cell in pairs if cell is not None}


def _value(cell: str | float) -> PublishedValue:
    mean, sign, spread = str(cell).partition("±")
    return PublishedValue(float(mean), float(spread) if sign else None)
