"""Numbers that papers print, to stand beside our own: one YAML file for each paper, in this folder. No torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from harness.errors import UserError, did_you_mean

RECORD = "record"
"""Instead of a paper: the results of this repository's own suites (:mod:`harness.results.record`)."""
_FOLDER = Path(__file__).resolve().parent


class PublishedValue(NamedTuple):
    """One cell in percent: ``mean`` and, where it is printed, ``spread``."""

    mean: float
    spread: float | None = None


@dataclass(frozen=True)
class PublishedColumn:
    """The data and settings behind a column's numbers, as far as they are known; all are of shifted test splits.

    Attributes:
        component, values: the data as a component of ours and its values that differ from the defaults; empty where
            none of ours stands for them.
        version: the edition of the data, e.g. ``ChEMBL 30``; ours must begin with it.
        settings: network and training by path, of a backbone only what differs from its defaults, as in
            :class:`harness.results.rows.MethodFacts`.
        note: a sentence that belongs to every comparison with the column.
    """

    metric: str
    component: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    version: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True)
class PublishedTable:
    """One table of a paper; ``source`` is its place there.

    Attributes:
        rows: method -> column -> number; a row is named after what was trained, as in our suites.
        printed: method -> the paper's own name, where it differs.
        notes: method -> what a reader must know of its numbers; ``*`` for all.
    """

    name: str
    source: str
    columns: tuple[str, ...]
    rows: Mapping[str, Mapping[str, PublishedValue]]
    printed: Mapping[str, str] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Publication:
    """The tables of one paper.

    Attributes:
        spread: what stands behind the ± sign, each over ``runs`` trainings.
        protocol: ours that the paper's is; ``checkpoint`` the rule that chose the weights, ``best-val`` or ``last``.
        tuned: whether hyperparameters were selected on validation.
        columns: column -> the data and settings behind its numbers.
        remarks: sentences that belong to every comparison with these numbers.
        free: names of values of data and training that change no number's meaning, such as seeds.
    """

    name: str
    citation: str
    spread: str
    runs: int
    protocol: str
    checkpoint: str
    tuned: bool
    columns: Mapping[str, PublishedColumn]
    tables: tuple[PublishedTable, ...]
    remarks: tuple[str, ...] = ()
    free: tuple[str, ...] = ()

    def find(self, method: str, column: str) -> tuple[PublishedTable, PublishedValue] | None:
        """Return the first number for a method and a dataset."""
        cells = ((table, table.rows.get(method, {}).get(column)) for table in self.tables)
        return next(((table, value) for table, value in cells if value is not None), None)


def publications() -> list[str]:
    """Return the names of the papers whose numbers are here."""
    return sorted(path.stem for path in _FOLDER.glob("*.yaml"))


@cache
def load_published(name: str) -> Publication:
    """Read a publication's numbers.

    Raises:
        UserError: none has this name; the text lists those there are.
    """
    import yaml

    known = publications()
    if name not in known:
        hint = did_you_mean(name, known)
        raise UserError(f"no published numbers are called '{name}'{hint}; there are: {', '.join(known)}")
    data = yaml.safe_load((_FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))
    tables = tuple(_table(table) for table in data.pop("tables"))
    patterns = data.pop("columns")
    names = dict.fromkeys(column for table in tables for column in table.columns)
    return Publication(**data, tables=tables, columns={column: _column(column, patterns) for column in names})


def _table(data: dict[str, Any]) -> PublishedTable:
    columns = tuple(data.pop("columns"))
    rows = {
        method: {column: _value(cell) for column, cell in zip(columns, cells, strict=True) if cell is not None}
        for method, cells in data.pop("rows").items()
    }
    return PublishedTable(**data, columns=columns, rows=rows)


def _column(column: str, patterns: Mapping[str, Mapping[str, Any]]) -> PublishedColumn:
    """Merge the facts of the patterns that match a column; the later of two that say the same thing counts."""
    merged: dict[str, Any] = {}
    for pattern, facts in patterns.items():
        if fnmatchcase(column, pattern):
            for name, value in facts.items():
                merged[name] = {**merged.get(name, {}), **value} if isinstance(value, Mapping) else value
    return PublishedColumn(**merged)


def _value(cell: str | float) -> PublishedValue:
    mean, sign, spread = str(cell).partition("±")
    return PublishedValue(float(mean), float(spread) if sign else None)
