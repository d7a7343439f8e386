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
SPREADS = ("standard deviation", "standard error")


@dataclass(frozen=True)
class PublishedValue:
    """One cell: ``mean`` and, where it is printed, ``spread``, both in the unit of the table."""

    mean: float
    spread: float | None = None


@dataclass(frozen=True)
class PublishedColumn:
    """What a column's numbers were made with, as far as it is known.

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
        spread: what stands behind the ± sign, one of :data:`SPREADS`.
        protocol: ours that the paper's is; ``checkpoint`` the rule that chose the weights, ``best-val`` or ``last``.
        tuned: whether hyperparameters were selected on validation.
        made: column -> what it was made with.
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
    made: Mapping[str, PublishedColumn] = field(default_factory=dict)

    def value(self, method: str, column: str) -> PublishedValue | None:
        """The printed number, or None."""
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
        """The first table, in order, that prints a number for a method and a dataset in this metric; None if none."""
        for table in self.tables:
            value = table.value(method, column)
            if value is not None and table.metrics[column] == metric:
                return table, value
        return None


def publications() -> list[str]:
    """The names that ``report.published`` of a suite may take."""
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
        UserError: a row has more or fewer cells than there are columns, a cell is no number, a spread has no known
            name, or a note, printed name, metric or fact is about a row or column that is not there.
    """
    import yaml

    data = yaml.safe_load(path.read_text(encoding="utf-8"))
    common = {name: data[name] for name in ("spread", "protocol", "checkpoint", "tuned") if name in data}
    made = data.get("columns", {})
    tables = tuple(_table({**common, **item}, made, path.name) for item in data["tables"])
    columns = [column for table in tables for column in table.columns]
    for pattern in made:
        if not any(fnmatchcase(column, pattern) for column in columns):
            raise UserError(f"{path.name}: something is said about '{pattern}', which is no column")
    remarks, free = data.get("remarks", ()), data.get("free", ())
    return Publication(data["name"], data["citation"], data["spread"], tables, tuple(remarks), tuple(free))


def _table(data: Mapping[str, Any], made: Mapping[str, Mapping[str, Any]], file: str) -> PublishedTable:
    where = f"{file}, table '{data['name']}'"
    columns = tuple(data["columns"])
    if data["spread"] not in SPREADS:
        raise UserError(f"{where}: no spread is called '{data['spread']}'; there are: {', '.join(SPREADS)}")
    table = PublishedTable(
        name=data["name"],
        source=data["source"],
        unit=data["unit"],
        runs=data.get("runs"),
        columns=columns,
        metrics=_metrics(data["metric"], columns, where),
        rows={method: _row(cells, columns, f"{where}, row '{method}'") for method, cells in data["rows"].items()},
        printed=data.get("printed", {}),
        notes=data.get("notes", {}),
        spread=data["spread"],
        protocol=data.get("protocol", ""),
        checkpoint=data.get("checkpoint", ""),
        tuned=data.get("tuned"),
        made={column: _made(column, made) for column in columns},
    )
    for method in {*table.printed, *table.notes} - {"*", *table.rows}:
        raise UserError(f"{where}: something is said about '{method}', which is no row")
    return table


def _made(column: str, patterns: Mapping[str, Mapping[str, Any]]) -> PublishedColumn:
    """All that the patterns fitting a column say; of two that say the same thing the later counts."""
    merged: dict[str, Any] = {}
    for pattern, facts in patterns.items():
        if fnmatchcase(column, pattern):
            for name, value in facts.items():
                merged[name] = {**merged.get(name, {}), **value} if isinstance(value, Mapping) else value
    return PublishedColumn(**merged)


def _metrics(given: str | Mapping[str, str], columns: tuple[str, ...], where: str) -> dict[str, str]:
    """The metric of each column, from one for all or from one for each pattern of names."""
    patterns = {"*": given} if isinstance(given, str) else given
    found = {}
    for column in columns:
        matching = [metric for pattern, metric in patterns.items() if fnmatchcase(column, pattern)]
        if len(matching) != 1:
            raise UserError(f"{where}: column '{column}' has {len(matching)} metrics")
        found[column] = matching[0]
    return found


def _row(cells: list[Any], columns: tuple[str, ...], where: str) -> dict[str, PublishedValue]:
    if len(cells) != len(columns):
        raise UserError(f"{where}: {len(cells)} cells for {len(columns)} columns")
    pairs = zip(columns, cells, strict=True)
    return {column: _value(cell, where) for column, cell in pairs if cell is not None}


def _value(cell: str | float, where: str) -> PublishedValue:
    mean, sign, spread = str(cell).partition("±")
    try:
        return PublishedValue(float(mean), float(spread) if sign else None)
    except ValueError:
        raise UserError(f"{where}: '{cell}' is no number and no mean±spread") from None
