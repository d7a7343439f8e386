"""Find the values of a suite that have no effect.

A value that cannot change the outcome of a row (``hparam(active=…)``) is left out of it and of its keys. One that the
suite's own file or the command line writes is refused where no row has a use for it: a value that a row takes over from
``like``, a protocol, a bundle, an included file or the whole suite need not concern it.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.data import Declaration
from harness.hparams import DATASET, EDGE_FEATURES, ENVIRONMENTS, SEVERAL_TASKS, HParam, Idle, effective
from harness.registry.catalog import Entry
from harness.suite.layers import Flat
from harness.suite.tree import Place, Problems

Written = tuple[Place, str]
"""A value of the suite: where its key stands, and its path."""


def facts_of(declared: Declaration, environment: Entry | None) -> dict[str, Any]:
    """Return the facts of a row that conditions may name beside hyperparameters, by what supplies its environments."""
    per_batch = environment is not None and environment.traits.get("per_batch")
    environments = "none" if environment is None else "drawn per batch" if per_batch else "fixed"
    has = {EDGE_FEATURES: declared.edge_features.kind != "none", SEVERAL_TASKS: declared.task.kind == "multitask"}
    return {DATASET: [name for name, there in has.items() if there], ENVIRONMENTS: environments}


@dataclass
class Uses:
    """Values with an effect, those without, and those that only the command line takes the effect from."""

    active: set[Written] = field(default_factory=set)
    idle: dict[Written, Idle] = field(default_factory=dict)
    excused: set[Written] = field(default_factory=set)

    def add(self, other: Uses) -> None:
        """Note those of another row too."""
        self.active |= other.active
        self.idle = {**other.idle, **self.idle}
        self.excused |= other.excused

    def kept(self, flat: Flat) -> Flat:
        """The decisions without those that have no effect anywhere."""
        gone = self.idle.keys() - self.active
        return {path: one for path, one in flat.items() if (one.place, path) not in gone}

    def refuse(self, problems: Problems, own: str, *, spared: Flat, among: Container[str] | None = None) -> None:
        """Note each value of the suite's own file or of the command line that has no effect anywhere.

        Spared are settings that may serve methods with environments which the suite does not have (yet). Without
        ``among``, all paths are looked at.
        """
        spoken_for = self.active | self.excused
        for (place, path), found in self.idle.items():
            at_hand = (not place.line or place.file == own) and (among is None or path in among)
            general = found.by == ENVIRONMENTS and path in spared and spared[path].place == place
            if at_hand and not general and (place, path) not in spoken_for:
                problems.add(place, found.text)


def noted(
    part: tuple[str, str, Mapping[str, HParam]],
    given: Mapping[str, Any],
    facts: Mapping[str, Any],
    written: Flat,
    uses: Uses,
) -> tuple[dict[str, Any], dict[str, Idle]]:
    """Return :func:`harness.hparams.effective` of values, and note what those do that the suite writes.

    Args:
        part: of the component, or of ``train``: its title in messages, the first step of its paths, and all that is
            declared.
        given: values by name.
        facts: see :func:`facts_of`.
        written: what the suite writes, by path.
        uses: receives what the values do.
    """
    title, head, declared = part
    kept, idle = effective(declared, given, facts)
    for name, value in given.items():
        one = written.get(f"{head}.{name}")
        if one is None or (name in idle and value == declared[name].default):
            continue
        key = one.place, f"{head}.{name}"
        if name not in idle:
            uses.active.add(key)
            continue
        uses.idle.setdefault(key, Idle(idle[name].by, f"{title}: {idle[name].text}"))
        by = written.get(f"{head}.{idle[name].by}")
        if by is not None and not by.place.line and one.place.line:
            uses.excused.add(key)
    return kept, idle
