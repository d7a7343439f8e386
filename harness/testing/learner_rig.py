"""Set up, train and watch a learner on a toy set in the way the engine does."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
import yaml
from torch import Tensor

from harness.component import Component
from harness.data import Features, TaskKind
from harness.graphs import PackedGraphs
from harness.hparams import filled
from harness.randomness import generator, seeded
from harness.registry.discovery import load_one
from harness.registry.index import load_catalog
from harness.stages.learners import UpstreamTraining
from harness.suite.settings import TrainSettings
from harness.testing.fake_device import ELSEWHERE
from harness.testing.rig import SEED, Rig, Trial, noting_draws
from harness.testing.toys import FEATURES, WIDTH, KitBackbone, Toy, toy
from harness.testing.watch import Watch
from harness.training.bases import Decorrelator, Environment, Learner, LearnerInfo, ModelSpec
from harness.training.candidates import keep_lowest
from harness.training.loop import TrainingData, fit, predict, total_steps
from harness.training.metrics import score

EPOCHS, BATCH = 3, 12
QUANTIFIERS = 6


@dataclass
class LearnerTrial(Trial):
    """A training: predictions are its outputs, the learner's state dict is its state."""

    learner: Learner = field(kw_only=True)
    watch: Watch = field(kw_only=True)


class LearnerRig(Rig[Learner, LearnerTrial]):
    """A baseline or decorrelator under test."""

    @property
    def task(self) -> TaskKind:
        """Return the task of most checks: the first of several classes, two classes, several tasks."""
        kinds: tuple[TaskKind, ...] = ("multiclass", "binary", "multitask")
        return next(kind for kind in kinds if kind in self.cls.tasks)

    def toy(self, kind: TaskKind | None = None) -> Toy:
        """Return the ordinary toy set of a task."""
        return toy(kind or self.task, parts=self.cls.reads_parts)

    def trial(self, values: Mapping[str, Any], seed: int) -> LearnerTrial:
        """Train on the ordinary toy set."""
        return self.train_on(self.toy(), values, seed)

    def train_on(
        self,
        data: Toy,
        values: Mapping[str, Any] | None = None,
        seed: int = SEED,
        *,
        epochs: int = EPOCHS,
        batch_size: int = BATCH,
    ) -> LearnerTrial:
        """Train, watched, on some toy set; the learner is left trained."""
        watch = Watch()
        prepared = self.prepare(data, values, seed, epochs=epochs, batch_size=batch_size, watch=watch)
        learner = prepared.learner
        with noting_draws("predicting", watch.draws), watch.training(learner):
            prepared.fit()
            outputs = {
                "predictions of training graphs": logits(learner, data.train),
                "predictions of validation graphs": logits(learner, data.validation),
            }
        state = {name: value.detach().clone() for name, value in learner.state_dict().items()}
        return LearnerTrial(outputs, state, watch.draws, learner=learner, watch=watch)

    def prepare(
        self,
        data: Toy,
        values: Mapping[str, Any] | None = None,
        seed: int = SEED,
        *,
        epochs: int = EPOCHS,
        batch_size: int = BATCH,
        watch: Watch | None = None,
    ) -> Prepared:
        """Return a learner that is set up, with all that it declares."""
        learner = self.make(values)
        if watch is not None:
            watch.building(learner)
        return prepare(learner, data, seed, epochs=epochs, batch_size=batch_size)

    def on_device(self, values: Mapping[str, Any]) -> Mapping[str, Tensor]:
        """Train on the other device and return the state; with settings of its own for one step, and nothing."""
        epochs, size = (1, 256) if values else (EPOCHS, BATCH)
        prepared = self.prepare(self.toy(), values, epochs=epochs, batch_size=size).to(ELSEWHERE)
        prepared.fit()
        return {} if values else {name: value.cpu() for name, value in prepared.learner.state_dict().items()}


@dataclass
class Prepared:
    """A learner that is set up, with the engine's data and settings."""

    learner: Learner
    data: TrainingData
    settings: TrainSettings
    seed: int

    def fit(self) -> None:
        """Train by the engine's loop."""
        fit(self.learner, self.data, self.settings, seed=self.seed)

    def to(self, device: str) -> Prepared:
        """Move everything, as the stage ``train`` does."""
        learner, data = self.learner.to(device), self.data
        learner.annotations = {name: value.to(device) for name, value in learner.annotations.items()}
        learner.upstream_outputs = {role: placed(item, device) for role, item in learner.upstream_outputs.items()}
        data.train = data.train.to(device)
        data.validation = {split: graphs.to(device) for split, graphs in data.validation.items()}
        if data.spurious is not None:
            data.spurious = data.spurious.to(device)
            for name in ("model_scores", "model_weights"):
                setattr(learner, name, getattr(learner, name).to(device))
        return self


def prepare(
    learner: Learner, data: Toy, seed: int = SEED, *, epochs: int = EPOCHS, batch_size: int = BATCH
) -> Prepared:
    """Set up a learner with environments, annotations, upstream results and votes as far as it declares them."""
    train, annotations, assign_batch, count = _environments(learner, data, seed)
    settings = TrainSettings(epochs, batch_size, 256)
    info = LearnerInfo(
        task=data.task,
        node_features=FEATURES,
        edge_features=Features("none"),
        num_environments=count,
        num_train=len(train),
        has_parts=train.parts is not None,
        total_steps=total_steps(train, settings),
        epochs=epochs,
    )
    learner.setup(info, _model(), seed=seed, lr=1e-2)
    learner.annotations = annotations
    learner.upstream_outputs = upstream_outputs(learner, data)
    inputs = TrainingData(
        train=train,
        validation={"val": data.validation},
        score=lambda _, logits: score(logits.numpy(), data.validation_y.numpy(), data.task).value,
        monitor="val",
        spurious=votes(learner, data) if isinstance(learner, Decorrelator) else None,
        assign_batch=assign_batch,
    )
    return Prepared(learner, inputs, settings, seed)


def _model() -> ModelSpec:
    """Return the network of learners under test: two small GIN layers, sum readout, one hidden layer in the head."""
    return ModelSpec(KitBackbone, {"layers": 2, "hidden": WIDTH}, readout="sum", head_layers=1)


def logits(learner: Learner, graphs: PackedGraphs) -> Tensor:
    """Return logits in evaluation mode, from batches without labels and environments."""
    return predict(learner, list(graphs.without_labels().batches(256)))


def environment_of(learner: Learner) -> Environment | None:
    """Return the learner's default environment if it needs something that only an environment provides.

    Raises:
        UserError: the default environment is not registered.
    """
    if not (learner.needs - {"environments"}) or not learner.default_environment:
        return None
    name, _, argument = learner.default_environment.partition("(")
    cls: type[Environment] = load_one(load_catalog().get("environment", name.strip()))
    values = {cls.positional: yaml.safe_load(argument.rstrip(") "))} if argument and cls.positional else {}
    return cls(**values)


def _environments(
    learner: Learner, data: Toy, seed: int
) -> tuple[PackedGraphs, Mapping[str, Tensor], Callable[[Any], Tensor] | None, int]:
    """Return training graphs with ids, annotations, the function that draws ids, and the number of environments.

    The toy set's own ids are used unless the learner needs something that only its default environment provides.
    """
    if "environments" not in learner.needs:
        return replace(data.train, env=None), {}, None, 0
    environment = environment_of(learner)
    if environment is None:
        return data.train, {}, None, data.environments
    if environment.per_batch:
        environment.rng = generator(seed, "environment")
        return replace(data.train, env=None), {}, environment.assign_batch, environment.num_environments()
    ids, extra = assign(environment, data, seed, [])
    return replace(data.train, env=ids), extra, None, int(ids.max()) + 1


def assign(environment: Environment, data: Toy, seed: int, draws: list[str]) -> tuple[Any, Mapping[str, Any]]:
    """Return ids and provided tensors of an environment component on a toy set; note uses of global random state."""
    environment.rng = generator(seed, "environment")
    if environment.trains_networks:
        info = LearnerInfo(data.task, FEATURES, Features("none"), 0, len(data.train), total_steps=9, epochs=EPOCHS)
        environment.setup(info, _model(), seed=seed, batch_size=BATCH, lr=1e-2)
    device = data.train.x.device
    if environment.requires not in ("", "env"):
        environment.groups = {environment.requires: _oracle(environment.requires, data).to(device)}
    oracle = {name: _oracle(name, data).to(device) for name in sorted(environment.oracle)}
    made_up = upstream_outputs(environment, replace(data, train=data.train.to("cpu")))
    upstream = {role: placed(item, device) for role, item in made_up.items()}
    with seeded(seed, "environment"), noting_draws("assign()", draws):
        assigned = environment.assign(data.train, oracle, upstream)
    return assigned if isinstance(assigned, tuple) else (assigned, {})


def _oracle(name: str, data: Toy) -> Tensor:
    """Return one value per training graph, three different ones in all."""
    return torch.randint(3, (len(data.train),), generator=generator(0, f"conformance/oracle/{name}"))


def votes(learner: Decorrelator, data: Toy) -> Tensor:
    """Return (n, K, C) votes of made-up quantifiers, kept and weighted as the engine does; set their weights."""
    rng = generator(0, "conformance/votes")
    truth = torch.nn.functional.one_hot(data.train.y.long(), data.task.num_classes)
    noise = torch.randn(QUANTIFIERS, *truth.shape, generator=rng)
    scores = [0.62, 0.48, 0.55, 0.36, 0.41, 0.7]
    kept = keep_lowest(
        (truth + noise).softmax(2),
        [{"scores": {"val": value}, "train_score": 1.3 - value} for value in scores],
        "val",
        keep=learner.keep,
        tau=learner.tau,
        weighting=learner.weighting,
    )
    learner.model_scores, learner.model_weights = kept.scores, kept.weights
    return kept.spurious


def upstream_outputs(component: Component, data: Toy) -> dict[str, Any]:
    """Return made-up results of the declared stages; they follow from the declaration with its ``$`` texts filled."""
    outputs: dict[str, Any] = {}
    count = len(data.train)
    for role, declared in sorted(component.upstream.items()):
        if any(component.values.get(name) not in allowed for name, allowed in declared["when"].items()):
            continue
        text = json.dumps(filled({**declared, "when": None}, component.values), sort_keys=True)
        rng = generator(0, f"conformance/upstream/{text}")
        if declared["kind"] == "environment":
            outputs[role] = torch.randint(2, (count,), generator=rng)
        else:
            noise = torch.randn(count, data.task.outputs, generator=rng)
            outputs[role] = UpstreamTraining(
                noise + 2.0 * _targets(data),
                torch.randn(count, WIDTH, generator=rng).relu() + data.train.env[:, None],  # type: ignore[index]
            )
    return outputs


def placed(item: Any, device: torch.device | str) -> Any:
    """Move a made-up result to a device."""
    if isinstance(item, UpstreamTraining):
        return replace(item, logits=item.logits.to(device), embeddings=item.embeddings.to(device))
    return item.to(device)


def _targets(data: Toy) -> Tensor:
    """Return (n, outputs) one-hot classes, or labels with missing ones as one half."""
    y = data.train.y
    assert y is not None
    if data.task.kind == "multitask":
        return torch.nan_to_num(y, nan=0.5)
    return torch.nn.functional.one_hot(y, data.task.num_classes).float()
