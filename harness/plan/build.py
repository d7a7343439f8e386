"""Build the stage graph of a suite."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from harness.plan.datasets import DatasetFacts
from harness.plan.stage import Stage
from harness.plan.stages import StageFactory
from harness.registry.catalog import Catalog
from harness.results.cell import CellId
from harness.store.keys import Form, canonical
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
    """The stages a suite needs, in an order where inputs come first, and its cells in the order of the file."""

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
        """Keys of all stages that the one writing ``key`` builds on, itself included."""
        seen: set[str] = set()
        waiting = [key]
        while waiting:
            producer = self.producers[waiting.pop()]
            if producer not in seen:
                seen.add(producer)
                waiting.extend(self.stages[producer].inputs)
        return seen


def build_plan(suite: Suite, catalog: Catalog, facts: DatasetFacts) -> Plan:
    """The plan of a suite.

    Raises:
        DataError: an input file is missing or cannot be read.
    """
    plan = Plan(suite)
    factory = StageFactory(catalog, facts)
    for row in suite.rows:
        _add_row(plan, factory, row)
    return plan


def _add_row(plan: Plan, factory: StageFactory, row: Row) -> None:
    dataset = plan.suite.dataset(row.dataset)
    ids = _cell_ids(row)
    for configuration in row.configurations:
        chains = factory.cells(dataset, row, configuration, plan.suite.seeds)
        for seed, chain in zip(plan.suite.seeds, chains, strict=True):
            plan.add(chain)
            train, score = chain[-2], chain[-1]
            plan.cells.append(
                Cell(
                    id=ids.digest({"configuration": configuration.id, "seed": seed, "train": train.key})[:8],
                    dataset=row.dataset,
                    method=row.method,
                    config_id=configuration.id,
                    configuration=configuration,
                    seed=seed,
                    train=train.key,
                    score=score.key,
                )
            )


def _cell_ids(row: Row) -> Form:
    """What makes the ids of a row's cells: the same cell has the same id in every run."""
    common = {"dataset": canonical(row.dataset), "method": canonical(row.method)}
    return Form(common, "configuration", "seed", "train")
