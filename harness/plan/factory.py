"""Make the stages of a cell, each with its preimage, key and payload. No torch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from harness.component import LEARNER_KINDS
from harness.data import Declaration
from harness.errors import UserError
from harness.hparams import ENVIRONMENTS
from harness.plan.components import Components, model_identity, train_identity, upstream_identity
from harness.plan.datasets import Declarations
from harness.stages.payloads import (
    AnnotatePayload,
    DataPayload,
    EncodePayload,
    PreparePayload,
    QuantifyPayload,
    ScorePayload,
    TrainPayload,
    UpstreamStage,
)
from harness.store import PROTOCOL_VERSION, Stage, digest, tier_key
from harness.suite.spec import ComponentSpec, Configuration, DatasetSpec, Pipeline, Row

_MAX_UPSTREAM = 8


def make_stage(kind: str, preimage: Mapping[str, Any], payload: Any, **others: Any) -> Stage:
    """Return a stage, whose key is the digest of its kind, the protocol's version and the rest of its preimage."""
    preimage = {"stage": kind, "protocol": PROTOCOL_VERSION, **preimage}
    return Stage(kind=kind, key=digest(preimage), preimage=preimage, payload=payload, **others)


@dataclass(frozen=True)
class Data:
    """A dataset in a plan.

    Attributes:
        prepared: the stage that builds it.
        payload: the arguments of :class:`DataPayload` but the seed, for all stages that read it.
    """

    spec: DatasetSpec
    declared: Declaration
    prepared: Stage
    payload: Mapping[str, Any]

    def stage(
        self,
        kind: str,
        component: str,
        preimage: Mapping[str, Any],
        payload: DataPayload | ScorePayload,
        inputs: Iterable[str],
        title: str,
    ) -> Stage:
        """Return a stage of a component that reads this dataset, and the artifacts with the keys ``inputs``."""
        return make_stage(
            kind,
            preimage,
            payload,
            place=f"{kind}/{self.spec.component.name}/{component}",
            inputs=(self.prepared.key, *inputs),
            title=title,
            in_parent=kind == "score",
        )


def planned_data(dataset: DatasetSpec, components: Components, facts: Declarations) -> Data:
    """Return a dataset with its declaration and the stage that builds it.

    Raises:
        DataError: an input file is missing or cannot be read.
    """
    spec, declared = dataset.component, facts.declare(dataset.component)
    preimage = {"dataset": components.identity(spec), "files": facts.files(spec)}
    payload = PreparePayload(dataset=components.reference(spec), declared=asdict(declared))
    place, title = f"prepare/{spec.name}", f"prepare {dataset.label}"
    prepared = make_stage("prepare", preimage, payload, place=place, title=title)
    outputs = tuple(tier_key(prepared.key, tier) for tier in ("oracle", "sealed"))
    facts_of_data = {
        "data": prepared.key,
        "task": declared.task,
        "node_features": declared.node_features,
        "edge_features": declared.edge_features,
        "splits": list(declared.splits),
        "train": next(split for split, role in declared.splits.items() if role == "train"),
        "validation": [split for split, role in declared.splits.items() if role == "val"],
    }
    return Data(dataset, declared, replace(prepared, outputs=outputs), facts_of_data)


@dataclass(frozen=True)
class RowStages:
    """Makes the stages of a method on a dataset, those of a configuration for all seeds at once.

    Equal inputs give equal keys, whatever the suite around them.
    """

    components: Components
    data: Data
    row: Row
    seeds: Sequence[int]

    @property
    def monitor(self) -> str:
        """The validation split that chooses checkpoints."""
        chosen = self.row.select.split
        return self.data.declared.default_val if chosen == "auto" else chosen

    def cells(self, configuration: Configuration) -> list[list[Stage]]:
        """Return for each seed all stages of a cell, inputs first; the last two are its training and its score."""
        learner = configuration.learner.name
        chains = self._training(configuration, self.row.method)
        return [[self.data.prepared, *chain, _score(self.data, learner, chain[-1])] for chain in chains]

    def _training(self, configuration: Configuration, name: str, depth: int = 0) -> list[list[Stage]]:
        """Return for each seed the stages of a training, itself last; ``name`` is for titles."""
        components, data, spec = self.components, self.data, configuration.learner
        traits = components.entry(spec).traits
        environment = configuration.environment if "environments" in traits.get("needs", ()) else None
        drawn = environment if environment and components.entry(environment).traits.get("per_batch") else None
        fixed = None if drawn else environment
        used = configuration.train.effective({ENVIRONMENTS: "fixed" if fixed else "none"})
        trained = replace(configuration, train=used)
        none: list[list[Stage]] = [[] for _ in self.seeds]
        quantified = self._encode_and_quantify(trained.pipeline) if trained.pipeline else none
        annotated = self._annotation(fixed, trained, depth) if fixed else none
        upstream = self._upstream(spec, trained, depth)
        identity = {
            "learner": components.identity(spec),
            "backbone": components.identity(trained.model.backbone),
            "model": model_identity(trained),
            "train": train_identity(trained.train),
            "data": data.prepared.key,
            "environment": components.identity(drawn) if drawn else None,
            "monitor": self.monitor,
        }
        settings = {
            **data.payload,
            "networks": components.networks(trained),
            "learner": components.reference(spec),
            "environment": components.reference(drawn) if drawn else None,
            "monitor": self.monitor,
        }
        suffix = "" if trained.id == "-" else f" ({trained.id})"
        chains = []
        for seed, before, annotation, (roles, below) in zip(self.seeds, quantified, annotated, upstream, strict=True):
            read: dict[str, Any] = {"quantify": [stage.key for stage in before if stage.kind == "quantify"]}
            annotate = annotation[-1].key if annotation else None
            preimage = {**identity, **read, "upstream": upstream_identity(roles), "seed": seed}
            if annotate:
                preimage["environment"] = annotate
            payload = TrainPayload(**settings, **read, annotate=annotate, upstream=roles, seed=seed)
            inputs = [*([annotate] if annotate else []), *read["quantify"], *(item.key for item in roles.values())]
            title = f"train {name} on {data.spec.label}, seed {seed}{suffix}"
            train = data.stage("train", spec.name, preimage, payload, inputs, title)
            chains.append([*before, *annotation, *below, train])
        return chains

    def _encode_and_quantify(self, pipeline: Pipeline) -> list[list[Stage]]:
        """Return for each seed one encode and one quantify stage for each architecture of the pool."""
        components, data, quantifier = self.components, self.data, pipeline.quantifier
        fields = sorted(components.entry(quantifier).traits.get("oracle", ()))
        identity = {"quantifier": components.identity(quantifier), **({"oracle": fields} if fields else {})}
        settings = {
            **data.payload,
            "quantifier": components.reference(quantifier),
            "oracle": data.prepared.outputs[0],
            "fields": fields,
        }
        chains: list[list[Stage]] = [[] for _ in self.seeds]
        for encoder in pipeline.encoders:
            place, brief = f"{quantifier.name}/{encoder.name}", components.brief(encoder)
            own_identity, own_reference = components.identity(encoder), components.reference(encoder)
            for seed, chain in zip(self.seeds, chains, strict=True):
                title = f"{brief} on {data.spec.label}, seed {seed}"
                preimage = {"encoder": own_identity, "data": data.prepared.key, "seed": seed}
                encoding = EncodePayload(**data.payload, encoder=own_reference, seed=seed)
                encode = data.stage("encode", encoder.name, preimage, encoding, (), f"encode {title}")
                preimage = {**identity, "seed": seed, "encode": encode.key}
                fit = QuantifyPayload(**settings, encode=encode.key, seed=seed)
                quantify = data.stage("quantify", place, preimage, fit, [encode.key], f"quantify {title}")
                chain += [encode, quantify]
        return chains

    def _annotation(self, spec: ComponentSpec, configuration: Configuration, depth: int) -> list[list[Stage]]:
        """Return for each seed the stages of an environment component, that which annotates last."""
        components, data = self.components, self.data
        entry = components.entry(spec)
        trains = bool(entry.traits.get("trains_networks"))
        fields = sorted(entry.traits.get("oracle", ()))
        identity = {
            "environment": components.identity(spec),
            "data": data.prepared.key,
            "oracle": fields,
            **(components.networks_identity(configuration) if trains else {}),
        }
        settings = {
            **data.payload,
            "networks": components.networks(configuration) if trains else None,
            "environment": components.reference(spec),
            "oracle": data.prepared.outputs[0],
            "fields": fields,
        }
        brief = components.brief(spec)
        chains = []
        for seed, (roles, below) in zip(self.seeds, self._upstream(spec, configuration, depth), strict=True):
            preimage = {**identity, "upstream": upstream_identity(roles), "seed": seed}
            payload = AnnotatePayload(**settings, upstream=roles, seed=seed)
            title = f"annotate {brief} on {data.spec.label}, seed {seed}"
            inputs = [item.key for item in roles.values()]
            chains.append([*below, data.stage("annotate", entry.name, preimage, payload, inputs, title)])
        return chains

    def _upstream(
        self, spec: ComponentSpec, configuration: Configuration, depth: int
    ) -> list[tuple[dict[str, UpstreamStage], list[Stage]]]:
        """Return for each seed role -> the stage on which a component builds, and all stages of these.

        Raises:
            UserError: the component builds on itself.
        """
        if depth > _MAX_UPSTREAM:
            raise UserError(f"'{spec.name}' builds on stages that build on it")
        found: list[tuple[dict[str, UpstreamStage], list[Stage]]] = [({}, []) for _ in self.seeds]
        for role, component, used, checkpoint in self.components.upstream(spec, configuration):
            kind = component.kind
            if kind in LEARNER_KINDS:
                chains = self._training(used, component.name, depth + 1)
            else:
                chains = self._annotation(component, used, depth + 1)
            for (roles, below), chain in zip(found, chains, strict=True):
                below.extend(chain)
                key, payload = chain[-1].key, chain[-1].payload
                roles[role] = UpstreamStage(kind=kind, key=key, checkpoint=checkpoint, payload=payload)
        return found


def _score(data: Data, learner: str, train: Stage) -> Stage:
    preimage = {"sealed": data.prepared.outputs[1], "train": train.key}
    splits = {split: role for split, role in data.declared.splits.items() if role != "train"}
    payload = ScorePayload(**preimage, data=data.prepared.key, task=data.declared.task, splits=splits)
    return data.stage("score", learner, preimage, payload, (train.key,), train.title.replace("train ", "score ", 1))
