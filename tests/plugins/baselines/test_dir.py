"""DIR: interventions against a loop, which loss trains what, schedule, updates, splits, graphs without a shortcut."""

import itertools
from dataclasses import replace

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

from harness.nn import per_sample_loss, subgraph
from plugins.backbones.leconv import LEConvStack
from plugins.baselines.dir import DIR

PACKED = graphs(12, nodes=(4, 8))
BATCH = PACKED.batch(torch.arange(12))
TASKS = [BINARY, MULTICLASS, MULTITASK]
OWN = ("shortcut_head", "shortcut_last")


def test_the_first_epoch_is_the_rationales_loss_alone():
    learner = make(DIR, alpha=7.0)
    terms = learner.loss(BATCH)
    expected = F.cross_entropy(learner(BATCH), BATCH.y)
    assert torch.allclose(terms["erm"], expected)
    assert torch.equal(learner.total(terms), torch.stack([terms["erm"], terms["shortcut"]]).sum())


@pytest.mark.parametrize(("epoch", "expected"), [(0, 0.0), (1, 1.0), (10, 39.8), (50, 523.0), (100, 1585.0)])
def test_the_weight_of_interventions_grows_with_the_epoch(epoch, expected):
    learner = make(DIR, alpha=2.0)
    learner.epoch = epoch
    assert learner.weight("intervention") == learner.weight("variance") == pytest.approx(2 * expected, rel=1e-3)
    assert learner.weight("erm") == learner.weight("shortcut") == 1.0


def test_the_variance_is_that_of_the_batch_size_times_the_losses():
    """Var(B l) = B^2 Var(l): 26.667 for l = (1, 2, 3, 4) and B = 4."""
    batch = PACKED.batch(torch.arange(4))
    found = {}
    for scaled in (True, False):
        learner = make(DIR, scale_variance=scaled)
        object.__setattr__(learner, "interventions", lambda *_: torch.tensor([1.0, 2.0, 3.0, 4.0]))
        found[scaled] = learner.loss(batch)["variance"].item()
    assert found[True] == pytest.approx(26.667, abs=1e-3)
    assert found[False] == pytest.approx(26.667 / 16, abs=1e-4)


def test_a_shortcut_that_says_nothing_halves_the_logits_and_has_no_variance():
    learner = make(DIR)
    with torch.no_grad():
        for parameter in learner.shortcut_head[-1].parameters():
            parameter.zero_()
    terms = learner.loss(BATCH)
    assert torch.allclose(terms["intervention"], F.cross_entropy(learner(BATCH) / 2, BATCH.y), atol=1e-6)
    assert terms["variance"].item() == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.kind)
def test_all_pairs_at_once_are_a_loop_over_pairs(task):
    batch = graphs(6, task=task).batch(torch.arange(6))
    if task is MULTITASK:
        batch.y[0, 1], batch.y[3] = torch.nan, torch.nan
    learner = make(DIR, task=task)
    causal, shortcut = (torch.randn(count, task.outputs, dtype=torch.float64) for count in (6, 4))
    labels = (~batch.y.isnan()).sum(1) if task is MULTITASK else torch.ones(6)
    expected = []
    for j in range(4):
        losses = [
            per_sample_loss((causal[i] * torch.sigmoid(shortcut[j]))[None], batch.y[i][None], task)[0] for i in range(6)
        ]
        expected.append((torch.stack(losses) * labels).sum() / labels.sum())
    assert torch.allclose(learner.interventions(causal, shortcut, batch), torch.stack(expected), rtol=1e-6)


@pytest.mark.parametrize("shortcut_layer", [False, True])
def test_each_loss_trains_its_own_parameters_only(shortcut_layer):
    learner = make(DIR, shortcut_layer=shortcut_layer)
    for name in ("erm", "intervention", "variance"):
        found = gradients_of(learner, learner.loss(BATCH)[name])
        assert all(value == 0 for key, value in found.items() if key.startswith(OWN)), name
        assert all(reached(found, module) for module in ("generator_network", "scorer", "backbone", "head")), name
    found = gradients_of(learner, learner.loss(BATCH)["shortcut"])
    assert all(value == 0 for key, value in found.items() if not key.startswith(OWN))
    assert all(reached(found, module) for module in OWN[: 1 + shortcut_layer])


def test_the_two_optimizers_share_no_parameter_and_leave_none_out():
    learner = make(DIR, shortcut_layer=True)
    shortcut, main = ({id(p) for g in o.param_groups for p in g["params"]} for o in learner.optimizers())
    assert shortcut == {id(p) for name, p in learner.named_parameters() if name.startswith(OWN)}
    assert not shortcut & main
    assert shortcut | main == {id(p) for p in learner.parameters()}


def test_one_backward_pass_is_the_shortcuts_step_and_then_the_main_step():
    """Two passes with a step after each, as the method is written, give the same weights."""
    together, apart = (make(DIR, alpha=1.0) for _ in range(2))
    optimizers = together.optimizers(), apart.optimizers()
    for step in range(4):
        together.epoch = apart.epoch = step
        together.training_step(BATCH, optimizers[0])
        terms = apart.loss(BATCH)
        shortcut = terms.pop("shortcut")
        for loss, optimizer in zip((shortcut, apart.total(terms)), optimizers[1], strict=True):
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    for name, value in together.state_dict().items():
        assert torch.allclose(value, apart.state_dict()[name], atol=1e-6), name


def test_one_update_for_an_epoch_goes_by_the_mean_loss_of_its_batches():
    """Four batches an epoch: neither the main part nor the shortcut head moves before the fourth."""
    learner, twin = (make(DIR, update="epoch", alpha=1.0) for _ in range(2))
    batches = list(PACKED.batches(3))
    learner.epoch_steps = len(batches)
    optimizers = learner.optimizers()
    for learner.epoch in range(2):
        twin.load_state_dict(learner.state_dict())
        twin.epoch = learner.epoch
        before = {name: value.detach().clone() for name, value in learner.named_parameters()}
        for learner.epoch_step, batch in enumerate(batches):
            assert same(before, dict(learner.named_parameters()))
            learner.training_step(batch, optimizers)
        now = dict(learner.named_parameters())
        assert not same(before, now, only="backbone")
        assert not same(before, now, only=OWN)
        twin.zero_grad(set_to_none=True)
        torch.stack([twin.total(twin.loss(batch)) for batch in batches]).mean().backward()
        for name, parameter in twin.named_parameters():
            assert torch.allclose(now[name].grad, parameter.grad, atol=1e-6), name


@pytest.mark.parametrize(("rounding", "kept"), [("down", [1, 1, 2]), ("up", [1, 2, 3])])
def test_rationale_and_shortcut_part_the_edges(rounding, kept):
    """|G_c| is ratio * E rounded, at least one; together with the shortcut's they are all edges."""
    learner = make(DIR, rounding=rounding)
    batch = chains(3, 7, 9)
    _, scores, mask = learner.split(batch)
    owner = batch.batch[batch.edge_index[0]]
    assert torch.bincount(owner[mask], minlength=3).tolist() == kept
    edges = [part.edges.tolist() for part in (subgraph(batch, mask), subgraph(batch, ~mask))]
    assert sorted(itertools.chain(*edges)) == list(range(batch.num_edges))
    for graph in range(3):
        inside, outside = scores[(owner == graph) & mask], scores[(owner == graph) & ~mask]
        assert inside.min() >= outside.max()


def chains(*lengths):
    """Graphs that are chains of so many edges."""
    packed = graphs(len(lengths), nodes=(10, 11))
    batch = packed.batch(torch.arange(len(lengths)))
    keep = torch.zeros(batch.num_edges, dtype=torch.bool)
    for graph, length in enumerate(lengths):
        own = (batch.batch[batch.edge_index[0]] == graph).nonzero().squeeze(1)
        keep[own[:length]] = True
    return batch.keep_edges(keep)


def test_messages_are_weighted_by_the_sigmoid_of_plus_and_minus_the_score():
    learner = make(DIR)
    seen = []
    learner.backbone.register_forward_pre_hook(lambda _, __, given: seen.append(given["edge_weight"]), with_kwargs=True)
    learner.loss(BATCH)
    _, scores, kept = learner.split(BATCH)
    causal, shortcut = seen
    assert torch.allclose(causal, scores[kept].sigmoid(), atol=1e-6)
    assert torch.allclose(shortcut, 1 - scores[~kept].sigmoid(), atol=1e-6)


def test_the_classifier_reads_the_generators_embeddings():
    learner = make(DIR)
    seen = []
    learner.backbone.register_forward_pre_hook(lambda _, __, given: seen.append(given["x"]), with_kwargs=True)
    h, _, kept = learner.split(BATCH)
    learner(BATCH)
    assert torch.equal(seen[0], h[subgraph(BATCH, kept).nodes])


def test_prediction_is_by_the_rationale_alone():
    learner = make(DIR).eval()
    before = learner(BATCH)
    with torch.no_grad():
        for parameter in learner.shortcut_head.parameters():
            parameter.add_(1.0)
    assert torch.equal(learner(BATCH), before)
    h, scores, kept = learner.split(BATCH)
    part = subgraph(BATCH, kept)
    nodes = learner.backbone(part.batch, x=h[part.nodes], edge_weight=scores[part.edges].sigmoid())
    assert torch.allclose(before, learner.head(learner.pool(nodes, part.batch)))


def test_a_graph_without_shortcut_takes_no_part_in_interventions_and_the_shortcuts_loss():
    learner = make(DIR)
    batch = chains(1, 6, 6)  # the only edge of the first graph is its rationale
    counted = []
    object.__setattr__(
        learner, "interventions", lambda c, s, b: counted.append(len(s)) or DIR.interventions(learner, c, s, b)
    )
    terms = learner.loss(batch)
    assert counted == [2]
    h, scores, kept = learner.split(batch)
    part = subgraph(batch, ~kept, without_edges="empty")
    logits = learner.shortcut_head(learner.shortcut_embedding(part, h, scores))
    assert torch.allclose(terms["shortcut"], F.cross_entropy(logits[1:], batch.y[1:]), atol=1e-6)


@pytest.mark.parametrize("lengths", [(1, 1), (6,), (6, 1), (0, 0)])
def test_fewer_than_two_shortcuts_have_no_variance(lengths):
    """An unbiased variance of one value would be NaN."""
    learner = make(DIR, alpha=1.0)
    learner.epoch = 2
    terms = learner.loss(chains(*lengths))
    assert terms["variance"].item() == 0.0
    learner.total(terms).backward()
    assert all(p.grad is None or bool(p.grad.isfinite().all()) for p in learner.parameters())


def test_the_generator_may_be_leconv_with_two_layers():
    suite, other = make(DIR, layers=3), make(DIR, layers=3, generator="leconv")
    assert suite.generator_network.layers == 2
    assert suite.backbone.layers == 3
    assert isinstance(other.generator_network, LEConvStack)
    assert other.generator_network.layers == 2
    assert other.generator_network.out_dim == other.node_width
    assert reached(gradients_of(other, other.loss(BATCH)["erm"]), "generator_network")


def test_the_readout_may_be_the_mean():
    learner = make(DIR, pooling="mean")
    h, scores, kept = learner.split(BATCH)
    part = subgraph(BATCH, kept)
    nodes = learner.backbone(part.batch, x=h[part.nodes], edge_weight=scores[part.edges].sigmoid())
    expected = torch.stack([nodes[part.batch.batch == graph].mean(0) for graph in range(12)])
    assert torch.allclose(learner.embed(BATCH), expected, atol=1e-6)


def test_the_extra_layer_is_only_in_the_shortcuts_own_loss():
    learner = make(DIR, shortcut_layer=True)
    first = learner.loss(BATCH)
    with torch.no_grad():
        learner.shortcut_last.bias.add_(torch.tensor([3.0, 0.0, -3.0]))
    second = learner.loss(BATCH)
    assert first["shortcut"] != second["shortcut"]
    assert all(torch.equal(first[name], second[name]) for name in ("erm", "intervention", "variance"))


def test_labels_of_one_column_do_not_mix_the_pairs():
    column = replace(BATCH, y=BATCH.y.reshape(-1, 1), cache={})
    learner = make(DIR)
    for name, term in learner.loss(column).items():
        assert torch.allclose(term, learner.loss(BATCH)[name]), name
