"""When a hyperparameter matters: conditions on other values, as ``hparam(active=…)`` declares them. No torch."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

Condition = Sequence[Any]
"""What another value must be: one of these (a list: hold one of these), or above a number (``> 0``, ``> $other``)."""
DATASET, ENVIRONMENTS = "dataset", "environments"
"""Names that a condition may hold beside hyperparameters: what the dataset has, and how environments are given."""
EDGE_FEATURES, SEVERAL_TASKS = "edge features", "several tasks"
"""What a dataset may have."""
_ABOVE = re.compile(r"> (\d+(\.\d+)?|\$\w+)")


def read_conditions(active: Mapping[str, Sequence[Any]] | None) -> dict[str, Condition] | None:
    """Conditions as they are declared, or as JSON has them.

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
    """Whether a value meets a condition, or that to which it refers among ``values`` is not known."""
    if isinstance(condition, str):
        limit = _limit(condition, values)
        return limit is None or (value is not None and bool(value > limit))
    return any(item in condition for item in (value if isinstance(value, (list, tuple)) else [value]))


def _limit(condition: str, values: Mapping[str, Any]) -> float | None:
    limit = condition.removeprefix("> ")
    found = values.get(limit[1:]) if limit.startswith("$") else limit
    return None if found is None else float(found)


def condition_text(name: str, condition: Condition) -> str:
    """A condition for people: ``variant: v2 or v3``, ``steps > 0``."""
    if isinstance(condition, str):
        return f"{name} {condition.replace('$', '')}"
    return f"{name}: {' or '.join(map(_value, condition))}"


def idle_text(condition: Condition, name: str, values: Mapping[str, Any]) -> str:
    """Why a condition on ``name`` is not met, and what meets it: ``has no meaning with …; it matters with …``."""
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
