"""Sets up and trains a learner on a toy set in the way the engine does."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from harness.component import Component
from harness.data import Features
from harness.graphs import PackedGraphs
from harness.randomness import generator, seeded
from harness.stages.learners import UpstreamTraining
from harness.testing.lookup import environment_of
from harness.testing.toys import FEATURES, WIDTH, KitBackbone, Toy
from harness.training.bases import Baseline, Decorrelator, Environment, Learner, LearnerInfo, ModelSpec
from harness.training.candidates import keep_lowest
from harness.training.loop import LoopSettings, TrainingData, fit, predict, total_steps
from harness.training.metrics import score

SEED, OTHER_SEED = 3, 4
EPOCHS, BATCH = 3, 8
QUANTIFIERS = 6


class PlainERM(Baseline):
    """The base class as it is, which is what ``equals_erm`` is compared with."""

    name = "conformance-kit-erm"


@dataclass
class Prepared:
    """A learner that is set up, with what the engine's loop trains it on."""

    learner: Learner
    data: TrainingData
    toy: Toy
    seed: int


@dataclass(frozen=True)
class Result:
    """What a training leaves.

    Attributes:
        state: name -> tensor of the learner's state.
        train, validation: logits of the training and the validation graphs.
    """

    state: Mapping[str, Tensor]
    train: Tensor
    validation: Tensor


def prepare(
    cls: type[Learner],
    values: Mapping[str, Any],
    toy: Toy,
    *,
    seed: int = SEED,
    epochs: int = EPOCHS,
    batch_size: int = BATCH,
    watch_build: Callable[[Learner], None] | None = None,
) -> Prepared:
    """A learner with environments, annotations, upstream results and votes as far as it declares them."""
    learner = cls(**values)
    environment = environment_of(learner)
    train, annotations, assign, count = environments(learner, environment, toy, seed)
    settings = LoopSettings(epochs, batch_size, 256)
    info = LearnerInfo(
        task=toy.task,
        node_features=FEATURES,
        edge_features=Features("none"),
        num_environments=count,
        num_train=len(train),
        has_parts=train.parts is not None,
        total_steps=total_steps(train, settings),
        epochs=epochs,
    )
    if watch_build is not None:
        watch_build(learner)
    learner.setup(info, kit_model(), seed=seed, lr=1e-2)
    learner.annotations = annotations
    learner.upstream_outputs = upstream_outputs(learner, toy)
    data = TrainingData(
        train=train,
        validation={"val": toy.validation},
        score=lambda _, logits: score(logits.numpy(), toy.validation_y.numpy(), toy.task).value,
        monitor="val",
        spurious=votes(learner, toy) if isinstance(learner, Decorrelator) else None,
        assign_batch=assign,
    )
    return Prepared(learner, data, toy, seed)


def kit_model() -> ModelSpec:
    """The network on which learners are tried: two small GIN layers, sum readout, one hidden layer in the head."""
    return ModelSpec(KitBackbone, {"layers": 2, "hidden": WIDTH}, readout="sum", head_layers=1)


def train(prepared: Prepared, *, epochs: int = EPOCHS, batch_size: int = BATCH) -> Result:
    """Train by the engine's loop and predict."""
    fit(prepared.learner, prepared.data, LoopSettings(epochs, batch_size, 256), seed=prepared.seed)
    return result(prepared)


def result(prepared: Prepared) -> Result:
    """State and predictions as they are now."""
    learner = prepared.learner
    state = {name: value.detach().clone() for name, value in learner.state_dict().items()}
    return Result(state, logits(learner, prepared.toy.train), logits(learner, prepared.toy.validation))


def logits(learner: Learner, graphs: PackedGraphs) -> Tensor:
    """Logits in evaluation mode, from batches without labels and environments."""
    return predict(learner, list(graphs.without_labels().batches(256)))


def environments(
    learner: Learner, environment: Environment | None, toy: Toy, seed: int
) -> tuple[PackedGraphs, Mapping[str, Tensor], Callable[[Any], Tensor] | None, int]:
    """Training graphs with ids, what else the environment provides, how to draw ids, and how many there are.

    The toy set's own ids are used unless the learner needs something that only its default environment provides.
    """
    if "environments" not in learner.needs:
        return replace(toy.train, env=None), {}, None, 0
    if environment is None:
        return toy.train, {}, None, toy.environments
    if environment.per_batch:
        environment.rng = generator(seed, "environment")
        return replace(toy.train, env=None), {}, environment.assign_batch, environment.num_environments()
    ids, extra = assign(environment, toy, seed)
    return replace(toy.train, env=ids), extra, None, int(ids.max()) + 1


def assign(environment: Environment, toy: Toy, seed: int) -> tuple[Tensor, Mapping[str, Tensor]]:
    """Ids and provided tensors of an environment component on a toy set."""
    environment.rng = generator(seed, "environment")
    if environment.trains_networks:
        info = LearnerInfo(toy.task, FEATURES, Features("none"), 0, len(toy.train), total_steps=9, epochs=EPOCHS)
        environment.setup(info, kit_model(), seed=seed, batch_size=BATCH, lr=1e-2)
    device = toy.train.x.device
    if environment.requires not in ("", "env"):
        environment.groups = {environment.requires: toy_oracle(environment.requires, toy).to(device)}
    oracle = {name: toy_oracle(name, toy).to(device) for name in sorted(environment.oracle)}
    made_up = upstream_outputs(environment, replace(toy, train=toy.train.to("cpu")))
    upstream = {role: placed(item, device) for role, item in made_up.items()}
    with seeded(seed, "environment"):
        assigned = environment.assign(toy.train, oracle, upstream)
    return assigned if isinstance(assigned, tuple) else (assigned, {})


def toy_oracle(name: str, toy: Toy) -> Tensor:
    """One value per training graph, three different ones in all."""
    return torch.randint(3, (len(toy.train),), generator=generator(0, f"conformance/oracle/{name}"))


def votes(learner: Decorrelator, toy: Toy) -> Tensor:
    """(n, K, C) votes of made-up quantifiers, kept and weighted as the engine does; also hands over the weights."""
    rng = generator(0, "conformance/votes")
    truth = torch.nn.functional.one_hot(toy.train.y.long(), toy.task.num_classes)
    noise = torch.randn(QUANTIFIERS, *truth.shape, generator=rng)
    scores = [0.62, 0.48, 0.55, 0.36, 0.41, 0.7]
    candidates = [{"scores": {"val": value}, "train_score": 1.3 - value} for value in scores]
    kept = keep_lowest(
        (truth + noise).softmax(2),
        candidates,
        "val",
        keep=learner.keep,
        tau=learner.tau,
        weighting=learner.weighting,
    )
    learner.model_scores, learner.model_weights = kept.scores, kept.weights
    return kept.spurious


def upstream_outputs(component: Component, toy: Toy) -> dict[str, Any]:
    """Made-up results of the declared stages; they follow from the declaration with its ``$`` texts filled in."""
    values = component.values
    found: dict[str, Any] = {}
    for role, declared in sorted(component.upstream.items()):
        if any(values.get(name) not in allowed for name, allowed in declared["when"].items()):
            continue
        text = json.dumps(_filled({**declared, "when": None}, values), sort_keys=True)
        rng = generator(0, f"conformance/upstream/{text}")
        count = len(toy.train)
        if declared["kind"] == "environment":
            found[role] = torch.randint(2, (count,), generator=rng)
        else:
            noise = torch.randn(count, toy.task.outputs, generator=rng)
            found[role] = UpstreamTraining(
                noise + 2.0 * _targets(toy),
                torch.randn(count, WIDTH, generator=rng).relu() + toy.train.env[:, None],  # type: ignore[index]
            )
    return found


def placed(item: Any, device: torch.device | str) -> Any:
    """A made-up result on a device."""
    if isinstance(item, UpstreamTraining):
        return replace(item, logits=item.logits.to(device), embeddings=item.embeddings.to(device))
    return item.to(device)


def _targets(toy: Toy) -> Tensor:
    """(n, outputs) one-hot classes, or labels with missing ones as one half."""
    y = toy.train.y
    assert y is not None
    if toy.task.kind == "multitask":
        return torch.nan_to_num(y, nan=0.5)
    return torch.nn.functional.one_hot(y, toy.task.num_classes).float()


def _filled(declared: Any, values: Mapping[str, Any]) -> Any:
    """The declaration with each text ``$name`` replaced by the component's value."""
    if isinstance(declared, Mapping):
        return {name: _filled(item, values) for name, item in declared.items()}
    if isinstance(declared, str) and declared.startswith("$"):
        return values[declared[1:]]
    return declared


def differs(left: Result, right: Result) -> bool:
    """Whether two trainings ended differently: predictions, or tensors of one name and shape."""
    if not (torch.equal(left.train, right.train) and torch.equal(left.validation, right.validation)):
        return True
    return bool(different_tensors(left.state, right.state))


def different_tensors(
    left: Mapping[str, Tensor], right: Mapping[str, Tensor], prefixes: Sequence[str] = ("",)
) -> list[str]:
    """Names under which two states hold tensors of one shape and different values."""
    shared = [name for name in left if name in right and name.startswith(tuple(prefixes))]
    return [n for n in shared if left[n].shape == right[n].shape and not torch.equal(left[n], right[n])]
