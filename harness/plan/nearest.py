"""Find the stored artifact that is most like a planned stage, so that a plan can say what differs. No torch."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.plan.stage import Stage
    from harness.store.store import Store

FEW = 20
"""At most so many stored artifacts are compared with a stage."""
_DIGEST = re.compile(r"[0-9a-f]{64}")
Leaves = dict[str, str]


class Nearest:
    """Finds the stored artifact at a stage's place with the fewest different values; reads each place once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._places: dict[str, _Stored] = {}

    def find(self, stage: Stage) -> Mapping[str, Any] | None:
        """Its preimage, or None where nothing is stored at the place.

        Where more than :data:`FEW` are stored, those count that differ in code, data and what all of them share; where
        there are none, those that differ in one other value too; else the newest. Of either, the newest are compared.
        """
        if stage.place not in self._places:
            self._places[stage.place] = _Stored([preimage for _, preimage in self._store.preimages(stage.place)])
        return self._places[stage.place].nearest(stage.preimage)


class _Stored:
    """What is stored at one place, oldest first."""

    def __init__(self, preimages: list[Mapping[str, Any]]) -> None:
        self._preimages = preimages
        self._leaves: list[Leaves] = [dict(_leaves(preimage)) for preimage in preimages]

    def nearest(self, preimage: Mapping[str, Any]) -> Mapping[str, Any] | None:
        if not self._preimages:
            return None
        mine = dict(_leaves(preimage))
        wanted = mine.items()
        best = min(self._candidates(mine), key=lambda position: len(self._leaves[position].items() ^ wanted))
        return self._preimages[best]

    def _candidates(self, mine: Leaves) -> Sequence[int]:
        count = len(self._preimages)
        if count <= FEW:
            return range(count)
        same, *others = [self._alike.get(name, []) for name in self._names(mine)]
        found = same or sorted(position for positions in others for position in positions[-FEW:])
        return found[-FEW:] or range(count - FEW, count)

    @cached_property
    def _varying(self) -> list[str]:
        """The settings in which the stored artifacts differ; digests of code and data are none."""
        values: dict[str, set[str]] = defaultdict(set)
        for leaves in self._leaves:
            for path, text in leaves.items():
                values[path].add(text)
        settings = {path for path, texts in values.items() if not any(_DIGEST.search(text) for text in texts)}
        count = len(self._leaves)
        there = {path: sum(path in leaves for leaves in self._leaves) for path in settings}
        return sorted(path for path in settings if len(values[path]) > 1 or there[path] < count)

    @cached_property
    def _alike(self) -> dict[tuple[str, ...], list[int]]:
        found: dict[tuple[str, ...], list[int]] = defaultdict(list)
        for position, leaves in enumerate(self._leaves):
            for name in self._names(leaves):
                found[name].append(position)
        return dict(found)

    def _names(self, leaves: Leaves) -> Iterator[tuple[str, ...]]:
        """The values of the varying settings: all of them, and all but each one."""
        values = tuple(leaves.get(path, "") for path in self._varying)
        yield ("", *values)
        for number, path in enumerate(self._varying):
            yield (path, *values[:number], *values[number + 1 :])


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Dotted path and text of every value that is not a mapping."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from _leaves(item, f"{path}.{name}")
    else:
        yield path, repr(value)
