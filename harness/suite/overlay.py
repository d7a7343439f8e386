"""Lay one table over another: the single rule behind files, protocols, ``like``, bundles and ``--set``.

Tables merge key by key and the later value wins. A component given with ``use`` (or as a name) replaces the one
below it together with what was tuned on it. A hyperparameter that the upper table decides in any way (a value,
``tune``, ``matrix``, ``pool``) is no longer decided below. All tables are in the normal form of
:mod:`harness.suite.normal`.
"""

from __future__ import annotations

from collections.abc import Callable

from harness.suite.settings import CALL, PARTS, PIPELINE, POSITIONAL, SECTIONS
from harness.suite.tree import Leaf, Table

_Merge = Callable[[Table, Table], Table]


def merge(base: Table, top: Table) -> Table:
    """Plain merge: tables key by key, everything else replaced."""
    result = base
    for name, value in top.entries.items():
        below = base.get(name)
        both = isinstance(value, Table) and isinstance(below, Table)
        result = result.put(name, merge(base.table(name), top.table(name)) if both else value, top.key(name))
    return result


def over_suite(base: Table, top: Table) -> Table:
    """Suite over suite: fragments, the file itself, ``--set``."""
    result = merge(base.without(_SPECIAL), top.without(_SPECIAL))
    for name, rule in _SPECIAL.items():
        if name in base or name in top:
            place = top.key(name) if name in top else base.key(name)
            result = result.put(name, rule(base.table(name), top.table(name)), place)
    return result


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
    """A dataset over a dataset, with its overrides."""
    if "use" in top:
        return top
    result = merge(base.without(["model", "envs"]), top.without(["model", "envs"]))
    for name, rule in (("model", over_model), ("envs", over_component)):
        if name in base or name in top:
            result = result.put(name, rule(base.table(name), top.table(name)))
    return result


def over_method(base: Table, top: Table) -> Table:
    """A method over a method."""
    base = _displace(base, top)
    result = merge(base.without(["model"]), top.without(["model"]))
    if "model" in base or "model" in top:
        result = result.put("model", over_model(base.table("model"), top.table("model")))
    return result


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


_SPECIAL: dict[str, _Merge] = {
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
