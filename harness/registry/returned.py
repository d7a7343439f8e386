"""Checks of the values that plugins return, where they enter the harness. No torch."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Sequence
from numbers import Real
from typing import Any

from harness.errors import BenchError
from harness.store.artifact import dump


class ReturnedError(BenchError, TypeError, ValueError):
    """A component returned a wrong value; the text names component, method, value and allowed values."""


def expect(met: bool, component: Any, method: str, value: Any, allowed: str) -> None:
    """Raise an error unless a component's method returned a correct value.

    Args:
        met: True if the value is correct.
        component: the component.
        method: the method or attribute that returned the value.
        value: the value.
        allowed: the allowed values in words, e.g. ``a tensor (B, C)``.

    Raises:
        ReturnedError: the value is wrong.
    """
    if not met:
        raise ReturnedError(f"{component.kind} '{component.name}', {method}: expected {allowed}, found {shown(value)}")


def expect_array(component: Any, method: str, value: Any, shape: Sequence[int | None], kind: str = "float") -> None:
    """Require a tensor or NumPy array of a shape (None: any length) and kind (``float`` or ``int``).

    Raises:
        ReturnedError: it is not.
    """
    lengths, dtype = tuple(getattr(value, "shape", ("none",))), str(getattr(value, "dtype", ""))
    alike = len(lengths) == len(shape) and all(w in (None, n) for w, n in zip(shape, lengths, strict=True))
    fits = alike and kind in dtype
    wanted = ", ".join("any" if length is None else str(length) for length in shape)
    expect(fits, component, method, value, f"{kind} numbers of shape ({wanted})")


def expect_texts(component: Any, method: str, value: Any) -> None:
    """Require a list of texts.

    Raises:
        ReturnedError: it is not.
    """
    listed = isinstance(value, (list, tuple))
    expect(listed and all(isinstance(item, str) for item in value), component, method, value, "a list of texts")


def expect_json(component: Any, method: str, value: Any) -> None:
    """Require a JSON value, see :func:`harness.store.artifact.strict`. Numbers that are not finite pass.

    Raises:
        ReturnedError: the value is not JSON.
    """
    try:
        dump(value)
    except TypeError as error:
        allowed = f"texts, numbers, true, false, None, and lists and dicts of these ({error})"
        expect(False, component, method, value, allowed)


def is_number(value: Any) -> bool:
    """Return True for a finite number that is no boolean."""
    return type(value) is not bool and isinstance(value, Real) and math.isfinite(value)


def shown(value: Any) -> str:
    """Return a value for people: its type, and itself if it is short, or its shape or length."""
    name = type(value).__name__
    if value is None or isinstance(value, (bool, int, float, str)):
        return "None" if value is None else f"{name} {reprlib.repr(value)}"
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"{name} of shape {tuple(value.shape)}, {value.dtype}"
    return f"{name} of {len(value)}" if hasattr(value, "__len__") else name
