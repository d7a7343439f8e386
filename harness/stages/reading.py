"""Reading prepared data: what each kind of component is handed, and nothing more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import torch
from torch import Tensor

from harness.graphs import PackedGraphs
from harness.graphs.packed import GROUP, PARTS
from harness.stages.context import component_class
from harness.stages.payloads import DataPayload, NetworkSettings
from harness.store import Store
from harness.training.networks import LearnerInfo, ModelSpec

_GRAPH_FIELDS = {field.name for field in fields(PackedGraphs) if field.init}


def read_model(networks: NetworkSettings) -> ModelSpec:
    """Return the suite's network."""
    backbone = networks.backbone
    return ModelSpec(component_class(backbone), backbone["params"], networks.readout, networks.head_layers)


def read_optimizer(networks: NetworkSettings) -> dict[str, Any]:
    """Return the optimizer settings as arguments of ``setup``."""
    return {name: getattr(networks.settings, name) for name in ("lr", "weight_decay", "optimizer")}


def read_info(
    payload: DataPayload, networks: NetworkSettings, train: PackedGraphs, *, environments: int, total_steps: int
) -> LearnerInfo:
    """Return the facts that a component that trains networks may know of its data."""
    return LearnerInfo(
        task=payload.task,
        node_features=payload.node_features,
        edge_features=payload.edge_features,
        num_environments=environments,
        num_train=len(train),
        total_steps=total_steps,
        epochs=networks.settings.epochs,
        has_parts=train.parts is not None,
        average_over=networks.settings.average_over,
    )


def read_graphs(
    store: Store,
    key: str,
    split: str,
    *,
    labels: bool = False,
    env: bool = False,
    parts: bool = False,
    max_batch_nodes: int = 0,
) -> PackedGraphs:
    """Return one split of a prepared dataset, memory-mapped.

    Args:
        labels: hand out ``y`` (never present for a test split).
        env: hand out the dataset's own environment ids.
        parts: hand out the graphs' parts, where the dataset has them.
        max_batch_nodes: most nodes of the batches that are cut from them; 0 for any.
    """
    shown = _GRAPH_FIELDS - {name for name, given in (("y", labels), ("env", env), ("part_ptr", parts)) if not given}
    tensors = store.open(key).tensors(split)
    graphs = PackedGraphs.from_tensors(
        {name: value for name, value in tensors.items() if name in shown or (parts and name.startswith(PARTS))}
    )
    graphs.max_batch_nodes = max_batch_nodes
    return graphs


def read_labels(store: Store, key: str, split: str) -> Tensor:
    """Return the labels of a training or validation split."""
    return store.open(key).tensors(split)["y"]


def read_groups(store: Store, key: str, split: str, name: str) -> dict[str, Tensor]:
    """Return a grouping of a training or validation split by name; empty where the dataset has none of this name."""
    tensors = store.open(key).tensors(split)
    return {name: tensors[f"{GROUP}{name}"].clone()} if f"{GROUP}{name}" in tensors else {}


def read_oracle(store: Store, key: str, split: str, names: Sequence[str]) -> dict[str, Tensor]:
    """Return the named oracle fields of a training or validation split, one value per graph."""
    tensors = store.open(key).tensors(split)
    return {name: tensors[name] for name in names}


def as_float32(tensor: Tensor) -> Tensor:
    """Return a float32 copy on the CPU that owns its memory."""
    return tensor.detach().to("cpu", torch.float32, copy=True)


def on_cpu(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors without their gradients, as an artifact takes them."""
    return {name: tensor.detach().cpu() for name, tensor in tensors.items()}


def placed(tensors: Mapping[str, Tensor], device: str) -> dict[str, Tensor]:
    """Return the tensors on a device."""
    return {name: tensor.to(device) for name, tensor in tensors.items()}
