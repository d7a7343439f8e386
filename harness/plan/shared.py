"""What many stages have in common is made once, and so is its text in their keys. No torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from harness.store.keys import Form, canonical

T = TypeVar("T")


class Shared:
    """Values by the objects they follow from.

    Objects are told apart by identity, which is cheap and safe here: what is planned never changes, and what has been
    asked for is held, so that no other object takes its place in memory. Equal objects that are not the same cost a
    second making and nothing else.
    """

    def __init__(self) -> None:
        self._made: dict[tuple[object, ...], tuple[object, Any]] = {}
        self._texts: dict[int, str | None] = {}

    def of(self, make: Callable[[], T], what: str, *sources: object) -> T:
        """The value called ``what`` of these objects; made by the first call."""
        name = (what, *map(id, sources))
        found = self._made.get(name)
        if found is None:
            value = make()
            self._made[name] = sources, value
            self._texts.setdefault(id(value))
            return value
        made: T = found[1]
        return made

    def form(self, common: Mapping[str, Any], *own: str) -> Form:
        """The form of preimages that have this in common; the text of a shared part is made once."""
        return Form({name: self._text(part) for name, part in common.items()}, *own)

    def _text(self, part: Any) -> str:
        if id(part) not in self._texts:
            return canonical(part)
        text = self._texts[id(part)]
        if text is None:
            text = self._texts[id(part)] = canonical(part)
        return text
