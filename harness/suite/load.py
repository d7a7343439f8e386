"""From a suite file to a resolved suite: protocol, overrides, rows, and every fault at once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.catalog import Catalog
from harness.data import Declaration
from harness.errors import UserError, did_you_mean
from harness.spec import ComponentSpec, DatasetSpec, ReportSettings, Suite
from harness.suite.files import gather, read_protocol
from harness.suite.methods import Method, resolve_methods
from harness.suite.overlay import over_suite
from harness.suite.overrides import Overrides, apply_sets, chosen, parse_seeds
from harness.suite.parts import Parts
from harness.suite.rows import Column, RowBuilder
from harness.suite.settings import SECTIONS
from harness.suite.tree import Items, Leaf, Place, Problems, Table, Tree, describe, plain

DEFAULT_PROTOCOL = "equad"
Declare = Callable[[ComponentSpec], Declaration]


def load_suite(path: Path, catalog: Catalog, declare: Declare, *, overrides: Overrides | None = None) -> Suite:
    """Read, check and resolve a suite.

    Args:
        path: the suite file (see :func:`harness.suite.find_suite`).
        catalog: the registered components.
        declare: gives a dataset's declaration.
        overrides: what the command line changes.

    Raises:
        SuiteError: all faults of the suite, each with its place.
        DataError: a dataset cannot be declared, for example for a missing file.
    """
    given = overrides or Overrides()
    problems = Problems()
    tree = gather(path, problems).tree
    problems.check()
    tree = apply_sets(tree, given.sets, problems)
    loader = _Loader(path, tree, catalog, problems, given)
    suite = loader.suite(declare)
    problems.check()
    if loader.data_errors:
        raise loader.data_errors[0]
    return suite


class _Loader:
    def __init__(self, path: Path, tree: Table, catalog: Catalog, problems: Problems, overrides: Overrides) -> None:
        self.path, self.problems, self.overrides = path, problems, overrides
        name = tree.get("protocol")
        self.protocol_name = name if isinstance(name, Leaf) else Leaf(DEFAULT_PROTOCOL, tree.place)
        self.protocol = read_protocol(self.protocol_name, problems)
        if overrides.epochs is not None:
            place = Place(f"--epochs {overrides.epochs}")
            tree = _force_epochs(tree, Leaf(overrides.epochs, place))
        self.tree = tree
        self.parts = Parts(catalog, problems)
        self.data_errors: list[UserError] = []

    def suite(self, declare: Declare) -> Suite:
        for section in ("datasets", "methods"):
            if section not in self.tree:
                self.problems.add(self.tree.place, f"the suite has no '{section}'")
        seeds = self._seeds()
        columns = self._columns(declare)
        methods = self._methods()
        builder = RowBuilder(self.parts, self.protocol, self.tree, self._budget())
        rows = [row for column in columns for method in methods if (row := builder.row(column, method)) is not None]
        return Suite(
            name=self._name(),
            path=self.path,
            protocol=str(self.protocol_name.value),
            seeds=tuple(seeds),
            datasets=tuple(DatasetSpec(column.label, column.spec) for column in columns),
            methods=tuple(method.label for method in methods),
            rows=tuple(rows),
            report=self._report([method.label for method in methods]),
            plugins=(),
            overrides=self.overrides.texts(),
            resolved=self._resolved(seeds),
        )

    def _name(self) -> str:
        name = self.tree.get("name")
        return str(name.value) if isinstance(name, Leaf) else self.path.stem

    def _resolved(self, seeds: list[int]) -> dict[str, Any]:
        merged: dict[str, Any] = plain(over_suite(self.protocol.only(SECTIONS), self.tree))
        return {**merged, "protocol": self.protocol_name.value, "seeds": seeds}

    def _seeds(self) -> list[int]:
        if self.overrides.seeds is not None:
            place = Place(f"--seeds {self.overrides.seeds}")
            try:
                return self._distinct([(seed, place) for seed in parse_seeds(self.overrides.seeds)])
            except ValueError:
                self.problems.add(place, "expected whole numbers such as 1,2,3")
                return []
        tree = self.tree.get("seeds") if "seeds" in self.tree else self.protocol.get("seeds")
        if tree is None:
            self.problems.add(self.tree.place, "the suite has no 'seeds'; write seeds: [1, 2, 3]")
            return []
        items: tuple[Tree, ...] = tree.items if isinstance(tree, Items) else (tree,)
        if not items or (isinstance(tree, Leaf) and tree.value is None):
            self.problems.add(tree.place, "'seeds' is empty; write seeds: [1, 2, 3]")
            return []
        numbers: list[tuple[int, Place]] = []
        for item in items:
            value = item.value if isinstance(item, Leaf) else None
            if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
                numbers.append((value, item.place))
            else:
                hint = f"; write seeds: [{value}]" if isinstance(value, str) and "," in value else ""
                self.problems.add(item.place, f"a seed is a whole number from 0, found {describe(item)}{hint}")
        return self._distinct(numbers)

    def _distinct(self, numbers: list[tuple[int, Place]]) -> list[int]:
        seen: list[int] = []
        for value, place in numbers:
            if value in seen:
                self.problems.add(place, f"seed {value} is given twice")
            seen.append(value)
        return seen

    def _budget(self) -> int | None:
        tree = self.tree.get("budget")
        if tree is None:
            return None
        if (
            isinstance(tree, Leaf)
            and isinstance(tree.value, int)
            and not isinstance(tree.value, bool)
            and tree.value > 0
        ):
            return tree.value
        self.problems.add(tree.place, f"'budget' is a number of configurations from 1, found {describe(tree)}")
        return None

    def _columns(self, declare: Declare) -> list[Column]:
        datasets = self.tree.table("datasets")
        columns = []
        for label in chosen(self.overrides.datasets, list(datasets), "datasets", self.problems):
            table = datasets.table(label)
            part = self.parts.component("dataset", table.without([*SECTIONS, "envs"]))
            if part is None:
                continue
            try:
                declared = declare(part.spec)
            except UserError as error:
                self.data_errors.append(error)
                continue
            family = self.protocol.table("families").table(str(part.entry.traits.get("family", "")))
            columns.append(Column(label, part.spec, declared, family, table, datasets.key(label)))
        return columns

    def _methods(self) -> list[Method]:
        rows = resolve_methods(self.tree.table("methods"), self.problems)
        family = {row.label: row.family for row in rows}
        labels = [row.label for row in rows]
        taken = chosen(self.overrides.methods, labels, "methods", self.problems, lambda label: family[label])
        return [row for row in rows if row.label in taken]

    def _report(self, methods: list[str]) -> ReportSettings:
        table = self.tree.table("report")
        texts: dict[str, str | None] = {}
        for name, value in table.entries.items():
            if isinstance(value, Leaf) and isinstance(value.value, str):
                texts[name] = value.value
            else:
                self.problems.add(value.place, f"'{name}' takes a name, found {describe(value)}")
        reference = texts.get("reference")
        if reference is not None and reference not in self.tree.table("methods") and reference not in methods:
            hint = did_you_mean(reference, methods)
            self.problems.add(table.entries["reference"].place, f"'reference' names no method: '{reference}'{hint}")
        return ReportSettings(reference if reference in methods else None, texts.get("published"))


def _force_epochs(tree: Table, epochs: Leaf) -> Table:
    """The suite with one number of epochs everywhere."""
    forced = tree.put("train", tree.table("train").put("epochs", epochs, epochs.place), epochs.place)
    for section in ("datasets", "methods"):
        rows = forced.table(section)
        for label in rows:
            row = rows.table(label)
            if "epochs" in row.table("train"):
                row = row.put("train", row.table("train").put("epochs", epochs, epochs.place))
                rows = rows.put(label, row)
        if section in forced:
            forced = forced.put(section, rows)
    return forced
