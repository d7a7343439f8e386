"""Find the values of a suite that have no effect.

A value that cannot change the outcome of a row (``hparam(active=…)``) is left out of it and of its keys. One that the
suite's own file or the command line writes is refused where no row has a use for it: a value that a row takes over from
``like``, a protocol, a bundle, an included file or the whole suite need not concern it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.data import Declaration
from harness.hparams import DATASET, EDGE_FEATURES, ENVIRONMENTS, SEVERAL_TASKS, HParam, Idle, effective
from harness.suite.tree import Place, Problems, Table

Written = tuple[Place, str]
"""A value of the suite: where its key stands, and the key."""


def facts_of(declared: Declaration, environments: str) -> dict[str, Any]:
    """Return the facts of a row that conditions may name beside hyperparameters.

    Args:
        declared: what the dataset says of itself.
        environments: how its training gets environments: ``fixed``, ``drawn per batch`` or ``none``.
    """
    has = {EDGE_FEATURES: declared.edge_features.kind != "none", SEVERAL_TASKS: declared.task.kind == "multitask"}
    return {DATASET: [name for name, there in has.items() if there], ENVIRONMENTS: environments}


@dataclass(frozen=True)
class Hindered:
    """A value without effect: what to say, the value that hinders it, and whether that is only the command line's."""

    text: str
    by: str = ""
    excused: bool = False


@dataclass
class Uses:
    """Values with an effect, and those without."""

    active: set[Written] = field(default_factory=set)
    idle: dict[Written, Hindered] = field(default_factory=dict)

    def add(self, other: Uses) -> None:
        """Note those of another row too; whoever is excused once is excused."""
        self.active |= other.active
        for written, found in other.idle.items():
            known = self.idle.get(written)
            self.idle[written] = found if known is None or found.excused else known


@dataclass(frozen=True)
class Scope:
    """The hyperparameters of one component, or the settings of ``train``, in a row.

    Attributes:
        title: for messages.
        declared: all of them.
        given: values by name; several mappings for the architectures of a pool.
        places: where those stand that the suite writes.
    """

    title: str
    declared: Mapping[str, HParam]
    given: Sequence[Mapping[str, Any]]
    places: Mapping[str, Written]

    def idle(
        self, tuned: Mapping[str, Any], axes: Mapping[str, Written], facts: Mapping[str, Any], uses: Uses
    ) -> set[str]:
        """The names without effect beside these tuned values, in no architecture; ``axes`` says where those stand."""
        places = {**self.places, **axes}
        found: list[dict[str, Idle]] = []
        for given in self.given:
            values = {**given, **tuned}
            idle = effective(self.declared, values, facts)[1]
            for name, value in values.items():
                written = places.get(name)
                if written is None or (name in idle and value == self.declared[name].default):
                    continue
                if name in idle:
                    by = places.get(idle[name].by)
                    excused = by is not None and not by[0].line and bool(written[0].line)
                    text = f"{self.title}: {idle[name].text}"
                    uses.idle.setdefault(written, Hindered(text, idle[name].by, excused))
                else:
                    uses.active.add(written)
            found.append(idle)
        return set.intersection(*map(set, found))


class Effects:
    """The uses of all rows of a suite."""

    def __init__(self, own: str) -> None:
        self._own = own
        self._all = Uses()
        self._by_owner: dict[str, Uses] = {}

    def add(self, uses: Uses, *owners: str) -> None:
        """Note what a row's values do; ``owners`` are what its values are written down with again."""
        for into in (self._all, *(self._by_owner.setdefault(owner, Uses()) for owner in owners)):
            into.add(uses)

    def refuse(self, problems: Problems, whole: Table, swept: Iterable[tuple[str, Written]]) -> None:
        """Note each value of the suite's own file or of the command line that no row uses.

        Args:
            problems: receives them.
            whole: the suite's own ``train``: it may serve methods that the suite does not have (yet).
            swept: values of matrices, each with the owner whose row must use it, as the row's name tells of it.
        """
        general = {(whole.key(name), name) for name in whole}
        for written, found in self._all.idle.items():
            if not (found.excused or (found.by == ENVIRONMENTS and written in general)):
                self._refuse(written, self._all, problems)
        for owner, written in swept:
            self._refuse(written, self._by_owner.get(owner, Uses()), problems)

    def _refuse(self, written: Written, uses: Uses, problems: Problems) -> None:
        own = not written[0].line or written[0].file == self._own
        if own and written in uses.idle and written not in uses.active:
            problems.add(written[0], uses.idle[written].text)

    def kept(self, table: Table, owner: str) -> Table:
        """A table without the values that have no effect in any row of its owner."""
        uses = self._by_owner.get(owner)
        return table if uses is None else _without(table, uses.idle.keys() - uses.active)


def _without(table: Table, gone: set[Written]) -> Table:
    for name, value in table.entries.items():
        if (table.key(name), name) in gone:
            table = table.without([name])
        elif isinstance(value, Table) and (inner := _without(value, gone)) is not value:
            table = table.put(name, inner, table.key(name))
    return table
