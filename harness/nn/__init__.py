"""Network pieces, losses and statistics of environments, for backbones, encoders and learners."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from harness.nn.codebook import Codebook
from harness.nn.contrastive import environment_contrastive, info_nce, local_global_jsd, supervised_contrastive
from harness.nn.conv import GCNConv, GINConv, LEConv
from harness.nn.edges import EdgeScorer, NodeScorer, average_directions, edge_ends, instance_norm, reverse_edges
from harness.nn.environments import (
    environment_mean,
    environment_moments,
    environment_size,
    environment_variance,
    labelled_environments,
    position_in_environment,
)
from harness.nn.front import make_front
from harness.nn.layers import BatchNorm, evaluating, keeping_statistics, pool
from harness.nn.losses import generalized_cross_entropy, has_label, per_sample_loss, reverse_gradient, scale_gradient
from harness.nn.propagate import block_sum, neighbour_sum, padded_slots, propagate, sum_to_targets
from harness.nn.subgraph import Subgraph, subgraph, top_k_edges

if TYPE_CHECKING:
    from harness.nn.cluster import Clusters, kmeans

__all__ = [
    "BatchNorm",
    "Clusters",
    "Codebook",
    "EdgeScorer",
    "GCNConv",
    "GINConv",
    "LEConv",
    "NodeScorer",
    "Subgraph",
    "average_directions",
    "block_sum",
    "edge_ends",
    "environment_contrastive",
    "environment_mean",
    "environment_moments",
    "environment_size",
    "environment_variance",
    "evaluating",
    "generalized_cross_entropy",
    "has_label",
    "info_nce",
    "instance_norm",
    "keeping_statistics",
    "kmeans",
    "labelled_environments",
    "local_global_jsd",
    "make_front",
    "neighbour_sum",
    "padded_slots",
    "per_sample_loss",
    "pool",
    "position_in_environment",
    "propagate",
    "reverse_edges",
    "reverse_gradient",
    "scale_gradient",
    "subgraph",
    "sum_to_targets",
    "supervised_contrastive",
    "top_k_edges",
]


def __getattr__(name: str) -> Any:
    if name not in ("Clusters", "kmeans"):
        raise AttributeError(f"module 'harness.nn' has no attribute '{name}'")
    return getattr(import_module("harness.nn.cluster"), name)  # it loads scikit-learn, which most trainings do without
