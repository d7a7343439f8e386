"""iMoLD: each term by hand, the straight-through gradient, the codes, and what is trained in which epoch."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from learner_kit import BINARY, MULTICLASS, MULTITASK, graphs, make, reached, same, train
from learner_kit import gradients as gradients_of
from torch import nn

from harness import PackedGraphs, RawGraph
from harness.nn import pool
from harness.randomness import seeded
from plugins.backbones.gcn import GCN
from plugins.backbones.gin import GIN
from plugins.baselines.imold import IMoLD

PACKED = graphs(12, nodes=(4, 8))
BATCH = PACKED.batch(torch.arange(12))
ENCODER = ("backbone", "codebook", "head", "mix")


def small(**values):
    return make(IMoLD, **{"codes": 20, **values})


class Constant(nn.Module):
    """Scores that are one number everywhere."""

    def __init__(self, value, width=6):
        super().__init__()
        self.value, self.width = nn.Parameter(torch.tensor(value)), width

    def forward(self, batch):
        return self.value.expand(batch.num_nodes, self.width)


@pytest.mark.parametrize(("share", "gamma", "expected"), [(0.7, 0.7, 0.0), (1.0, 0.9, 0.1), (0.2, 0.5, 0.3)])
def test_regularity_is_the_distance_of_the_mean_score_from_gamma(share, gamma, expected):
    learner = small(gamma=gamma)
    learner.separator = Constant(share)
    assert float(learner.loss(BATCH)["regularity"].detach()) == pytest.approx(expected, abs=1e-6)


def test_regularity_is_taken_graph_by_graph():
    learner = small(gamma=0.5).eval()
    share = learner.separator(BATCH).detach()
    means = [float(share[BATCH.batch == g].mean()) for g in range(12)]
    expected = np.abs(np.array(means) - 0.5).mean()
    assert float(learner.loss(BATCH)["regularity"].detach()) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("pooling", ["mean", "suite"])
def test_the_two_parts_add_up_to_the_whole(pooling):
    learner = small(pooling=pooling).eval()
    nodes, share = learner.quantise(BATCH)[0], learner.separator(BATCH)
    parts = learner.read(nodes * share, BATCH) + learner.read(nodes * (1 - share), BATCH)
    assert torch.allclose(parts, pool(nodes, BATCH, "mean" if pooling == "mean" else "sum"), atol=1e-5)


def test_residual_quantisation_doubles_the_gradient():
    learner = small()
    h = torch.randn(BATCH.num_nodes, 6, requires_grad=True)
    learner.backbone = Fixed(h)
    nodes, _ = learner.quantise(BATCH)
    weight = torch.randn_like(h)
    (nodes * weight).sum().backward()
    assert torch.allclose(h.grad, 2 * weight)


class Fixed(nn.Module):
    """Node embeddings that are given."""

    def __init__(self, h):
        super().__init__()
        self.h = h

    def forward(self, batch):
        del batch
        return self.h


def test_invariance_is_a_cosine_with_a_fixed_target():
    learner, z_c, z_s = small(), torch.randn(12, 6, requires_grad=True), torch.randn(12, 6, requires_grad=True)
    assert -1 <= float(learner.invariance_loss(z_c, z_s).detach()) <= 1

    class First(nn.Module):
        def forward(self, rows):
            return 3.0 * rows[:, :6]

    learner.mix = First()
    loss = learner.invariance_loss(z_c, z_s)
    assert float(loss.detach()) == pytest.approx(-1.0, abs=1e-6)
    loss.backward()
    target = z_c.detach()
    mixed = (3.0 * target).requires_grad_()
    (-F.cosine_similarity(target, mixed, dim=1).mean()).backward()
    assert torch.allclose(z_c.grad, 3.0 * mixed.grad, atol=1e-7)

    class Shared(nn.Module):
        def forward(self, rows):
            return torch.ones(len(rows), 6) + 0.0 * rows[:, :6]

    learner.mix = Shared()
    z_c.grad = None
    learner.invariance_loss(z_c, z_s).backward()
    assert not z_c.grad.any()  # the target is cut off, and this projector ignores its input


def test_spurious_parts_come_from_other_graphs_by_the_runs_generator():
    learner, z_c, z_s = small(), torch.zeros(12, 6), torch.arange(12.0).unsqueeze(1).expand(12, 6)
    seen = []
    learner.mix.register_forward_pre_hook(lambda _, args: seen.append(args[0][:, 6].long()))
    before = torch.get_rng_state()
    with seeded(0, "test"):
        learner.invariance_loss(z_c, z_s)
    assert torch.equal(before, torch.get_rng_state())
    assert seen[0].tolist() != list(range(12))
    assert sorted(seen[0].tolist()) == list(range(12))


@pytest.mark.parametrize("backbone", [GIN, GCN])
@pytest.mark.parametrize(
    ("term", "modules"),
    [
        ("erm", {"backbone", "separator", "head"}),
        ("commitment", {"backbone"}),
        ("invariance", {"backbone", "separator", "mix"}),
        ("regularity", {"separator"}),
    ],
)
def test_each_term_trains_the_modules_it_should(backbone, term, modules):
    learner = small(backbone=backbone)
    found = gradients_of(learner, learner.loss(BATCH)[term])
    assert {name for name in ("backbone", "separator", "head", "mix") if reached(found, name)} == modules


def states_by_epoch(learner, epochs):
    """The state before the first epoch and after each."""
    found = [{name: value.clone() for name, value in learner.state_dict().items()}]
    with seeded(0, "augmentation"):
        optimizers = learner.optimizers()
        learner.train()
        for learner.epoch in range(epochs):
            for batch in PACKED.batches(6):
                learner.training_step(batch, optimizers)
            found.append({name: value.clone() for name, value in learner.state_dict().items()})
    return found


def weights(learner, *modules):
    names = [name for name, _ in learner.named_parameters()]
    return tuple(name for name in names if name.startswith(modules))


@pytest.mark.parametrize("encoder_epochs", [1, 3])
def test_in_turn_one_part_moves_and_the_other_keeps_its_weights_bit_for_bit(encoder_epochs):
    learner = small(encoder_epochs=encoder_epochs)
    states = states_by_epoch(learner, 6)  # beyond one cycle, so that momentum of earlier epochs would show
    encoder, separator = weights(learner, *ENCODER), weights(learner, "separator")
    for epoch in range(6):
        moves, rests = (separator, encoder) if epoch % (encoder_epochs + 1) == 0 else (encoder, separator)
        assert same(states[epoch], states[epoch + 1], only=rests)
        assert not any(same(states[epoch], states[epoch + 1], only=name) for name in moves if "weight" in name)


def test_weights_alone_are_frozen_by_default_as_in_the_authors_code():
    states = states_by_epoch(small(), 2)
    assert not same(states[0], states[1], only="codebook.codes")
    assert not same(states[0], states[1], only="backbone.norm.0.running_mean")
    assert not same(states[1], states[2], only="separator.network.norm.0.running_mean")


def test_frozen_all_keeps_statistics_and_codes_too_and_gives_the_mode_back():
    learner = small(frozen="all")
    states = states_by_epoch(learner, 5)
    for epoch in range(5):
        rests = ENCODER if epoch % 4 == 0 else ("separator",)
        assert same(states[epoch], states[epoch + 1], only=rests)
    assert not same(states[1], states[2], only="codebook.codes")
    assert all(module.training for module in learner.modules())


def test_without_turns_everything_moves_in_every_epoch():
    learner = small(encoder_epochs=0)
    before, after = states_by_epoch(learner, 1)
    matrices = [name for name in weights(learner, *ENCODER, "separator") if "weight" in name]
    assert not any(same(before, after, only=name) for name in matrices)


def test_gradients_are_clipped_together():
    learner = small(clip=0.01)
    optimizers = learner.optimizers()
    learner.epoch = 1
    learner.training_step(BATCH, optimizers)
    norm = torch.stack([p.grad.norm() for p in learner.parameters() if p.grad is not None]).norm()
    assert float(norm) == pytest.approx(0.01, rel=1e-3)
    assert all(p.grad is None for p in learner.separator.parameters())


def test_one_code_is_added_to_every_node_and_follows_them():
    learner = small(codes=1)
    start = learner.codebook.codes[0].clone()
    h = learner.backbone(BATCH).detach()
    nodes, _ = learner.quantise(BATCH)
    assert torch.allclose(nodes - h, start.expand_as(h), atol=1e-5)
    expected = (0.9 * start + 0.1 * h.sum(0)) / (0.1 * len(h))
    assert torch.allclose(learner.codebook.codes[0], expected, rtol=1e-4)


def test_evaluation_leaves_the_codes_and_has_no_commitment():
    learner = small().eval()
    codes = learner.codebook.codes.clone()
    assert float(learner.loss(BATCH)["commitment"].detach()) == 0.0
    assert torch.equal(codes, learner.codebook.codes)


def test_the_prediction_is_the_heads_on_the_invariant_part():
    learner = small().eval()
    z_c = learner.read(learner.quantise(BATCH)[0] * learner.separator(BATCH), BATCH)
    assert torch.equal(learner(BATCH), learner.head(z_c))


@pytest.mark.parametrize("task", [BINARY, MULTICLASS, MULTITASK])
@pytest.mark.parametrize("values", [{}, {"frozen": "all", "codes": 300}])
def test_training_is_finite_also_without_edges_and_with_single_nodes(task, values):
    packed = graphs(12, task=task)
    none = np.zeros((2, 0), dtype=np.int64)
    x = torch.randn(24, 4, generator=torch.Generator().manual_seed(0)).numpy()
    bare = PackedGraphs.pack([RawGraph(x[2 * i : 2 * i + 1 + i % 2], none, 0) for i in range(12)])
    for data in (packed, replace(bare, y=packed.y)):
        state = train(small(task=task, **values), data, epochs=3, batch_size=2)
        assert all(torch.isfinite(value).all() for value in state.values() if value.is_floating_point())
