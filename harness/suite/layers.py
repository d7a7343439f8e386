"""What the tables of a suite decide, by dotted path, and how one is laid over another.

It makes no difference whether a file writes a value under its component (``decorrelator: {tune: {gamma: […]}}``) or by
path (``tune: {decorrelator.gamma: […]}``). A component itself stands under its role (``decorrelator``, or
``model.backbone``), the search spaces of its class under ``decorrelator.*``, those of all components under ``*``.
So fragments, ``like``, bundles, protocols, datasets and ``--set`` are laid over each other by one rule, :func:`over`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from harness.registry.catalog import Catalog
from harness.suite.settings import BACKBONE, CALL, FAULTY, KIND_OF, PARTS, PIPELINE, ROWS, SECTIONS
from harness.suite.tree import Leaf, Place, Problems, Table, Tree, plain
from harness.suite.yaml import read_pair, read_value

Way = Literal["given", "pool", "tune", "matrix"]


@dataclass(frozen=True, slots=True)
class Decision:
    """One value or list of values, in what way it is meant, and the place of its key.

    ``nested`` marks what a file writes under ``backbone``: another backbone takes the place of all that.
    """

    value: Tree
    place: Place
    way: Way = "given"
    nested: bool = False


Flat = dict[str, Decision]


class Flattener:
    """Makes decisions of tables; those that contradict each other are noted."""

    def __init__(self, catalog: Catalog, problems: Problems) -> None:
        self.catalog, self.problems = catalog, problems

    def component(self, role: str, tree: Tree) -> Flat:
        """A component, given as its name or as a table."""
        return self._once(self._component(role, tree))

    def row(self, kind: str, table: Table) -> Flat:
        """A dataset with its settings, a method, or the settings of a whole suite."""
        return self._once(self._row(kind, table))

    def _once(self, found: Iterator[tuple[str, Decision]]) -> Flat:
        flat: Flat = {}
        for path, decision in found:
            known = flat.setdefault(path, decision)
            if known is not decision:
                ways = f"{known.way} and {decision.way}"
                self.problems.add(decision.place, f"'{path}' is decided twice ({ways}); keep one")
        return flat

    def _row(self, kind: str, table: Table) -> Iterator[tuple[str, Decision]]:
        axes: list[Way] = ["tune", "matrix"] if kind == "method" else []
        if kind == "dataset":
            yield from self._component(kind, table.without([*SECTIONS, "envs"]))
        for part in PARTS if kind == "method" else ("envs",):
            if part in table:
                yield from self._component(part, table.entries[part], ["pool", *axes] if part == "encoder" else axes)
        if "backbone" in table.table("model"):
            yield from self._component(BACKBONE, table.table("model").entries["backbone"], axes)
        for section in SECTIONS:
            settings = table.table(section)
            for name in settings.without(["backbone"]):
                yield f"{section}.{name}", Decision(settings.entries[name], settings.key(name))
        yield from _axes(table, axes)

    def _component(self, role: str, tree: Tree, axes: Sequence[Way] = ()) -> Iterator[tuple[str, Decision]]:
        table = tree if isinstance(tree, Table) else Table(tree.place).put("use", tree)
        prefix = f"{role.removesuffix('.backbone')}."
        use = table.get("use")
        if isinstance(use, Leaf):
            yield from self._named(role, prefix, use)
        for name, value in table.without(["use", *axes]).entries.items():
            yield f"{prefix}{name}", Decision(value, table.key(name), nested=role == BACKBONE)
        yield from _axes(table, axes, prefix)

    def _named(self, role: str, prefix: str, use: Leaf) -> Iterator[tuple[str, Decision]]:
        """The component's name, and the value that may stand behind it in parentheses."""
        match = CALL.match(str(use.value).strip())
        entry = self.catalog.find(KIND_OF.get(role, role), match[1] if match else str(use.value))
        target = entry.traits.get("positional") if entry else None
        if match and entry and not target:
            text = f"'{entry.name}' takes no value in parentheses; write {{use: {entry.name}, …}}"
            self.problems.add(use.place, text)
        yield role, Decision(Leaf(match[1], use.place) if match else use, use.place)
        value = read_value(match[2], use.place, self.problems) if match and target else None
        if value is not None:
            yield f"{prefix}{target}", Decision(value, use.place)


def _axes(table: Table, ways: Sequence[Way], prefix: str = "") -> Iterator[tuple[str, Decision]]:
    for way in ways:
        default = table.get(way)
        if isinstance(default, Leaf):
            yield f"{prefix}*", Decision(default, table.key(way), way)
        for name, value in table.table(way).entries.items():
            whole = not prefix and name in PARTS and isinstance(value, Leaf)
            path = f"{name}.*" if whole else f"{prefix}{name}"
            yield path, Decision(value, table.table(way).key(name), way)


def over(base: Flat, top: Flat) -> Flat:
    """Lay decisions over others.

    A path that ``top`` decides in any way is no longer decided below. A component that it names takes the place of the
    one below with all that was decided on it, of another backbone all but what every backbone may have; a baseline
    takes the place of a pipeline, and the other way round.
    """
    if "dataset" in top:
        return dict(top)
    heads = {path.partition(".")[0] for path in top}
    gone = {path for path in top if "." not in path}
    gone |= {*PIPELINE} if "baseline" in heads else set()
    gone |= {"baseline"} if heads & {*PIPELINE} else set()
    searched = {path[:-2] for path in top if path.endswith(".*")}

    def stays(path: str, decision: Decision) -> bool:
        head = path.partition(".")[0]
        if head in gone or (decision.nested and BACKBONE in top):
            return False
        if path in top:
            return decision.way == top[path].way == "given"
        return decision.way != "tune" or not ("*" in top or head in searched)

    return {path: one for path, one in base.items() if stays(path, one)} | top


def under(flat: Flat, head: str, way: Way = "given") -> dict[str, Decision]:
    """The decisions of one kind on what belongs to a component or section, by name."""
    prefix = f"{head}."
    return {path.removeprefix(prefix): one for path, one in flat.items() if path.startswith(prefix) and one.way == way}


def sections(flat: Flat) -> Flat:
    """The decisions on ``model``, ``train`` and ``select`` that are no axes."""
    return {path: one for path, one in flat.items() if path.partition(".")[0] in SECTIONS and one.way == "given"}


def written(flat: Flat) -> dict[str, Any]:
    """Decisions as a file writes them."""
    tree: dict[str, Any] = {}
    for path, one in flat.items():
        head, _, name = path.partition(".")
        steps: tuple[str, ...]
        if one.way in ("tune", "matrix"):
            steps = (one.way, path.removesuffix(".*"))
        elif path == BACKBONE or one.nested:
            steps = ("model", "backbone", "use" if path == BACKBONE else name)
        else:
            steps = (head, "pool", name) if one.way == "pool" else (head, name or "use")
        table = tree
        for step in steps[:-1]:
            table = table.setdefault(step, {})
        table[steps[-1]] = plain(one.value)
    return tree


def read_sets(texts: Sequence[str], problems: Problems, prefix: str = "") -> Flat:
    """The decisions of a command's ``--set KEY=VALUE``; the last of a key wins."""
    flat: Flat = {}
    for text in texts:
        place = Place(f"--set {text}")
        pair = read_pair(text, place, problems)
        if pair is not None:
            flat[prefix + pair[0]] = Decision(pair[1], place)
    return flat


# Files over files


@dataclass(frozen=True)
class Row:
    """A dataset, method or analysis: the place of its label, its decisions, and what a method starts from."""

    place: Place
    flat: Flat
    like: Leaf | None = None
    bundle: Leaf | None = None


@dataclass
class Layers:
    """A suite's file over those that it includes, and what the command line sets over both.

    Attributes:
        top: the keys that are no settings and no rows.
        settings: ``model``, ``train`` and ``select`` of all rows.
        rows: section (``datasets``, ``methods``, ``analyses``) -> label -> row.
    """

    flattener: Flattener
    top: Table
    settings: Flat = field(default_factory=dict)
    rows: dict[str, dict[str, Row]] = field(default_factory=dict)

    def lay(self, table: Table) -> None:
        """Lay a sound table of a suite over what is there."""
        for section, kind in ROWS.items():
            if section in table:
                self._lay_rows(self.rows.setdefault(section, {}), kind, table.table(section))
        self.settings = over(self.settings, self.flattener.row("suite", table))
        self.top = _merged(self.top, table.without([*ROWS, *SECTIONS]))

    def _lay_rows(self, rows: dict[str, Row], kind: str, tables: Table) -> None:
        for label, tree in tables.entries.items():
            table = tree if isinstance(tree, Table) else Table(tree.place).put("use", tree)
            row = self._row(kind, table, tables.key(label))
            below = rows.get(label)
            if below and not (row.like or row.bundle):  # what starts from another method is a fresh one
                row = Row(row.place, over(below.flat, row.flat), below.like, below.bundle)
            rows[label] = row

    def _row(self, kind: str, table: Table, place: Place) -> Row:
        before, flat = len(self.flattener.problems), {}
        if FAULTY not in table:
            flat = self.flattener.component(kind, table) if kind == "analysis" else self.flattener.row(kind, table)
        if FAULTY in table or (len(self.flattener.problems) > before and kind == "method"):
            flat[FAULTY] = Decision(Leaf(True, place), place)
        start = {name: table.get(name) for name in ("like", "bundle")}
        return Row(place, flat, *(leaf if isinstance(leaf, Leaf) else None for leaf in start.values()))


def _merged(base: Table, top: Table) -> Table:
    for name, value in top.entries.items():
        below = base.get(name)
        both = isinstance(value, Table) and isinstance(below, Table)
        base = base.put(name, _merged(below, value) if both else value, top.key(name))  # type: ignore[arg-type]
    return base
