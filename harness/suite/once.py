"""What rows have in common is read and checked once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from harness.suite.tree import Problems

T = TypeVar("T")


class Once:
    """Values by the objects they follow from, unless there are problems to be noted: those are noted each time.

    Objects are told apart by identity: what is read of a suite never changes, and what has been asked for is held, so
    that no other object takes its place in memory.
    """

    def __init__(self, problems: Problems) -> None:
        self._problems = problems
        self._found: dict[tuple[object, ...], tuple[object, Any]] = {}
        self._equal: dict[str, Any] = {}

    def of(self, read: Callable[[], T], what: str, *sources: object) -> T:
        """The value called ``what`` of these objects; made by the first call that notes no problem."""
        name = (what, *map(id, sources))
        known = self._found.get(name)
        if known is None:
            before = len(self._problems)
            value = read()
            if len(self._problems) == before:
                self._found[name] = sources, value
            return value
        found: T = known[1]
        return found

    def one(self, value: T) -> T:
        """The first of all values that are written like this one: equal settings are one object."""
        first: T = self._equal.setdefault(repr(value), value)
        return first
