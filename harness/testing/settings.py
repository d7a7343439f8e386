"""Two settings of a component that differ in one hyperparameter, so that its effect can be looked for."""

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
"""Whether two settings lead to different outcomes."""
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


def _activated(cls: type[Component], declared: HParam, asked: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Values of other hyperparameters under which this one matters, also theirs in turn."""
    found: dict[str, Any] = {}
    for name, condition in (declared.active or {}).items():
        if name in cls.hparams and name not in asked:
            other = cls.hparams[name]
            found |= _activated(cls, other, asked | {declared.name})
            found |= _either(other, condition, {**_defaults(cls), **found}, met=True)
    return found


def _defaults(cls: type[Component]) -> dict[str, Any]:
    return {name: declared.default for name, declared in cls.hparams.items()}


def _either(declared: HParam, condition: Condition, values: Mapping[str, Any], *, met: bool) -> dict[str, Any]:
    """By name another value that meets a condition, or does not; nothing where the present one does, or none would."""
    named = () if isinstance(condition, str) else condition
    wrapped = [[item] for item in named] if declared.type.startswith("list[") else named
    for value in (values[declared.name], declared.default, *others(declared, declared.default), *wrapped, 0, None):
        if _allowed(declared, value) and meets(value, condition, {**values, declared.name: value}) == met:
            return {} if value == values[declared.name] else {declared.name: value}
    return {}


def idle_pairs(cls: type[Component], name: str, base: Mapping[str, Any]) -> list[Pair]:
    """Settings that are to be alike: the first of a pair has the hyperparameter's default, the second another value.

    For each condition of ``active`` there is a pair that does not meet it, and of an ``unused`` one all are alike.
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
    return [({**one, name: declared.default}, {**one, name: second}) for one in around]


def others(declared: HParam, first: Any) -> list[Any]:
    """Values other than the first: all choices, or up to three of a search space, or some that bounds allow."""
    if declared.type == "bool":
        return [not first]
    if declared.choices is not None and not declared.type.startswith("list["):
        return [value for value in declared.choices if value != first]
    searched = [value for value in declared.search or () if value != first][:3]
    invented = [value for value in _invented(declared, first) if _allowed(declared, value)]
    return searched or [value for i, value in enumerate(invented) if value not in invented[:i]]


def each_choice(cls: type[Component], base: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The usual settings, and then those with each other choice of a hyperparameter that has some."""
    yield {}
    for name, declared in cls.hparams.items():
        if declared.type == "bool" or (declared.type == "str" and declared.choices):
            yield from (second for _, second in pairs(cls, name, base))


class _TrialError(Exception):
    """A component fails with a second value; the text says which and how."""


def effects_as_declared(
    cls: type[Component], base: Mapping[str, Any], differ: Differ, leave_out: Collection[str] = ()
) -> Iterator[str]:
    """What :func:`unchanged` tells, and a text for each hyperparameter that matters where it is declared not to.

    The harness leaves such a value out of what it hands over and of keys.
    """
    yield from unchanged(cls, base, differ, leave_out)
    for name in cls.hparams:
        for one, two in idle_pairs(cls, name, base):
            try:
                changes = differ(one, two)
            except UserError:
                changes = False
            if changes:
                given = {n: v for n, v in one.items() if n != name and base.get(n) != v}
                yield f"'{name}': {two[name]} matters with {given}, though `active` or `unused` says that it does not"


def unchanged(
    cls: type[Component],
    base: Mapping[str, Any],
    differ: Differ,
    leave_out: Collection[str] = (),
) -> Iterator[str]:
    """A text for each hyperparameter that makes no difference where it is declared active.

    Args:
        cls: the component.
        base: settings that hold unless a probe says otherwise.
        differ: whether two settings lead to different outcomes.
        leave_out: hyperparameters that are looked at elsewhere.
    """
    for name, declared in cls.hparams.items():
        if name in leave_out or declared.unused:
            continue
        compared = pairs(cls, name, base)
        if not compared:
            yield f"'{name}': no second value to try; declare `choices` or `search`, or give one in `probes`"
            continue
        try:
            same = _same(compared, differ, every=every_choice_matters(declared))
        except _TrialError as error:
            yield str(error)
            continue
        if same:
            first = compared[0][0]
            given = {n: v for n, v in first.items() if n != name and base.get(n) != v}
            yield (
                f"'{name}': {' and '.join(str(two[name]) for two in same)} gives what {first[name]} gives"
                f"{f', with {given}' if given else ''}; declare when it matters (`active`, or `probes` with settings "
                "that show it)"
            )


def _same(compared: list[Pair], differ: Differ, *, every: bool) -> list[dict[str, Any]]:
    """The second settings that made no difference; where not every one need to, none once one did.

    A value that the component refuses does make a difference where it is one of its choices, else it is none to try.
    """
    same = []
    for one, two in compared:
        try:
            changes = differ(one, two)
        except UserError:
            changes = every
        except Skip:
            raise
        except Exception as error:
            raise _TrialError(f"with {two} it raised {type(error).__name__}: {error}") from error
        if not changes:
            same.append(two)
        elif not every:
            return []
    return same


def every_choice_matters(declared: HParam) -> bool:
    """Whether each second value must show by itself, and not only one of them."""
    return declared.choices is not None and not declared.type.startswith("list[")


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
