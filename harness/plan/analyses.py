"""The stages of an analysis: one for each cell that a finished run selected. No torch."""

from __future__ import annotations

from dataclasses import dataclass

from harness.plan.build import Cell, Plan
from harness.plan.components import Components
from harness.plan.datasets import Declarations
from harness.plan.factory import make_stage
from harness.registry.catalog import Catalog
from harness.results.rows import RunResults
from harness.results.selection import rule_of
from harness.stages.payloads import AnalysePayload, EncoderOfCell
from harness.store import Stage
from harness.suite.analyses import fits
from harness.suite.settings import checkpoint_word
from harness.suite.spec import AnalysisSpec


@dataclass(frozen=True)
class ChosenCell:
    """A cell that an analysis looks at.

    Attributes:
        cell: from the plan.
        rule: the checkpoint rule that its row reports.
        stage: what must run to measure it, or None for an analysis that measures nothing.
        fields: oracle fields that the analysis reads of its dataset.
    """

    cell: Cell
    rule: str
    stage: Stage | None
    fields: tuple[str, ...]


def chosen_cells(
    spec: AnalysisSpec, plan: Plan, catalog: Catalog, results: RunResults, facts: Declarations
) -> list[ChosenCell]:
    """Return the cells that an analysis looks at: selected, with a result, of datasets and methods that it names."""
    traits = catalog.get("analysis", spec.component.name).traits
    seeds = results.seeds[: traits.get("first_seeds") or None]
    rules = {(entry.dataset, entry.method): rule_of(results, entry) for entry in results.entries}
    with_value = {(row.cell, row.checkpoint) for row in results.rows if row.selected and row.status == "ok"}
    wanted = {*traits.get("oracle", ()), *traits.get("oracle_where_there", ())}
    found = []
    for cell in plan.cells:
        rule = rules[cell.dataset, cell.method]
        if (cell.id, rule) not in with_value or cell.seed not in seeds:
            continue
        if results.dataset(cell.dataset).task not in traits["tasks"]:
            continue
        if not (fits(cell.dataset, spec.datasets) and fits(cell.method, spec.methods)):
            continue
        if traits.get("needs_pipeline") and cell.configuration.pipeline is None:
            continue
        oracle = facts.declare(plan.suite.dataset(cell.dataset).component).oracle
        fields = sorted(wanted.intersection(oracle))
        measures = traits.get("measures", True)
        stage = _stage(spec, plan, Components(catalog), cell, checkpoint_word(rule), fields) if measures else None
        found.append(ChosenCell(cell, rule, stage, tuple(fields)))
    return found


def _stage(
    spec: AnalysisSpec, plan: Plan, components: Components, cell: Cell, checkpoint: str, fields: list[str]
) -> Stage:
    train = plan.stages[cell.train]
    prepared = plan.stages[plan.producers[train.payload.data]]
    encoders = _encoders(plan, train)
    preimage = {
        "analysis": components.identity(spec.component),
        "train": train.key,
        "checkpoint": checkpoint,
        "oracle": fields,
    }
    payload = AnalysePayload(
        analysis=components.reference(spec.component),
        trained=train.key,
        train=train.payload,
        checkpoint=checkpoint,
        encoders=encoders,
        oracle=prepared.outputs[0],
        fields=fields,
    )
    return make_stage(
        "analyse",
        preimage,
        payload,
        place=f"analyse/{train.place.partition('/')[2]}/{spec.component.name}",
        inputs=(train.key, prepared.key, *train.payload.quantify, *(item.key for item in encoders)),
        title=f"{spec.component.name} of {train.title.removeprefix('train ')}",
    )


def _encoders(plan: Plan, train: Stage) -> list[EncoderOfCell]:
    """Return key and title of each encode stage on which a training builds, in the order of the pool."""
    keys = [plan.stages[key].payload.encode for key in train.payload.quantify]
    titles = {key: plan.stages[key].title.removeprefix("encode ").partition(" on ")[0] for key in keys}
    return [EncoderOfCell(key=key, title=title) for key, title in titles.items()]
