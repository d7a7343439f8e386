"""Bring the tables of a file to one normal form, without their faulty parts.

Normal form: every component is a table with ``use``; what a component tunes or puts in a matrix stands in the
method's ``tune`` and ``matrix`` under a dotted path (``decorrelator.gamma``), so that files, ``like``, bundles and
``--set`` all merge by the same rules (:mod:`harness.suite.overlay`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness.suite.settings import PARTS
from harness.suite.tree import Items, Leaf, Place, Problems, Table, Tree, describe, mark_faulty


def read_suite(tree: Tree | None, file: str, problems: Problems, *, fragment: bool) -> Table:
    """A suite file, or a fragment that another one includes."""
    if tree is None or (isinstance(tree, Leaf) and tree.value is None):
        problems.add(Place(file, 1, 1), "the file is empty; a suite starts with 'bench: 1'")
        return Table(Place(file, 1, 1))
    if not isinstance(tree, Table):
        problems.add(tree.place, f"a suite is a table that starts with 'bench: 1', found {describe(tree)}")
        return Table(tree.place)
    if "bench" not in tree and not fragment:
        problems.add(tree.place, "the key 'bench' is missing; a suite starts with 'bench: 1'")
    return read_top(tree, problems)


def read_top(tree: Table, problems: Problems) -> Table:
    """The top level of a suite, also of what ``--set`` gives."""
    return _suite(_checked("SUITE", tree, problems, "a suite"), problems)


def read_protocol_table(tree: Tree | None, file: str, problems: Problems) -> Table:
    """A protocol file."""
    if not isinstance(tree, Table):
        problems.add(Place(file, 1, 1), "a protocol is a table")
        return Table(Place(file, 1, 1))
    tree = _sections(_checked("PROTOCOL", tree, problems, "a protocol"))
    return _each(tree, "families", _sections)


def read_method(tree: Tree, label: str, problems: Problems) -> Table:
    """A bundle: part of a method."""
    if not isinstance(tree, Table):
        problems.add(tree.place, f"bundle '{label}' is a table, found {describe(tree)}")
        return Table(tree.place)
    return _method(_checked("METHOD", tree, problems, f"bundle '{label}'"), problems)


def _checked(model: str, tree: Table, problems: Problems, title: str) -> Table:
    from harness.suite import models, validation

    sound: Table = validation.checked(getattr(models, model), tree, problems, title)[0]
    return sound


def _suite(tree: Table, problems: Problems) -> Table:
    for name in ("include", "plugins", "trackers"):
        if name in tree:
            value = tree.entries[name]
            items = value.items if isinstance(value, Items) else (value,)
            items = tuple(component(item) for item in items) if name == "trackers" else items
            tree = tree.put(name, Items(items, value.place), tree.key(name))
    tree = _each(tree, "datasets", _dataset)
    tree = _each(tree, "methods", lambda method: _method(method, problems))
    return _sections(_each(tree, "analyses", component))


def component(tree: Tree) -> Table:
    """A component as a table; ``use`` may be missing where it only changes another one."""
    return tree if isinstance(tree, Table) else Table(tree.place).put("use", tree)


def _each(tree: Table, name: str, change: Callable[[Any], Table]) -> Table:
    """The tree with every row of a table changed."""
    if name not in tree:
        return tree
    rows = tree.table(name)
    entries = {label: change(row) for label, row in rows.entries.items()}
    return tree.put(name, Table(rows.place, entries, rows.keys), tree.key(name))


def _sections(tree: Table) -> Table:
    """A table with its ``model`` in normal form."""
    return _with_component(tree, "model", lambda model: _with_component(model, "backbone"))


def _with_component(tree: Table, name: str, change: Callable[[Any], Table] = component) -> Table:
    return tree.put(name, change(tree.entries[name]), tree.key(name)) if name in tree else tree


def _dataset(tree: Tree) -> Table:
    return _with_component(_sections(component(tree)), "envs")


def _method(tree: Table, problems: Problems) -> Table:
    before = len(problems)
    axes = {kind: Table(tree.place) for kind in ("tune", "matrix")}
    for name in PARTS:
        tree = _with_component(tree, name, lambda part, name=name: _hoist(component(part), name, axes))  # type: ignore[misc]
    tree = _sections(tree)
    if "backbone" in tree.table("model"):
        model = _with_component(tree.table("model"), "backbone", lambda part: _hoist(part, "model", axes))
        tree = tree.put("model", model, tree.key("model"))
    for kind, of_parts in axes.items():
        hoisted = _under(of_parts, tree.get(kind), kind, problems)
        tree = tree.put(kind, hoisted, tree.key(kind)) if hoisted else tree.without([kind])
    return mark_faulty(tree) if len(problems) > before else tree


def _under(axes: Table, written: Tree | None, kind: str, problems: Problems) -> Table:
    """The axes of a method's components, and those that the method writes itself."""
    if isinstance(written, Leaf):
        return axes.put("*", written)  # every component of the method
    own = written if isinstance(written, Table) else Table(axes.place)
    for path, values in own.entries.items():
        if path in axes:
            problems.add(own.key(path), f"'{path}' is given twice in '{kind}'")
        axes = axes.put(path, _axis(path, values), own.key(path))
    return axes


def _hoist(part: Table, name: str, axes: dict[str, Table]) -> Table:
    """Move a component's ``tune`` and ``matrix`` to the method's, under dotted paths."""
    for kind, hoisted in list(axes.items()):
        value = part.get(kind)
        found = hoisted.put(name, value, part.key(kind)) if isinstance(value, Leaf) else hoisted
        for key, values in part.table(kind).entries.items():
            found = found.put(f"{name}.{key}", _axis(f"{name}.{key}", values), part.table(kind).key(key))
        axes[kind] = found
    return part.without(axes)


def _axis(path: str, value: Tree) -> Tree:
    """The values of an axis; components as tables."""
    if not isinstance(value, Items) or path not in (*PARTS, "model.backbone"):
        return value
    return Items(tuple(component(item) for item in value.items), value.place)
