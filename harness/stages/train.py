"""``train``: fit one learner; write its history and, for each checkpoint rule, weights and predictions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from harness.data import Task
from harness.graphs import Batch, PackedGraphs
from harness.nn.environments import check_ids
from harness.randomness import generator
from harness.registry.returned import ReturnedError, expect
from harness.stages.context import Context, component, component_class
from harness.stages.learners import make_learner, read_upstream
from harness.stages.payloads import TrainPayload
from harness.stages.reading import as_float32, placed, read_graphs, read_labels
from harness.store import Stage
from harness.suite.settings import TrainSettings
from harness.training.bases import Decorrelator, Environment, Learner
from harness.training.candidates import Kept, keep_lowest
from harness.training.loop import Trained, TrainingData, fit, predict
from harness.training.metrics import score


def body(stage: Stage, context: Context) -> None:
    """Write ``history``, ``checkpoints``, ``predictions`` (``<rule>/<split>``) and ``weights-<rule>``."""
    payload: TrainPayload = stage.payload
    store, settings, task = context.store, payload.networks.settings, payload.task
    parts, bound = bool(component_class(payload.learner).reads_parts), settings.max_batch_nodes
    train = read_graphs(store, payload.data, payload.train, labels=True, parts=parts, max_batch_nodes=bound)
    environment, train, count = _environments(context, payload, train)
    train = train.to(context.device)
    learner = make_learner(payload, train, count).to(context.device)
    if payload.annotate:
        learner.annotations = placed(context.store.open(payload.annotate).tensors("extra"), context.device)
    kept = _spurious(context, payload, learner)
    learner.upstream_outputs = read_upstream(context, payload.upstream)
    graphs = {
        split: read_graphs(store, payload.data, split, parts=parts, max_batch_nodes=bound).to(context.device)
        for split in payload.splits
    }
    data = TrainingData(
        train=train,
        validation={split: graphs[split] for split in payload.validation},
        score=_scorer(store, payload, task),
        monitor=payload.monitor,
        spurious=None if kept is None else kept.spurious.to(context.device),
        assign_batch=None if environment is None else _assigner(environment, count),
    )
    trained = fit(learner, data, settings, seed=payload.seed)
    with store.create(stage) as draft:
        draft.write_json("history", trained.history)
        draft.write_json(
            "checkpoints", {r: {"epoch": c.epoch, "score": c.score} for r, c in trained.checkpoints.items()}
        )
        draft.write_json("info", _info(context, payload, learner, kept, count, trained))
        draft.write_tensors("predictions", _predictions(learner, trained, graphs, settings))
        for rule, checkpoint in trained.checkpoints.items():
            draft.write_tensors(f"weights-{rule}", checkpoint.state)


def _environments(
    context: Context, payload: TrainPayload, train: PackedGraphs
) -> tuple[Environment | None, PackedGraphs, int]:
    """Return the environment that draws per batch (or None), the graphs with fixed ids, and the number of ids."""
    if payload.annotate:
        artifact = context.store.open(payload.annotate)
        count = int(artifact.read_json("info")["environments"])
        return None, replace(train, env=artifact.tensors("env")["env"].clone()), count
    if payload.environment:
        environment: Environment = component(payload.environment)
        environment.rng = generator(payload.seed, "environment")
        number = environment.num_environments()
        whole = isinstance(number, int) and not isinstance(number, bool) and number > 0
        expect(whole, environment, "num_environments", number, "a whole number from 1")
        return environment, train, number
    return None, train, 0


def _assigner(environment: Environment, number: int) -> Callable[[Batch], Tensor]:
    """Return a function that gives a batch its environment ids and checks them."""

    def assign(batch: Batch) -> Tensor:
        ids = environment.assign_batch(batch)
        try:
            check_ids(ids, batch.num_graphs, number)
        except ValueError as error:
            raise ReturnedError(f"environment '{environment.name}', assign_batch: {error}") from None
        return ids

    return assign


def _spurious(context: Context, payload: TrainPayload, learner: Learner) -> Kept | None:
    if not isinstance(learner, Decorrelator):
        return None
    artifacts = [context.store.open(key) for key in payload.quantify]
    candidates = [row for artifact in artifacts for row in artifact.read_json("candidates")]
    kept = keep_lowest(
        torch.cat([artifact.tensors("probabilities")["probabilities"] for artifact in artifacts]),
        candidates,
        payload.monitor,
        keep=learner.keep,
        tau=learner.tau,
        weighting=learner.weighting,
    )
    learner.model_scores, learner.model_weights = kept.scores.to(context.device), kept.weights.to(context.device)
    return kept


def _scorer(store: Any, payload: TrainPayload, task: Task) -> Any:
    labels = {split: read_labels(store, payload.data, split).numpy() for split in payload.validation}

    def value(split: str, logits: Tensor) -> float | None:
        return score(logits.numpy(), labels[split], task).value

    return value


def _info(
    context: Context,
    payload: TrainPayload,
    learner: Learner,
    kept: Kept | None,
    environments: int,
    trained: Trained,
) -> dict[str, Any]:
    annotated = context.store.open(payload.annotate).read_json("info")["flags"] if payload.annotate else []
    facts: dict[str, Any] = {
        "epochs": len(trained.history),
        "parameters": sum(value.numel() for value in learner.parameters()),
        "environments": environments,
        "flags": [*annotated, *(kept.flags if kept is not None else ())],
    }
    if kept is not None:
        facts["kept"] = list(kept.chosen)
        facts["model_scores"], facts["model_weights"] = kept.scores.tolist(), kept.weights.tolist()
    return facts


def _predictions(
    learner: Learner, trained: Trained, graphs: Mapping[str, PackedGraphs], settings: TrainSettings
) -> dict[str, Tensor]:
    """Return the logits of every split under every checkpoint rule; the learner keeps the last one's weights."""
    found: dict[str, Tensor] = {}
    for rule, checkpoint in trained.checkpoints.items():
        learner.load_state_dict(checkpoint.state)
        for split, pack in graphs.items():
            found[f"{rule}/{split}"] = as_float32(predict(learner, pack.batches(settings.eval_batch_size)))
    return found
