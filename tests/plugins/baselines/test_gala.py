"""GALA: environments from an assistant's outputs, its contrast, repeated graphs, and both splits."""

from dataclasses import replace

import pytest
import torch
from learner_kit import BINARY, graphs, make, reached, same, train
from learner_kit import gradients as gradients_of

from harness.nn import environment_contrastive, supervised_contrastive
from harness.randomness import generator
from harness.stages.learners import UpstreamTraining
from plugins.backbones.gin import GIN
from plugins.baselines.ciga import CIGA
from plugins.baselines.gala import GALA

PACKED = replace(graphs(12, nodes=(4, 8)), env=None)
BATCH = PACKED.batch(torch.arange(12))
RIGHT = torch.tensor([True] * 9 + [False] * 3)


def assistant(right=RIGHT, *, y=PACKED.y, classes=3):
    """Outputs of an assistant that gets some graphs right, with embeddings in three directions of different length."""
    predicted = torch.where(right, y, (y + 1) % classes)
    directions = torch.eye(4)[torch.arange(len(y)) % 3] + 0.01 * torch.randn(len(y), 4)
    lengths = 1 + 20 * torch.rand(len(y), 1)
    return UpstreamTraining(2.0 * torch.nn.functional.one_hot(predicted, classes), directions * lengths)


def gala(outputs=None, packed=PACKED, **values):
    learner = make(GALA, **values)
    learner.upstream_outputs = {learner.assistant: assistant() if outputs is None else outputs}
    learner.on_fit_start(packed)
    return learner


class TestAssistant:
    """What is taken of it, and that it is declared."""

    def test_environments_are_its_predictions(self):
        learner = gala(environment="prediction")
        assert torch.equal(learner.env[:9], PACKED.y[:9])
        assert torch.equal(learner.env[9:], (PACKED.y[9:] + 1) % 3)

    def test_or_clusters_of_its_embeddings_by_direction_alone(self):
        ids = gala().env
        expected = torch.arange(12) % 3
        assert len(ids.unique()) == 3
        assert torch.equal(ids[:, None] == ids, expected[:, None] == expected)

    def test_clusters_come_from_the_generator_of_the_method(self):
        outputs = UpstreamTraining(assistant().logits, torch.randn(12, 4))
        first, again = (gala(outputs, clusters=5).env for _ in range(2))
        assert torch.equal(first, again)
        state = torch.get_rng_state()
        gala(outputs)
        assert torch.equal(state, torch.get_rng_state())

    @pytest.mark.parametrize("environment", ["kmeans", "prediction"])
    def test_it_stays_as_it_is_while_the_learner_trains(self, environment):
        outputs = assistant()
        before = outputs.logits.clone(), outputs.embeddings.clone()
        learner = gala(outputs, environment=environment, warmup_epochs=0)
        env = learner.env.clone()
        train(learner, PACKED)
        assert torch.equal(outputs.logits, before[0])
        assert torch.equal(outputs.embeddings, before[1])
        assert torch.equal(learner.env, env)

    def test_both_kinds_are_declared_with_their_settings(self):
        erm, interpretable = GALA.upstream["erm"], GALA.upstream["subgraph"]
        assert (erm["name"], interpretable["name"]) == ("erm", "ciga")
        assert (erm["when"], interpretable["when"]) == ({"assistant": ["erm"]}, {"assistant": ["subgraph"]})
        assert interpretable["params"]["contrast"] == 0.0
        for declared in (erm, interpretable):
            assert declared["train"] == {"epochs": "$assistant_epochs"}
            assert declared["checkpoint"] == "$assistant_checkpoint"
        for name, value in interpretable["params"].items():
            assert name in CIGA.hparams
            assert value in (0.0, f"${name}")

    def test_the_interpretable_one_is_this_network_trained_by_the_risk(self):
        params = GALA.upstream["subgraph"]["params"]
        names = {name: value for name, value in GALA().values.items() if params.get(name) == f"${name}"}
        network, learner = make(CIGA, contrast=0.0, **names), make(GALA)
        assert same(network.state_dict(), learner.state_dict())
        assert torch.equal(network.eval()(BATCH), learner.eval()(BATCH))


class TestContrast:
    """The term and when it counts."""

    def test_the_total_is_the_risk_plus_the_weighted_contrast(self):
        learner = gala(contrast=8.0, warmup_epochs=2)
        terms = learner.loss(BATCH)
        embedding = learner.embed(BATCH)
        expected = environment_contrastive(embedding, PACKED.y, learner.env)
        torch.testing.assert_close(terms["contrast"], expected)
        torch.testing.assert_close(terms["erm"], learner.risk(learner.head(embedding), BATCH).mean())
        assert torch.equal(learner.total(terms), terms["erm"])
        learner.epoch = 2
        torch.testing.assert_close(learner.total(terms), terms["erm"] + 8.0 * terms["contrast"])

    def test_environments_follow_the_graphs_of_the_batch(self):
        learner, rows = gala(), torch.tensor([7, 2, 11, 4, 0, 5])
        batch = PACKED.batch(rows)
        expected = environment_contrastive(learner.embed(batch), PACKED.y[rows], learner.env[rows])
        torch.testing.assert_close(learner.loss(batch)["contrast"], expected)

    @pytest.mark.parametrize("env", [torch.zeros(12, dtype=torch.long), PACKED.y])
    def test_without_positives_it_contrasts_classes_alone(self, env):
        learner = gala()
        learner.env = env
        expected = supervised_contrastive(learner.embed(BATCH), PACKED.y)
        torch.testing.assert_close(learner.loss(BATCH)["contrast"], expected)

    @pytest.mark.parametrize("split", ["soft", "hard"])
    @pytest.mark.parametrize("backbone", [None, GIN])
    def test_both_terms_train_the_scorer(self, split, backbone):
        learner = gala(split=split, **({} if backbone is None else {"backbone": backbone}))
        terms = ("erm", {"head"}), ("contrast", set())
        for term, more in terms:
            found = gradients_of(learner, learner.loss(BATCH)[term])
            modules = {"featurizer", "edge_scorer", "backbone", "head"}
            assert {module for module in modules if reached(found, module)} == modules - {"head"} | more

    def test_no_contrast_before_it_starts_is_none_at_all(self):
        states = [train(gala(contrast=c, warmup_epochs=3), PACKED) for c in (0.0, 64.0)]
        assert same(*states)
        assert not same(states[0], train(gala(contrast=64.0, warmup_epochs=2), PACKED))


class TestSplit:
    """Soft weights on all edges, or the top share."""

    def test_soft_keeps_every_edge_and_hard_the_top_share(self):
        for split, count in (("soft", BATCH.num_edges), ("hard", None)):
            learner = gala(split=split, ratio=0.5)
            _, scores = learner.score(BATCH)
            part = learner.causal(BATCH, scores)
            left = learner.left_over(BATCH, part)
            if count is None:
                assert sorted([*part.edges.tolist(), *left.edges.tolist()]) == list(range(BATCH.num_edges))
                assert len(part.edges) < BATCH.num_edges
            else:
                assert len(part.edges) == count

    def test_the_scorer_has_the_suites_dropout_and_standardises_by_graph(self):
        scorer = make(GALA, dropout=0.3).edge_scorer
        assert (scorer.dropout.p, scorer.norm) == (0.3, True)


class TestRepeats:
    """Which graphs an epoch takes several times."""

    def counts(self, right, **values):
        learner = gala(assistant(right), **values)
        return learner.training_order(torch.randperm(12, generator=generator(1, "order"))).bincount(minlength=12)

    @pytest.mark.parametrize(
        ("wrong", "repeats", "times"),
        [(3, None, 2), (5, None, 1), (3, 3, 4), (5, 1, 2), (3, 0, 1), (4, None, 2)],
    )
    def test_the_smaller_group_is_repeated(self, wrong, repeats, times):
        right = torch.arange(12) >= wrong
        assert self.counts(right, repeats=repeats).tolist() == [times] * wrong + [1] * (12 - wrong)
        assert self.counts(~right, repeats=repeats).tolist() == [times] * wrong + [1] * (12 - wrong)

    @pytest.mark.parametrize("repeats", [None, 3])
    def test_an_empty_group_repeats_nothing(self, repeats):
        order = torch.randperm(12)
        for right in (torch.ones(12, dtype=torch.bool), torch.zeros(12, dtype=torch.bool)):
            assert torch.equal(gala(assistant(right), repeats=repeats).training_order(order), order)

    def test_it_can_be_left_out_and_then_draws_nothing(self):
        learner, order = gala(resample=False), torch.randperm(12)
        state = learner.rng.get_state()
        assert torch.equal(learner.training_order(order), order)
        assert torch.equal(learner.rng.get_state(), state)

    def test_repeated_graphs_are_spread_over_the_epoch(self):
        learner = gala(repeats=4)
        first, second = (learner.training_order(torch.arange(12)) for _ in range(2))
        assert torch.equal(first.sort().values, second.sort().values)
        assert not torch.equal(first, second)
        assert not torch.equal(first[:12], torch.arange(12))


@pytest.mark.parametrize("split", ["soft", "hard"])
def test_two_classes_and_tiny_batches_are_finite(split):
    packed = replace(graphs(4, task=BINARY), env=None)
    outputs = assistant(RIGHT[:4], y=packed.y, classes=2)
    learner = gala(outputs, packed, task=BINARY, split=split, warmup_epochs=0)
    state = train(learner, packed, batch_size=2)
    assert all(bool(torch.isfinite(value).all()) for value in state.values())
