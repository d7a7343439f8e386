"""Find the values of a suite that have no effect.

A value that cannot change the outcome of a row (``hparam(active=…)``) is left out of it and of its keys. One that the
suite's own file or the command line writes is refused where no row has a use for it: a value that a row takes over from
``like``, a protocol, a bundle, an included file or the whole suite need not concern it.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.data import Declaration
from harness.hparams import DATASET, EDGE_FEATURES, ENVIRONMENTS, SEVERAL_TASKS, HParam, Idle, effective
from harness.registry.catalog import Entry
from harness.suite.layers import Decision, Flat
from harness.suite.tree import Place, Problems

Written = tuple[Place, str]
"""A value of the suite: where its key stands, and its path."""


def facts_of(declared: Declaration, environment: Entry | None) -> dict[str, Any]:
    """Return the facts of a row that conditions may name beside hyperparameters, by what supplies its environments."""
    per_batch = environment is not None and environment.traits.get("per_batch")
    environments = "none" if environment is None else "drawn per batch" if per_batch else "fixed"
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
            if found.excused or written not in self.idle:
                self.idle[written] = found

    def kept(self, flat: Flat) -> Flat:
        """The decisions without those that have no effect anywhere."""
        gone = self.idle.keys() - self.active
        return {path: one for path, one in flat.items() if (one.place, path) not in gone}

    def refuse(self, problems: Problems, own: str, *, spared: Flat, among: Container[str] | None = None) -> None:
        """Note each value of the suite's own file or of the command line that has no effect anywhere.

        Spared are settings that may serve methods with environments which the suite does not have (yet). Without
        ``among``, all paths are looked at.
        """
        for (place, path), found in self.idle.items():
            at_hand = (not place.line or place.file == own) and (among is None or path in among)
            general = found.by == ENVIRONMENTS and path in spared and spared[path].place == place
            if at_hand and not general and not found.excused and (place, path) not in self.active:
                problems.add(place, found.text)


@dataclass(frozen=True)
class Scope:
    """The hyperparameters of one component, or the settings of ``train``, in a row.

    Attributes:
        title: for messages.
        head: the first step of their paths.
        declared: all of them.
        given: values by name; several mappings for the architectures of a pool.
        written: those that the suite writes, by path.
    """

    title: str
    head: str
    declared: Mapping[str, HParam]
    given: Sequence[Mapping[str, Any]]
    written: Mapping[str, Decision]

    def idle(self, tuned: Mapping[str, Any], facts: Mapping[str, Any], uses: Uses) -> set[str]:
        """The names without effect beside these tuned values, in no architecture."""
        found: list[dict[str, Idle]] = []
        for given in self.given:
            values = {**given, **tuned}
            idle = effective(self.declared, values, facts)[1]
            for name, value in values.items():
                path = f"{self.head}.{name}"
                one = self.written.get(path)
                if one is None or (name in idle and value == self.declared[name].default):
                    continue
                if name in idle:
                    by = self.written.get(f"{self.head}.{idle[name].by}")
                    excused = by is not None and not by.place.line and bool(one.place.line)
                    hindered = Hindered(f"{self.title}: {idle[name].text}", idle[name].by, excused)
                    uses.idle.setdefault((one.place, path), hindered)
                else:
                    uses.active.add((one.place, path))
            found.append(idle)
        return set.intersection(*map(set, found))
