"""GREA: gates, recombination, the size term, and which epochs train what."""

import pytest
import torch
import torch.nn.functional as F
from learner_kit import (
    BINARY,
    MULTICLASS,
    MULTITASK,
    graphs,
    make,
    reached,
    same,
)
from learner_kit import gradients as gradients_of

from harness import UserError
from harness.nn import per_sample_loss
from plugins.baselines.erm import ERM
from plugins.baselines.grea import GREA, recombine

PACKED = graphs(12, nodes=(4, 8))
BATCH = PACKED.batch(torch.arange(12))
TASKS = [BINARY, MULTICLASS, MULTITASK]
SEPARATOR, CLASSIFIER = ("separator", "gate"), ("backbone", "head")


def constant_gate(learner, value):
    """The learner with this gate at every node."""
    with torch.no_grad():
        learner.gate[-1].weight.zero_()
        learner.gate[-1].bias.fill_(torch.logit(torch.tensor(value)))
    return learner


def parameters(learner):
    return {name: value.detach().clone() for name, value in learner.named_parameters()}


@pytest.mark.parametrize("low", [0.0, 0.3])
def test_rationale_and_environment_add_up_to_the_graph(low):
    learner = make(GREA).eval()
    gates = low + (1 - low) * torch.rand(BATCH.num_nodes, 1)
    rationale, environment = learner.split(BATCH, gates)
    assert torch.allclose(rationale + environment, learner.pool(learner.backbone(BATCH), BATCH), atol=1e-5)
    h = learner.backbone(BATCH)
    expected = torch.stack([(gates * h)[BATCH.batch == graph].sum(0) for graph in range(12)])
    assert torch.allclose(rationale, expected, atol=1e-5)


def test_recombination_is_row_major_and_labels_follow():
    """Labels (0, 1) of two graphs become (0, 0, 1, 1): the label is the rationale's."""
    rationale, environment = torch.randn(4, 3), torch.randn(4, 3)
    pairs = recombine(rationale, environment).reshape(4, 4, 3)
    for i in range(4):
        for j in range(4):
            assert torch.equal(pairs[i, j], rationale[i] + environment[j])
    learner, batch = make(GREA, task=BINARY), PACKED.batch(torch.arange(2))
    batch.y = torch.tensor([0, 1])
    logits = []
    learner.head.register_forward_hook(lambda _, __, out: logits.append(out))
    terms = learner.loss(batch)
    assert torch.allclose(terms["erm"], F.cross_entropy(logits[0], batch.y))
    assert torch.allclose(terms["augmented"], F.cross_entropy(logits[1], torch.tensor([0, 0, 1, 1])))


def test_a_graph_beside_its_own_environment_is_independent_of_the_separator():
    learner = make(GREA)
    rationale, environment = learner.split(BATCH, learner.gates(BATCH))
    own = recombine(rationale, environment).reshape(12, 12, -1)[range(12), range(12)]
    others = recombine(rationale, environment).reshape(12, 12, -1)[0, 1:]
    weights = torch.randn_like(own)
    found = torch.autograd.grad((own * weights).sum(), list(learner.separator.parameters()), retain_graph=True)
    assert all(float(g.abs().max()) < 1e-4 for g in found)
    found = torch.autograd.grad((others * weights[1:]).sum(), list(learner.separator.parameters()))
    assert max(float(g.abs().max()) for g in found) > 1e-2


def test_the_size_term_is_the_distance_of_each_graphs_mean_gate_from_gamma():
    """Gates of 0.5 at gamma 0.4 cost 0.1; gates of gamma cost nothing."""
    assert constant_gate(make(GREA), 0.5).loss(BATCH)["size"].item() == pytest.approx(0.1, abs=1e-6)
    assert constant_gate(make(GREA), 0.4).loss(BATCH)["size"].item() == pytest.approx(0.0, abs=1e-6)
    assert constant_gate(make(GREA, gamma=0.9), 0.5).loss(BATCH)["size"].item() == pytest.approx(0.4, abs=1e-6)


def test_the_size_term_is_by_graph_and_not_by_node():
    learner = make(GREA, gamma=0.4).eval()
    gates = learner.gates(BATCH).squeeze(1)
    distances = [abs(gates[BATCH.batch == graph].mean().item() - 0.4) for graph in range(12)]
    assert learner.loss(BATCH)["size"].item() == pytest.approx(sum(distances) / 12, abs=1e-6)
    # Above gamma in one graph and below it in another do not cancel.
    mixed = torch.where(BATCH.batch % 2 == 0, 0.1, 0.7).unsqueeze(1)
    object.__setattr__(learner, "gates", lambda _: mixed)
    assert learner.loss(BATCH)["size"].item() == pytest.approx(0.3, abs=1e-6)


def test_open_gates_are_the_plain_model():
    learner, erm = make(GREA).eval(), make(ERM).eval()
    with torch.no_grad():
        learner.gate[-1].weight.zero_()
        learner.gate[-1].bias.fill_(50.0)
    assert torch.equal(learner(BATCH), erm(BATCH))  # same roles, hence the same start


def test_closed_gates_leave_nothing():
    learner = make(GREA).eval()
    with torch.no_grad():
        learner.gate[-1].weight.zero_()
        learner.gate[-1].bias.fill_(-200.0)
    assert torch.equal(learner.embed(BATCH), torch.zeros(12, 6))


@pytest.mark.parametrize("epoch", [0, 1, 3, 4])
def test_epochs_train_the_separator_or_the_rest(epoch):
    """Of every four epochs the first; the others' parameters stay bit for bit."""
    learner = make(GREA)
    optimizers = learner.optimizers()
    for learner.epoch in (0, 1):  # both optimizers have momentum
        learner.training_step(BATCH, optimizers)
    before = parameters(learner)
    learner.epoch = epoch
    learner.training_step(BATCH, optimizers)
    moving, frozen = (SEPARATOR, CLASSIFIER) if epoch % 4 == 0 else (CLASSIFIER, SEPARATOR)
    assert same(before, parameters(learner), only=frozen)
    assert not any(same(before, parameters(learner), only=name) for name in moving)


def test_frozen_parameters_are_not_decayed_either():
    learner = make(GREA)
    learner._weight_decay = 0.5
    optimizers, before = learner.optimizers(), parameters(learner)
    learner.training_step(BATCH, optimizers)
    assert same(before, parameters(learner), only=CLASSIFIER)


def test_cycle_and_separator_epochs_set_the_order():
    learner = make(GREA, cycle=3, separator_epochs=2)
    optimizers = learner.optimizers()
    found = []
    for learner.epoch in range(6):
        before = parameters(learner)
        learner.training_step(BATCH, optimizers)
        found.append(same(before, parameters(learner), only=CLASSIFIER))
    assert found == [True, True, False, True, True, False]


@pytest.mark.parametrize(("cycle", "own"), [(2, 2), (4, 7)])
def test_a_cycle_without_epochs_for_the_classifier_is_refused(cycle, own):
    with pytest.raises(UserError, match="never trained"):
        make(GREA, cycle=cycle, separator_epochs=own)


@pytest.mark.parametrize("epoch", [0, 1])
def test_a_step_is_that_of_plain_autograd_and_torchs_adam(epoch):
    learner, twin = make(GREA, augmented=0.7, size=0.3), make(GREA, augmented=0.7, size=0.3)
    learner.epoch = twin.epoch = epoch
    torch.manual_seed(1)
    learner.training_step(BATCH, learner.optimizers())
    names = SEPARATOR if epoch == 0 else CLASSIFIER
    chosen = [p for name, p in twin.named_parameters() if name.split(".")[0] in names]
    torch.manual_seed(1)
    terms = twin.loss(BATCH)
    total = terms["erm"] + 0.7 * terms["augmented"] + (0.3 * terms["size"] if epoch == 0 else 0.0)
    for parameter, gradient in zip(chosen, torch.autograd.grad(total, chosen), strict=True):
        parameter.grad = gradient
    torch.optim.Adam(chosen, lr=1e-3).step()
    for name, value in twin.named_parameters():
        torch.testing.assert_close(learner.get_parameter(name), value, atol=1e-6, rtol=1e-5)


def test_each_optimizer_has_its_part_and_both_have_everything():
    learner = make(GREA)
    own, rest = ({id(p) for g in o.param_groups for p in g["params"]} for o in learner.optimizers())
    assert own == {id(p) for name, p in learner.named_parameters() if name.split(".")[0] in SEPARATOR}
    assert not own & rest
    assert own | rest == {id(p) for p in learner.parameters()}


def test_the_size_term_trains_the_separator_only():
    found = gradients_of(learner := make(GREA), learner.loss(BATCH)["size"])
    assert all(reached(found, module) for module in SEPARATOR)
    assert not any(reached(found, module) for module in CLASSIFIER)
    for term in ("erm", "augmented"):
        found = gradients_of(learner, learner.loss(BATCH)[term])
        assert all(reached(found, module) for module in SEPARATOR + CLASSIFIER)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.kind)
def test_all_pairs_at_once_are_a_loop_over_pairs(task):
    batch = graphs(6, task=task).batch(torch.arange(6))
    if task is MULTITASK:
        batch.y[0, 1], batch.y[3] = torch.nan, torch.nan
    learner = make(GREA, task=task).double().eval()
    batch.x = batch.x.double()
    rationale, environment = learner.split(batch, learner.gates(batch))
    losses = [
        per_sample_loss(learner.head((rationale[i] + environment[j])[None]), batch.y[i][None].to(batch.y), task)[0]
        for i in range(6)
        for j in range(6)
    ]
    found = learner.loss(batch)["augmented"]
    labels = (~batch.y.isnan()).sum(1) if task is MULTITASK else torch.ones(6)
    expected = (torch.stack(losses).reshape(6, 6).mean(1) * labels).sum() / labels.sum()
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6)
    assert bool(torch.isfinite(found))


def test_networks_are_the_suites_and_the_separator_has_two_layers():
    learner = make(GREA, layers=3)
    assert (learner.backbone.layers, learner.separator.layers) == (3, 2)
    assert type(learner.head) is type(make(ERM).head)


def test_the_authors_predictor():
    """[d -> 2d, BatchNorm, ReLU, dropout of one half, -> C]."""
    learner = make(GREA, predictor="batchnorm")
    first, norm, _, dropout, last = learner.head
    assert (first.in_features, first.out_features, norm.num_features) == (6, 12, 12)
    assert (dropout.p, last.out_features) == (0.5, 3)
    found = gradients_of(learner, learner.total(learner.loss(BATCH)))
    assert reached(found, "head")
    one = learner.loss(PACKED.batch(torch.arange(1)))
    assert all(bool(torch.isfinite(term)) for term in one.values())


def test_running_statistics_follow_in_epochs_that_train_the_other_part():
    learner = make(GREA)
    optimizers = learner.optimizers()
    before = {name: value.clone() for name, value in learner.named_buffers()}
    learner.training_step(BATCH, optimizers)  # trains the separator
    after = dict(learner.named_buffers())
    assert not torch.equal(before["backbone.norm.0.running_mean"], after["backbone.norm.0.running_mean"])
