"""Pairs of settings that differ in one hyperparameter, so that its effect can be tested."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from harness.component import Component
from harness.errors import UserError
from harness.hparams import Condition, HParam, meets
from harness.testing.report import Skip

EVERYWHERE = "*"
"""The name under which ``probes`` has settings for all checks."""

Differ = Callable[[Mapping[str, Any], Mapping[str, Any]], bool]
"""Returns True if two settings lead to different outcomes."""
Pair = tuple[dict[str, Any], dict[str, Any]]


def pairs(cls: type[Component], name: str, base: Mapping[str, Any]) -> list[Pair]:
    """Return settings to compare: the first of a pair has the hyperparameter's default, the second another value.

    A probe of the class gives the settings; without one they follow from ``active``, and the second values from
    ``choices``, ``search`` or the bounds.
    """
    declared = cls.hparams[name]
    probe = dict(cls.probes.get(name, {}))
    around = {**base, **(probe or _activated(cls, declared))}
    if name in probe:
        return [({**around, name: base.get(name, declared.default)}, around)]
    first = around.get(name, declared.default)
    return [({**around, name: first}, {**around, name: value}) for value in others(declared, first)]


def idle_pairs(cls: type[Component], name: str, base: Mapping[str, Any]) -> list[Pair]:
    """Return settings whose outcomes must be alike: one pair per condition of ``active`` that it does not meet.

    Of an ``unused`` hyperparameter all settings are alike.
    """
    declared = cls.hparams[name]
    probe = dict(cls.probes.get(name, {}))
    met = {**base, **_activated(cls, declared), **probe}
    second = probe.get(name, next(iter(others(declared, declared.default)), declared.default))
    around = [met] if declared.unused else []
    for other, condition in (declared.active or {}).items():
        if other in cls.hparams:
            broken = _either(cls.hparams[other], condition, {**_defaults(cls), **met}, met=False)
            around += [{**met, **broken}] if broken else []
    return [({**settings, name: declared.default}, {**settings, name: second}) for settings in around]


def each_choice(cls: type[Component], base: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the usual settings, and then those with each other choice of a hyperparameter that has choices."""
    yield {}
    for name, declared in cls.hparams.items():
        if declared.type == "bool" or (declared.type == "str" and declared.choices):
            yield from (second for _, second in pairs(cls, name, base))


def effects_as_declared(
    cls: type[Component], base: Mapping[str, Any], differ: Differ, leave_out: Collection[str] = ()
) -> Iterator[str]:
    """Yield a text for each hyperparameter that has no effect where declared active, or one where declared not to.

    The harness leaves an idle value out of keys and of what it passes on.

    Args:
        cls: the component.
        base: settings that hold unless a probe says otherwise.
        differ: compares the outcomes of two settings.
        leave_out: hyperparameters whose effect another check tests.
    """
    for name in cls.hparams:
        if name not in leave_out and not cls.hparams[name].unused:
            yield from _without_effect(cls, name, base, differ)
        for one, two in idle_pairs(cls, name, base):
            try:
                changes = differ(one, two)
            except UserError:
                changes = False
            if changes:
                around = _around(name, one, base)
                yield f"'{name}': {two[name]} matters with {around}, though `active` or `unused` says that it does not"


def _without_effect(cls: type[Component], name: str, base: Mapping[str, Any], differ: Differ) -> Iterator[str]:
    compared = pairs(cls, name, base)
    if not compared:
        yield f"'{name}': no second value to try; declare `choices` or `search`, or give one in `probes`"
        return
    same: list[dict[str, Any]] = []
    every = _every_value_matters(cls.hparams[name])
    for one, two in compared:
        try:
            changes = differ(one, two)
        except UserError:  # a refused value makes a difference where it is a choice, else it is none to try
            changes = every
        except Skip:
            raise
        except Exception as error:
            yield f"with {two} it raised {type(error).__name__}: {error}"
            return
        if changes and not every:
            return
        same += [] if changes else [two]
    if same:
        first = compared[0][0]
        around = _around(name, first, base)
        yield (
            f"'{name}': {' and '.join(str(two[name]) for two in same)} gives what {first[name]} gives"
            f"{f', with {around}' if around else ''}; declare when it matters (`active`, or `probes` with settings "
            "that show it)"
        )


def _around(name: str, settings: Mapping[str, Any], base: Mapping[str, Any]) -> dict[str, Any]:
    return {n: v for n, v in settings.items() if n != name and base.get(n) != v}


def _every_value_matters(declared: HParam) -> bool:
    """Return True if each second value must have an effect, not only one of them."""
    return declared.choices is not None and not declared.type.startswith("list[")


def _activated(cls: type[Component], declared: HParam, asked: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Return values of other hyperparameters under which this one is active, and those under which they are."""
    values: dict[str, Any] = {}
    for name, condition in (declared.active or {}).items():
        if name in cls.hparams and name not in asked:
            other = cls.hparams[name]
            values |= _activated(cls, other, asked | {declared.name})
            values |= _either(other, condition, {**_defaults(cls), **values}, met=True)
    return values


def _defaults(cls: type[Component]) -> dict[str, Any]:
    return {name: declared.default for name, declared in cls.hparams.items()}


def _either(declared: HParam, condition: Condition, values: Mapping[str, Any], *, met: bool) -> dict[str, Any]:
    """Return, by name, another value that does, or does not, meet a condition; empty if none is needed or allowed."""
    named = () if isinstance(condition, str) else condition
    wrapped = [[item] for item in named] if declared.type.startswith("list[") else named
    for value in (values[declared.name], declared.default, *others(declared, declared.default), *wrapped, 0, None):
        if _allowed(declared, value) and meets(value, condition, {**values, declared.name: value}) == met:
            return {} if value == values[declared.name] else {declared.name: value}
    return {}


def others(declared: HParam, first: Any) -> list[Any]:
    """Return values other than the first: all choices, up to three of a search space, or some within the bounds."""
    if declared.type == "bool":
        return [not first]
    if declared.choices is not None and not declared.type.startswith("list["):
        return [value for value in declared.choices if value != first]
    searched = [value for value in declared.search or () if value != first][:3]
    invented = [value for value in _invented(declared, first) if _allowed(declared, value)]
    return searched or [value for i, value in enumerate(invented) if value not in invented[:i]]


def _invented(declared: HParam, first: Any) -> Iterator[Any]:
    if declared.type.startswith("list["):
        yield from _lists(declared, first)
    elif declared.type in ("int", "float"):
        whole = declared.type == "int"
        start = first if first is not None else (declared.low or 0)
        tries = [start + 1, start * 3, start // 2] if whole else [start * 2, start / 2, start + 0.5]
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
