"""What supplies environment ids: domains, base graphs, fixed and per-batch random partitions."""

from dataclasses import replace

import pytest
import torch
from learner_kit import graphs

from harness import UserError
from harness.randomness import generator
from plugins.environments.base import Base
from plugins.environments.domain import Domain, merge_neighbours
from plugins.environments.random import Random
from plugins.environments.random_batch import RandomBatch

PACKED = graphs(20)


def with_rng(component, seed=0):
    component.rng = generator(seed, "environment")
    return component


def test_domains_are_renumbered_in_order():
    packed = replace(PACKED, env=torch.tensor([7, 3, 7, 40] * 5))
    assert Domain().assign(packed, {}, {}).tolist() == [1, 0, 1, 2] * 5


def test_graphs_without_a_domain_stay_outside():
    packed = replace(PACKED, env=torch.tensor([-1, 3, 7, -1] * 5))
    assert Domain().assign(packed, {}, {}).tolist() == [-1, 0, 1, -1] * 5
    assert Domain(max_envs=1).assign(packed, {}, {}).tolist() == [-1, 0, 0, -1] * 5


@pytest.mark.parametrize("env", [None, torch.full((20,), -1)])
def test_a_dataset_without_domains_is_refused(env):
    with pytest.raises(UserError, match="carry no domains"):
        Domain().assign(replace(PACKED, env=env), {}, {})


def test_merged_domains_are_contiguous_and_about_equal():
    env = torch.repeat_interleave(torch.arange(40), torch.arange(40) % 7 + 1)
    merged = merge_neighbours(env, 4)
    counts = torch.bincount(merged)
    assert bool((merged.diff() >= 0).all())
    assert len(counts) == 4
    assert int(counts.max() - counts.min()) <= 7


def test_merging_keeps_ids_dense_where_one_domain_dominates():
    env = torch.repeat_interleave(torch.arange(5), torch.tensor([100, 1, 1, 1, 1]))
    merged = merge_neighbours(env, 4)
    assert merged.unique().tolist() == list(range(int(merged.max()) + 1))
    assert merge_neighbours(env, 5).equal(env)


def test_base_is_an_oracle():
    assert Base.oracle == {"base"}
    assert Base().assign(PACKED, {"base": torch.tensor([2, 0, 2, 5])}, {}).tolist() == [1, 0, 1, 2]


def test_random_is_a_balanced_partition_fixed_by_its_generator():
    first, again, other = (with_rng(Random(k=3), seed).assign(PACKED, {}, {}) for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert sorted(torch.bincount(first).tolist()) == [6, 7, 7]


def test_random_batch_draws_anew_and_uses_every_id():
    component, batch = with_rng(RandomBatch(k=3)), PACKED.batch(torch.arange(20))
    draws = torch.stack([component.assign_batch(batch) for _ in range(30)])
    assert RandomBatch.per_batch
    assert component.num_environments() == 3
    assert draws.unique().tolist() == [0, 1, 2]
    assert not torch.equal(draws[0], draws[1])
