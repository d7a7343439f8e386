"""Make the stages of a cell, each with its preimage, key and payload. No torch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from harness.component import LEARNER_KINDS
from harness.data import Declaration
from harness.errors import UserError
from harness.plan.components import (
    Components,
    Upstream,
    identity,
    model_identity,
    reference,
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
Chain = Callable[[int], list[Stage]]
"""Makes a stage for a seed: those on which it builds come first, itself last."""


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
    """Makes the chain of stages of a cell; equal inputs give equal keys, whatever the suite around them."""

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
        entry, declared = self._components.entry(spec), self._facts.declare(spec)
        preimage = {
            "stage": "prepare",
            "protocol": PROTOCOL_VERSION,
            "dataset": identity(entry, spec),
            "files": self._facts.files(spec),
        }
        key = digest(preimage)
        return Stage(
            kind="prepare",
            key=key,
            place=f"prepare/{spec.name}",
            preimage=preimage,
            payload=PreparePayload(dataset=reference(entry, spec), declared=asdict(declared)),
            title=f"prepare {dataset.label}",
            outputs=(tier_key(key, "oracle"), tier_key(key, "sealed")),
        )

    def cells(self, data: Data, row: Row, configuration: Configuration, seeds: Iterable[int]) -> Iterator[list[Stage]]:
        """Yield all stages of each seed's cell, inputs first; the last two are its training and its score."""
        monitor = data.declared.default_val if row.select.split == "auto" else row.select.split
        training = self._training(data, monitor, configuration, row.method)
        for seed in seeds:
            chain = training(seed)
            yield [data.prepared, *chain, _score(data, configuration.learner.name, chain[-1])]

    def _training(
        self, data: Data, monitor: str, configuration: Configuration, method: str = "", depth: int = 0
    ) -> Chain:
        """Return the chain of a configuration's training."""
        components, spec = self._components, configuration.learner
        traits = components.entry(spec).traits
        environment = configuration.environment if "environments" in traits.get("needs", ()) else None
        drawn = environment if environment and components.entry(environment).traits.get("per_batch") else None
        fixed = None if drawn else environment
        trained = with_used_settings(configuration, "fixed" if fixed else "none")
        pipeline = self._pipeline(data, trained.pipeline) if trained.pipeline else []
        annotation = self._annotation(data, monitor, fixed, trained, depth) if fixed else None
        upstream = self._upstream(data, monitor, spec, trained, depth)
        preimage = {
            "learner": components.identity(spec),
            "backbone": components.identity(trained.model.backbone),
            "model": model_identity(trained),
            "train": train_identity(trained.train),
            "data": data.prepared.key,
            "environment": components.identity(drawn) if drawn else None,
            "monitor": monitor,
        }
        payload = {
            **data.payload,
            "networks": components.networks(trained),
            "learner": components.reference(spec),
            "environment": components.reference(drawn) if drawn else None,
            "monitor": monitor,
        }
        suffix = "" if trained.id == "-" else f" ({trained.id})"

        def chain(seed: int) -> list[Stage]:
            quantified = [stage for pair in pipeline for stage in pair(seed)]
            quantify = [stage.key for stage in quantified if stage.kind == "quantify"]
            annotated = annotation(seed) if annotation else []
            annotate = annotated[-1].key if annotated else None
            roles, before = upstream(seed)
            training = data.stage(
                "train",
                spec.name,
                {
                    **preimage,
                    "environment": annotate or preimage["environment"],
                    "quantify": quantify,
                    "upstream": upstream_identity(roles),
                    "seed": seed,
                },
                TrainPayload(**payload, annotate=annotate, quantify=quantify, upstream=roles, seed=seed),
                [*([annotate] if annotate else []), *quantify, *(item.key for item in roles.values())],
                f"train {method or spec.name} on {data.spec.label}, seed {seed}{suffix}",
            )
            return [*quantified, *annotated, *before, training]

        return chain

    def _pipeline(self, data: Data, pipeline: Pipeline) -> list[Chain]:
        """Return a chain of one encode and one quantify stage for each architecture of the pool."""
        return [self._encode_and_quantify(data, encoder, pipeline.quantifier) for encoder in pipeline.encoders]

    def _encode_and_quantify(self, data: Data, encoder: ComponentSpec, quantifier: ComponentSpec) -> Chain:
        components = self._components
        encoding = {"encoder": components.identity(encoder), "data": data.prepared.key}
        encoding_payload = {**data.payload, "encoder": components.reference(encoder)}
        quantifying = {"quantifier": components.identity(quantifier)}
        quantify_payload = {**data.payload, "quantifier": components.reference(quantifier)}
        brief = f"{components.brief(encoder)} on {data.spec.label}"

        def chain(seed: int) -> list[Stage]:
            own: dict[str, Any] = {"seed": seed}
            title = f"{brief}, seed {seed}"
            encode_payload = EncodePayload(**encoding_payload, seed=seed)
            encode = data.stage("encode", encoder.name, encoding | own, encode_payload, (), f"encode {title}")
            own = {"seed": seed, "encode": encode.key}
            quantify = data.stage(
                "quantify",
                f"{quantifier.name}/{encoder.name}",
                quantifying | own,
                QuantifyPayload(**quantify_payload, encode=encode.key, seed=seed),
                (encode.key,),
                f"quantify {title}",
            )
            return [encode, quantify]

        return chain

    def _annotation(
        self, data: Data, monitor: str, spec: ComponentSpec, configuration: Configuration, depth: int
    ) -> Chain:
        """Return the chain of an environment component's annotate stage."""
        components = self._components
        entry = components.entry(spec)
        trains = bool(entry.traits.get("trains_networks"))
        fields = sorted(entry.traits.get("oracle", ()))
        upstream = self._upstream(data, monitor, spec, configuration, depth)
        preimage = {
            "environment": components.identity(spec),
            "data": data.prepared.key,
            "oracle": fields,
            **(components.networks_identity(configuration) if trains else {}),
        }
        payload = {
            **data.payload,
            "networks": components.networks(configuration) if trains else None,
            "environment": components.reference(spec),
            "oracle": data.prepared.outputs[0],
            "fields": fields,
        }
        brief = f"annotate {components.brief(spec)} on {data.spec.label}"

        def chain(seed: int) -> list[Stage]:
            roles, before = upstream(seed)
            annotate = data.stage(
                "annotate",
                entry.name,
                {**preimage, "upstream": upstream_identity(roles), "seed": seed},
                AnnotatePayload(**payload, upstream=roles, seed=seed),
                [item.key for item in roles.values()],
                f"{brief}, seed {seed}",
            )
            return [*before, annotate]

        return chain

    def _upstream(
        self, data: Data, monitor: str, spec: ComponentSpec, configuration: Configuration, depth: int
    ) -> Callable[[int], tuple[dict[str, UpstreamStage], list[Stage]]]:
        """Return a function of the seed: role -> the stage on which a component builds, and all stages of these.

        Raises:
            UserError: the component builds on itself.
        """
        if depth > _MAX_UPSTREAM:
            raise UserError(f"'{spec.name}' builds on stages that build on it")
        declared = [
            (item, self._built_on(data, monitor, item, depth + 1))
            for item in self._components.upstream(spec, configuration)
        ]

        def stages(seed: int) -> tuple[dict[str, UpstreamStage], list[Stage]]:
            roles: dict[str, UpstreamStage] = {}
            before: list[Stage] = []
            for item, chain in declared:
                made = chain(seed)
                before += made
                roles[item.role] = UpstreamStage(
                    kind=item.component.kind,
                    key=made[-1].key,
                    checkpoint=item.checkpoint,
                    payload=made[-1].payload,
                )
            return roles, before

        return stages

    def _built_on(self, data: Data, monitor: str, item: Upstream, depth: int) -> Chain:
        if item.component.kind in LEARNER_KINDS:
            return self._training(data, monitor, item.configuration, depth=depth)
        return self._annotation(data, monitor, item.component, item.configuration, depth)


def _score(data: Data, learner: str, train: Stage) -> Stage:
    preimage = {"sealed": data.prepared.outputs[1], "train": train.key}
    payload = ScorePayload(**preimage, data=data.prepared.key, task=data.declared.task, splits=data.scored)
    return data.stage("score", learner, preimage, payload, (train.key,), train.title.replace("train ", "score ", 1))
