"""Read the ``analyses`` of a suite, which look at its cells after the run, and its ``trackers``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from harness.data import Declaration
from harness.errors import did_you_mean
from harness.suite.components import Parts
from harness.suite.spec import AnalysisSpec, ComponentSpec
from harness.suite.tree import Items, Leaf, Place, Problems, Table, Tree, describe
from harness.suite.yaml import read_value

OWN = ("datasets", "methods")
"""Keys of an analysis that are not its component's hyperparameters."""


def read_analyses(
    table: Table,
    parts: Parts,
    *,
    datasets: Mapping[str, Declaration],
    known: Mapping[str, Sequence[str]],
) -> tuple[AnalysisSpec, ...]:
    """The analyses of a suite, in the order of the file; faults are noted and left out.

    Args:
        table: label -> component in normal form, which may also hold ``datasets`` and ``methods``.
        parts: checks components.
        datasets: what is taken of the suite, with what it declares.
        known: ``datasets`` and ``methods`` -> every label of the suite, taken or not.
    """
    specs = []
    for label in table:
        own = table.table(label)
        before = len(parts.problems)
        globs = {name: _globs(own, name, label, parts, known[name]) for name in OWN}
        part = parts.alone("analysis", own.without(OWN))
        if part is None or len(parts.problems) > before:
            continue
        spec = AnalysisSpec(label, part.spec, globs["datasets"], globs["methods"])
        if _fields_there(spec, part.entry.traits.get("oracle", ()), datasets, parts, table):
            specs.append(spec)
    return tuple(specs)


def named_components(
    names: Sequence[str], sets: Sequence[str], globs: Mapping[str, Sequence[str]], problems: Problems
) -> Table:
    """The table of components that a command line means: each name is its own label.

    Args:
        names: components, as a suite writes them.
        sets: ``KEY=VALUE`` texts with hyperparameters of the one component that is named.
        globs: ``datasets`` and ``methods`` -> globs.
        problems: receives what is wrong.
    """
    line = Place("command line")
    table = Table(line)
    for name in names:
        part = Table(line).put("use", Leaf(name, line))
        for text in sets:
            place = Place(f"--set {text}")
            key, equals, written = text.partition("=")
            if not equals or len(names) > 1:
                problems.add(place, "expected KEY=VALUE with a hyperparameter of the one component that is named")
                continue
            value = read_value(written, place, problems)
            part = part if value is None else part.put(key.strip(), value, place)
        for key, values in globs.items():
            if values:
                part = part.put(key, Items(tuple(Leaf(value, line) for value in values), line), line)
        table = table.put(name, part, line)
    return table


def read_trackers(tree: Tree | None, more: Sequence[str], parts: Parts) -> tuple[ComponentSpec, ...]:
    """The trackers of a suite (in normal form) and those that the command line adds; faults are noted."""
    tables = [item for item in tree.items if isinstance(item, Table)] if isinstance(tree, Items) else []
    for name in more:
        place = Place(f"--tracker {name}")
        tables.append(Table(place).put("use", Leaf(name, place)))
    components = [parts.alone("tracker", table) for table in tables]
    return tuple(part.spec for part in components if part is not None)


def written_analysis(spec: AnalysisSpec) -> dict[str, object]:
    """An analysis as a suite writes it."""
    globs = {name: list(getattr(spec, name)) for name in OWN if getattr(spec, name)}
    return {"use": spec.component.name, **spec.component.params, **globs}


def fits(label: str, globs: Sequence[str]) -> bool:
    """Return True if a dataset or method is taken; no globs take all."""
    return not globs or any(label == glob or fnmatchcase(label, glob) for glob in globs)


def _globs(own: Table, name: str, label: str, parts: Parts, known: Sequence[str]) -> tuple[str, ...]:
    tree = own.get(name)
    if tree is None:
        return ()
    items: Sequence[Tree] = tree.items if isinstance(tree, Items) else (tree,)
    globs = []
    for item in items:
        if not (isinstance(item, Leaf) and isinstance(item.value, str) and item.value.strip()):
            message = f"analysis '{label}': '{name}' lists names or globs of the suite's {name}, found {describe(item)}"
            parts.problems.add(item.place, message)
        elif known and not any(fits(other, (item.value,)) for other in known):
            hint = did_you_mean(item.value, known)
            message = f"analysis '{label}': '{item.value}' fits none of the suite's {name}{hint}; there are: "
            parts.problems.add(item.place, message + ", ".join(known))
        else:
            globs.append(item.value)
    return tuple(globs)


def _fields_there(
    spec: AnalysisSpec, fields: Sequence[str], datasets: Mapping[str, Declaration], parts: Parts, table: Table
) -> bool:
    """An analysis that opens oracle fields needs datasets that have them."""
    lacking = [
        label
        for label, declared in datasets.items()
        if fits(label, spec.datasets) and set(fields) - set(declared.oracle)
    ]
    if lacking:
        text = f"analysis '{spec.label}' reads the oracle field {', '.join(fields)}, which these datasets lack: "
        hint = f"{', '.join(lacking)}; name others with datasets: [...]"
        parts.problems.add(table.key(spec.label), text + hint)
    return not lacking
