"""Make the learner of a stage, restore a trained one, and read what a component gets of the stages it builds on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from harness.errors import DivergedError, UserError
from harness.graphs import Batch, PackedGraphs
from harness.hparams import holds
from harness.registry.returned import expect_array
from harness.stages.context import Context, component, component_class
from harness.stages.payloads import TrainPayload, UpstreamStage
from harness.stages.reading import read_graphs, read_info, read_model, read_optimizer
from harness.suite.settings import LAST, best_rule
from harness.training.bases import Learner
from harness.training.loop import total_steps


@dataclass(frozen=True)
class UpstreamTraining:
    """A trained learner's outputs on the training graphs, in evaluation mode and without gradient.

    Attributes:
        logits: (n, C).
        embeddings: (n, d).
    """

    logits: Tensor
    embeddings: Tensor


def read_upstream(context: Context, upstream: Mapping[str, UpstreamStage]) -> dict[str, Any]:
    """Return role -> :class:`UpstreamTraining` for a trained baseline, or (n,) ids for an environment."""
    outputs: dict[str, Any] = {}
    for role, item in upstream.items():
        if isinstance(item.payload, TrainPayload):
            outputs[role] = _outputs(context, item.payload, item.key, item.checkpoint)
        else:
            ids = context.store.open(item.key).tensors("env")["env"]
            outputs[role] = ids.to(context.device, copy=True)
    return outputs


def _outputs(context: Context, payload: TrainPayload, key: str, checkpoint: str) -> UpstreamTraining:
    learner, train = restore(context, payload, key, checkpoint)
    with torch.no_grad():
        pairs = [(learner(batch), embedded(learner, batch)) for batch in train.batches(256)]
    return UpstreamTraining(torch.cat([logits for logits, _ in pairs]), torch.cat([h for _, h in pairs]))


def embedded(learner: Learner, batch: Batch) -> Tensor:
    """Return the (B, d) result of ``embed``."""
    found = learner.embed(batch)
    expect_array(learner, "embed", found, (batch.num_graphs, None))
    return found


def make_learner(payload: TrainPayload, train: PackedGraphs, environments: int) -> Learner:
    """Make the learner of a training and bind it to its data."""
    learner: Learner = component(payload.learner)
    networks, steps = payload.networks, total_steps(train, payload.networks.settings)
    if environments == 1 and holds(learner.compares_environments, learner.values):
        raise UserError(f"'{learner.name}' compares environments and needs two or more; these training graphs have one")
    info = read_info(payload, networks, train, environments=environments, total_steps=steps)
    learner.setup(info, read_model(networks), seed=payload.seed, **read_optimizer(networks))
    return learner


def restore(
    context: Context, payload: TrainPayload, key: str, checkpoint: str = "best-val"
) -> tuple[Learner, PackedGraphs]:
    """Return a trained learner in evaluation mode, with its training graphs.

    Args:
        context: the worker's context.
        payload: of the training's stage.
        key: of the training's stage.
        checkpoint: ``best-val`` on the monitored split, or any other where no epoch had a score; or ``last``.
    """
    parts, bound = bool(component_class(payload.learner).reads_parts), payload.networks.settings.max_batch_nodes
    train = read_graphs(context.store, payload.data, payload.train, parts=parts, max_batch_nodes=bound)
    train = train.to(context.device)
    artifact = context.store.open(key)
    learner = make_learner(payload, train, int(artifact.read_json("info")["environments"])).to(context.device)
    rules = artifact.read_json("checkpoints")
    wanted = LAST if checkpoint == "last" else best_rule(payload.monitor)
    if wanted not in rules and wanted == LAST:
        raise DivergedError("the training that this builds on has no last checkpoint: its weights were not finite")
    rule = wanted if wanted in rules else next(iter(rules))
    learner.load_state_dict(artifact.tensors(f"weights-{rule}"))
    learner.eval()
    return learner, train
