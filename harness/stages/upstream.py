"""What a component gets of the stages it builds on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from harness.graphs import Batch
from harness.registry.returned import expect_array
from harness.stages.context import Context
from harness.training.bases import Learner


@dataclass(frozen=True)
class UpstreamTraining:
    """A trained learner's outputs on the training graphs, in evaluation mode and without gradient.

    Attributes:
        logits: (n, C).
        embeddings: (n, d).
    """

    logits: Tensor
    embeddings: Tensor


def read_upstream(context: Context, payload: Mapping[str, Any]) -> dict[str, Any]:
    """role -> :class:`UpstreamTraining` for a trained baseline, or (n,) ids for an environment."""
    found: dict[str, Any] = {}
    for role, item in payload.get("upstream", {}).items():
        if item["kind"] == "environment":
            ids = context.store.open(item["key"]).tensors("env")["env"]
            found[role] = ids.to(context.device, copy=True)
        else:
            found[role] = _outputs(context, item["stage"], item["checkpoint"])
    return found


def _outputs(context: Context, stage: Mapping[str, Any], checkpoint: str) -> UpstreamTraining:
    from harness.stages.train import restore

    learner, train = restore(context, stage["payload"], stage["key"], checkpoint)
    with torch.no_grad():
        pairs = [(learner(batch), embedded(learner, batch)) for batch in train.batches(256)]
    return UpstreamTraining(torch.cat([logits for logits, _ in pairs]), torch.cat([h for _, h in pairs]))


def embedded(learner: Learner, batch: Batch) -> Tensor:
    """(B, d) what ``embed`` gives.

    Raises:
        ReturnedError: it is anything else.
    """
    found = learner.embed(batch)
    expect_array(learner, "embed", found, (batch.num_graphs, None))
    return found
