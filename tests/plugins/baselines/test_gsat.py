"""GSAT: attention and its noise, the two passes, the divergence from the prior, and the prior's schedule."""

import math
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from learner_kit import gradients as gradients_of
from learner_kit import graphs, make, reached, train
from torch.distributions import Bernoulli, kl_divergence

from harness.nn import EdgeScorer, NodeScorer, reverse_edges
from plugins.baselines.erm import ERM
from plugins.baselines.gsat import GSAT, divergence

PACKED = graphs(12, nodes=(4, 8))
BATCH = PACKED.batch(torch.arange(12))
MODES = ["edge", "node"]


def undirected():
    """The batch with the edges that have a reverse."""
    return BATCH.keep_edges(reverse_edges(BATCH) != torch.arange(BATCH.num_edges))


def constant_logit(learner, value):
    """The learner whose scorer says this of everything."""
    with torch.no_grad():
        learner.scorer.last.weight.zero_()
        learner.scorer.last.bias.fill_(value)
    return learner


def seen_weights(learner, batch):
    """The edge weights of the two passes."""
    seen = []
    hook = learner.backbone.register_forward_pre_hook(
        lambda _, __, given: seen.append(given.get("edge_weight")), with_kwargs=True
    )
    learner(batch)
    hook.remove()
    return seen


class TestDivergence:
    """KL of the attention from the prior."""

    @pytest.mark.parametrize("r", [0.3, 0.9])
    def test_it_is_torchs_divergence_between_bernoullis(self, r):
        a = torch.linspace(0.001, 0.999, 200, dtype=torch.float64)
        expected = kl_divergence(Bernoulli(a), Bernoulli(torch.full_like(a, r)))
        torch.testing.assert_close(divergence(a, r), expected, atol=1e-5, rtol=1e-4)

    @pytest.mark.parametrize("a", [0.0, 1.0])
    @pytest.mark.parametrize("r", [0.7, 1.0])
    def test_it_and_its_gradient_are_finite_at_the_ends(self, a, r):
        value = torch.tensor([a], requires_grad=True)
        cost = divergence(value, r)
        cost.sum().backward()
        assert bool(torch.isfinite(cost))
        assert bool(torch.isfinite(value.grad))


class TestAttention:
    """From logits to edge weights."""

    def test_at_logit_zero_it_is_uniform_in_training(self):
        attention = make(GSAT).train().attend(torch.zeros(200_000))
        assert attention.mean().item() == pytest.approx(0.5, abs=3e-3)
        assert attention.var().item() == pytest.approx(1 / 12, abs=1e-3)
        share = torch.histc(attention, 10, 0.0, 1.0) / 200_000
        assert (share - 0.1).abs().max() < 3e-3

    def test_in_evaluation_it_is_the_sigmoid(self):
        learner, logits = make(GSAT).eval(), torch.randn(50)
        assert torch.equal(learner.attend(logits), logits.sigmoid())

    def test_its_probability_of_exceeding_one_half_is_the_sigmoid(self):
        attention = make(GSAT).train().attend(torch.full((200_000,), 0.8))
        assert (attention > 0.5).float().mean().item() == pytest.approx(1 / (1 + math.exp(-0.8)), abs=5e-3)

    @pytest.mark.parametrize("drawn", [0.0, 1.0 - 2**-24])
    def test_the_extreme_draws_have_a_finite_logit(self, drawn, monkeypatch):
        """1 - 1e-10 would round to 1 in single precision, whose logit is infinite."""
        assert torch.logit(torch.tensor(1 - 1e-10)).isinf()
        learner = make(GSAT).train()
        monkeypatch.setattr(torch, "rand", lambda shape, **_: torch.full(shape, drawn))
        logits = torch.zeros(4, requires_grad=True)
        attention = learner.attend(logits)
        attention.sum().backward()
        assert bool(((attention > 0) & (attention < 1)).all())
        assert bool((logits.grad > 0).all())

    def test_noise_comes_from_the_methods_generator_alone(self):
        first, second = make(GSAT, seed=5).train(), make(GSAT, seed=5).train()
        torch.manual_seed(1)
        state = torch.get_rng_state()
        one = first.attend(torch.zeros(9))
        assert torch.equal(torch.get_rng_state(), state)
        torch.manual_seed(2)
        assert torch.equal(one, second.attend(torch.zeros(9)))
        assert not torch.equal(one, second.attend(torch.zeros(9)))

    @pytest.mark.parametrize("training", [True, False])
    @pytest.mark.parametrize("attention", MODES)
    def test_weights_of_the_two_directions_agree_on_undirected_graphs(self, attention, training):
        batch = undirected()
        assert batch.num_edges > 20
        _, weight = seen_weights(make(GSAT, attention=attention).train(training), batch)
        assert torch.equal(weight, weight[reverse_edges(batch)])

    def test_an_edges_weight_is_the_mean_over_its_directions_or_its_own(self):
        learner = make(GSAT)
        values = torch.rand(BATCH.num_edges)
        found = learner.edge_weight(values, BATCH)
        pairs = {(int(s), int(t)): i for i, (s, t) in enumerate(BATCH.edge_index.T)}
        alone = 0
        for (s, t), i in pairs.items():
            other = pairs.get((t, s))
            alone += other is None
            expected = values[i] if other is None else (values[i] + values[other]) / 2
            assert torch.allclose(found[i], expected)
        assert 0 < alone < BATCH.num_edges

    def test_node_attention_weighs_an_edge_by_the_product_of_its_ends(self):
        values = torch.rand(BATCH.num_nodes)
        found = make(GSAT, attention="node").edge_weight(values, BATCH)
        for i, (s, t) in enumerate(BATCH.edge_index.T.tolist()):
            assert torch.allclose(found[i], values[s] * values[t])


class TestPasses:
    """One network, twice."""

    @pytest.mark.parametrize("attention", MODES)
    def test_the_second_pass_is_weighted_and_the_first_is_not(self, attention):
        learner = make(GSAT, attention=attention).eval()
        first, second = seen_weights(learner, BATCH)
        assert first is None
        logits = learner.scorer(learner.backbone(BATCH), BATCH)
        assert torch.equal(second, learner.edge_weight(logits.sigmoid(), BATCH))
        nodes = learner.backbone(BATCH, edge_weight=second)
        assert torch.equal(learner(BATCH), learner.head(learner.pool(nodes, BATCH)))

    @pytest.mark.parametrize("attention", MODES)
    def test_attention_of_one_is_the_unmasked_network(self, attention):
        """With the same start as ERM: the scorer has a role of its own."""
        learner, erm = constant_logit(make(GSAT, attention=attention), 100.0).eval(), make(ERM).eval()
        assert torch.equal(learner(BATCH), erm(BATCH))

    def test_attention_of_zero_is_the_graph_without_edges(self):
        learner, erm = constant_logit(make(GSAT), -200.0).eval(), make(ERM).eval()
        bare = BATCH.keep_edges(torch.zeros(BATCH.num_edges, dtype=torch.bool))
        assert torch.allclose(learner(BATCH), erm(bare))

    def test_open_attention_without_its_price_trains_as_erm(self):
        """Weights only: BatchNorm's running statistics move twice a step."""
        learner = constant_logit(make(GSAT, information=0.0), 100.0)
        left, right = train(learner, PACKED), train(make(ERM), PACKED)
        for name, _ in make(ERM).named_parameters():
            torch.testing.assert_close(left[name], right[name], atol=1e-6, rtol=1e-5)

    @pytest.mark.parametrize("attention", MODES)
    def test_both_terms_train_scorer_and_network(self, attention):
        learner = make(GSAT, attention=attention).train()
        found = gradients_of(learner, learner.loss(BATCH)["erm"])
        assert all(reached(found, module) for module in ("scorer", "backbone", "head"))
        found = gradients_of(learner, learner.loss(BATCH)["information"])
        assert all(reached(found, module) for module in ("scorer", "backbone"))
        assert not reached(found, "head")


class TestLoss:
    """The terms."""

    @pytest.mark.parametrize("attention", MODES)
    @pytest.mark.parametrize("kind", ["sampled", "probability"])
    def test_the_price_is_of_the_attention_before_it_is_averaged(self, attention, kind):
        learner = make(GSAT, attention=attention, divergence=kind, scorer_dropout=0.0).train()
        state = learner.rng.get_state()
        terms = learner.loss(BATCH)
        learner.rng.set_state(state)
        embedding, logits, sampled = learner.read(BATCH)
        a = sampled if kind == "sampled" else logits.sigmoid()
        assert len(a) == (BATCH.num_edges if attention == "edge" else BATCH.num_nodes)
        expected = kl_divergence(Bernoulli(a.double()), Bernoulli(torch.full_like(a, 0.9).double())).mean()
        torch.testing.assert_close(terms["information"].double(), expected, atol=1e-5, rtol=1e-4)
        torch.testing.assert_close(terms["erm"], F.cross_entropy(learner.head(embedding), BATCH.y))

    def test_the_mean_is_over_the_batch_and_not_by_graph(self):
        learner = make(GSAT).train()
        a = torch.rand(BATCH.num_edges)
        object.__setattr__(learner, "read", lambda _: (torch.zeros(12, 6), a, a))
        assert torch.allclose(learner.loss(BATCH)["information"], divergence(a, 0.9).mean())

    def test_a_batch_without_edges_has_no_price(self):
        learner = make(GSAT).train()
        terms = learner.loss(BATCH.keep_edges(torch.zeros(BATCH.num_edges, dtype=torch.bool)))
        assert terms["information"].item() == 0.0
        learner.total(terms).backward()
        assert all(p.grad is None or bool(p.grad.isfinite().all()) for p in learner.parameters())

    def test_a_graph_with_one_edge_has_the_logit_of_a_hidden_layer_of_zeros(self):
        learner = make(GSAT).eval()
        keep = torch.zeros(BATCH.num_edges, dtype=torch.bool)
        keep[5] = True
        batch = BATCH.keep_edges(keep)
        assert torch.allclose(learner.scorer(learner.backbone(batch), batch), learner.scorer.last.bias)


def learner_for(epochs, **values):
    """A learner that is told how long training takes."""
    known, learner = make(GSAT), GSAT(**values)
    learner.setup(replace(known.info, epochs=epochs), known._model, seed=0)
    return learner


class TestSchedule:
    """The prior over epochs."""

    def test_it_falls_by_a_tenth_every_ten_epochs(self):
        learner = make(GSAT, decay_interval=10, final_r=0.7)
        for epoch, r in {0: 0.9, 9: 0.9, 10: 0.8, 19: 0.8, 20: 0.7, 99: 0.7}.items():
            learner.epoch = epoch
            assert learner.r == pytest.approx(r), epoch

    def test_it_never_rises_to_a_final_value_above_the_start(self):
        learner = make(GSAT, final_r=0.95)
        assert learner.r == 0.95
        assert learner.selectable_from == 0

    def test_the_loss_follows_it(self):
        learner = make(GSAT).train()
        a = torch.rand(BATCH.num_edges)
        object.__setattr__(learner, "read", lambda _: (torch.zeros(12, 6), a, a))
        for learner.epoch, r in ((0, 0.9), (10, 0.8), (30, 0.7)):
            assert torch.allclose(learner.loss(BATCH)["information"], divergence(a, r).mean(), atol=1e-6)

    @pytest.mark.parametrize(
        ("interval", "final", "epochs", "expected"),
        [(10, 0.7, 50, 20), (10, 0.5, 50, 40), (20, 0.5, 200, 80), (10, 0.9, 50, 0), (10, 0.7, 8, 7), (10, 0.7, 1, 0)],
    )
    def test_checkpoints_are_chosen_from_the_epoch_in_which_it_is_final(self, interval, final, epochs, expected):
        learner = learner_for(epochs, decay_interval=interval, final_r=final)
        assert learner.selectable_from == expected
        if expected < epochs - 1:
            learner.epoch = expected
            assert learner.r == pytest.approx(final)
            learner.epoch = expected - 1
            assert expected == 0 or learner.r > final + 0.05


def test_the_scorer_is_the_harnesss_with_instance_norm_and_dropout():
    assert isinstance(make(GSAT).scorer, EdgeScorer)
    assert isinstance(make(GSAT, attention="node").scorer, NodeScorer)
    scorer = make(GSAT).scorer
    assert scorer.norm
    assert scorer.dropout.p == 0.5
    assert not make(GSAT, scorer_norm=False).scorer.norm
    assert make(GSAT, scorer_dropout=0.1).scorer.dropout.p == 0.1
