"""Bring the tables of a file to one normal form, without their faulty parts, and lay one table over another.

Normal form: every component is a table with ``use``; what a component tunes or puts in a matrix stands in the
method's ``tune`` and ``matrix`` under a dotted path (``decorrelator.gamma``), so that files, ``like``, bundles and
``--set`` all merge by the same rules.

Tables merge key by key and the later value wins. A component given with ``use`` (or as a name) replaces the one
below it together with what was tuned on it. A hyperparameter that the upper table decides in any way (a value,
``tune``, ``matrix``, ``pool``) is no longer decided below.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from harness.suite.settings import CALL, PARTS, PIPELINE, POSITIONAL, SECTIONS
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


# Lay one table over another

_Merge = Callable[[Table, Table], Table]


def merge(base: Table, top: Table, rules: Mapping[str, _Merge] = MappingProxyType({})) -> Table:
    """Merge tables key by key and replace everything else; ``rules`` says which keys merge in another way."""
    result = base
    for name, value in top.entries.items():
        rule = rules.get(name)
        if rule is None and isinstance(value, Table) and isinstance(base.get(name), Table):
            rule = merge
        result = result.put(name, rule(base.table(name), top.table(name)) if rule else value, top.key(name))
    return result


def over_suite(base: Table, top: Table) -> Table:
    """Lay a suite over another: fragments, the file itself, ``--set``."""
    return merge(base, top, _OF_SUITE)


def over_sections(base: Table, top: Table) -> Table:
    """``model``, ``train`` and ``select`` of a table over those of others."""
    return over_suite(base, top.only(SECTIONS))


def over_model(base: Table, top: Table) -> Table:
    """``model`` over ``model``; a shared hyperparameter may stand flat or under ``backbone``."""
    if not top:
        return base
    below, above = base.table("backbone"), top.table("backbone")
    if "use" in above and "backbone" in base:
        base = base.put("backbone", below.only(["use"]))
    elif "backbone" in base:
        base = base.put("backbone", below.without(top))
    return merge(base.without(above), top)


def over_component(base: Table, top: Table) -> Table:
    """A component over a component."""
    return top if "use" in top else merge(settle_call(base), top)


def settle_call(part: Table) -> Table:
    """``NAME(value)`` as a name and a value that any later one replaces."""
    use = part.get("use")
    match = CALL.match(str(use.value)) if isinstance(use, Leaf) else None
    if match is None or use is None:
        return part
    part = part.put("use", Leaf(match[1], use.place))
    return part.put(POSITIONAL, Leaf(match[2], use.place))


def over_dataset(base: Table, top: Table) -> Table:
    """Lay a dataset, with its settings, over another."""
    return top if "use" in top else merge(base, top, {"model": over_model, "envs": over_component})


def over_method(base: Table, top: Table) -> Table:
    """Lay a method over another."""
    return merge(_displace(base, top), top, {"model": over_model})


def _over_named_method(base: Table, top: Table) -> Table:
    # A definition that starts from another method is a fresh one, whatever a fragment said under this name.
    return top if "like" in top or "bundle" in top else over_method(base, top)


def _by_name(rule: _Merge) -> _Merge:
    def merged(base: Table, top: Table) -> Table:
        result = base
        for name, value in top.entries.items():
            row = top.table(name) if name not in base else rule(base.table(name), top.table(name))
            result = result.put(name, row if isinstance(value, Table) else value, top.key(name))
        return result

    return merged


_OF_SUITE: dict[str, _Merge] = {
    "model": over_model,
    "datasets": _by_name(over_dataset),
    "methods": _by_name(_over_named_method),
    "analyses": _by_name(over_component),
}


def decisions(method: Table) -> dict[str, list[str]]:
    """Each dotted path that a method decides, and every way: ``given``, ``pool``, ``tune`` or ``matrix``."""
    found: dict[str, list[str]] = {}
    for part in PARTS:
        table = method.table(part)
        for name in table.without(["use", "pool", POSITIONAL]):
            found.setdefault(f"{part}.{name}", []).append("given")
        for name in table.table("pool"):
            found.setdefault(f"{part}.{name}", []).append("pool")
    model = method.table("model")
    backbone = model.table("backbone")
    for name in (
        *model.without(["backbone"]),
        *backbone.without(["use"]),
        *(["backbone"] if "use" in backbone else []),
    ):
        found.setdefault(f"model.{name}", []).append("given")
    for name in method.table("train"):
        found.setdefault(f"train.{name}", []).append("given")
    for kind in ("tune", "matrix"):
        for path in method.table(kind):
            found.setdefault(path, []).append(kind)
    return found


def drop(method: Table, path: str) -> Table:
    """The method without any decision on a dotted path."""
    head, _, name = path.partition(".")
    for kind in ("tune", "matrix"):
        method = _edit(method, kind, lambda axes: axes.without([path]))
    if head in PARTS and name:
        method = _edit(
            method, head, lambda part: _edit(part.without([name]), "pool", lambda pool: pool.without([name]))
        )
    elif head == "model":
        method = _edit(
            method, head, lambda model: _edit(model.without([name]), "backbone", lambda b: b.without([name]))
        )
    elif head == "train":
        method = _edit(method, head, lambda train: train.without([name]))
    return method


def _edit(table: Table, name: str, change: Callable[[Table], Table]) -> Table:
    return table.put(name, change(table.table(name)), table.key(name)) if name in table else table


def _displace(base: Table, top: Table) -> Table:
    """Return ``base`` without the paths that ``top`` decides."""
    if "baseline" in top:
        base = _without_parts(base, PIPELINE)
    if any(part in top for part in PIPELINE):
        base = _without_parts(base, ("baseline",))
    replaced = [part for part in PARTS if "use" in top.table(part) or part in top.table("matrix")]
    base = _without_parts(base, replaced)
    for part in PARTS:
        if part in top and part in base:
            base = base.put(part, settle_call(base.table(part)), base.key(part))
    if "*" in top.table("tune"):
        base = base.without(["tune"])
    for path, ways in decisions(top).items():
        if path not in PARTS:
            base = drop(base, path)
        elif ways[0] == "tune":
            base = _forget_axes(base, path, ("tune",))
    return base


def _without_parts(method: Table, parts: tuple[str, ...] | list[str]) -> Table:
    method = method.without(parts)
    for part in parts:
        method = _forget_axes(method, part)
    return method


def _forget_axes(method: Table, part: str, kinds: tuple[str, ...] = ("tune", "matrix")) -> Table:
    """The method without what is tuned or in a matrix on one part."""
    for kind in kinds:
        gone = [path for path in method.table(kind) if path == part or path.startswith(f"{part}.")]
        method = _edit(method, kind, lambda axes, gone=gone: axes.without(gone))  # type: ignore[misc]
    return method
