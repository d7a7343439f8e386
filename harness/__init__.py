"""The authors' API: everything a plugin imports, and nothing else. Names load on first use (PEP 562)."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from harness._version import __version__
from harness.registry import core_files as _rooms  # noqa: F401 - first: it notes how the core's files are before they are loaded

if TYPE_CHECKING:
    from harness.analysis import Analysis as Analysis
    from harness.analysis import Cost as Cost
    from harness.analysis import Findings as Findings
    from harness.analysis import MeasuredCell as MeasuredCell
    from harness.analysis import Study as Study
    from harness.component import upstream as upstream
    from harness.data import Dataset as Dataset
    from harness.data import Declaration as Declaration
    from harness.data import Download as Download
    from harness.data import Features as Features
    from harness.data import RawDataset as RawDataset
    from harness.data import RawGraph as RawGraph
    from harness.data import Role as Role
    from harness.data import Task as Task
    from harness.errors import BenchError as BenchError
    from harness.errors import DataError as DataError
    from harness.errors import DivergedError as DivergedError
    from harness.errors import UserError as UserError
    from harness.errors import did_you_mean as did_you_mean
    from harness.graphs import Batch as Batch
    from harness.graphs import PackedGraphs as PackedGraphs
    from harness.graphs.augment import drop_nodes as drop_nodes
    from harness.graphs.augment import grow_subgraph as grow_subgraph
    from harness.graphs.augment import mask_rows as mask_rows
    from harness.graphs.augment import perturb_edges as perturb_edges
    from harness.graphs.diffusion import DiffusedGraphs as DiffusedGraphs
    from harness.graphs.diffusion import Diffusion as Diffusion
    from harness.graphs.diffusion import batch_blocks as batch_blocks
    from harness.graphs.diffusion import by_size as by_size
    from harness.hooks import Register as Register
    from harness.hooks import hookimpl as hookimpl
    from harness.hparams import hparam as hparam
    from harness.nn.blocks import block_sum as block_sum
    from harness.nn.blocks import padded_slots as padded_slots
    from harness.nn.cluster import Clusters as Clusters
    from harness.nn.cluster import kmeans as kmeans
    from harness.nn.codebook import Codebook as Codebook
    from harness.nn.contrastive import environment_contrastive as environment_contrastive
    from harness.nn.contrastive import supervised_contrastive as supervised_contrastive
    from harness.nn.conv import GCNConv as GCNConv
    from harness.nn.conv import GINConv as GINConv
    from harness.nn.conv import LEConv as LEConv
    from harness.nn.edges import EdgeScorer as EdgeScorer
    from harness.nn.edges import NodeScorer as NodeScorer
    from harness.nn.edges import average_directions as average_directions
    from harness.nn.edges import edge_ends as edge_ends
    from harness.nn.edges import instance_norm as instance_norm
    from harness.nn.edges import reverse_edges as reverse_edges
    from harness.nn.front import make_front as make_front
    from harness.nn.infomax import info_nce as info_nce
    from harness.nn.infomax import local_global_jsd as local_global_jsd
    from harness.nn.mode import evaluating as evaluating
    from harness.nn.mode import keeping_statistics as keeping_statistics
    from harness.nn.norm import BatchNorm as BatchNorm
    from harness.nn.pool import pool as pool
    from harness.nn.propagate import neighbour_sum as neighbour_sum
    from harness.nn.propagate import propagate as propagate
    from harness.nn.propagate import sum_to_targets as sum_to_targets
    from harness.nn.subgraph import Subgraph as Subgraph
    from harness.nn.subgraph import subgraph as subgraph
    from harness.nn.subgraph import top_k_edges as top_k_edges
    from harness.stages.cell import TrainedCell as TrainedCell
    from harness.store.folders import cache_root as cache_root
    from harness.store.keys import file_digest as file_digest
    from harness.tracker import TrackedCell as TrackedCell
    from harness.tracker import TrackedRun as TrackedRun
    from harness.tracker import TrackedStage as TrackedStage
    from harness.tracker import Tracker as Tracker
    from harness.training.bases import Backbone as Backbone
    from harness.training.bases import Baseline as Baseline
    from harness.training.bases import Decorrelator as Decorrelator
    from harness.training.bases import Encoder as Encoder
    from harness.training.bases import Environment as Environment
    from harness.training.bases import Fitted as Fitted
    from harness.training.bases import Learner as Learner
    from harness.training.bases import Quantifier as Quantifier
    from harness.training.environments import environment_mean as environment_mean
    from harness.training.environments import environment_moments as environment_moments
    from harness.training.environments import environment_size as environment_size
    from harness.training.environments import environment_variance as environment_variance
    from harness.training.environments import labelled_environments as labelled_environments
    from harness.training.environments import position_in_environment as position_in_environment
    from harness.training.losses import generalized_cross_entropy as generalized_cross_entropy
    from harness.training.losses import has_label as has_label
    from harness.training.losses import per_sample_loss as per_sample_loss
    from harness.training.losses import reverse_gradient as reverse_gradient
    from harness.training.losses import scale_gradient as scale_gradient
    from harness.training.optim import Adam as Adam

_HOME = {
    "harness.analysis": ("Analysis", "Cost", "Findings", "MeasuredCell", "Study"),
    "harness.component": ("upstream",),
    "harness.data": ("Dataset", "Declaration", "Download", "Features", "RawDataset", "RawGraph", "Role", "Task"),
    "harness.errors": ("BenchError", "DataError", "DivergedError", "UserError", "did_you_mean"),
    "harness.store.folders": ("cache_root",),
    "harness.graphs": ("Batch", "PackedGraphs"),
    "harness.graphs.augment": ("drop_nodes", "grow_subgraph", "mask_rows", "perturb_edges"),
    "harness.graphs.diffusion": ("DiffusedGraphs", "Diffusion", "batch_blocks", "by_size"),
    "harness.hooks": ("Register", "hookimpl"),
    "harness.hparams": ("hparam",),
    "harness.store.keys": ("file_digest",),
    "harness.nn.blocks": ("block_sum", "padded_slots"),
    "harness.nn.cluster": ("Clusters", "kmeans"),
    "harness.nn.codebook": ("Codebook",),
    "harness.nn.contrastive": ("environment_contrastive", "supervised_contrastive"),
    "harness.nn.conv": ("GCNConv", "GINConv", "LEConv"),
    "harness.nn.edges": (
        "EdgeScorer",
        "NodeScorer",
        "average_directions",
        "edge_ends",
        "instance_norm",
        "reverse_edges",
    ),
    "harness.nn.front": ("make_front",),
    "harness.nn.infomax": ("info_nce", "local_global_jsd"),
    "harness.nn.mode": ("evaluating", "keeping_statistics"),
    "harness.nn.norm": ("BatchNorm",),
    "harness.nn.pool": ("pool",),
    "harness.nn.propagate": ("neighbour_sum", "propagate", "sum_to_targets"),
    "harness.nn.subgraph": ("Subgraph", "subgraph", "top_k_edges"),
    "harness.stages.cell": ("TrainedCell",),
    "harness.tracker": ("TrackedCell", "TrackedRun", "TrackedStage", "Tracker"),
    "harness.training.bases": (
        "Backbone",
        "Baseline",
        "Decorrelator",
        "Encoder",
        "Environment",
        "Fitted",
        "Learner",
        "Quantifier",
    ),
    "harness.training.optim": ("Adam",),
    "harness.training.environments": (
        "environment_mean",
        "environment_moments",
        "environment_size",
        "environment_variance",
        "labelled_environments",
        "position_in_environment",
    ),
    "harness.training.losses": (
        "generalized_cross_entropy",
        "has_label",
        "per_sample_loss",
        "reverse_gradient",
        "scale_gradient",
    ),
}
_WHERE = {name: module for module, names in _HOME.items() for name in names}

__all__ = ["__version__", *sorted(_WHERE)]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'harness' has no attribute '{name}'")
    value = getattr(import_module(_WHERE[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
