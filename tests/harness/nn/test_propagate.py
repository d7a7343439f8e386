"""Message passing: against the dense product, with gradients of every order that a method may ask for."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from harness import Batch, PackedGraphs, RawGraph
from harness.nn import neighbour_sum, pool, propagate, sum_to_targets


def random_batch(dtype: torch.dtype = torch.float64, width: int = 3, graphs: int = 5) -> Batch:
    """Directed graphs with isolated nodes, repeated edges and self loops; the second one has no edges."""
    rng = np.random.default_rng(3)
    raw = []
    for number in range(graphs):
        nodes, edges = int(rng.integers(2, 7)), 0 if number == 1 else int(rng.integers(1, 9))
        ends = rng.integers(0, nodes, (2, edges))
        raw.append(RawGraph(x=rng.random((nodes, width), dtype=np.float32), edge_index=ends, y=0))
    batch = PackedGraphs.pack(raw).batch(torch.arange(graphs))
    batch.x = batch.x.to(dtype)
    return batch


def dense(batch: Batch, weight: Tensor | None = None) -> Tensor:
    """(N, N) adjacency, entry (target, source)."""
    weight = torch.ones(batch.num_edges, dtype=torch.float64) if weight is None else weight
    source, target = batch.edge_index
    zero = torch.zeros(batch.num_nodes, batch.num_nodes, dtype=weight.dtype)
    return zero.index_put((target, source), weight, accumulate=True)


def signed(batch: Batch) -> Tensor:
    return torch.randn(batch.x.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def test_sum_is_the_dense_product() -> None:
    batch = random_batch()
    weight = torch.rand(batch.num_edges, dtype=torch.float64)
    torch.testing.assert_close(neighbour_sum(batch.x, batch), dense(batch) @ batch.x)
    torch.testing.assert_close(neighbour_sum(batch.x, batch, weight), dense(batch, weight) @ batch.x)
    with torch.no_grad():
        torch.testing.assert_close(neighbour_sum(batch.x, batch, weight), dense(batch, weight) @ batch.x)


def test_relu_is_on_the_message_and_the_weight_after_it() -> None:
    batch, x = random_batch(), signed(random_batch())
    weight = torch.randn(batch.num_edges, dtype=torch.float64)
    torch.testing.assert_close(propagate(x, batch, weight), dense(batch, weight) @ x.relu())
    extra = torch.randn(batch.num_edges, 3, dtype=torch.float64)
    by_hand = torch.zeros_like(x)
    for edge, (source, target) in enumerate(batch.edge_index.t().tolist()):
        by_hand[target] += weight[edge] * (x[source] + extra[edge]).relu()
    torch.testing.assert_close(propagate(x, batch, weight, extra), by_hand)


def test_no_edge_message_is_a_zero_edge_message() -> None:
    batch, x = random_batch(), signed(random_batch())
    zero = torch.zeros(batch.num_edges, 3, dtype=torch.float64)
    torch.testing.assert_close(propagate(x, batch), propagate(x, batch, None, zero))
    torch.testing.assert_close(sum_to_targets(zero + 1, batch)[:, 0], batch.indptr.diff().double())


def test_gradients_of_first_and_second_order() -> None:
    batch = random_batch()
    x = batch.x.clone().requires_grad_()
    weight = torch.rand(batch.num_edges, dtype=torch.float64).requires_grad_()
    assert gradcheck(lambda rows: neighbour_sum(rows, batch), (x,))
    assert gradcheck(lambda rows, w: neighbour_sum(rows, batch, w), (x, weight))
    assert gradgradcheck(lambda rows: neighbour_sum(rows, batch) ** 2, (x,))
    assert gradgradcheck(lambda rows, w: neighbour_sum(rows, batch, w) ** 2, (x, weight))


def test_gradient_of_the_weight_alone() -> None:
    batch = random_batch()
    weight = torch.rand(batch.num_edges, dtype=torch.float64).requires_grad_()
    assert gradcheck(lambda w: neighbour_sum(batch.x, batch, w), (weight,))


def test_gradient_matches_plain_operations() -> None:
    batch = random_batch(torch.float32, width=32)
    weight = torch.rand(batch.num_edges)
    found, plain = batch.x.clone().requires_grad_(), batch.x.clone().requires_grad_()
    neighbour_sum(found, batch, weight).pow(2).sum().backward()
    sum_to_targets(plain[batch.edge_index[0]] * weight.unsqueeze(1), batch).pow(2).sum().backward()
    torch.testing.assert_close(found.grad, plain.grad)


def test_results_repeat_bit_for_bit() -> None:
    batch = random_batch(torch.float32, width=32)
    weight = torch.rand(batch.num_edges)

    def run() -> tuple[Tensor, Tensor, Tensor]:
        x, w = batch.x.clone().requires_grad_(), weight.clone().requires_grad_()
        out = propagate(x, batch, w)
        out.square().sum().backward()
        assert x.grad is not None
        assert w.grad is not None
        return out, x.grad, w.grad

    assert all(torch.equal(one, other) for one, other in zip(run(), run(), strict=True))


def test_graphs_without_edges_receive_nothing() -> None:
    raw = [RawGraph(np.ones((n, 2), dtype=np.float32), np.zeros((2, 0), dtype=np.int64), 0) for n in (1, 4, 1)]
    batch = PackedGraphs.pack(raw).batch(torch.arange(3))
    x = batch.x.clone().requires_grad_()
    weight = torch.zeros(0, requires_grad=True)
    out = neighbour_sum(x, batch) + propagate(x, batch, weight, torch.zeros(0, 2))
    assert torch.equal(out, torch.zeros(6, 2))
    out.sum().backward()
    assert torch.equal(x.grad, torch.zeros(6, 2))


def test_wrong_number_of_weights_is_refused() -> None:
    batch = random_batch()
    with pytest.raises(ValueError, match="edge_weight must be"):
        neighbour_sum(batch.x, batch, torch.ones(batch.num_edges, 1, dtype=torch.float64))


@pytest.mark.parametrize("how", ["sum", "mean", "max"])
def test_pool_against_its_definition(how: str) -> None:
    batch = random_batch()
    rows = signed(batch)
    reduce = {"sum": lambda r: r.sum(0), "mean": lambda r: r.mean(0), "max": lambda r: r.max(0).values}[how]
    expected = torch.stack([reduce(rows[batch.batch == graph]) for graph in range(batch.num_graphs)])
    torch.testing.assert_close(pool(rows, batch, how), expected)
    assert gradcheck(lambda values: pool(values, batch, how), (rows.clone().requires_grad_(),))


@pytest.mark.parametrize("how", ["sum", "mean", "max"])
def test_pool_gives_zeros_to_a_graph_without_nodes(how: str) -> None:
    none = torch.zeros(0, dtype=torch.int64)
    batch = Batch(
        x=torch.ones(3, 2),
        edge_index=none.reshape(2, 0),
        batch=torch.tensor([0, 0, 2]),
        ptr=torch.tensor([0, 2, 2, 3, 3]),
        indptr=torch.zeros(4, dtype=torch.int64),
        index=torch.arange(4),
    )
    pooled = pool(batch.x - 2, batch, how)
    assert pooled.shape == (4, 2)
    assert torch.equal(pooled[1], torch.zeros(2))
    assert torch.equal(pooled[3], torch.zeros(2))


def test_unknown_readout_is_refused() -> None:
    batch = random_batch()
    with pytest.raises(ValueError, match="sum, mean or max"):
        pool(batch.x, batch, "median")
