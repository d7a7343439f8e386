"""What components and configurations put into keys and payloads, whatever dataset and seed they meet. No torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from harness.component import LEARNER_KINDS
from harness.hparams import ENVIRONMENTS, holds
from harness.plan.identity import brief, filled, identity, reference, train_identity
from harness.plan.shared import Shared
from harness.registry.catalog import Catalog
from harness.suite.settings import effective_train
from harness.suite.spec import ComponentSpec, Configuration

_LOOP = (
    *("epochs", "batch_size", "eval_batch_size", "patience", "warmup"),
    *("lr_drop_epoch", "lr_drop_factor", "groups_per_batch", "drop_last", "max_batch_nodes"),
)


class Learner(NamedTuple):
    """What of a training follows from its configuration alone.

    Attributes:
        configuration: its own, or the one that is trained instead.
        annotating: what supplies fixed environments; ``drawn_identity`` is of what draws them per batch.
        preimage, payload: parts of the stage's.
    """

    configuration: Configuration
    annotating: ComponentSpec | None
    drawn_identity: Mapping[str, Any] | None
    preimage: Mapping[str, Any]
    payload: Mapping[str, Any]


class Upstream(NamedTuple):
    """What a component builds on: a component in a role, the configuration it is trained with, and the checkpoint."""

    role: str
    component: ComponentSpec
    configuration: Configuration
    checkpoint: str


class Configured:
    """Answers for components and configurations, each once."""

    def __init__(self, catalog: Catalog, shared: Shared) -> None:
        self._catalog, self._shared = catalog, shared

    def identity(self, spec: ComponentSpec) -> dict[str, Any]:
        """What of a component enters a key."""
        return self._shared.of(lambda: identity(self._catalog.get(spec.kind, spec.name), spec), "identity", spec)

    def reference(self, spec: ComponentSpec) -> dict[str, Any]:
        """What a worker needs to construct a component."""
        return self._shared.of(lambda: reference(self._catalog.get(spec.kind, spec.name), spec), "reference", spec)

    def brief(self, spec: ComponentSpec) -> str:
        """A component for people."""
        return self._shared.of(lambda: brief(self._catalog.get(spec.kind, spec.name), spec), "brief", spec)

    def learner(self, configuration: Configuration) -> Learner:
        """What of a training follows from its configuration alone."""
        return self._shared.of(lambda: self._learner(configuration), "learner", configuration)

    def _learner(self, configuration: Configuration) -> Learner:
        traits = self._catalog.get(configuration.learner.kind, configuration.learner.name).traits
        environment = configuration.environment if "environments" in traits.get("needs", ()) else None
        drawn = environment and self._catalog.get("environment", environment.name).traits.get("per_batch")
        configuration = self._effective(configuration, "fixed" if environment and not drawn else "none")
        preimage = {
            "learner": self.identity(configuration.learner),
            "backbone": self.identity(configuration.model.backbone),
            "model": self._model(configuration),
            "train": self._train_identity(configuration),
        }
        payload = {
            "learner": self.reference(configuration.learner),
            **self.networks(configuration),
            "environment": self.reference(environment) if environment and drawn else None,
        }
        drawn_identity = self.identity(environment) if environment and drawn else None
        return Learner(configuration, None if drawn else environment, drawn_identity, preimage, payload)

    def _model(self, configuration: Configuration) -> dict[str, Any]:
        model = configuration.model
        return self._shared.of(
            lambda: {"readout": model.readout, "head_layers": model.head_layers}, "readout and head", model
        )

    def _train_identity(self, configuration: Configuration) -> dict[str, Any]:
        train = configuration.train
        return self._shared.of(lambda: train_identity(train), "settings", train)

    def _effective(self, configuration: Configuration, environments: str) -> Configuration:
        """The same without training settings that have no effect, e.g. ``groups_per_batch`` without environments."""
        train = configuration.train
        used = self._shared.of(lambda: effective_train(train, {ENVIRONMENTS: environments}), environments, train)
        if used is train:
            return configuration
        return self._shared.of(lambda: replace(configuration, train=used), environments, configuration)

    def networks(self, configuration: Configuration) -> dict[str, Any]:
        """What a worker needs to make and train the suite's networks."""
        model, train = configuration.model, configuration.train
        return self._shared.of(
            lambda: {
                "backbone": self.reference(model.backbone),
                "readout": model.readout,
                "head_layers": model.head_layers,
                "lr": train.lr,
                "weight_decay": train.weight_decay,
                "optimizer": train.optimizer,
                "average_over": train.average_over,
                "loop": {name: getattr(train, name) for name in _LOOP},
            },
            "networks",
            model,
            train,
        )

    def networks_identity(self, configuration: Configuration) -> dict[str, Any]:
        """What of the suite's networks enters the key of environments that train some."""
        train = self._train_identity(self._effective(configuration, "none"))
        used = ("epochs", "batch_size", "lr", "weight_decay", "optimizer", "max_batch_nodes")
        return {
            "backbone": self.identity(configuration.model.backbone),
            "model": self._model(configuration),
            "train": {name: train[name] for name in used if name in train},
        }

    def upstream(self, spec: ComponentSpec, configuration: Configuration) -> list[Upstream]:
        """What a component declares as upstream and needs with its values, by role."""
        model, train = configuration.model, configuration.train
        return self._shared.of(lambda: self._upstream(spec, configuration), "upstream", spec, model, train)

    def _upstream(self, spec: ComponentSpec, configuration: Configuration) -> list[Upstream]:
        entry = self._catalog.get(spec.kind, spec.name)
        values = {**entry.defaults, **spec.params}
        found = []
        for role, declared in sorted(entry.traits.get("upstream", {}).items()):
            if not holds(declared["when"], values):
                continue
            target = self._catalog.get(declared["kind"], declared["name"])
            other = ComponentSpec(target.kind, target.name, filled(declared["params"], values))
            below = configuration
            if target.kind in LEARNER_KINDS:
                train = replace(configuration.train, **filled(declared["train"], values))
                below = Configuration("-", {}, other, None, None, configuration.model, train)
            checkpoint = filled({"rule": declared["checkpoint"]}, values).get("rule", "best-val")
            found.append(Upstream(role, other, below, checkpoint))
        return found
