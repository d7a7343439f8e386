"""Pairs of settings that differ in one hyperparameter, so that its effect can be tested."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from harness.component import Component
from harness.errors import UserError
from harness.hparams import HParam, meets

EVERYWHERE = "*"
"""The name under which ``probes`` has settings for all checks."""

Settings = dict[str, Any]
Differ = Callable[[Mapping[str, Any], Mapping[str, Any]], bool]
"""Returns True if two settings lead to different outcomes."""


def pairs(cls: type[Component], name: str, base: Mapping[str, Any]) -> list[tuple[Settings, Settings]]:
    """Return settings to compare: the first of a pair has the hyperparameter's default, the second another value.

    A probe of the class gives the settings; without one they follow from ``active``, and the second values from
    ``choices``, ``search`` or the bounds.
    """
    declared, probe = cls.hparams[name], cls.probes.get(name, {})
    around = {**base, **(probe or _conditions(cls, name))}
    first = base.get(name, declared.default) if name in probe else around.get(name, declared.default)
    values = [probe[name]] if name in probe else others(declared, first)
    return [({**around, name: first}, {**around, name: value}) for value in values]


def idle_pairs(cls: type[Component], name: str, base: Mapping[str, Any]) -> list[tuple[Settings, Settings]]:
    """Return settings whose outcomes must be alike: one pair per condition of ``active`` that it does not meet.

    Of an ``unused`` hyperparameter all settings are alike.
    """
    declared, probe = cls.hparams[name], cls.probes.get(name, {})
    met = {**base, **_conditions(cls, name), **probe}
    second = probe.get(name, next(iter(others(declared, declared.default)), declared.default))
    broken = [_condition(cls, other, met, meet=False) for other in _conditioned(cls, declared)]
    around = [met] if declared.unused else [{**met, **change} for change in broken if change]
    return [({**settings, name: declared.default}, {**settings, name: second}) for settings in around]


def each_choice(cls: type[Component], base: Mapping[str, Any], *, flags: bool = True) -> Iterator[Settings]:
    """Yield the usual settings, then those with each other choice of a text, and of true and false with ``flags``."""
    yield {}
    for name, declared in cls.hparams.items():
        if (flags and declared.type == "bool") or (declared.type == "str" and declared.choices):
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
    for name, declared in cls.hparams.items():
        if name not in leave_out and not declared.unused:
            yield from _without_effect(declared, pairs(cls, name, base), differ)
        for one, two in idle_pairs(cls, name, base):
            if _differ(differ, one, two, refused=False):
                yield f"'{name}' matters with {one}, though `active` or `unused` says that it does not"


def _without_effect(declared: HParam, compared: list[tuple[Settings, Settings]], differ: Differ) -> Iterator[str]:
    """Each choice must have an effect, and of other values one."""
    name, every = declared.name, _has_choices(declared)
    same = []
    for one, two in compared:
        changes = _differ(differ, one, two, refused=every)
        if changes and not every:
            return
        same += [] if changes else [str(two[name])]
    if same or not compared:
        tried = f"{' and '.join(same)} gives what {compared[0][0][name]} gives" if same else "no second value to try"
        yield f"'{name}': {tried}; declare when it matters: `active`, or `probes` with settings that show it"


def _differ(differ: Differ, one: Settings, two: Settings, *, refused: bool) -> bool:
    try:
        return differ(one, two)
    except UserError:
        return refused


def _has_choices(declared: HParam) -> bool:
    return declared.choices is not None and not declared.type.startswith("list[")


def _conditioned(cls: type[Component], declared: HParam) -> list[tuple[str, Any]]:
    """Return the conditions on other hyperparameters."""
    return [(name, one) for name, one in (declared.active or {}).items() if name in cls.hparams]


def _conditions(cls: type[Component], name: str, asked: frozenset[str] = frozenset()) -> Settings:
    """Return values of other hyperparameters under which this one is active, and those under which they are."""
    values: Settings = {}
    for other, condition in _conditioned(cls, cls.hparams[name]):
        if other not in asked:
            values |= _conditions(cls, other, asked | {name})
            values |= _condition(cls, (other, condition), values, meet=True)
    return values


def _condition(cls: type[Component], wanted: tuple[str, Any], given: Settings, *, meet: bool) -> Settings:
    """Return, by name, a value that does, or does not, meet a condition; empty if none is needed or allowed."""
    name, condition = wanted
    declared = cls.hparams[name]
    values = {**{other: one.default for other, one in cls.hparams.items()}, **given}
    named = [] if isinstance(condition, str) else list(condition)
    wrapped = [[item] for item in named] if declared.type.startswith("list[") else named
    for value in (values[name], declared.default, *others(declared, declared.default), *wrapped, 0, None):
        if _allowed(declared, value) and meets(value, condition, {**values, name: value}) == meet:
            return {} if value == values[name] else {name: value}
    return {}


def others(declared: HParam, first: Any) -> list[Any]:
    """Return allowed values other than the first: all choices, up to three of a search space, or some others."""
    tries: list[Any] = []
    if declared.type == "bool":
        return [not first]
    if _has_choices(declared):
        return [value for value in declared.choices or () if value != first]
    if searched := [value for value in declared.search or () if value != first]:
        return searched[:3]
    if declared.type.startswith("list["):
        items = list(first or ())
        numbers = bool(items) and not isinstance(items[0], (str, bool))
        tries = [items[:-1]] * (len(items) > 1) + [[item * 2 for item in items]] * numbers
        tries += [[choice] for choice in declared.choices or ()]
    elif declared.type in ("int", "float"):
        start = first if first is not None else (declared.low or 0)
        whole = declared.type == "int"
        tries = [start + 1, start * 3, start // 2] if whole else [start * 2, start / 2, start + 0.5]
        bounds = [declared.low, declared.high]
        tries = [start, *tries, *(int(bound) if whole else bound for bound in bounds if bound is not None)]
    elif declared.optional:
        tries = [None]
    allowed = [value for value in tries if value != first and _allowed(declared, value)]
    return [value for place, value in enumerate(allowed) if value not in allowed[:place]]


def _allowed(declared: HParam, value: Any) -> bool:
    try:
        declared.coerce(value)
    except ValueError:
        return False
    return True
