"""Typed hyperparameters: default, search space, help and meaning of each, declared in one place on the class."""

from __future__ import annotations

import inspect
import json
import math
import re
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from harness.errors import did_you_mean

Condition = Sequence[Any]
"""A condition on another value: it is one of these (a list holds one of these), or is above a number or ``$other``."""
DATASET, ENVIRONMENTS = "dataset", "environments"
"""Names in conditions beside hyperparameters: properties of the dataset, and the source of environments."""
EDGE_FEATURES, SEVERAL_TASKS = "edge features", "several tasks"
"""Properties of a dataset."""
_ABOVE = re.compile(r"> (\d+(\.\d+)?|\$\w+)")


def read_conditions(active: Mapping[str, Sequence[Any]] | None) -> dict[str, Condition] | None:
    """Read conditions as they are declared, or as JSON has them.

    Raises:
        TypeError: a text is not ``> NUMBER`` or ``> $NAME``.
    """
    if active is None:
        return None
    wrong = next((one for one in active.values() if isinstance(one, str) and not _ABOVE.fullmatch(one)), None)
    if wrong is not None:
        raise TypeError(f"'active' takes lists of values, or a text such as '> 0' or '> $name', found {wrong!r}")
    return {name: one if isinstance(one, str) else tuple(one) for name, one in active.items()}


def meets(value: Any, condition: Condition, values: Mapping[str, Any]) -> bool:
    """Return True if a value meets a condition, or the value to which it refers is not among ``values``."""
    if isinstance(condition, str):
        limit = _limit(condition, values)
        return limit is None or (value is not None and bool(value > limit))
    return any(item in condition for item in (value if isinstance(value, (list, tuple)) else [value]))


def _limit(condition: str, values: Mapping[str, Any]) -> float | None:
    limit = condition.removeprefix("> ")
    found = values.get(limit[1:]) if limit.startswith("$") else limit
    return None if found is None else float(found)


def condition_text(name: str, condition: Condition) -> str:
    """Return a condition for people: ``variant: v2 or v3``, ``steps > 0``."""
    if isinstance(condition, str):
        return f"{name} {condition.replace('$', '')}"
    return f"{name}: {' or '.join(map(_value, condition))}"


def idle_text(condition: Condition, name: str, values: Mapping[str, Any]) -> str:
    """Return why a condition is not met, and what meets it: ``has no meaning with …; it matters with …``."""
    if name == DATASET:
        wanted = " or ".join(map(_value, condition))
        return f"has no meaning with a dataset without {wanted}"
    value = values[name]
    if isinstance(condition, str):
        meant = f"'{name}' above {_limit(condition, values):g}"
    elif isinstance(value, (list, tuple)):
        meant = " or ".join(f"'{_value(item)}' in '{name}'" for item in condition)
    else:
        meant = " or ".join(_told(name, item) for item in condition)
    return f"has no meaning with {_told(name, value)}; it matters with {meant}"


def _told(name: str, value: Any) -> str:
    return f"no '{name}'" if value is None else f"'{name}: {_value(value)}'"


def _value(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_value, value))}]"
    return "none" if value is None else value if isinstance(value, str) else json.dumps(value)


Value = None | bool | int | float | str | list[Any] | dict[str, Any]

_NONE: Mapping[str, Any] = MappingProxyType({})
_SCALARS: dict[str, type] = {"bool": bool, "int": int, "float": float, "str": str}


def holds(condition: bool | Mapping[str, Condition], values: Mapping[str, Any]) -> bool:
    """Return True if hyperparameters with these values meet a condition: a plain answer, or name -> allowed values."""
    if isinstance(condition, bool):
        return condition
    return all(meets(values.get(name), one, values) for name, one in condition.items())


def filled(declared: Any, values: Mapping[str, Any]) -> Any:
    """Replace each text ``$name`` of a declaration by the value of that hyperparameter."""
    if isinstance(declared, Mapping):
        return {name: filled(item, values) for name, item in declared.items()}
    return values[declared[1:]] if isinstance(declared, str) and declared.startswith("$") else declared


@dataclass(frozen=True)
class HParam:
    """One declared hyperparameter.

    Attributes:
        name: attribute name on the component.
        type: ``bool``, ``int``, ``float``, ``str``, ``list[...]`` of one of these, or ``dict`` (text -> JSON values).
        default: value used when a suite gives none.
        optional: whether ``None`` is a value.
        search: values that ``tune: default`` tries, or ``None``.
        choices: the allowed values, or ``None`` for any value of the type.
        low, high: inclusive bounds for numbers, or ``None``.
        weight_of: the loss term this number multiplies, or ``None``.
        active: what other values must be for this one to matter, see :mod:`harness.hparams`; empty means always.
        help: one line for people.
        unused: whether it is inherited and has no effect.
    """

    name: str
    type: str
    default: Any
    optional: bool = False
    search: tuple[Any, ...] | None = None
    choices: tuple[Any, ...] | None = None
    low: float | None = None
    high: float | None = None
    weight_of: str | None = None
    active: Mapping[str, Condition] | None = None
    help: str = ""
    unused: bool = False

    def coerce(self, value: Any) -> Any:
        """Return the value in its declared type.

        Raises:
            ValueError: the value is of another type or outside what is allowed; the text says which.
        """
        if value is None:
            if self.optional:
                return None
            raise ValueError(f"expected {self.type}, found nothing")
        if self.type == "dict":
            return _coerce_dict(value)
        result = _coerce_list(self, value) if self.type.startswith("list[") else _coerce_scalar(self.type, value)
        for item in result if isinstance(result, list) else [result]:
            self._check(item)
        return result

    def _check(self, item: Any) -> None:
        if self.choices is not None and item not in self.choices:
            raise ValueError(f"expected one of {', '.join(map(str, self.choices))}, found {item!r}")
        if self.low is not None and item < self.low:
            raise ValueError(f"expected at least {self.low:g}, found {item!r}")
        if self.high is not None and item > self.high:
            raise ValueError(f"expected at most {self.high:g}, found {item!r}")

    def hindrance(self, values: Mapping[str, Any]) -> str | None:
        """Return the value that takes the effect from this one: its own if it never has one, None if it has one.

        A condition on what is not among ``values`` is taken to be met.
        """
        if self.unused:
            return self.name
        conditions = (self.active or {}).items()
        return next((name for name, one in conditions if name in values and not meets(values[name], one, values)), None)

    def is_active(self, values: Mapping[str, Any]) -> bool:
        """Return True if this hyperparameter can change the outcome, given the component's other values."""
        return self.hindrance(values) is None

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> HParam:
        """Return the hyperparameter of its fields by name, also after a round trip through JSON text."""
        fields = dict(data)
        for name in ("search", "choices"):
            fields[name] = None if fields.get(name) is None else tuple(fields[name])
        fields["active"] = read_conditions(fields.get("active"))
        return cls(**fields)


@dataclass(frozen=True)
class Idle:
    """A value without effect: the value that hinders it (its own where nothing helps), and both for people."""

    by: str
    text: str


def effective(
    declared: Mapping[str, HParam], given: Mapping[str, Any], facts: Mapping[str, Any] = _NONE
) -> tuple[dict[str, Any], dict[str, Idle]]:
    """Return the values that can change the outcome, and those that cannot.

    Values are looked at one by one, in order of declaration, each beside those that are left: of two that make each
    other idle, one stays.

    Args:
        declared: all hyperparameters of a component.
        given: values by name.
        facts: what else conditions may name, see :data:`harness.hparams.DATASET`.
    """
    idle: dict[str, Idle] = {}
    values = {**{name: one.default for name, one in declared.items()}, **given, **facts}
    for name in [name for name, one in declared.items() if name in given and (one.active or one.unused)]:
        by = declared[name].hindrance(values)
        if by in idle and declared[name].hindrance({**values, by: given[by]}) is None:  # what hinders it hinders this
            idle[name] = Idle(idle[by].by, idle[by].text.replace(f"'{by}'", f"'{name}'", 1))
            values[name] = declared[name].default
        elif by is not None:
            why = "has no effect here" if by == name else idle_text((declared[name].active or {})[by], by, values)
            idle[name] = Idle(by, f"'{name}' {why}")
            values[name] = declared[name].default
    return {name: value for name, value in given.items() if name not in idle} if idle else dict(given), idle


def _coerce_list(declared: HParam, value: Any) -> list[Any]:
    inner = declared.type[5:-1]
    if isinstance(value, str) or not isinstance(value, Sequence):
        hint = f"; write [{value}]" if isinstance(value, (str, int, float)) else ""
        raise ValueError(f"expected a list of {inner}, found {value!r}{hint}")
    return [_coerce_scalar(inner, item) for item in value]


def _coerce_dict(value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise ValueError(f"expected a table, found {value!r}")
    try:
        found: dict[str, Any] = json.loads(json.dumps(dict(value), allow_nan=False))
    except (TypeError, ValueError):
        raise ValueError(f"expected a table of texts, numbers, lists and tables, found {value!r}") from None
    return found


def _coerce_scalar(kind: str, value: Any) -> Any:
    if hasattr(value, "item") and not isinstance(value, (str, bytes)):  # numpy scalars
        value = value.item()
    wrong = ValueError(f"expected {kind}, found {value!r}")
    if kind == "bool" or isinstance(value, bool):
        if kind != "bool" or not isinstance(value, bool):
            raise wrong
        return value
    if kind == "float" and isinstance(value, (int, float)):
        if not math.isfinite(value):
            raise wrong
        return float(value)
    if kind == "int" and isinstance(value, float) and value.is_integer():
        return int(value)
    if not isinstance(value, _SCALARS[kind]):
        raise wrong
    return value


@dataclass(frozen=True)
class _Declared:
    """The mark of :func:`hparam` on the class until the component base reads it."""

    default: Any
    options: Mapping[str, Any]


def hparam(
    default: Any,
    *,
    search: Sequence[Any] | None = None,
    choices: Sequence[Any] | None = None,
    low: float | None = None,
    high: float | None = None,
    weight_of: str | None = None,
    active: Mapping[str, Sequence[Any]] | None = None,
    help: str = "",
) -> Any:
    """Declare a hyperparameter on a component class: ``penalty: float = hparam(10.0, search=[1, 10], help="…")``.

    Args:
        default: the value used when the suite gives none.
        search: what ``tune: default`` tries.
        choices: the allowed values.
        low, high: inclusive bounds.
        weight_of: name of the loss term that this number multiplies in the total loss.
        active: what other values must be for this one to matter: ``{"variant": ["v2"]}``, of a list one item
            (``{"views": ["heat"]}``), of a number ``{"steps": "> 0"}`` or ``"> $other"``, and of the dataset
            ``{"dataset": ["edge features"]}`` or ``["several tasks"]``. Elsewhere a value is refused, and left out
            where it was not written for the row.
        help: one line.
    """
    options = {
        "search": None if search is None else tuple(search),
        "choices": None if choices is None else tuple(choices),
        "low": low,
        "high": high,
        "weight_of": weight_of,
        "active": read_conditions(active),
        "help": help,
    }
    return _Declared(default, options)


def collect(cls: type, reserved: frozenset[str] = frozenset()) -> dict[str, HParam]:
    """Read the hyperparameters that a class declares and those it inherits, and leave the defaults on the class.

    Raises:
        TypeError: a name is reserved, lacks an annotation, or its default does not fit its type; a plain value stands
            in place of an inherited one; or a base class that is no component declares some.
    """
    found: dict[str, HParam] = {}
    for base in reversed(cls.__mro__[1:]):
        found.update(base.__dict__.get("hparams", {}))
        if marks := [name for name, value in vars(base).items() if isinstance(value, _Declared)]:
            raise TypeError(
                f"{base.__name__}.{marks[0]}: only a component declares hyperparameters; derive {base.__name__} from "
                "the base class of its kind"
            )
    annotations = inspect.get_annotations(cls)
    for name, left in list(vars(cls).items()):
        if not isinstance(left, _Declared):
            if name in found:
                told = f"{name}: {found[name].type} = hparam(…)"
                raise TypeError(f"{cls.__name__}.{name}: an inherited hyperparameter is changed by `{told}` alone")
            continue
        if name in reserved:
            raise TypeError(
                f"{cls.__name__}.{name}: this name is taken, by the base class or by a key of suites; choose another"
            )
        if name in annotations:
            type_name, optional = _type_name(cls, name, _resolved(cls, name, annotations[name]))
        elif name in found:
            type_name, optional = found[name].type, found[name].optional
        else:
            raise TypeError(f"{cls.__name__}.{name}: a hyperparameter needs a type annotation")
        draft = HParam(name=name, type=type_name, default=None, optional=optional, **left.options)
        try:
            default = draft.coerce(left.default)
            search = None if draft.search is None else tuple(draft.coerce(value) for value in draft.search)
        except ValueError as error:
            raise TypeError(f"{cls.__name__}.{name}: {error}") from None
        found[name] = HParam(**{**vars(draft), "default": default, "search": search})
        setattr(cls, name, default)
    for name, declared in found.items():
        for other in [other for other in declared.active or {} if other not in found and other != DATASET]:
            raise TypeError(f"{cls.__name__}.{name}: 'active' names '{other}'{did_you_mean(other, found)}")
    return found


def _resolved(cls: type, name: str, annotation: Any) -> Any:
    """Return an annotation that may be a text; those beside it may name what is there for type checkers alone."""
    alone = type(cls.__name__, (), {"__annotations__": {name: annotation}, "__module__": cls.__module__})
    return typing.get_type_hints(alone)[name]


def _type_name(cls: type, name: str, hint: Any) -> tuple[str, bool]:
    optional = False
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        parts = [part for part in typing.get_args(hint) if part is not type(None)]
        optional = len(parts) < len(typing.get_args(hint))
        hint = parts[0] if len(parts) == 1 else hint
    if typing.get_origin(hint) is list:
        (inner,) = typing.get_args(hint)
        if inner in _SCALARS.values():
            return f"list[{inner.__name__}]", optional
    if typing.get_origin(hint) is dict and typing.get_args(hint) == (str, Any):
        return "dict", optional
    if hint in _SCALARS.values():
        return hint.__name__, optional
    raise TypeError(
        f"{cls.__name__}.{name}: a hyperparameter is bool, int, float, str, a list of these or dict[str, Any], "
        f"not {hint}"
    )
