"""MoleOOD's inference: the objective's facts, one environment, what is restored, and two latent groups."""

import math
from dataclasses import replace

import pytest
import torch
from learner_kit import BINARY, MULTICLASS, MULTITASK, TinyBackbone, graphs

from harness import Backbone, Features, PackedGraphs, RawGraph
from harness.nn import per_sample_loss
from harness.randomness import generator
from harness.training.bases import LearnerInfo, ModelSpec
from plugins.environments.moleood import LatentModel, MoleOOD, as_vector

ALL = torch.ones(12, dtype=torch.bool)


def component(task=MULTICLASS, *, epochs=3, seed=0, features=4, hidden=6, dropout=0.0, lr=1e-2, **values):
    made = MoleOOD(**values)
    made.rng = generator(seed, "environment")
    info = LearnerInfo(task, Features("numeric", (features,)), Features("none"), 0, 12, total_steps=8, epochs=epochs)
    values = {"layers": 2, "hidden": hidden, "dropout": dropout}
    made.setup(info, ModelSpec(TinyBackbone, values, readout="mean"), seed=seed, batch_size=6, lr=lr)
    return made


def log(rows):
    return torch.tensor(rows).log()


def test_kl_of_two_rows():
    """KL((.5, .5) || uniform) is 0, KL((.9, .1) || uniform) is log 2 - H(.1); without losses nothing else is left."""
    log_q, risks = log([[0.5, 0.5], [0.9, 0.1]]), torch.zeros(2, 2)
    assert component(k=2, kl_reduction="sum").objective(log_q, risks, ALL[:2]).item() == pytest.approx(
        0.36806, abs=5e-6
    )
    assert component(k=2).objective(log_q, risks, ALL[:2]).item() == pytest.approx(0.36806 / 2, abs=5e-6)


def test_a_posterior_equal_to_the_prior_has_no_kl():
    for prior in ("uniform", "gaussian"):
        made = component(k=4, prior=prior, kl_reduction="sum")
        log_q = made.log_prior().expand(5, 4)
        assert made.objective(log_q, torch.zeros(5, 4), ALL[:5]).item() == pytest.approx(0.0, abs=1e-6)


def test_gaussian_prior_in_four_bins():
    pi = component(k=4, prior="gaussian").log_prior().exp()
    assert pi.tolist() == pytest.approx([0.0656, 0.4344, 0.4344, 0.0656], abs=5e-5)
    assert pi.sum().item() == pytest.approx(1.0)


def test_every_graph_twice_doubles_a_summed_kl_alone():
    log_q, risks = torch.randn(6, 3).log_softmax(1), torch.rand(6, 3)
    total = {}
    for reduction in ("sum", "mean"):
        made = component(k=3, kl_reduction=reduction)
        risk = made.objective(log_q, risks, ALL[:6]) - made.objective(log_q, torch.zeros(6, 3), ALL[:6])
        twice = torch.cat([log_q, log_q])
        risk_twice = made.objective(twice, risks.repeat(2, 1), ALL) - made.objective(twice, torch.zeros(12, 3), ALL)
        assert risk_twice.item() == pytest.approx(risk.item(), rel=1e-4)
        kl = made.objective(log_q, torch.zeros(6, 3), ALL[:6])
        total[reduction] = (made.objective(twice, torch.zeros(12, 3), ALL) / kl).item()
    assert total == pytest.approx({"sum": 2.0, "mean": 1.0})


@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_one_environment_is_plain_training(reduction):
    """KL 0, the objective is the mean loss, one group, and the expected loss is the loss."""
    packed, made = graphs(12), component(k=1, kl_reduction=reduction)
    model = LatentModel(made, 1).eval()
    batch = packed.batch(torch.arange(12))
    log_q, risk = model(batch)
    assert log_q.abs().max().item() == 0.0
    assert made.objective(log_q, risk, ALL).item() == pytest.approx(risk.mean().item())
    ids, extra = made.assign(packed, {}, {})
    assert ids.tolist() == [0] * 12
    assert made.flags == []
    assert extra["expected_risk"].shape == (12,)


def test_losses_under_an_environment_are_those_of_its_vector():
    packed = graphs(5)
    made = component(k=3)
    model = LatentModel(made, 3).eval()
    with torch.no_grad():
        model.vectors.copy_(torch.randn(3, 6, generator=generator(0, "v")))
    batch = packed.batch(torch.arange(5))
    h = made.pool(model.conditional(batch), batch)
    for e in range(3):
        logits = model.conditional_head(torch.cat([h, model.vectors[e].expand(5, 6)], 1))
        assert torch.allclose(model(batch)[1][:, e], per_sample_loss(logits, batch.y, MULTICLASS), atol=1e-6)


def test_environment_vectors_start_at_zero_and_learn():
    packed, made = graphs(12), component(k=3, epochs=5)
    model = LatentModel(made, 3)
    assert not model.vectors.any()
    made.fit(model, packed)
    assert bool(model.vectors.any())


def test_the_expected_loss_is_weighted_by_the_prior_and_free_of_dropout():
    packed, made = graphs(12), component(k=4, prior="gaussian", dropout=0.5)
    kept = []
    fit = made.fit
    made.fit = lambda model, train: (fit(model, train), kept.append(model))
    _, extra = made.assign(packed, {}, {})
    with torch.no_grad():
        _, risk = kept[0].eval()(packed.batch(torch.arange(12)))
    expected = risk @ made.log_prior().exp()
    assert torch.allclose(extra["expected_risk"], expected)
    assert not extra["expected_risk"].requires_grad


def test_ids_are_the_most_probable_environments_without_gaps():
    packed, made = graphs(30), component(k=10, epochs=4)
    ids, _ = made.assign(packed, {}, {})
    assert ids.unique().tolist() == list(range(int(ids.max()) + 1))


def test_the_best_epoch_is_kept():
    packed, made = graphs(12), component(k=2, epochs=6)
    seen, states = [], []
    model = LatentModel(made, 2)
    original = made.objective

    def watched(*arguments):
        value = original(*arguments)
        seen.append(float(value.detach()))
        # A later epoch is made to look worse, so that the third one is the best.
        return value + (0.0 if len(seen) <= 6 else 100.0)

    made.objective = watched
    original_train = model.train
    model.train = lambda mode=True: (
        states.append([p.detach().clone() for p in model.parameters()]),
        original_train(mode),
    )[1]
    made.fit(model, packed)
    kept = [p.detach() for p in model.parameters()]
    best = 1 + min(range(3), key=lambda epoch: seen[2 * epoch] + seen[2 * epoch + 1])
    assert all(torch.equal(a, b) for a, b in zip(kept, states[best], strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(kept, states[-1], strict=True))


def test_the_label_is_one_hot_or_the_tasks_labels():
    assert as_vector(torch.tensor([2, 0]), MULTICLASS).tolist() == [[0, 0, 1], [1, 0, 0]]
    assert as_vector(torch.tensor([[1.0, math.nan, 0.0]]), MULTITASK).tolist() == [[1, 0, 0]]


def test_graphs_without_a_label_have_no_environment_and_no_say():
    packed = graphs(12, task=MULTITASK)
    packed.y[4] = math.nan
    ids, extra = component(MULTITASK, k=2).assign(packed, {}, {})
    assert ids[4] == -1
    assert (ids >= 0).sum() == 11
    assert torch.isfinite(extra["expected_risk"]).all()
    log_q, risks, known = torch.randn(3, 2).log_softmax(1), torch.rand(3, 2), torch.tensor([True, True, False])
    made = component(k=2)
    assert made.objective(log_q, risks, known).item() == pytest.approx(
        made.objective(log_q[:2], risks[:2], known[:2]).item()
    )


def test_the_inference_does_not_start_where_the_method_does():
    made = component()
    ours = made.make_backbone().state_dict()
    made._roles, made._made = "", {}
    assert not torch.equal(ours["linear.0.weight"], made.make_backbone().state_dict()["linear.0.weight"])


class Identity(Backbone):
    """Node features as they are, so that p(y | G, e) is a logistic curve that each environment can only shift."""

    name = "identity"

    @property
    def out_dim(self):
        return 1

    def build(self, node_features, edge_features):
        pass

    def forward(self, batch, x=None, edge_weight=None):  # noqa: ARG002
        return batch.x


def two_groups(n=200):
    """Graphs of one feature s in [-2, 2]: the label is whether s > 1 in one group and s > -1 in the other.

    A hidden group helps here, since no logistic curve is flat where the groups contradict each other. (Networks that
    can fit p(y | G) as it is gain nothing from environments: then q at the prior is an optimum too.)
    """
    s = 4 * torch.rand(n, generator=generator(0, "two groups")) - 2
    group = torch.arange(n) % 2
    edges = torch.tensor([[0, 1], [1, 0]]).numpy()
    raw = [RawGraph(torch.full((2, 1), float(value)).numpy(), edges, 0) for value in s]
    return replace(PackedGraphs.pack(raw), y=(s > 1 - 2 * group).long()), group


def posterior(seed, epochs, kl_reduction):
    """(n, 2) q of the two groups after inference, with the objective reached."""
    packed, group = two_groups()
    made = MoleOOD(k=2, kl_reduction=kl_reduction)
    made.rng = generator(seed, "environment")
    info = LearnerInfo(BINARY, Features("numeric", (1,)), Features("none"), 0, len(packed), 8, epochs)
    made.setup(info, ModelSpec(Identity, {}, readout="mean"), seed=seed, batch_size=20, lr=0.02)
    model = LatentModel(made, 2)
    made.fit(model, packed)
    with torch.no_grad():
        return model.eval()(packed.batch(torch.arange(len(packed))))[0].exp(), group


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_two_latent_groups_are_told_apart(seed):
    """The label says which group it is for half of the graphs: 75 % is the most that can be reached."""
    q, group = posterior(seed, 40, "mean")
    right = (q.argmax(1) == group).float().mean().item()
    assert max(right, 1 - right) > 0.7


def test_a_summed_kl_holds_the_posterior_at_the_prior():
    spread = {reduction: float((posterior(3, 100, reduction)[0] - 0.5).abs().mean()) for reduction in ("mean", "sum")}
    assert spread["mean"] > 0.2
    assert spread["sum"] < 1e-4


def test_a_posterior_at_the_prior_is_flagged():
    made = component(k=3)
    made.describe(torch.full((8, 3), 1 / 3))
    assert made.flags == [
        "all graphs are in one environment",
        "the posterior equals the prior, so that the environments are noise",
    ]
