"""Make each stage with its preimage, key and payload."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any, NamedTuple

from harness.component import LEARNER_KINDS
from harness.data import Declaration
from harness.errors import UserError
from harness.plan.alike import Alike, Data, started
from harness.plan.datasets import DatasetFacts
from harness.plan.identity import identity, reference, upstream_identity
from harness.plan.shared import Shared
from harness.plan.stage import Stage
from harness.plan.training_config import Configured, Learner, Upstream
from harness.registry.catalog import Catalog, Entry
from harness.store.keys import digest
from harness.suite.spec import ComponentSpec, Configuration, DatasetSpec, Pipeline, Row

_MAX_UPSTREAM = 8


class StageFactory:
    """Makes the chain of stages of a cell; equal inputs give equal keys, whatever the suite around them.

    What cells have in common (components, settings, what is said of a dataset, whole stages) is one object, made once:
    of a hundred thousand cells little more is kept and made than in what they differ.
    """

    def __init__(self, catalog: Catalog, facts: DatasetFacts) -> None:
        self._catalog, self._facts = catalog, facts
        self._prepared: dict[str, Stage] = {}
        self._shared = Shared()
        self._configured = Configured(catalog, self._shared)

    def cells(
        self, dataset: DatasetSpec, row: Row, configuration: Configuration, seeds: Iterable[int]
    ) -> Iterator[list[Stage]]:
        """All stages of each seed's cell, inputs first; the last two are its training and its score."""
        data = self._shared.of(lambda: self._data(dataset), "data", dataset)
        monitor = data.declared.default_val if row.select.split == "auto" else row.select.split
        made = self._made(data, monitor, configuration)
        for seed in seeds:
            chain = self._training(_Place(data, seed, monitor, row.method), made)
            yield [data.prepared, *chain, _score(made.scores, chain[-1])]

    def _data(self, dataset: DatasetSpec) -> Data:
        declared = self._facts.declare(dataset.component)
        prepared = self._prepare(dataset, declared)
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
        return Data(dataset, declared, prepared, payload, scored)

    def prepare(self, dataset: DatasetSpec) -> Stage:
        """The stage that builds a dataset."""
        return self._prepare(dataset, self._facts.declare(dataset.component))

    def _prepare(self, dataset: DatasetSpec, declared: Declaration) -> Stage:
        spec = dataset.component
        entry = self._catalog.get("dataset", spec.name)
        preimage = started("prepare", dataset=identity(entry, spec), files=self._facts.files(spec))
        key = digest(preimage)
        if key not in self._prepared:
            self._prepared[key] = Stage(
                kind="prepare",
                key=key,
                place=f"prepare/{spec.name}",
                preimage=preimage,
                payload={"dataset": reference(entry, spec), "declared": asdict(declared)},
                title=f"prepare {dataset.label}",
                outputs=(tier_key(key, "oracle"), tier_key(key, "sealed")),
            )
        return self._prepared[key]

    def _training(self, where: _Place, made: _Made, depth: int = 0) -> list[Stage]:
        """Upstream stages and then the training of one configuration."""
        trained, annotating = made.learner.configuration, made.learner.annotating
        pipeline = self._pipeline(where, trained.pipeline) if trained.pipeline else []
        environment = self._annotate(where, annotating, trained, depth) if annotating else []
        upstream, before = self._upstream(where, trained.learner, made.upstream, depth)
        own: dict[str, Any] = {"seed": where.seed}
        payload: dict[str, Any] = {"seed": where.seed}
        inputs: list[str] = []
        if environment:
            own["environment"] = payload["annotate"] = environment[-1].key
            inputs.append(environment[-1].key)
        if pipeline:
            own["quantify"] = payload["quantify"] = [stage.key for stage in pipeline if stage.kind == "quantify"]
            inputs += own["quantify"]
        if upstream:
            own["upstream"], payload["upstream"] = upstream_identity(upstream), upstream
            inputs += [item["key"] for item in upstream.values()]
        suffix = "" if trained.id == "-" else f" ({trained.id})"
        title = f"train {where.method or trained.learner.name} on {where.label}, seed {where.seed}{suffix}"
        return [*pipeline, *environment, *before, made.trainings.stage(own, payload, inputs, title)]

    def _made(self, data: Data, monitor: str, configuration: Configuration) -> _Made:
        return self._shared.of(lambda: self._make(data, monitor, configuration), "made", data, monitor, configuration)

    def _make(self, data: Data, monitor: str, configuration: Configuration) -> _Made:
        learner = self._configured.learner(configuration)
        trained = learner.configuration
        preimage = {
            **learner.preimage,
            "data": data.prepared.key,
            "environment": learner.drawn_identity,
            "quantify": [],
            "monitor": monitor,
            "upstream": {},
        }
        nothing: dict[str, Any] = {"annotate": None, "quantify": [], "upstream": {}}
        payload = {**data.payload, **learner.payload, "monitor": monitor, **nothing}
        entry = self._catalog.get(trained.learner.kind, trained.learner.name)
        return _Made(
            learner,
            self._configured.upstream(trained.learner, trained),
            Alike(self._shared, data, "train", entry.name, preimage, payload),
            self._shared.of(lambda: self._scores(data, entry.name), "scores", data, entry),
        )

    def _scores(self, data: Data, learner: str) -> Alike:
        """The scores of a learner's trainings on a dataset."""
        preimage = {"sealed": data.prepared.outputs[1]}
        payload = {**preimage, "data": data.prepared.key, "task": data.payload["task"], "splits": data.scored}
        return Alike(self._shared, data, "score", learner, preimage, payload)

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
        encodings = self._shared.of(lambda: self._encodings(where.data, encoder), "encode", encoder, where.data)
        quantifyings = self._shared.of(
            lambda: self._quantifyings(where.data, encoder, quantifier), "quantify", encoder, quantifier, where.data
        )
        own: dict[str, Any] = {"seed": where.seed}
        brief = f"{self._configured.brief(encoder)} on {where.label}, seed {where.seed}"
        encode = encodings.stage(own, own, (), f"encode {brief}")
        own = {"seed": where.seed, "encode": encode.key}
        return [encode, quantifyings.stage(own, own, (encode.key,), f"quantify {brief}")]

    def _encodings(self, data: Data, encoder: ComponentSpec) -> Alike:
        preimage = {"encoder": self._configured.identity(encoder), "data": data.prepared.key}
        payload = {**data.payload, "encoder": self._configured.reference(encoder)}
        return Alike(self._shared, data, "encode", encoder.name, preimage, payload)

    def _quantifyings(self, data: Data, encoder: ComponentSpec, quantifier: ComponentSpec) -> Alike:
        component = f"{quantifier.name}/{encoder.name}"
        preimage = {"quantifier": self._configured.identity(quantifier)}
        payload = {**data.payload, "quantifier": self._configured.reference(quantifier)}
        return Alike(self._shared, data, "quantify", component, preimage, payload)

    def _annotate(self, where: _Place, spec: ComponentSpec, configuration: Configuration, depth: int) -> list[Stage]:
        """Upstream stages and then the annotate stage of one environment component."""
        entry = self._catalog.get("environment", spec.name)
        networks = entry.traits.get("trains_networks") or entry.traits.get("upstream")
        return self._shared.of(
            lambda: self._annotated(where, entry, spec, configuration, depth),
            "annotate",
            *(spec, where.data, where.seed, where.monitor),
            *((configuration.model, configuration.train) if networks else ()),
        )

    def _annotated(
        self, where: _Place, entry: Entry, spec: ComponentSpec, configuration: Configuration, depth: int
    ) -> list[Stage]:
        declared = self._configured.upstream(spec, configuration)
        upstream, before = self._upstream(where, spec, declared, depth)
        trains = bool(entry.traits.get("trains_networks"))
        alike = self._shared.of(
            lambda: self._annotations(where.data, entry, spec, configuration if trains else None),
            "annotations",
            *(spec, where.data),
            *((configuration.model, configuration.train) if trains else ()),
        )
        own = {"upstream": upstream_identity(upstream), "seed": where.seed}
        payload = {"upstream": upstream, "seed": where.seed}
        inputs = [item["key"] for item in upstream.values()]
        title = f"annotate {self._configured.brief(spec)} on {where.label}, seed {where.seed}"
        return [*before, alike.stage(own, payload, inputs, title)]

    def _annotations(self, data: Data, entry: Entry, spec: ComponentSpec, trained: Configuration | None) -> Alike:
        """The stages of an environment component on a dataset; ``trained`` with whose networks, where it trains any."""
        fields = sorted(entry.traits.get("oracle", ()))
        preimage = {
            "environment": self._configured.identity(spec),
            "data": data.prepared.key,
            "oracle": fields,
            **(self._configured.networks_identity(trained) if trained else {}),
        }
        payload = {
            **data.payload,
            **(self._configured.networks(trained) if trained else {}),
            "environment": self._configured.reference(spec),
            "oracle": data.prepared.outputs[0],
            "fields": fields,
        }
        return Alike(self._shared, data, "annotate", entry.name, preimage, payload)

    def _upstream(
        self, where: _Place, spec: ComponentSpec, declared: Iterable[Upstream], depth: int
    ) -> tuple[dict[str, Any], list[Stage]]:
        """The stages that a component declares as upstream: role -> how to read it, and the stages themselves.

        Raises:
            UserError: it builds on itself.
        """
        if depth > _MAX_UPSTREAM:
            raise UserError(f"'{spec.name}' builds on stages that build on it")
        roles: dict[str, Any] = {}
        stages: list[Stage] = []
        for role, other, below, checkpoint in declared:
            if other.kind in LEARNER_KINDS:
                made = self._made(where.data, where.monitor, below)
                chain = self._training(where._replace(method=""), made, depth + 1)
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


def _score(scores: Alike, train: Stage) -> Stage:
    own = {"train": train.key}
    return scores.stage(own, own, (train.key,), train.title.replace("train ", "score ", 1))


class _Made(NamedTuple):
    """What the cells of a configuration on a dataset have in common: what differs are seed and inputs."""

    learner: Learner
    upstream: list[Upstream]
    trainings: Alike
    scores: Alike


class _Place(NamedTuple):
    """Where a cell's stages are: dataset, seed, monitored split, method."""

    data: Data
    seed: int
    monitor: str
    method: str

    @property
    def label(self) -> str:
        """The dataset's label."""
        return self.data.spec.label


def tier_key(key: str, tier: str) -> str:
    """Key of the oracle or sealed tier of a prepared dataset."""
    return digest({"tier": tier, "of": key})
