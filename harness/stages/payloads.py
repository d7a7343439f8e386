"""The payload of each kind of stage: what its body needs beside the artifacts that it reads. No torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.data import Features, Task
from harness.suite.settings import TrainSettings

Reference = Mapping[str, Any]
"""A component: the fields of its catalog entry that its class is loaded from, and ``params``, its values."""


@dataclass(frozen=True, kw_only=True)
class PreparePayload:
    """A dataset, and what it declared when it was planned, as JSON."""

    dataset: Reference
    declared: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class DataPayload:
    """The facts that every stage knows of the prepared dataset that it reads.

    Attributes:
        data: key of the dataset.
        splits: names of all splits; ``train`` is the training split, ``validation`` are those of validation.
        seed: the cell's training seed.
    """

    data: str
    task: Task
    node_features: Features
    edge_features: Features
    splits: Sequence[str]
    train: str
    validation: Sequence[str]
    seed: int


@dataclass(frozen=True, kw_only=True)
class EncodePayload(DataPayload):
    """A self-supervised encoder to train."""

    encoder: Reference


@dataclass(frozen=True, kw_only=True)
class QuantifyPayload(DataPayload):
    """A quantifier to fit on the embeddings of the stage ``encode``.

    Where it declares oracle ``fields``, it is fitted on these instead, from the artifact ``oracle``.
    """

    quantifier: Reference
    encode: str
    oracle: str
    fields: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class NetworkSettings:
    """The settings with which networks are made and trained."""

    backbone: Reference
    readout: str
    head_layers: int
    settings: TrainSettings


@dataclass(frozen=True, kw_only=True)
class UpstreamStage:
    """A stage that a component builds on: its component's kind, its key and payload, and the weights to take."""

    kind: str
    key: str
    checkpoint: str
    payload: TrainPayload | AnnotatePayload


@dataclass(frozen=True, kw_only=True)
class AnnotatePayload(DataPayload):
    """An environment component; ``fields`` are the oracle fields that it reads in the artifact ``oracle``.

    ``networks`` is None where the component trains none.
    """

    environment: Reference
    oracle: str
    fields: Sequence[str]
    upstream: Mapping[str, UpstreamStage]
    networks: NetworkSettings | None


@dataclass(frozen=True, kw_only=True)
class TrainPayload(DataPayload):
    """A learner to train.

    Attributes:
        environment: the environment component that draws ids for each batch, or None.
        monitor: the validation split that chooses the checkpoint.
        annotate: key of the stage that fixed environment ids, or None.
        quantify: keys of the stages whose quantifiers are candidates.
        upstream: role -> the stage that the learner builds on.
    """

    learner: Reference
    environment: Reference | None
    monitor: str
    annotate: str | None
    quantify: Sequence[str]
    upstream: Mapping[str, UpstreamStage]
    networks: NetworkSettings


@dataclass(frozen=True, kw_only=True)
class ScorePayload:
    """Keys of the training, of the dataset and of its sealed tier; ``splits``: the scored splits and their roles."""

    train: str
    data: str
    sealed: str
    task: Task
    splits: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class EncoderOfCell:
    """Key of an encode stage, and its encoder for people."""

    key: str
    title: str


@dataclass(frozen=True, kw_only=True)
class AnalysePayload:
    """An analysis of a trained cell.

    Attributes:
        trained: key of the cell's training, ``train`` its payload.
        checkpoint: ``best-val`` or ``last``.
        fields: the oracle fields that the analysis reads in the artifact ``oracle``.
    """

    analysis: Reference
    trained: str
    train: TrainPayload
    checkpoint: str
    encoders: Sequence[EncoderOfCell]
    oracle: str
    fields: Sequence[str]
