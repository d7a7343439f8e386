"""Packed graph datasets and the batches gathered from them."""

from harness.graphs.batch import Batch
from harness.graphs.packed import PackedGraphs

__all__ = ["Batch", "PackedGraphs"]
