"""Checks of what plugins return, at the point where it enters the harness. No torch."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

from harness.errors import BenchError

_LONGEST = 60


class ReturnedError(BenchError, TypeError, ValueError):
    """A component returned what it may not; the text names it, its method, what came and what is allowed."""


def expect(met: bool, component: Any, method: str, found: Any, allowed: str) -> None:
    """Refuse what a component's method gave, unless it is as it must be.

    Args:
        met: whether it is.
        component: the component.
        method: the method, or attribute, that gave it.
        found: what it gave.
        allowed: what it must give, e.g. ``a tensor (B, C)``.

    Raises:
        ReturnedError: it is not.
    """
    if not met:
        raise ReturnedError(f"{component.kind} '{component.name}', {method}: expected {allowed}, found {shown(found)}")


def expect_array(component: Any, method: str, found: Any, shape: Sequence[int | None], kind: str = "float") -> None:
    """Refuse what is no tensor or NumPy array of a shape (None: any length) and kind (``float`` or ``int``).

    Raises:
        ReturnedError: it is not.
    """
    lengths, dtype = tuple(getattr(found, "shape", ("none",))), str(getattr(found, "dtype", ""))
    alike = len(lengths) == len(shape) and all(w in (None, n) for w, n in zip(shape, lengths, strict=True))
    fits = alike and kind in dtype
    wanted = ", ".join("any" if length is None else str(length) for length in shape)
    expect(fits, component, method, found, f"{kind} numbers of shape ({wanted})")


def expect_texts(component: Any, method: str, found: Any) -> None:
    """Refuse what is no list of texts.

    Raises:
        ReturnedError: it is not.
    """
    listed = isinstance(found, (list, tuple))
    expect(listed and all(isinstance(item, str) for item in found), component, method, found, "a list of texts")


def expect_json(component: Any, method: str, found: Any) -> None:
    """Refuse what JSON cannot hold, with the place of the first such value; numbers that are not finite pass.

    Raises:
        ReturnedError: it is not JSON.
    """
    wrong = _not_json(found, "")
    if wrong is not None:
        place, value = wrong
        allowed = "texts, numbers, true, false, None, and lists and dicts of these"
        expect(False, component, f"{method}{place and f', at {place}'}", value, allowed)


def _not_json(value: Any, place: str) -> tuple[str, Any] | None:
    """Place and value of the first thing that cannot be JSON (see :func:`harness.store.artifact.strict`)."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, Mapping):
        inner = ((f"{place}.{name}" if place else str(name), item) for name, item in value.items())
    elif isinstance(value, (list, tuple, set, frozenset)):
        inner = ((f"{place}[{number}]", item) for number, item in enumerate(value))
    else:
        return None if value is None or isinstance(value, (str, bool, int, float, os.PathLike)) else (place, value)
    return next((found for where, item in inner if (found := _not_json(item, where)) is not None), None)


def is_number(value: Any) -> bool:
    """Whether a value is a finite number and no boolean."""
    return type(value) is not bool and isinstance(value, Real) and math.isfinite(value)


def shown(value: Any) -> str:
    """A value for people: what it is, its shape or its length, and a short one itself."""
    name = type(value).__name__
    if value is None:
        return "None"
    if isinstance(value, (bool, int, float, str)):
        text = json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)
        return f"{name} {text if len(text) <= _LONGEST else text[:_LONGEST] + '…'}"
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"{name} of shape {tuple(value.shape)}, {value.dtype}"
    if isinstance(value, (list, tuple, set, frozenset, Mapping)):
        first = next(iter(value), None)
        return f"{name} of {len(value)}" + (f", the first {shown(first)}" if len(value) else "")
    return f"{'class ' + value.__name__ if isinstance(value, type) else name}"
