"""Which trainings validation labels shape, beyond the choice of their checkpoint and configuration. No torch."""

from __future__ import annotations

from harness.component import LEARNER_KINDS
from harness.plan.build import Plan
from harness.plan.stage import Stage
from harness.registry.catalog import Catalog
from harness.results.rows import LAST


def shaped_by_validation(plan: Plan, catalog: Catalog) -> frozenset[str]:
    """Keys of the stages that read validation labels, or build on one that does.

    What is chosen by validation scores counts as read: the kept quantifiers, an upstream training's best checkpoint,
    and the epoch in which patience ends.
    """
    found: set[str] = set()
    for stage in plan.stages.values():  # inputs come first
        if not found.isdisjoint(stage.inputs) or _reads(stage, catalog):
            found.add(stage.key)
    return frozenset(found)


def _reads(stage: Stage, catalog: Catalog) -> bool:
    upstream = stage.payload.get("upstream", {}).values()
    if any(item["kind"] in LEARNER_KINDS and item["checkpoint"] != LAST for item in upstream):
        return True
    if stage.kind != "train":
        return False
    loop, learner = stage.payload["loop"], stage.payload["learner"]
    may_stop = 0 < loop["patience"] < loop["epochs"] - loop["warmup"]
    listens = catalog.get(learner["kind"], learner["name"]).traits.get("reads_validation_score")
    return bool(stage.payload["quantify"] or may_stop or listens)
