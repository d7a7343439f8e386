"""Batches of a training: plain shuffling, full batches only, and a few environments at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from training_kit import Watched, data, packed, ready

from harness import PackedGraphs, RawGraph
from harness.randomness import generator
from harness.suite.settings import LAST, TrainSettings
from harness.training.loop import fit, predict, total_steps
from harness.training.sampler import epoch_batches, fitting, grouped_order, steps_per_epoch

SIZES = (40, 3, 17, 1, 9)
ENV = torch.repeat_interleave(torch.arange(5), torch.tensor(SIZES))


def shuffled(n: int, size: int, **more: bool) -> list[Tensor]:
    return [batch.index for batch in epoch_batches(packed(n), size, generator(0, "order"), **more)]


def grouped(env: Tensor, size: int, groups: int, steps: int = 200, seed: int = 0) -> Tensor:
    return grouped_order(env, size, groups, steps, generator(seed, "order")).flatten(1)


class TestShuffling:
    """Each graph once, in the order of the generator."""

    def test_it_is_one_permutation(self) -> None:
        batches = shuffled(13, 4)
        expected = torch.randperm(13, generator=generator(0, "order"))
        assert [len(index) for index in batches] == [4, 4, 4], "a last batch of one graph is left out"
        assert torch.equal(torch.cat(batches), expected[:12])

    @pytest.mark.parametrize(
        ("n", "size", "drop_last", "expected"),
        [
            (14, 4, False, [4, 4, 4, 2]),
            (14, 4, True, [4, 4, 4]),
            (12, 4, True, [4, 4, 4]),
            (3, 4, True, [3]),
            (3, 4, False, [3]),
            (1, 4, False, []),
            (5, 1, False, []),
        ],
    )
    def test_the_last_batch(self, n: int, size: int, drop_last: bool, expected: list[int]) -> None:
        batches = shuffled(n, size, drop_last=drop_last)
        assert [len(index) for index in batches] == expected
        assert steps_per_epoch(n, size, drop_last=drop_last) == len(expected)

    def test_a_learner_may_take_graphs_several_times(self) -> None:
        settings = TrainSettings(epochs=2, batch_size=4, eval_batch_size=8)
        learner = ready(settings, 7)
        learner.training_order = lambda order: torch.cat([order, order[order < 2]])  # type: ignore[method-assign]
        fit(learner, data(packed(7)), settings, seed=0)
        assert [[len(index) for index in epoch] for epoch in learner.seen] == [[4, 4], [4, 4]], "9 = 4 + 4 + 1"
        learner.training_order = lambda order: torch.cat([order, order[order < 3]])  # type: ignore[method-assign]
        fit(learner, data(packed(7)), settings, seed=0)
        assert [torch.cat(epoch).bincount().tolist() for epoch in learner.seen] == [[2, 2, 2, 1, 1, 1, 1]] * 2
        assert learner.total_steps == 4, "the count without repeats"


class TestEnvironmentsPerBatch:
    """n distinct environments, b // n graphs each."""

    @pytest.mark.parametrize(("size", "groups"), [(12, 3), (13, 3), (6, 2), (20, 4), (32, 5)])
    def test_each_batch_has_as_many_of_each_of_n_environments(self, size: int, groups: int) -> None:
        for batch in ENV[grouped(ENV, size, groups)]:
            ids, counts = batch.unique(return_counts=True)
            assert len(ids) == groups
            assert counts.tolist() == [size // groups] * groups

    def test_no_graph_comes_twice_where_its_environment_is_large_enough(self) -> None:
        per = 3
        for batch in grouped(ENV, 4 * per, 4):
            for env, size in enumerate(SIZES):
                own = batch[ENV[batch] == env]
                if size >= per:
                    assert len(own.unique()) == len(own)
                elif len(own):
                    assert len(own) == per, "drawn with replacement"

    def test_a_small_environment_is_drawn_with_replacement(self) -> None:
        """3 graphs, drawn 10 times: all come up, and a batch without repetition is impossible."""
        env = torch.tensor([0, 0, 0])
        drawn = grouped(env, 10, 1)
        assert drawn.shape == (200, 10)
        counts = torch.stack([row.bincount(minlength=3) for row in drawn]).float()
        assert (counts.mean(0) - 10 / 3).abs().max() < 0.5
        assert (counts == 0).any(), "not a fixed number of each"

    def test_environments_are_drawn_uniformly_whatever_their_size(self) -> None:
        chosen = torch.stack([ENV[row].unique() for row in grouped(ENV, 4, 2, steps=2000)])
        share = chosen.flatten().bincount(minlength=5) / 2000
        assert (share - 2 / 5).abs().max() < 0.04

    def test_every_graph_of_an_environment_is_drawn_alike(self) -> None:
        drawn = grouped(torch.zeros(8, dtype=torch.int64), 4, 1, steps=2000)
        assert (drawn.flatten().bincount(minlength=8) / 2000 - 0.5).abs().max() < 0.05

    def test_graphs_without_environment_are_never_drawn(self) -> None:
        env = torch.where(torch.arange(len(ENV)) % 3 == 0, torch.full_like(ENV, -1), ENV)
        drawn = grouped(env, 12, 4)
        assert int(env[drawn].min()) >= 0
        assert set(drawn.flatten().tolist()) == set(torch.nonzero(env >= 0).flatten().tolist())

    @pytest.mark.parametrize(
        ("size", "groups", "found", "each"), [(32, 9, 5, 6), (3, 4, 3, 1), (2, 8, 2, 1), (7, 1, 1, 7)]
    )
    def test_fewer_environments_or_graphs_than_asked_for(self, size: int, groups: int, found: int, each: int) -> None:
        for batch in ENV[grouped(ENV, size, groups)]:
            assert batch.unique(return_counts=True)[1].tolist() == [each] * found

    def test_ids_need_not_be_contiguous(self) -> None:
        env = torch.tensor([7, 7, 2, 2, 7, 90])
        assert set(env[grouped(env, 6, 3)].flatten().tolist()) == {2, 7, 90}

    def test_all_draws_come_from_the_generator(self) -> None:
        before = torch.get_rng_state()
        assert torch.equal(grouped(ENV, 12, 4, seed=1), grouped(ENV, 12, 4, seed=1))
        assert not torch.equal(grouped(ENV, 12, 4, seed=1), grouped(ENV, 12, 4, seed=2))
        assert torch.equal(before, torch.get_rng_state())

    def test_graphs_without_any_ids_are_refused(self) -> None:
        with pytest.raises(ValueError, match="need training graphs with environment ids"):
            epoch_batches(packed(8), 4, generator(0, "order"), groups_per_batch=2)

    @pytest.mark.parametrize(("n", "size", "steps"), [(70, 32, 2), (64, 32, 2), (20, 32, 1), (2, 2, 1), (1, 32, 0)])
    def test_an_epoch_has_as_many_batches_as_full_ones_would_be(self, n: int, size: int, steps: int) -> None:
        for drop_last in (False, True):
            assert steps_per_epoch(n, size, groups_per_batch=4, drop_last=drop_last) == steps


class TestTraining:
    """What a learner sees of it."""

    def test_the_loop_draws_groups_anew_in_each_epoch(self) -> None:
        settings = TrainSettings(3, 10, 32, groups_per_batch=2)
        learner = ready(settings, len(ENV))
        fit(learner, data(packed(len(ENV), ENV)), settings, seed=0)
        assert [len(epoch) for epoch in learner.seen] == [7, 7, 7]
        batches = [index for epoch in learner.seen for index in epoch]
        assert all(ENV[index].unique(return_counts=True)[1].tolist() == [5, 5] for index in batches)
        assert not torch.equal(torch.cat(learner.seen[0]), torch.cat(learner.seen[1]))

    def test_groups_reach_the_batch_with_ids_and_labels_in_step(self) -> None:
        graphs = packed(len(ENV), ENV)
        for batch in epoch_batches(graphs, 12, generator(0, "order"), groups_per_batch=4):
            assert torch.equal(batch.env, ENV[batch.index])
            assert torch.equal(batch.y, batch.index % 3)
            assert torch.equal(batch.x[batch.ptr[:-1], 0].long(), batch.index)

    @pytest.mark.parametrize("groups", [0, 2, 7])
    @pytest.mark.parametrize("drop_last", [False, True])
    @pytest.mark.parametrize("size", [2, 4, 10, 69, 71])
    def test_total_steps_are_those_that_are_made(self, groups: int, drop_last: bool, size: int) -> None:
        settings = TrainSettings(2, size, 32, groups_per_batch=groups, drop_last=drop_last)
        learner = ready(settings, len(ENV))
        fit(learner, data(packed(len(ENV), ENV)), settings, seed=0)
        assert learner.step == learner.total_steps == total_steps(packed(len(ENV)), settings)


def uneven(bound: int, n: int = 90) -> PackedGraphs:
    """Graphs of one to nine nodes and one of forty, with environments and labels."""
    nodes = [40, *(1 + i % 9 for i in range(1, n))]
    no_edges = np.zeros((2, 0), dtype=np.int64)
    raw = [RawGraph(np.full((count, 2), i, np.float32), no_edges, 0) for i, count in enumerate(nodes)]
    graphs = replace(PackedGraphs.pack(raw), y=torch.arange(n) % 3, env=torch.arange(n) % 3)
    graphs.max_batch_nodes = bound
    return graphs


class TestBatchesBoundedByNodes:
    """``max_batch_nodes``."""

    def epoch(self, bound: int, size: int = 8, **more: Any) -> list[Any]:
        return list(epoch_batches(uneven(bound), size, generator(0, "order"), **more))

    def test_without_a_bound_nothing_changes(self) -> None:
        free, wide = self.epoch(0), self.epoch(10_000)
        assert all(torch.equal(one.index, other.index) for one, other in zip(free, wide, strict=True))

    def test_each_graph_comes_once_in_the_same_order_and_no_batch_exceeds_the_bound(self) -> None:
        batches = self.epoch(25)
        seen = torch.cat([batch.index for batch in batches])
        assert torch.equal(seen, torch.randperm(90, generator=generator(0, "order"))[: len(seen)])
        assert len(seen) >= 89
        exceeding = [batch for batch in batches if batch.num_nodes > 25]
        assert all(0 in batch.index and batch.num_graphs == 2 for batch in exceeding), "only the one of forty nodes"
        assert len(exceeding) == 1
        assert all(2 <= batch.num_graphs <= 8 for batch in batches)

    def test_a_bound_below_every_graph_gives_pairs(self) -> None:
        assert [batch.num_graphs for batch in self.epoch(1)] == [2] * 45

    @pytest.mark.parametrize("bound", [1, 25, 60])
    def test_dropping_the_last_batch(self, bound: int) -> None:
        """It is left out where it has fewer than ``batch_size`` graphs; others may have fewer for the bound."""
        train, order = uneven(bound), torch.randperm(90, generator=generator(0, "order"))
        sizes = train.batch_sizes(8, order, at_least=2)
        assert sizes[-1] < 8
        assert [batch.num_graphs for batch in self.epoch(bound, drop_last=True)] == sizes[:-1]
        assert [batch.num_graphs for batch in self.epoch(bound)] == (sizes if sizes[-1] > 1 else sizes[:-1])

    def test_an_epoch_knows_its_number_of_batches(self) -> None:
        epoch = epoch_batches(uneven(25), 8, generator(0, "order"))
        assert len(epoch) == len(list(epoch)) == len(list(epoch))

    def test_repeated_graphs_are_cut_alike(self) -> None:
        batches = self.epoch(25, reorder=lambda order: torch.cat([order, order]))
        assert torch.cat([batch.index for batch in batches]).bincount(minlength=90).min() >= 1
        assert sum(batch.num_nodes > 25 for batch in batches) == 2

    @pytest.mark.parametrize(("size", "groups"), [(12, 3), (12, 2), (8, 1)])
    @pytest.mark.parametrize("bound", [1, 14, 30, 1000])
    def test_environments_stay_balanced(self, size: int, groups: int, bound: int) -> None:
        free, batches = (self.epoch(b, size, groups_per_batch=groups) for b in (0, bound))
        assert len(free) == len(batches), "as many steps"
        for one, other in zip(free, batches, strict=True):
            ids, counts = other.env.unique(return_counts=True)
            each = int(counts[0])
            assert (len(ids), counts.tolist()) == (groups, [each] * groups)
            assert each >= (1 if groups > 1 else 2)
            assert torch.equal(other.index.reshape(groups, each), one.index.reshape(groups, -1)[:, :each])
            assert other.num_nodes <= bound or each == (1 if groups > 1 else 2)
            larger = one.ptr.diff().reshape(groups, -1)[:, : each + 1]
            assert each == size // groups or int(larger.sum()) > bound, "the most that fits"

    def test_most_that_fits(self) -> None:
        nodes = torch.tensor([[[1, 2, 9], [3, 1, 1]], [[9, 1, 1], [9, 1, 1]], [[1, 1, 1], [1, 1, 1]]])
        assert fitting(nodes, 8).tolist() == [2, 1, 3]
        assert fitting(nodes[:, :1], 2).tolist() == [2, 2, 2]

    @pytest.mark.parametrize("groups", [0, 2])
    def test_the_loop_tells_each_step_its_place_and_total_steps_is_close(self, groups: int) -> None:
        places: list[tuple[int, int]] = []

        class Placed(Watched):
            def training_step(self, batch: Any, optimizers: Any) -> dict[str, Tensor]:
                places.append((self.epoch_step, self.epoch_steps))
                return super().training_step(batch, optimizers)

        settings, train = TrainSettings(6, 8, 32, groups_per_batch=groups, max_batch_nodes=25), uneven(25)
        learner = ready(settings, len(train), cls=Placed, train=train)
        fit(learner, data(train), settings, seed=0)
        lengths = [len(epoch) for epoch in learner.seen]
        assert places == [(place, steps) for steps in lengths for place in range(steps)]
        assert learner.total_steps == total_steps(train, settings)
        assert abs(learner.total_steps - learner.step) <= (0 if groups else 0.1 * learner.step)
        assert groups or len(set(lengths)) > 1, "orders differ in their number of batches"

    def test_predictions_do_not_depend_on_it(self) -> None:
        settings = TrainSettings(1, 8, 32)
        learner = ready(settings, 90)
        trained = fit(learner, data(uneven(0)), settings, seed=0)
        learner.load_state_dict(trained.checkpoints[LAST].state)
        logits = [predict(learner, list(uneven(bound).batches(32))) for bound in (0, 1, 25)]
        assert all(torch.allclose(logits[0], other, atol=1e-6) for other in logits)
