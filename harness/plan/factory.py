"""Make the stages of a cell, each with its preimage, key and payload. No torch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from harness.component import LEARNER_KINDS
from harness.data import Declaration
from harness.errors import UserError
from harness.plan.components import (
    Components,
    model_identity,
    train_identity,
    upstream_identity,
    with_used_settings,
)
from harness.plan.datasets import Declarations
from harness.registry.catalog import Catalog
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


@dataclass(frozen=True)
class Data:
    """A dataset in a plan.

    Attributes:
        prepared: the stage that builds it.
        payload: the arguments of :class:`DataPayload` but the seed, for all stages that read it.
        scored: split -> role of the splits that are scored.
    """

    spec: DatasetSpec
    declared: Declaration
    prepared: Stage
    payload: Mapping[str, Any]
    scored: Mapping[str, str]

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
        preimage = {"stage": kind, "protocol": PROTOCOL_VERSION, **preimage}
        return Stage(
            kind=kind,
            key=digest(preimage),
            place=f"{kind}/{self.spec.component.name}/{component}",
            preimage=preimage,
            inputs=(self.prepared.key, *inputs),
            payload=payload,
            title=title,
            in_parent=kind == "score",
        )


class StageFactory:
    """Makes the stages of a cell; equal inputs give equal keys, whatever the suite around them."""

    def __init__(self, catalog: Catalog, facts: Declarations) -> None:
        self._facts = facts
        self._components = Components(catalog)

    def data(self, dataset: DatasetSpec) -> Data:
        """Return a dataset with its declaration and the stage that builds it.

        Raises:
            DataError: an input file is missing or cannot be read.
        """
        declared = self._facts.declare(dataset.component)
        prepared = self.prepare(dataset)
        roles = declared.splits
        payload = {
            "data": prepared.key,
            "task": declared.task,
            "node_features": declared.node_features,
            "edge_features": declared.edge_features,
            "splits": list(roles),
            "train": next(split for split, role in roles.items() if role == "train"),
            "validation": [split for split, role in roles.items() if role == "val"],
        }
        scored = {split: role for split, role in roles.items() if role != "train"}
        return Data(dataset, declared, prepared, payload, scored)

    def prepare(self, dataset: DatasetSpec) -> Stage:
        """Return the stage that builds a dataset."""
        spec = dataset.component
        components, declared = self._components, self._facts.declare(spec)
        preimage = {
            "stage": "prepare",
            "protocol": PROTOCOL_VERSION,
            "dataset": components.identity(spec),
            "files": self._facts.files(spec),
        }
        key = digest(preimage)
        return Stage(
            kind="prepare",
            key=key,
            place=f"prepare/{spec.name}",
            preimage=preimage,
            payload=PreparePayload(dataset=components.reference(spec), declared=asdict(declared)),
            title=f"prepare {dataset.label}",
            outputs=(tier_key(key, "oracle"), tier_key(key, "sealed")),
        )

    def cell(self, data: Data, row: Row, configuration: Configuration, seed: int) -> list[Stage]:
        """Return all stages of a cell, inputs first; the last two are its training and its score."""
        monitor = data.declared.default_val if row.select.split == "auto" else row.select.split
        chain = self._training(data, monitor, configuration, seed, row.method)
        return [data.prepared, *chain, _score(data, configuration.learner.name, chain[-1])]

    def _training(
        self, data: Data, monitor: str, configuration: Configuration, seed: int, method: str = "", depth: int = 0
    ) -> list[Stage]:
        """Return the stages of a training, itself last."""
        components, spec = self._components, configuration.learner
        traits = components.entry(spec).traits
        environment = configuration.environment if "environments" in traits.get("needs", ()) else None
        drawn = environment if environment and components.entry(environment).traits.get("per_batch") else None
        fixed = None if drawn else environment
        trained = with_used_settings(configuration, "fixed" if fixed else "none")
        quantified = self._encode_and_quantify(data, trained.pipeline, seed) if trained.pipeline else []
        quantify = [stage.key for stage in quantified if stage.kind == "quantify"]
        annotated = self._annotation(data, monitor, fixed, trained, seed, depth) if fixed else []
        annotate = annotated[-1].key if annotated else None
        roles, before = self._upstream(data, monitor, spec, trained, seed, depth)
        preimage = {
            "learner": components.identity(spec),
            "backbone": components.identity(trained.model.backbone),
            "model": model_identity(trained),
            "train": train_identity(trained.train),
            "data": data.prepared.key,
            "environment": components.identity(drawn) if drawn else annotate,
            "monitor": monitor,
            "quantify": quantify,
            "upstream": upstream_identity(roles),
            "seed": seed,
        }
        payload = TrainPayload(
            **data.payload,
            networks=components.networks(trained),
            learner=components.reference(spec),
            environment=components.reference(drawn) if drawn else None,
            monitor=monitor,
            annotate=annotate,
            quantify=quantify,
            upstream=roles,
            seed=seed,
        )
        inputs = [*([annotate] if annotate else []), *quantify, *(item.key for item in roles.values())]
        suffix = "" if trained.id == "-" else f" ({trained.id})"
        title = f"train {method or spec.name} on {data.spec.label}, seed {seed}{suffix}"
        return [*quantified, *annotated, *before, data.stage("train", spec.name, preimage, payload, inputs, title)]

    def _encode_and_quantify(self, data: Data, pipeline: Pipeline, seed: int) -> list[Stage]:
        """Return one encode and one quantify stage for each architecture of the pool."""
        components, quantifier = self._components, pipeline.quantifier
        stages = []
        for encoder in pipeline.encoders:
            title = f"{components.brief(encoder)} on {data.spec.label}, seed {seed}"
            preimage = {"encoder": components.identity(encoder), "data": data.prepared.key, "seed": seed}
            payload = EncodePayload(**data.payload, encoder=components.reference(encoder), seed=seed)
            encode = data.stage("encode", encoder.name, preimage, payload, (), f"encode {title}")
            stages += [encode, self._quantify(data, quantifier, encode, f"{quantifier.name}/{encoder.name}", title)]
        return stages

    def _quantify(self, data: Data, quantifier: ComponentSpec, encode: Stage, place: str, title: str) -> Stage:
        components, seed = self._components, encode.payload.seed
        preimage = {"quantifier": components.identity(quantifier), "seed": seed, "encode": encode.key}
        reference = components.reference(quantifier)
        payload = QuantifyPayload(**data.payload, quantifier=reference, encode=encode.key, seed=seed)
        return data.stage("quantify", place, preimage, payload, [encode.key], f"quantify {title}")

    def _annotation(
        self, data: Data, monitor: str, spec: ComponentSpec, configuration: Configuration, seed: int, depth: int
    ) -> list[Stage]:
        """Return the stages of an environment component, that which annotates last."""
        components = self._components
        entry = components.entry(spec)
        trains = bool(entry.traits.get("trains_networks"))
        fields = sorted(entry.traits.get("oracle", ()))
        roles, before = self._upstream(data, monitor, spec, configuration, seed, depth)
        preimage = {
            "environment": components.identity(spec),
            "data": data.prepared.key,
            "oracle": fields,
            **(components.networks_identity(configuration) if trains else {}),
            "upstream": upstream_identity(roles),
            "seed": seed,
        }
        payload = AnnotatePayload(
            **data.payload,
            networks=components.networks(configuration) if trains else None,
            environment=components.reference(spec),
            oracle=data.prepared.outputs[0],
            fields=fields,
            upstream=roles,
            seed=seed,
        )
        title = f"annotate {components.brief(spec)} on {data.spec.label}, seed {seed}"
        inputs = [item.key for item in roles.values()]
        return [*before, data.stage("annotate", entry.name, preimage, payload, inputs, title)]

    def _upstream(
        self, data: Data, monitor: str, spec: ComponentSpec, configuration: Configuration, seed: int, depth: int
    ) -> tuple[dict[str, UpstreamStage], list[Stage]]:
        """Return role -> the stage on which a component builds, and all stages of these.

        Raises:
            UserError: the component builds on itself.
        """
        if depth > _MAX_UPSTREAM:
            raise UserError(f"'{spec.name}' builds on stages that build on it")
        roles: dict[str, UpstreamStage] = {}
        before: list[Stage] = []
        for item in self._components.upstream(spec, configuration):
            kind = item.component.kind
            if kind in LEARNER_KINDS:
                made = self._training(data, monitor, item.configuration, seed, depth=depth + 1)
            else:
                made = self._annotation(data, monitor, item.component, item.configuration, seed, depth + 1)
            before += made
            key, payload = made[-1].key, made[-1].payload
            roles[item.role] = UpstreamStage(kind=kind, key=key, checkpoint=item.checkpoint, payload=payload)
        return roles, before


def _score(data: Data, learner: str, train: Stage) -> Stage:
    preimage = {"sealed": data.prepared.outputs[1], "train": train.key}
    payload = ScorePayload(**preimage, data=data.prepared.key, task=data.declared.task, splits=data.scored)
    return data.stage("score", learner, preimage, payload, (train.key,), train.title.replace("train ", "score ", 1))
