"""Build the stage graph of a suite."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from harness.component import LEARNER_KINDS
from harness.plan.components import Components
from harness.plan.datasets import Declarations
from harness.plan.factory import RowStages, planned_data
from harness.registry.catalog import Catalog
from harness.results.rows import CellId
from harness.store import Stage, digest
from harness.suite.settings import LAST
from harness.suite.spec import Configuration, Row, Suite


@dataclass(frozen=True, slots=True)
class Cell(CellId):
    """One (dataset, method, configuration, seed).

    Attributes:
        id: 8 hexadecimal digits that commands accept.
        train, score: keys of its last two stages.
    """

    id: str
    configuration: Configuration
    train: str
    score: str


@dataclass
class Plan:
    """The stages of a suite, inputs first, and its cells in the order of the file.

    ``suite`` has the trials that are known so far.
    """

    suite: Suite
    stages: dict[str, Stage] = field(default_factory=dict)
    cells: list[Cell] = field(default_factory=list)
    producers: dict[str, str] = field(default_factory=dict)
    """Every key that is written -> the key of the stage that writes it."""

    def add(self, stages: Iterable[Stage]) -> None:
        """Add stages that are not there yet."""
        for stage in stages:
            if stage.key not in self.stages:
                self.stages[stage.key] = stage
                for key in (stage.key, *stage.outputs):
                    self.producers[key] = stage.key

    def ancestry(self, key: str) -> set[str]:
        """Return the keys of all stages on which the one that writes ``key`` builds, itself included."""
        seen: set[str] = set()
        waiting = [key]
        while waiting:
            producer = self.producers[waiting.pop()]
            if producer not in seen:
                seen.add(producer)
                waiting.extend(self.stages[producer].inputs)
        return seen


TrialScore = Callable[[Plan, Row, Sequence[Cell]], float | None]
"""Gives the score of a trial by its cells, one a seed; None while it is not known."""


def build_plan(suite: Suite, catalog: Catalog, facts: Declarations, score: TrialScore | None = None) -> Plan:
    """Return the plan of a suite.

    Args:
        score: by which samplers choose trials; those that need scores are left out without it.

    Raises:
        DataError: an input file is missing or cannot be read.
    """
    plan, components = Plan(suite), Components(catalog)
    labels = dict.fromkeys(row.dataset for row in suite.rows)
    datasets = {label: planned_data(suite.dataset(label), components, facts) for label in labels}
    stages = [RowStages(components, datasets[row.dataset], row, suite.seeds) for row in suite.rows]
    rows = [_plan_row(plan, of_row, score) for of_row in stages]
    plan.suite = replace(suite, rows=tuple(rows))
    return plan


def _plan_row(plan: Plan, stages: RowStages, score: TrialScore | None) -> Row:
    """Add the cells of a row, and of the trials that follow from scores; return the row with these."""
    row, place = stages.row, 0
    scores: list[float] = []
    while place < len(row.configurations):
        configuration, cells = row.configurations[place], list[Cell]()
        for seed, chain in zip(plan.suite.seeds, stages.cells(configuration), strict=True):
            plan.add(chain)
            cells.append(_cell(row, configuration, seed, chain))
        plan.cells += cells
        place += 1
        if score is None or row.ask is None or not row.pending:
            continue
        found = score(plan, row, cells)
        scores += [] if found is None else [found]
        if len(scores) == len(row.configurations):
            chosen = row.ask(row.configurations, scores)
            row = replace(row, configurations=(*row.configurations, chosen), pending=row.pending - 1)
    return row


def _cell(row: Row, configuration: Configuration, seed: int, chain: Sequence[Stage]) -> Cell:
    train, score = (stage.key for stage in chain[-2:])
    place: dict[str, Any] = {"dataset": row.dataset, "method": row.method, "seed": seed, "train": train}
    name = digest({**place, "configuration": configuration.id})[:8]
    return Cell(id=name, config_id=configuration.id, configuration=configuration, score=score, **place)


def shaped_by_validation(plan: Plan, catalog: Catalog) -> frozenset[str]:
    """Return the keys of the stages that read validation labels, or build on one that does.

    A choice by validation scores counts as reading: of the kept quantifiers, of an upstream training's best
    checkpoint, and of the epoch in which patience ends.
    """
    keys: set[str] = set()
    for stage in plan.stages.values():  # inputs come first
        if not keys.isdisjoint(stage.inputs) or _reads_validation(stage, catalog):
            keys.add(stage.key)
    return frozenset(keys)


def _reads_validation(stage: Stage, catalog: Catalog) -> bool:
    upstream = getattr(stage.payload, "upstream", {}).values()
    if any(item.kind in LEARNER_KINDS and item.checkpoint != LAST for item in upstream):
        return True
    if stage.kind != "train":
        return False
    loop, learner = stage.payload.networks.settings, stage.payload.learner
    may_stop = 0 < loop.patience < loop.epochs - loop.warmup
    listens = catalog.get(learner["kind"], learner["name"]).traits.get("reads_validation_score")
    return bool(stage.payload.quantify or may_stop or listens)
