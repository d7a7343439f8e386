"""Edge scores: end points, normalisation per graph, reverse edges and their mean."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from harness import Batch, PackedGraphs, RawGraph
from harness.nn import EdgeScorer, NodeScorer, average_directions, edge_ends, instance_norm, reverse_edges
from harness.nn.edges import drop


def batch_of(*graphs: tuple[int, list[tuple[int, int]]]) -> Batch:
    """Graphs from their numbers of nodes and their edges."""
    raw = [
        RawGraph(np.zeros((n, 2), dtype=np.float32), np.array(edges, dtype=np.int64).reshape(-1, 2).T, 0)
        for n, edges in graphs
    ]
    return PackedGraphs.pack(raw).batch(torch.arange(len(raw)))


PAIRS = [(0, 1), (1, 0), (1, 2), (2, 1), (0, 2), (2, 0)]
MIXED = batch_of((3, PAIRS), (2, [(0, 1)]), (2, []), (3, [(0, 1), (1, 0), (1, 2), (2, 2)]))


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


class TestInstanceNorm:
    """Against torch's, graph by graph."""

    OWNER = torch.tensor([0, 0, 0, 2, 2, 3, 3, 3, 3])

    @pytest.mark.parametrize("eps", [1e-5, 0.1])
    def test_each_graph_is_torchs_instance_norm(self, eps: float) -> None:
        values = torch.randn(9, 4, dtype=torch.float64, requires_grad=True)
        found = instance_norm(values, self.OWNER, 4, eps)
        reference = nn.InstanceNorm1d(4, eps=eps).double()
        for graph in (0, 2, 3):
            expected = reference(values[graph == self.OWNER].T.unsqueeze(0)).squeeze(0).T
            torch.testing.assert_close(found[graph == self.OWNER], expected)

    def test_the_gradient_is_torchs(self) -> None:
        values = torch.randn(9, 4, dtype=torch.float64, requires_grad=True)
        weight = torch.randn(9, 4, dtype=torch.float64)
        (found,) = torch.autograd.grad((instance_norm(values, self.OWNER, 4) * weight).sum(), values)
        reference = nn.InstanceNorm1d(4).double()
        rows = [reference(values[g == self.OWNER].T.unsqueeze(0)).squeeze(0).T for g in (0, 2, 3)]
        (expected,) = torch.autograd.grad((torch.cat(rows) * weight).sum(), values)
        torch.testing.assert_close(found, expected)

    def test_rows_may_come_in_any_order(self) -> None:
        values, order = torch.randn(9, 4), torch.randperm(9)
        torch.testing.assert_close(
            instance_norm(values[order], self.OWNER[order], 4), instance_norm(values, self.OWNER, 4)[order]
        )

    def test_a_graph_of_one_row_becomes_zero_with_a_finite_gradient(self) -> None:
        values = torch.tensor([[3.0, -1.0]], requires_grad=True)
        found = instance_norm(values, torch.tensor([0]), 1)
        assert found.tolist() == [[0.0, 0.0]]
        found.sum().backward()
        assert values.grad is not None
        assert bool(values.grad.isfinite().all())

    def test_no_rows_at_all(self) -> None:
        assert instance_norm(torch.zeros(0, 4), torch.zeros(0, dtype=torch.int64), 3).shape == (0, 4)


class TestReverseEdges:
    """(s, t) finds (t, s)."""

    def test_against_a_loop(self) -> None:
        edges = list(map(tuple, MIXED.edge_index.T.tolist()))
        expected = [edges.index((t, s)) if (t, s) in edges else i for i, (s, t) in enumerate(edges)]
        found = reverse_edges(MIXED)
        assert found.tolist() == expected
        assert torch.equal(found[found], torch.arange(len(edges)))

    def test_an_edge_without_reverse_and_a_loop_keep_their_place(self) -> None:
        batch = batch_of((3, [(0, 1), (2, 2)]))
        assert reverse_edges(batch).tolist() == [0, 1]

    def test_the_last_edge_may_lack_a_reverse(self) -> None:
        """Its code is larger than all others, so that the search ends behind the last place."""
        batch = batch_of((3, [(2, 0), (1, 0)]))
        assert reverse_edges(batch).tolist() == [0, 1]

    def test_it_is_found_once_per_batch_and_renewed_where_edges_are_left_out(self) -> None:
        batch = batch_of((3, PAIRS))
        assert reverse_edges(batch) is reverse_edges(batch)
        kept = batch.keep_edges(torch.tensor([True] * 5 + [False]))
        edges = list(map(tuple, kept.edge_index.T.tolist()))
        expected = [edges.index((t, s)) if (t, s) in edges else i for i, (s, t) in enumerate(edges)]
        assert reverse_edges(kept).tolist() == expected

    def test_no_edges(self) -> None:
        batch = batch_of((2, []), (1, []))
        assert reverse_edges(batch).tolist() == []
        assert average_directions(torch.zeros(0), batch).tolist() == []


def test_directions_are_averaged_and_lonely_edges_keep_their_value() -> None:
    values = torch.arange(float(MIXED.num_edges))
    found = average_directions(values, MIXED)
    by_edge = dict(zip(map(tuple, MIXED.edge_index.T.tolist()), values.tolist(), strict=True))
    expected = [(value + by_edge.get((t, s), value)) / 2 for (s, t), value in by_edge.items()]
    assert found.tolist() == expected
    assert torch.equal(average_directions(found, MIXED), found)


def test_ends_are_source_then_target() -> None:
    h = torch.arange(float(MIXED.num_nodes)).unsqueeze(1) * torch.tensor([[1.0, 10.0]])
    ends = edge_ends(h, MIXED)
    assert torch.equal(ends[:, 0].long(), MIXED.edge_index[0])
    assert torch.equal(ends[:, 3].long(), MIXED.edge_index[1] * 10)


class TestEdgeScorer:
    """An MLP [2d, 4d, d, 1] on end points."""

    def test_its_widths(self) -> None:
        linear = [part for part in EdgeScorer(6).modules() if isinstance(part, nn.Linear)]
        assert [(part.in_features, part.out_features) for part in linear] == [(12, 24), (24, 6), (6, 1)]

    @pytest.mark.parametrize("norm", [False, True])
    def test_it_is_the_mlp_graph_by_graph(self, norm: bool) -> None:
        scorer, h = EdgeScorer(6, norm=norm).double(), torch.randn(MIXED.num_nodes, 6, dtype=torch.float64)
        owner = MIXED.batch[MIXED.edge_index[0]]
        found = scorer(h, MIXED)
        for graph in owner.unique():
            values = edge_ends(h, MIXED)[owner == graph]
            for layer in scorer.hidden:
                values = layer(values)
                if norm:
                    values = (values - values.mean(0)) / (values.var(0, unbiased=False) + 1e-5).sqrt()
                values = values.relu()
            torch.testing.assert_close(found[owner == graph], scorer.last(values).squeeze(1))

    def test_the_only_edge_of_a_graph_gets_a_finite_score(self) -> None:
        batch = batch_of((2, [(0, 1)]))
        scorer, h = EdgeScorer(4), torch.randn(2, 4, requires_grad=True)
        score = scorer(h, batch)
        score.sum().backward()
        assert score.shape == (1,)
        assert h.grad is not None
        assert bool(h.grad.isfinite().all())

    def test_no_edges(self) -> None:
        batch = batch_of((2, []))
        assert EdgeScorer(4)(torch.randn(2, 4), batch).shape == (0,)

    def test_dropout_acts_in_training_only(self) -> None:
        scorer, h = EdgeScorer(6, dropout=0.5), torch.randn(MIXED.num_nodes, 6)

        def twice() -> tuple[Tensor, Tensor]:
            return scorer(h, MIXED), scorer(h, MIXED)

        assert not torch.equal(*twice())
        scorer.eval()
        assert torch.equal(*twice())


class TestNodeScorer:
    """An MLP [d, 2d, d, 1] on nodes."""

    def test_its_widths(self) -> None:
        linear = [part for part in NodeScorer(6).modules() if isinstance(part, nn.Linear)]
        assert [(part.in_features, part.out_features) for part in linear] == [(6, 12), (12, 6), (6, 1)]

    @pytest.mark.parametrize("norm", [False, True])
    def test_it_is_the_mlp_graph_by_graph(self, norm: bool) -> None:
        scorer, h = NodeScorer(6, norm=norm).double(), torch.randn(MIXED.num_nodes, 6, dtype=torch.float64)
        found = scorer(h, MIXED)
        for graph in range(MIXED.num_graphs):
            values = h[graph == MIXED.batch]
            for layer in scorer.hidden:
                values = layer(values)
                if norm:
                    values = (values - values.mean(0)) / (values.var(0, unbiased=False) + 1e-5).sqrt()
                values = values.relu()
            torch.testing.assert_close(found[graph == MIXED.batch], scorer.last(values).squeeze(1))


class TestDrop:
    """Dropout whose draws come from a generator."""

    @pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
    def test_as_many_are_zero_as_said_and_the_others_keep_the_mean(self, p: float) -> None:
        found = drop(torch.ones(401, 499), p, True, torch.Generator().manual_seed(0))
        assert float((found == 0).float().mean()) == pytest.approx(p, abs=0.004)
        assert found[found > 0].unique().tolist() == pytest.approx([1 / (1 - p)])
        assert float(found.mean()) == pytest.approx(1, abs=0.02)

    def test_neighbours_are_dropped_independently(self) -> None:
        kept = (drop(torch.ones(40000), 0.5, True, torch.Generator().manual_seed(1)) > 0).double()
        for lag in (1, 2, 3, 4, 8):
            assert float(torch.corrcoef(torch.stack([kept[lag:], kept[:-lag]]))[0, 1]) == pytest.approx(0, abs=0.025)

    def test_the_extremes_evaluation_and_no_rows(self) -> None:
        values, rng = torch.randn(5, 3), torch.Generator().manual_seed(0)
        before = rng.get_state()
        assert drop(values, 0.0, True, rng) is values
        assert drop(values, 0.5, False, rng) is values
        assert torch.equal(rng.get_state(), before)
        assert drop(values, 1.0, True, rng).equal(torch.zeros(5, 3))
        assert drop(values[:0], 0.5, True, rng).shape == (0, 3)

    def test_the_gradient_passes_where_values_do(self) -> None:
        values = torch.randn(9, 7, requires_grad=True)
        found = drop(values, 0.3, True, torch.Generator().manual_seed(0))
        found.sum().backward()
        assert values.grad is not None
        torch.testing.assert_close(values.grad * values, found)

    @pytest.mark.parametrize("scorer", [EdgeScorer, NodeScorer])
    def test_a_scorer_with_a_generator_draws_from_nothing_else(
        self, scorer: type[EdgeScorer] | type[NodeScorer]
    ) -> None:
        rng = torch.Generator().manual_seed(0)
        module, h = scorer(6, dropout=0.5, rng=rng), torch.randn(MIXED.num_nodes, 6)
        state, start = torch.get_rng_state(), rng.get_state()
        first, second = module(h, MIXED), module(h, MIXED)
        assert torch.equal(torch.get_rng_state(), state)
        assert not torch.equal(first, second)
        rng.set_state(start)
        assert torch.equal(module(h, MIXED), first)
        module.eval()
        assert torch.equal(module(h, MIXED), module(h, MIXED))
