"""Make each stage with its preimage, key and payload."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from harness.catalog import Catalog
from harness.component import LEARNER_KINDS
from harness.data import Declaration
from harness.errors import UserError
from harness.keys import digest
from harness.plan.datasets import DatasetFacts
from harness.plan.identity import brief, filled, identity, reference, train_identity, upstream_identity
from harness.plan.shared import Shared
from harness.spec import ComponentSpec, Configuration, DatasetSpec, Pipeline, Row
from harness.stage import Stage

PROTOCOL_VERSION = 1
"""Part of every key; bumped when a default of the harness changes what a stage computes."""

_MAX_UPSTREAM = 8
_LOOP = (
    *("epochs", "batch_size", "eval_batch_size", "patience", "warmup"),
    *("lr_drop_epoch", "lr_drop_factor", "groups_per_batch", "drop_last", "max_batch_nodes"),
)


class StageFactory:
    """Makes the chain of stages of a cell; equal inputs give equal keys, whatever the suite around them.

    What cells have in common (components, settings, what is said of a dataset, whole stages) is one object, made once:
    of a hundred thousand cells little more is kept and made than in what they differ.
    """

    def __init__(self, catalog: Catalog, facts: DatasetFacts) -> None:
        self._catalog, self._facts = catalog, facts
        self._prepared: dict[str, Stage] = {}
        self._shared = Shared()

    def cell(self, dataset: DatasetSpec, row: Row, configuration: Configuration, seed: int) -> list[Stage]:
        """All stages of a cell, inputs first; the last two are its training and its score."""
        data = self._shared.of(lambda: self._data(dataset), "data", dataset)
        monitor = data.declared.default_val if row.select.split == "auto" else row.select.split
        where = _Place(data, seed, monitor, row.method)
        chain = self._training(where, configuration)
        return [data.prepared, *chain, self._score(where, chain[-1])]

    def _data(self, dataset: DatasetSpec) -> _Data:
        declared, prepared = self._facts.declare(dataset.component), self.prepare(dataset)
        roles = declared.splits
        payload = {
            "data": prepared.key,
            "task": asdict(declared.task),
            "node_features": asdict(declared.node_features),
            "edge_features": asdict(declared.edge_features),
            "splits": list(roles),
            "train": next(split for split, role in roles.items() if role == "train"),
            "validation": [split for split, role in roles.items() if role == "val"],
        }
        scored = {split: role for split, role in roles.items() if role != "train"}
        return _Data(dataset, declared, prepared, payload, scored)

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
        pipeline = self._pipeline(where, configuration.pipeline) if configuration.pipeline else []
        learner = self._shared.of(lambda: self._learner(configuration), "learner", configuration)
        configuration, annotating = learner.configuration, learner.annotating
        environment = self._annotate(where, annotating, configuration, depth) if annotating else []
        upstream, before = self._upstream(where, configuration.learner, configuration, depth)
        quantified = [stage.key for stage in pipeline if stage.kind == "quantify"]
        annotated = environment[-1].key if environment else None
        preimage = _preimage(
            "train",
            **learner.preimage,
            data=where.prepared.key,
            environment=annotated or learner.drawn_identity,
            quantify=quantified,
            monitor=where.monitor,
            upstream=upstream_identity(upstream),
            seed=where.seed,
        )
        payload = {
            **where.payload(),
            **learner.payload,
            "monitor": where.monitor,
            "annotate": annotated,
            "quantify": quantified,
            "upstream": upstream,
        }
        inputs = ([annotated] if annotated else []) + quantified + [item["key"] for item in upstream.values()]
        name = configuration.learner.name
        suffix = "" if configuration.id == "-" else f" ({configuration.id})"
        title = f"train {where.method or name} on {where.label}, seed {where.seed}{suffix}"
        stage = self._stage("train", where, name, preimage, payload, inputs, title)
        return [*pipeline, *environment, *before, stage]

    def _learner(self, configuration: Configuration) -> _Learner:
        """What of a training follows from its configuration alone."""
        traits = self._catalog.get(configuration.learner.kind, configuration.learner.name).traits
        environment = configuration.environment if "environments" in traits.get("needs", ()) else None
        drawn = environment and self._catalog.get("environment", environment.name).traits.get("per_batch")
        if not environment or drawn:
            configuration = self._shuffled(configuration)
        preimage = {
            "learner": self._identity(configuration.learner),
            "backbone": self._identity(configuration.model.backbone),
            "model": self._model(configuration),
            "train": self._train_identity(configuration),
        }
        payload = {
            "learner": self._reference(configuration.learner),
            **self._networks(configuration),
            "environment": self._reference(environment) if environment and drawn else None,
        }
        identity = self._identity(environment) if environment and drawn else None
        return _Learner(configuration, None if drawn else environment, identity, preimage, payload)

    def _identity(self, spec: ComponentSpec) -> dict[str, Any]:
        return self._shared.of(lambda: identity(self._catalog.get(spec.kind, spec.name), spec), "identity", spec)

    def _reference(self, spec: ComponentSpec) -> dict[str, Any]:
        return self._shared.of(lambda: reference(self._catalog.get(spec.kind, spec.name), spec), "reference", spec)

    def _brief(self, spec: ComponentSpec) -> str:
        return self._shared.of(lambda: brief(self._catalog.get(spec.kind, spec.name), spec), "brief", spec)

    def _model(self, configuration: Configuration) -> dict[str, Any]:
        model = configuration.model
        return self._shared.of(
            lambda: {"readout": model.readout, "head_layers": model.head_layers}, "readout and head", model
        )

    def _train_identity(self, configuration: Configuration) -> dict[str, Any]:
        train = configuration.train
        return self._shared.of(lambda: train_identity(train), "settings", train)

    def _shuffled(self, configuration: Configuration) -> Configuration:
        """The same without ``groups_per_batch``, which says nothing to a training without fixed environments."""
        train = configuration.train
        if not train.groups_per_batch:
            return configuration
        plain = self._shared.of(lambda: replace(train, groups_per_batch=0), "shuffled", train)
        return self._shared.of(lambda: replace(configuration, train=plain), "shuffled", configuration)

    def _networks(self, configuration: Configuration) -> dict[str, Any]:
        """What a worker needs to make and train the suite's networks."""
        model, train = configuration.model, configuration.train
        return self._shared.of(
            lambda: {
                "backbone": self._reference(model.backbone),
                "readout": model.readout,
                "head_layers": model.head_layers,
                "lr": train.lr,
                "weight_decay": train.weight_decay,
                "optimizer": train.optimizer,
                "loop": {name: getattr(train, name) for name in _LOOP},
            },
            "networks",
            model,
            train,
        )

    def _networks_identity(self, configuration: Configuration) -> dict[str, Any]:
        """What of the suite's networks enters the key of environments that train some."""
        train = self._train_identity(configuration)
        used = ("epochs", "batch_size", "lr", "weight_decay", "optimizer", "max_batch_nodes")
        return {
            "backbone": self._identity(configuration.model.backbone),
            "model": self._model(configuration),
            "train": {name: train[name] for name in used if name in train},
        }

    def _pipeline(self, where: _Place, pipeline: Pipeline) -> list[Stage]:
        """One encode and one quantify stage per architecture of the pool."""
        return self._shared.of(
            lambda: [
                stage
                for encoder in pipeline.encoders
                for stage in self._encode_and_quantify(where, encoder, pipeline.quantifier)
            ],
            "pipeline",
            pipeline.encoders,
            pipeline.quantifier,
            where.data,
            where.seed,
        )

    def _encode_and_quantify(self, where: _Place, encoder: ComponentSpec, quantifier: ComponentSpec) -> list[Stage]:
        preimage = _preimage("encode", encoder=self._identity(encoder), data=where.prepared.key, seed=where.seed)
        payload = {**where.payload(), "encoder": self._reference(encoder)}
        brief = f"{self._brief(encoder)} on {where.label}, seed {where.seed}"
        encode = self._stage("encode", where, encoder.name, preimage, payload, (), f"encode {brief}")
        preimage = _preimage("quantify", quantifier=self._identity(quantifier), encode=encode.key, seed=where.seed)
        payload = {**where.payload(), "quantifier": self._reference(quantifier), "encode": encode.key}
        place = f"{quantifier.name}/{encoder.name}"
        return [encode, self._stage("quantify", where, place, preimage, payload, (encode.key,), f"quantify {brief}")]

    def _annotate(self, where: _Place, spec: ComponentSpec, configuration: Configuration, depth: int) -> list[Stage]:
        """Upstream stages and then the annotate stage of one environment component."""
        traits = self._catalog.get("environment", spec.name).traits
        networks = traits.get("trains_networks") or traits.get("upstream")
        return self._shared.of(
            lambda: self._annotated(where, spec, configuration, depth),
            "annotate",
            *(spec, where.data, where.seed, where.monitor),
            *((configuration.model, configuration.train) if networks else ()),
        )

    def _annotated(self, where: _Place, spec: ComponentSpec, configuration: Configuration, depth: int) -> list[Stage]:
        entry = self._catalog.get("environment", spec.name)
        fields = sorted(entry.traits.get("oracle", ()))
        upstream, before = self._upstream(where, spec, configuration, depth)
        trains = bool(entry.traits.get("trains_networks"))
        preimage = _preimage(
            "annotate",
            environment=self._identity(spec),
            data=where.prepared.key,
            oracle=fields,
            upstream=upstream_identity(upstream),
            seed=where.seed,
            **(self._networks_identity(configuration) if trains else {}),
        )
        payload = {
            **where.payload(),
            **(self._networks(configuration) if trains else {}),
            "environment": self._reference(spec),
            "oracle": where.prepared.outputs[0],
            "fields": fields,
            "upstream": upstream,
        }
        inputs = [item["key"] for item in upstream.values()]
        title = f"annotate {self._brief(spec)} on {where.label}, seed {where.seed}"
        return [*before, self._stage("annotate", where, entry.name, preimage, payload, inputs, title)]

    def _upstream(
        self, where: _Place, spec: ComponentSpec, configuration: Configuration, depth: int
    ) -> tuple[dict[str, Any], list[Stage]]:
        """The stages that a component declares as upstream: role -> how to read it, and the stages themselves.

        Raises:
            UserError: it builds on itself.
        """
        if depth > _MAX_UPSTREAM:
            raise UserError(f"'{spec.name}' builds on stages that build on it")
        roles: dict[str, Any] = {}
        stages: list[Stage] = []
        model, train = configuration.model, configuration.train
        declared = self._shared.of(lambda: self._declared(spec, configuration), "declared upstream", spec, model, train)
        for role, other, below, checkpoint in declared:
            if other.kind in LEARNER_KINDS:
                chain = self._training(where._replace(method=""), below, depth + 1)
            else:
                chain = self._annotate(where, other, below, depth + 1)
            last = chain[-1]
            stages += chain
            roles[role] = {
                "kind": other.kind,
                "key": last.key,
                "checkpoint": checkpoint,
                "stage": {"key": last.key, "payload": last.payload},
            }
        return roles, stages

    def _declared(
        self, spec: ComponentSpec, configuration: Configuration
    ) -> list[tuple[str, ComponentSpec, Configuration, str]]:
        """What a component builds on: role, component, the configuration it is trained with, and the checkpoint."""
        entry = self._catalog.get(spec.kind, spec.name)
        values = {**entry.defaults, **spec.params}
        found = []
        for role, declared in sorted(entry.traits.get("upstream", {}).items()):
            if any(values.get(name) not in allowed for name, allowed in declared["when"].items()):
                continue
            target = self._catalog.get(declared["kind"], declared["name"])
            other = ComponentSpec(target.kind, target.name, filled(declared["params"], values))
            below = configuration
            if target.kind in LEARNER_KINDS:
                train = replace(configuration.train, **filled(declared["train"], values))
                below = Configuration("-", {}, other, None, None, configuration.model, train)
            checkpoint = filled({"rule": declared["checkpoint"]}, values).get("rule", "best-val")
            found.append((role, other, below, checkpoint))
        return found

    def _score(self, where: _Place, train: Stage) -> Stage:
        sealed = where.prepared.outputs[1]
        preimage = _preimage("score", train=train.key, sealed=sealed)
        payload = {
            "train": train.key,
            "data": where.prepared.key,
            "sealed": sealed,
            "task": where.data.payload["task"],
            "splits": where.data.scored,
        }
        component, title = train.place.rsplit("/", 1)[-1], train.title.replace("train ", "score ", 1)
        return self._stage("score", where, component, preimage, payload, (train.key,), title, in_parent=True)

    def _stage(
        self,
        kind: str,
        where: _Place,
        component: str,
        preimage: Mapping[str, Any],
        payload: Mapping[str, Any],
        inputs: Iterable[str],
        title: str,
        *,
        in_parent: bool = False,
    ) -> Stage:
        """A stage that reads the dataset, and the artifacts of the given keys."""
        return Stage(
            kind=kind,
            key=self._shared.digest(preimage),
            place=f"{kind}/{where.data.spec.component.name}/{component}",
            preimage=preimage,
            inputs=(where.prepared.key, *inputs),
            payload=payload,
            title=title,
            in_parent=in_parent,
        )


@dataclass(frozen=True)
class _Data:
    """A dataset: its declaration, its prepared tiers, what bodies are told of it, and its splits that are scored."""

    spec: DatasetSpec
    declared: Declaration
    prepared: Stage
    payload: Mapping[str, Any]
    scored: Mapping[str, str]


class _Learner(NamedTuple):
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


class _Place(NamedTuple):
    """Where a cell's stages are: dataset, seed, monitored split, method."""

    data: _Data
    seed: int
    monitor: str
    method: str

    @property
    def prepared(self) -> Stage:
        """The stage that builds the dataset."""
        return self.data.prepared

    @property
    def label(self) -> str:
        """The dataset's label."""
        return self.data.spec.label

    def payload(self) -> dict[str, Any]:
        """What every body that reads the data needs."""
        return {**self.data.payload, "seed": self.seed}


def tier_key(key: str, tier: str) -> str:
    """Key of the oracle or sealed tier of a prepared dataset."""
    return digest({"tier": tier, "of": key})


def _preimage(kind: str, **parts: Any) -> dict[str, Any]:
    return {"stage": kind, "protocol": PROTOCOL_VERSION, **parts}
