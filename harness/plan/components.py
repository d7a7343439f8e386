"""Components and settings as they stand in keys, payloads and titles. No torch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import PurePath
from typing import Any

from harness.component import BUILT_IN, LEARNER_KINDS
from harness.errors import UserError, did_you_mean
from harness.hparams import ENVIRONMENTS, HParam, effective, filled, holds
from harness.registry.catalog import Catalog, Entry
from harness.stages.payloads import NetworkSettings, UpstreamStage
from harness.suite.settings import SELECT, TRAIN, TrainSettings
from harness.suite.spec import ComponentSpec, Configuration

_SILENT_DEFAULTS = (
    *("optimizer", "lr_drop_epoch", "lr_drop_factor"),
    *("groups_per_batch", "drop_last", "max_batch_nodes", "average_over"),
)
"""Training settings that leave no trace in a key at their default."""
_ENVIRONMENT_LOOP = ("epochs", "batch_size", "lr", "weight_decay", "optimizer", "max_batch_nodes")
"""Training settings that environments use which train networks."""


def _last_part(path: Any) -> Any:
    return [_last_part(item) for item in path] if isinstance(path, list) else path and PurePath(path).name


def upstream_identity(upstream: Mapping[str, UpstreamStage]) -> dict[str, Any]:
    """Return the upstream stages' part of a key; the default checkpoint leaves no trace."""
    return {
        role: item.key if item.checkpoint == "best-val" else [item.key, item.checkpoint]
        for role, item in upstream.items()
    }


def model_identity(configuration: Configuration) -> dict[str, Any]:
    """Return the part of a key that readout and head have."""
    return {"readout": configuration.model.readout, "head_layers": configuration.model.head_layers}


def train_identity(train: TrainSettings) -> dict[str, Any]:
    """Return the training settings' part of a key, once those without effect have their defaults."""
    silent = [name for name in _SILENT_DEFAULTS if getattr(train, name) == getattr(TrainSettings, name)]
    return {name: value for name, value in vars(train).items() if name not in silent}


class Components:
    """Reads components and configurations with the facts of a catalog."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def entry(self, spec: ComponentSpec) -> Entry:
        """Return the catalog's entry of a component."""
        return self._catalog.get(spec.kind, spec.name)

    def identity(self, spec: ComponentSpec) -> dict[str, Any]:
        """Return a component's part of a key: kind, name, source and the values that differ from the defaults."""
        entry = self.entry(spec)
        paths = {*entry.traits.get("names_code", ()), *entry.traits.get("names_files", ())}
        changed = entry.changed(spec.params).items()
        params = {name: _last_part(value) if name in paths else value for name, value in changed}
        return {"kind": entry.kind, "name": entry.name, "source": entry.digest, "params": params}

    def reference(self, spec: ComponentSpec) -> dict[str, Any]:
        """Return the facts from which a worker constructs a component."""
        entry = self.entry(spec)
        names = ("kind", "name", "module", "qualname", "file", "plugin", "files")
        params = effective(entry.hparams, spec.params)[0]
        if entry.plugin != BUILT_IN:  # a default that its module computes may be another in the worker
            params = entry.defaults | params
        return {name: getattr(entry, name) for name in names} | {"params": params}

    def brief(self, spec: ComponentSpec) -> str:
        """Return a component for people: its name, and in parentheses the values that differ from the defaults."""
        changed = self.entry(spec).changed(spec.params)
        inner = ", ".join(f"{name}={value}" for name, value in changed.items() if not isinstance(value, list))
        return f"{spec.name} ({inner})" if inner else spec.name

    def networks(self, configuration: Configuration) -> NetworkSettings:
        """Return the facts from which a worker makes and trains the suite's networks."""
        model = configuration.model
        return NetworkSettings(
            backbone=self.reference(model.backbone),
            readout=model.readout,
            head_layers=model.head_layers,
            settings=configuration.train,
        )

    def networks_identity(self, configuration: Configuration) -> dict[str, Any]:
        """Return the networks' part of the key of environments that train some."""
        train = train_identity(configuration.train.effective({ENVIRONMENTS: "none"}))
        return {
            "backbone": self.identity(configuration.model.backbone),
            "model": model_identity(configuration),
            "train": {name: train[name] for name in _ENVIRONMENT_LOOP if name in train},
        }

    def upstream(
        self, spec: ComponentSpec, configuration: Configuration
    ) -> Iterator[tuple[str, ComponentSpec, Configuration, str]]:
        """Yield role, component, configuration and checkpoint of each training or environment that one builds on.

        Raises:
            UserError: the class declares what cannot be.
        """
        entry = self.entry(spec)
        values = {**entry.defaults, **spec.params}
        for role, declared in sorted(entry.traits.get("upstream", {}).items()):
            told = f"{entry.kind} '{entry.name}', upstream '{role}'"
            for name in _hyperparameters(declared):
                if name not in values:
                    raise UserError(f"{told}: it has no hyperparameter '{name}'{did_you_mean(name, values)}")
            if not holds(declared["when"], values):
                continue
            wanted = filled(declared, values)
            target = self._catalog.get(wanted["kind"], wanted["name"])
            params = _sound(wanted["params"], target.hparams, told)
            checkpoint = _sound({"checkpoint": wanted["checkpoint"]}, SELECT, told).get("checkpoint", "best-val")
            component, below = ComponentSpec(target.kind, target.name, params), configuration
            if target.kind in LEARNER_KINDS:
                train = replace(configuration.train, **_sound(wanted["train"], TRAIN, told))
                below = Configuration("-", {}, component, None, None, configuration.model, train)
            yield role, component, below, checkpoint


def _hyperparameters(declared: Mapping[str, Any]) -> list[str]:
    """Return the names of hyperparameters on which a declared upstream stage depends."""
    values = [declared["name"], declared["checkpoint"], *declared["params"].values(), *declared["train"].values()]
    return [*declared["when"], *(value[1:] for value in values if isinstance(value, str) and value.startswith("$"))]


def _sound(values: Mapping[str, Any], known: Mapping[str, HParam], told: str) -> dict[str, Any]:
    """Return those values that are given.

    Raises:
        UserError: there is no such value, or it is wrong; the text begins with ``told``.
    """
    given = {name: value for name, value in values.items() if value is not None}
    for name, value in given.items():
        if name not in known:
            raise UserError(f"{told}: there is no '{name}'{did_you_mean(name, known)}")
        try:
            known[name].coerce(value)
        except ValueError as error:
            raise UserError(f"{told}: '{name}': {error}") from None
    return given
