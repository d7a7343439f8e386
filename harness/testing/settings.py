"""Two settings of a component that differ in one hyperparameter, so that its effect can be looked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from harness.component import Component
from harness.hparams import HParam

Pair = tuple[dict[str, Any], dict[str, Any]]


def pairs(cls: type[Component], name: str, base: Mapping[str, Any]) -> list[Pair]:
    """Settings to compare: the first of a pair has the hyperparameter's default, the second another value.

    A probe on the class gives the settings; else they follow from ``active`` and the second values from ``choices``,
    ``search``, or the bounds.
    """
    declared = cls.hparams[name]
    probe = dict(cls.probes.get(name, {}))
    around = {**base, **(probe or _activated(cls, declared))}
    if name in probe:
        return [({**around, name: _first(declared, base)}, around)]
    first = around.get(name, declared.default)
    return [({**around, name: first}, {**around, name: value}) for value in others(declared, first)]


def _first(declared: HParam, base: Mapping[str, Any]) -> Any:
    return base.get(declared.name, declared.default)


def _activated(cls: type[Component], declared: HParam) -> dict[str, Any]:
    """Values of other hyperparameters under which this one matters, also theirs in turn."""
    found: dict[str, Any] = {}
    for name, allowed in (declared.active or {}).items():
        other = cls.hparams[name]
        found |= _activated(cls, other)
        if other.default not in allowed:
            found[name] = allowed[0]
    return found


def others(declared: HParam, first: Any) -> list[Any]:
    """Values other than the first: all choices, or up to three of a search space, or two that bounds allow."""
    if declared.type == "bool":
        return [not first]
    if declared.choices is not None and not declared.type.startswith("list["):
        return [value for value in declared.choices if value != first]
    searched = [value for value in declared.search or () if value != first][:3]
    return searched or [value for value in _invented(declared, first) if _allowed(declared, value)]


def every_choice_matters(declared: HParam) -> bool:
    """Whether each second value must show by itself, and not only one of them."""
    return declared.choices is not None and not declared.type.startswith("list[")


def _invented(declared: HParam, first: Any) -> Iterator[Any]:
    if declared.type.startswith("list["):
        yield from _lists(declared, first)
    elif declared.type in ("int", "float"):
        whole = declared.type == "int"
        start = first if first is not None else (declared.low or 0)
        tries = [start + 1, start * 3, start - 1] if whole else [start * 2, start / 2, start + 0.5, start - 0.5]
        yield from (value for value in ([start, *tries] if first is None else tries) if value != first)
        bounds = [bound for bound in (declared.low, declared.high) if bound is not None and bound != first]
        yield from (int(bound) if whole else bound for bound in bounds)
    elif declared.optional and first is not None:
        yield None


def _lists(declared: HParam, first: Any) -> Iterator[list[Any]]:
    items = list(first or ())
    if len(items) > 1:
        yield items[:-1]
    if items and not isinstance(items[0], (str, bool)):
        yield [item * 2 for item in items]
    if declared.choices is not None:
        yield from ([choice] for choice in declared.choices if [choice] != items)


def _allowed(declared: HParam, value: Any) -> bool:
    try:
        declared.coerce(value)
    except ValueError:
        return False
    return True
