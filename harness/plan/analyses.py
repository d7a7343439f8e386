"""The stages of an analysis: one for each cell that a finished run selected. No torch."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any

from harness.plan.build import Cell, Plan
from harness.plan.components import Components
from harness.registry.catalog import Catalog
from harness.results.rows import RunResults
from harness.results.selection import rule_of
from harness.stages.payloads import AnalysePayload, EncoderOfCell
from harness.store import PROTOCOL_VERSION, Stage, digest
from harness.suite.analyses import fits
from harness.suite.spec import AnalysisSpec


@dataclass(frozen=True)
class ChosenCell:
    """A cell that an analysis looks at.

    Attributes:
        cell: from the plan.
        rule: the checkpoint rule that its row reports; ``checkpoint`` the same in the suite's words.
        stage: what must run to measure it, or None for an analysis that measures nothing.
        fields: oracle fields that the analysis reads of its dataset.
    """

    cell: Cell
    rule: str
    checkpoint: str
    stage: Stage | None
    fields: tuple[str, ...] = ()


def chosen_cells(
    spec: AnalysisSpec,
    plan: Plan,
    catalog: Catalog,
    results: RunResults,
    oracle_of: Callable[[str], Collection[str]],
) -> list[ChosenCell]:
    """Return the cells that an analysis looks at: selected, with a result, of the datasets and methods that it names.

    Args:
        oracle_of: dataset label -> names of its oracle fields.
    """
    traits = catalog.get("analysis", spec.component.name).traits
    seeds = results.seeds[: traits.get("first_seeds") or None]
    found = []
    for cell, rule, checkpoint in _selected(plan, results):
        if cell.seed not in seeds or results.dataset(cell.dataset).task not in traits["tasks"]:
            continue
        if not (fits(cell.dataset, spec.datasets) and fits(cell.method, spec.methods)):
            continue
        if traits.get("needs_pipeline") and cell.configuration.pipeline is None:
            continue
        wanted = {*traits.get("oracle", ()), *traits.get("oracle_where_there", ())}
        fields = sorted(wanted & set(oracle_of(cell.dataset)))
        measures = traits.get("measures", True)
        stage = _stage(spec, plan, catalog, cell, checkpoint, fields) if measures else None
        found.append(ChosenCell(cell, rule, checkpoint, stage, tuple(fields)))
    return found


def _selected(plan: Plan, results: RunResults) -> Iterator[tuple[Cell, str, str]]:
    rules = {(e.dataset, e.method): (rule_of(results, e), e.select.checkpoint) for e in results.entries}
    with_value = {
        (row.cell, row.checkpoint) for row in results.rows if row.selected and row.status == "ok" and row.cell
    }
    for cell in plan.cells:
        rule, checkpoint = rules[cell.dataset, cell.method]
        if (cell.id, rule) in with_value:
            yield cell, rule, checkpoint


def _stage(spec: AnalysisSpec, plan: Plan, catalog: Catalog, cell: Cell, checkpoint: str, fields: list[str]) -> Stage:
    components = Components(catalog)
    train = plan.stages[cell.train]
    prepared = plan.stages[plan.producers[train.payload.data]]
    encoders = _encoders(plan, train)
    preimage: dict[str, Any] = {
        "stage": "analyse",
        "protocol": PROTOCOL_VERSION,
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
    return Stage(
        kind="analyse",
        key=digest(preimage),
        place=f"analyse/{train.place.partition('/')[2]}/{spec.component.name}",
        preimage=preimage,
        inputs=(train.key, prepared.key, *train.payload.quantify, *(item.key for item in encoders)),
        payload=payload,
        title=f"{spec.component.name} of {train.title.removeprefix('train ')}",
    )


def _encoders(plan: Plan, train: Stage) -> list[EncoderOfCell]:
    """Return key and title of each encode stage on which a training builds, in the order of the pool."""
    keys = [plan.stages[key].payload.encode for key in train.payload.quantify]
    titles = {key: plan.stages[key].title.removeprefix("encode ").partition(" on ")[0] for key in keys}
    return [EncoderOfCell(key=key, title=title) for key, title in titles.items()]
