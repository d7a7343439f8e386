"""Message passing on dense blocks."""

from __future__ import annotations

import numpy as np
import torch

from harness import PackedGraphs, RawGraph
from harness.graphs.diffusion import adjacency_blocks
from harness.nn import block_sum, neighbour_sum, padded_slots


def make_batch():
    rng = np.random.default_rng(0)
    graphs = [
        RawGraph(np.ones((n, 1), np.float32), rng.integers(0, n, (2, m)).astype(np.int64), 0)
        for n, m in ((5, 8), (1, 0), (7, 12))
    ]
    return PackedGraphs.pack(graphs).batch(torch.arange(3))


def test_slots_give_each_graph_its_rows():
    assert padded_slots(make_batch(), 7).tolist() == [0, 1, 2, 3, 4, 7, 14, 15, 16, 17, 18, 19, 20]


def test_the_adjacency_as_blocks_is_the_sum_over_neighbours():
    batch = make_batch()
    blocks = adjacency_blocks(batch, 7).transpose(1, 2)
    x = torch.randn(batch.num_nodes, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(block_sum(x, blocks, padded_slots(batch, 7)), neighbour_sum(x, batch))


def test_what_lies_in_the_padding_has_no_effect():
    batch = make_batch()
    blocks, slots = adjacency_blocks(batch, 7), padded_slots(batch, 7)
    x = torch.ones(batch.num_nodes, 2, dtype=torch.float64)
    dirty = blocks.clone()
    dirty[0, :, 5:] = 9
    dirty[0, 5:] = 9
    torch.testing.assert_close(block_sum(x, dirty, slots), block_sum(x, blocks, slots))


def test_gradient():
    batch = make_batch()
    blocks = torch.randn(3, 7, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    x = torch.randn(batch.num_nodes, 2, dtype=torch.float64, requires_grad=True)
    slots = padded_slots(batch, 7)
    assert torch.autograd.gradcheck(lambda rows: block_sum(rows, blocks, slots), (x,))
    assert torch.autograd.gradgradcheck(lambda rows: block_sum(rows, blocks, slots) ** 2, (x,))
