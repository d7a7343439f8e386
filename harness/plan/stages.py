"""Make each stage with its preimage, key and payload."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from harness.catalog import Catalog, Entry
from harness.component import LEARNER_KINDS
from harness.data import Declaration
from harness.errors import UserError
from harness.keys import digest
from harness.plan.datasets import DatasetFacts
from harness.spec import ComponentSpec, Configuration, DatasetSpec, Pipeline, Row, TrainSettings
from harness.stage import Stage

PROTOCOL_VERSION = 1
"""Part of every key; bumped when a default of the harness changes what a stage computes."""

_MAX_UPSTREAM = 8
_LOOP = (
    *("epochs", "batch_size", "eval_batch_size", "patience", "warmup"),
    *("lr_drop_epoch", "lr_drop_factor", "groups_per_batch", "drop_last", "max_batch_nodes"),
)
_SILENT_DEFAULTS = (
    *("optimizer", "lr_drop_epoch", "lr_drop_factor"),
    *("groups_per_batch", "drop_last", "max_batch_nodes"),
)
"""Training settings that leave no trace in a key at their default."""


class StageFactory:
    """Makes the chain of stages of a cell; equal inputs give equal keys, whatever the suite around them."""

    def __init__(self, catalog: Catalog, facts: DatasetFacts) -> None:
        self._catalog, self._facts = catalog, facts
        self._prepared: dict[str, Stage] = {}

    def cell(self, dataset: DatasetSpec, row: Row, configuration: Configuration, seed: int) -> list[Stage]:
        """All stages of a cell, inputs first; the last two are its training and its score."""
        declared = self._facts.declare(dataset.component)
        monitor = declared.default_val if row.select.split == "auto" else row.select.split
        where = _Place(dataset, declared, self.prepare(dataset), seed, monitor, row.method)
        chain = self._training(where, configuration)
        return [where.prepared, *chain, self._score(where, chain[-1])]

    def prepare(self, dataset: DatasetSpec) -> Stage:
        """The stage that builds a dataset."""
        spec = dataset.component
        entry = self._catalog.get("dataset", spec.name)
        preimage = _preimage("prepare", dataset=identity(entry, spec), files=self._facts.files(spec))
        key = digest(preimage)
        if key not in self._prepared:
            self._prepared[key] = Stage(
                kind="prepare",
                key=key,
                place=f"prepare/{spec.name}",
                preimage=preimage,
                payload={"dataset": reference(entry, spec)},
                title=f"prepare {dataset.label}",
                outputs=(tier_key(key, "oracle"), tier_key(key, "sealed")),
            )
        return self._prepared[key]

    def _training(self, where: _Place, configuration: Configuration, depth: int = 0) -> list[Stage]:
        """Upstream stages and then the training of one configuration."""
        if depth > _MAX_UPSTREAM:
            raise UserError(f"'{configuration.learner.name}' builds on stages that build on it")
        pipeline = self._pipeline(where, configuration.pipeline) if configuration.pipeline else []
        environment = self._environment(where, configuration, depth)
        configuration = configuration if environment else _shuffled(configuration)
        entry = self._catalog.get(configuration.learner.kind, configuration.learner.name)
        upstream, before = self._upstream(where, entry, configuration.learner, configuration, depth)
        backbone = self._catalog.get("backbone", configuration.model.backbone.name)
        quantified = [stage.key for stage in pipeline if stage.kind == "quantify"]
        model, train = configuration.model, configuration.train
        needs_env = "environments" in entry.traits.get("needs", ()) and configuration.environment is not None
        drawn = configuration.environment if needs_env and not environment else None
        preimage = _preimage(
            "train",
            learner=identity(entry, configuration.learner),
            backbone=identity(backbone, model.backbone),
            model={"readout": model.readout, "head_layers": model.head_layers},
            train=_train_identity(train),
            data=where.prepared.key,
            environment=environment[-1].key if environment else self._drawn(drawn),
            quantify=quantified,
            monitor=where.monitor,
            upstream=_upstream_identity(upstream),
            seed=where.seed,
        )
        payload = {
            **where.payload(),
            "learner": reference(entry, configuration.learner),
            **self._networks(configuration),
            "monitor": where.monitor,
            "annotate": environment[-1].key if environment else None,
            "environment": None if drawn is None else self._drawn_reference(drawn),
            "quantify": quantified,
            "upstream": upstream,
        }
        annotated = [environment[-1].key] if environment else []
        inputs = (where.prepared.key, *annotated, *quantified, *(item["key"] for item in upstream.values()))
        stage = _stage("train", where, entry.name, preimage, payload, inputs)
        title = f"train {where.method or entry.name} on {where.dataset.label}, seed {where.seed}"
        suffix = "" if configuration.id == "-" else f" ({configuration.id})"
        return [*pipeline, *environment, *before, replace(stage, title=title + suffix)]

    def _networks(self, configuration: Configuration) -> dict[str, Any]:
        """What a worker needs to make and train the suite's networks."""
        model, train = configuration.model, configuration.train
        return {
            "backbone": reference(self._catalog.get("backbone", model.backbone.name), model.backbone),
            "readout": model.readout,
            "head_layers": model.head_layers,
            "lr": train.lr,
            "weight_decay": train.weight_decay,
            "optimizer": train.optimizer,
            "loop": {name: getattr(train, name) for name in _LOOP},
        }

    def _networks_identity(self, configuration: Configuration) -> dict[str, Any]:
        """What of the suite's networks enters the key of environments that train some."""
        model, train = configuration.model, _train_identity(configuration.train)
        used = ("epochs", "batch_size", "lr", "weight_decay", "optimizer", "max_batch_nodes")
        return {
            "backbone": identity(self._catalog.get("backbone", model.backbone.name), model.backbone),
            "model": {"readout": model.readout, "head_layers": model.head_layers},
            "train": {name: train[name] for name in used if name in train},
        }

    def _drawn(self, environment: ComponentSpec | None) -> Any:
        if environment is None:
            return None
        return identity(self._catalog.get("environment", environment.name), environment)

    def _drawn_reference(self, environment: ComponentSpec) -> dict[str, Any]:
        return reference(self._catalog.get("environment", environment.name), environment)

    def _pipeline(self, where: _Place, pipeline: Pipeline) -> list[Stage]:
        """One encode and one quantify stage per architecture of the pool."""
        stages: list[Stage] = []
        quantifier = self._catalog.get("quantifier", pipeline.quantifier.name)
        for spec in pipeline.encoders:
            entry = self._catalog.get("encoder", spec.name)
            preimage = _preimage("encode", encoder=identity(entry, spec), data=where.prepared.key, seed=where.seed)
            payload = {**where.payload(), "encoder": reference(entry, spec)}
            encode = _stage("encode", where, entry.name, preimage, payload, (where.prepared.key,), _brief(entry, spec))
            preimage = _preimage(
                "quantify", quantifier=identity(quantifier, pipeline.quantifier), encode=encode.key, seed=where.seed
            )
            payload = {
                **where.payload(),
                "quantifier": reference(quantifier, pipeline.quantifier),
                "encode": encode.key,
            }
            inputs = (where.prepared.key, encode.key)
            place = f"{quantifier.name}/{entry.name}"
            stages += [encode, _stage("quantify", where, place, preimage, payload, inputs, _brief(entry, spec))]
        return stages

    def _environment(self, where: _Place, configuration: Configuration, depth: int) -> list[Stage]:
        """The stages of a learner's fixed environments; nothing for none or per-batch ones."""
        learner = self._catalog.get(configuration.learner.kind, configuration.learner.name)
        spec = configuration.environment
        if spec is None or "environments" not in learner.traits.get("needs", ()):
            return []
        if self._catalog.get("environment", spec.name).traits.get("per_batch"):
            return []
        return self._annotate(where, spec, configuration, depth)

    def _annotate(self, where: _Place, spec: ComponentSpec, configuration: Configuration, depth: int) -> list[Stage]:
        """Upstream stages and then the annotate stage of one environment component."""
        entry = self._catalog.get("environment", spec.name)
        fields = sorted(entry.traits.get("oracle", ()))
        upstream, before = self._upstream(where, entry, spec, configuration, depth)
        trains = bool(entry.traits.get("trains_networks"))
        preimage = _preimage(
            "annotate",
            environment=identity(entry, spec),
            data=where.prepared.key,
            oracle=fields,
            upstream=_upstream_identity(upstream),
            seed=where.seed,
            **(self._networks_identity(configuration) if trains else {}),
        )
        payload = {
            **where.payload(),
            **(self._networks(configuration) if trains else {}),
            "environment": reference(entry, spec),
            "oracle": where.prepared.outputs[0],
            "fields": fields,
            "upstream": upstream,
        }
        inputs = (where.prepared.key, *(item["key"] for item in upstream.values()))
        return [*before, _stage("annotate", where, entry.name, preimage, payload, inputs, _brief(entry, spec))]

    def _upstream(
        self, where: _Place, entry: Entry, spec: ComponentSpec, configuration: Configuration, depth: int
    ) -> tuple[dict[str, Any], list[Stage]]:
        """The stages that a component declares as upstream: role -> how to read it, and the stages themselves."""
        values = {**entry.defaults, **spec.params}
        roles: dict[str, Any] = {}
        stages: list[Stage] = []
        for role, declared in sorted(entry.traits.get("upstream", {}).items()):
            if any(values.get(name) not in allowed for name, allowed in declared["when"].items()):
                continue
            target = self._catalog.get(declared["kind"], declared["name"])
            other = ComponentSpec(target.kind, target.name, _filled(declared["params"], values))
            train = replace(configuration.train, **_filled(declared["train"], values))
            if target.kind in LEARNER_KINDS:
                below = Configuration("-", {}, other, None, None, configuration.model, train)
                chain = self._training(replace(where, method=""), below, depth + 1)
            else:
                chain = self._annotate(where, other, configuration, depth + 1)
            last = chain[-1]
            stages += chain
            checkpoint = _filled({"rule": declared["checkpoint"]}, values).get("rule", "best-val")
            roles[role] = {
                "kind": target.kind,
                "key": last.key,
                "checkpoint": checkpoint,
                "stage": {"key": last.key, "payload": last.payload},
            }
        return roles, stages

    def _score(self, where: _Place, train: Stage) -> Stage:
        sealed = where.prepared.outputs[1]
        preimage = _preimage("score", train=train.key, sealed=sealed)
        payload = {
            "train": train.key,
            "data": where.prepared.key,
            "sealed": sealed,
            "task": asdict(where.declared.task),
            "splits": {split: role for split, role in where.declared.splits.items() if role != "train"},
        }
        stage = _stage(
            "score", where, train.place.rsplit("/", 1)[-1], preimage, payload, (where.prepared.key, train.key)
        )
        return replace(stage, in_parent=True, title=train.title.replace("train ", "score ", 1))


@dataclass(frozen=True)
class _Place:
    """Where a cell's stages are: dataset, its declaration and prepared tiers, seed, monitored split, method."""

    dataset: DatasetSpec
    declared: Declaration
    prepared: Stage
    seed: int
    monitor: str
    method: str

    def payload(self) -> dict[str, Any]:
        """What every body that reads the data needs."""
        roles = self.declared.splits
        return {
            "data": self.prepared.key,
            "seed": self.seed,
            "task": asdict(self.declared.task),
            "node_features": asdict(self.declared.node_features),
            "edge_features": asdict(self.declared.edge_features),
            "splits": list(roles),
            "train": next(split for split, role in roles.items() if role == "train"),
            "validation": [split for split, role in roles.items() if role == "val"],
        }


def tier_key(key: str, tier: str) -> str:
    """Key of the oracle or sealed tier of a prepared dataset."""
    return digest({"tier": tier, "of": key})


def _preimage(kind: str, **parts: Any) -> dict[str, Any]:
    return {"stage": kind, "protocol": PROTOCOL_VERSION, **parts}


def _stage(
    kind: str,
    where: _Place,
    component: str,
    preimage: Mapping[str, Any],
    payload: Mapping[str, Any],
    inputs: tuple[str, ...],
    brief: str = "",
) -> Stage:
    return Stage(
        kind=kind,
        key=digest(preimage),
        place=f"{kind}/{where.dataset.component.name}/{component}",
        preimage=preimage,
        inputs=inputs,
        payload=payload,
        title=f"{kind} {brief or component} on {where.dataset.label}, seed {where.seed}",
    )


def identity(entry: Entry, spec: ComponentSpec) -> dict[str, Any]:
    """What of a component enters a key: kind, name, source and the values that differ from the defaults."""
    return {"kind": entry.kind, "name": entry.name, "source": entry.digest, "params": entry.changed(spec.params)}


def reference(entry: Entry, spec: ComponentSpec) -> dict[str, Any]:
    """What a worker needs to construct a component."""
    place = {name: getattr(entry, name) for name in ("kind", "name", "module", "qualname", "file", "plugin")}
    return {**place, "params": dict(spec.params)}


def _brief(entry: Entry, spec: ComponentSpec) -> str:
    changed = entry.changed(spec.params)
    inner = ", ".join(f"{name}={value}" for name, value in changed.items() if not isinstance(value, list))
    return f"{entry.name} ({inner})" if inner else entry.name


def _shuffled(configuration: Configuration) -> Configuration:
    """The same without ``groups_per_batch``, which says nothing to a training without fixed environments."""
    return replace(configuration, train=replace(configuration.train, groups_per_batch=0))


def _train_identity(train: TrainSettings) -> dict[str, Any]:
    """What of the training settings enters a key."""
    default = TrainSettings()
    used = train if train.lr_drop_epoch else replace(train, lr_drop_factor=default.lr_drop_factor)
    silent = [name for name in _SILENT_DEFAULTS if getattr(used, name) == getattr(default, name)]
    return {name: value for name, value in asdict(used).items() if name not in silent}


def _upstream_identity(upstream: Mapping[str, Any]) -> dict[str, Any]:
    """What of the upstream stages enters a key; the default checkpoint leaves no trace."""
    return {
        role: item["key"] if item["checkpoint"] == "best-val" else [item["key"], item["checkpoint"]]
        for role, item in upstream.items()
    }


def _filled(params: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Replace ``$name`` by the component's value of that hyperparameter; leave out those that are None."""
    filled = {
        name: values[value[1:]] if isinstance(value, str) and value.startswith("$") else value
        for name, value in params.items()
    }
    return {name: value for name, value in filled.items() if value is not None}
