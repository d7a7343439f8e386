"""Batches of a training: plain shuffling, full batches only, and a few environments at a time."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from training_kit import data, packed, ready

from harness.randomness import generator
from harness.training.loop import LoopSettings, fit, total_steps
from harness.training.sampler import epoch_batches, grouped_order, steps_per_epoch

SIZES = (40, 3, 17, 1, 9)
ENV = torch.repeat_interleave(torch.arange(5), torch.tensor(SIZES))


def shuffled(n: int, size: int, **more: bool) -> list[Tensor]:
    return [batch.index for batch in epoch_batches(packed(n), size, generator(0, "order"), **more)]


def grouped(env: Tensor, size: int, groups: int, steps: int = 200, seed: int = 0) -> Tensor:
    return grouped_order(env, size, groups, steps, generator(seed, "order"))


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
        settings = LoopSettings(epochs=2, batch_size=4, eval_batch_size=8)
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
        settings = LoopSettings(3, 10, 32, groups_per_batch=2)
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
        settings = LoopSettings(2, size, 32, groups_per_batch=groups, drop_last=drop_last)
        learner = ready(settings, len(ENV))
        fit(learner, data(packed(len(ENV), ENV)), settings, seed=0)
        assert learner.step == learner.total_steps == total_steps(len(ENV), settings)
