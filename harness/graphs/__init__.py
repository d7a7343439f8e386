"""Packed graph datasets, the batches gathered from them, their augmentation and diffusion."""

from harness.graphs.augment import drop_nodes, grow_subgraph, keep_nodes, mask_rows, perturb_edges
from harness.graphs.batch import Batch
from harness.graphs.diffusion import DiffusedGraphs, Diffusion, batch_blocks, by_size
from harness.graphs.packed import PackedGraphs

__all__ = [
    "Batch",
    "DiffusedGraphs",
    "Diffusion",
    "PackedGraphs",
    "batch_blocks",
    "by_size",
    "drop_nodes",
    "grow_subgraph",
    "keep_nodes",
    "mask_rows",
    "perturb_edges",
]
