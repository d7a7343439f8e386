"""Read the ``analyses`` of a suite, which look at its cells after the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from harness.data import Declaration
from harness.errors import did_you_mean, listed
from harness.suite.components import Parts
from harness.suite.layers import Decision, Flattener, Row, read_sets
from harness.suite.settings import FAULTY
from harness.suite.spec import AnalysisSpec
from harness.suite.tree import Items, Leaf, Place, plain

OWN = ("datasets", "methods")
"""Keys of an analysis that are not its component's hyperparameters."""


def read_analyses(
    rows: Mapping[str, Row],
    parts: Parts,
    *,
    datasets: Mapping[str, Declaration],
    known: Mapping[str, Sequence[str]],
) -> tuple[AnalysisSpec, ...]:
    """The analyses of a suite, in the order of the file; faults are noted and left out.

    Args:
        datasets: those taken of the suite, with what they declare.
        known: ``datasets`` and ``methods`` -> every label of the suite, taken or not.
    """
    specs = []
    for label, row in rows.items():
        before = len(parts.problems)
        part = None if FAULTY in row.flat else parts.alone("analysis", row.flat, OWN)
        globs = {name: _globs(row, name, label, parts, known[name]) for name in OWN}
        if part is None or len(parts.problems) > before:
            continue
        fields = set(part.entry.traits.get("oracle", ()))
        looked = {name: declared for name, declared in datasets.items() if fits(name, globs["datasets"])}
        lacking = [name for name, declared in looked.items() if fields - set(declared.oracle)]
        if lacking:
            text = f"analysis '{label}' reads the oracle field {', '.join(sorted(fields))}, which these datasets lack: "
            parts.problems.add(row.place, f"{text}{', '.join(lacking)}; name others with datasets: [...]")
        else:
            specs.append(AnalysisSpec(label, part.spec, globs["datasets"], globs["methods"]))
    return tuple(specs)


def named_analyses(
    names: Sequence[str], sets: Sequence[str], globs: Mapping[str, Sequence[str]], parts: Parts
) -> dict[str, Row]:
    """The ``analyses`` that a command line means: each name is a component with its own label."""
    line, rows = Place(""), {}
    if sets and len(names) > 1:
        parts.problems.add(line, "--set gives a hyperparameter of one named analysis, not of several")
    for name in names:
        flat = Flattener(parts.catalog, parts.problems).component("analysis", Leaf(name, line))
        flat |= read_sets(sets, parts.problems, "analysis.")
        for key, values in globs.items():
            if values:
                flat[f"analysis.{key}"] = Decision(Items(tuple(Leaf(value, line) for value in values), line), line)
        rows[name] = Row(line, flat)
    return rows


def fits(label: str, globs: Sequence[str]) -> bool:
    """Return True if a dataset or method is taken; no globs take all."""
    return not globs or any(label == glob or fnmatchcase(label, glob) for glob in globs)


def _globs(row: Row, name: str, label: str, parts: Parts, known: Sequence[str]) -> tuple[str, ...]:
    given = row.flat.get(f"analysis.{name}")
    value = given and given.value
    globs = []
    for item in value.items if isinstance(value, Items) else [value] if value else []:
        glob = str(plain(item))
        if known and not any(fits(other, (glob,)) for other in known):
            hint = f"{did_you_mean(glob, known)}; there are: {listed(known)}"
            parts.problems.add(item.place, f"analysis '{label}': '{glob}' fits none of the suite's {name}{hint}")
        globs.append(glob)
    return tuple(globs)
