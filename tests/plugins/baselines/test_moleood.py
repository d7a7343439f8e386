"""MoleOOD's main model: both terms of the loss, their gradients, and what it leaves alone."""

import math
from dataclasses import replace

import pytest
import torch
from learner_kit import (
    MULTICLASS,
    MULTITASK,
    TinyBackbone,
    gradients,
    graphs,
    make,
    raw_graphs,
    reached,
    repeated,
    same,
    train,
)

from harness import Features, PackedGraphs, UserError
from harness.testing.toys import one_node
from harness.training.bases import LearnerInfo, ModelSpec
from plugins.baselines.erm import ERM
from plugins.baselines.moleood import MoleOOD

PACKED = graphs(12)


def learner(expected=None, **values):
    made = make(MoleOOD, **values)
    made.annotations = {"expected_risk": torch.linspace(0.2, 2.0, 12) if expected is None else expected}
    return made


def test_the_loss_is_the_mean_over_environments_and_the_distance_from_the_expected_loss():
    made = learner(strength=0.3).eval()
    batch = PACKED.batch(torch.tensor([4, 1, 7, 11, 0]))
    risk, expected = made.risk(made(batch), batch), made.annotations["expected_risk"]
    terms = made.loss(batch)
    by_loop = torch.stack([risk[batch.env == e].mean() for e in batch.env.unique()]).mean()
    distance = sum(abs(risk[i] - expected[index]) for i, index in enumerate([4, 1, 7, 11, 0])) / 5
    assert terms["environments"].item() == pytest.approx(by_loop.item(), rel=1e-6)
    assert terms["deviation"].item() == pytest.approx(distance.item(), rel=1e-6)
    assert made.total(terms).item() == pytest.approx(0.3 * by_loop.item() + distance.item(), rel=1e-6)


def test_each_loss_is_pulled_towards_its_expectation_with_the_same_force():
    made, batch = learner(), PACKED.batch(torch.arange(12))
    risk = torch.rand(12, requires_grad=True)
    made.risk = lambda *_: risk
    made.annotations = {"expected_risk": torch.full((12,), 0.5)}
    (gradient,) = torch.autograd.grad(made.loss(batch)["deviation"], risk)
    assert torch.allclose(gradient, (risk.detach() - 0.5).sign() / 12)


def test_expected_losses_follow_the_graphs_not_their_place_in_the_batch():
    made = learner().eval()
    one, other = PACKED.batch(torch.arange(12)), PACKED.batch(torch.arange(12).flip(0))
    assert made.loss(one)["deviation"].item() == pytest.approx(made.loss(other)["deviation"].item(), rel=1e-5)


def test_one_environment_without_the_second_term_is_erm_up_to_rounding():
    one = graphs(12, envs=1)
    ours, erm = train(learner(strength=1.0, deviation=0.0, envs=1), one), train(make(ERM), one)
    assert all(torch.allclose(ours[name].float(), erm[name].float(), atol=1e-5) for name in ours)


def test_the_annotations_are_left_alone():
    made = learner()
    before = made.annotations["expected_risk"].clone()
    train(made, PACKED)
    assert torch.equal(made.annotations["expected_risk"], before)
    assert not any("expected" in name for name in made.state_dict())


def test_the_main_model_starts_where_erm_starts():
    assert same(dict(make(MoleOOD).state_dict()), dict(make(ERM).state_dict()))


def test_graphs_without_a_label_count_nowhere():
    packed = graphs(12, task=MULTITASK)
    packed.y[2] = math.nan
    made = learner(task=MULTITASK).eval()
    without = torch.tensor([i for i in range(12) if i != 2])
    whole, part = made.loss(packed.batch(torch.arange(12))), made.loss(packed.batch(without))
    for name in whole:
        assert whole[name].item() == pytest.approx(part[name].item(), rel=1e-5)


def test_a_batch_without_any_environment_is_finite():
    packed = graphs(6)
    packed.env[:] = -1
    terms = learner().loss(packed.batch(torch.arange(6)))
    assert all(bool(torch.isfinite(term)) for term in terms.values())


def with_parts(packed, *, reverse=False):
    """The same graphs; each with its nodes one by one, and itself, as parts."""
    raw = []
    for graph in raw_graphs(packed):
        single = [one_node(replace(graph, x=graph.x[i:])) for i in range(len(graph.x))]
        parts = [*single, graph]
        raw.append(replace(graph, parts=parts[::-1] if reverse else parts))
    return replace(PackedGraphs.pack(raw), y=packed.y, env=packed.env)


def attending(**values):
    made = MoleOOD(**values)
    info = LearnerInfo(MULTICLASS, Features("numeric", (4,)), Features("none"), 2, 12, 8, 2, has_parts=True)
    made.setup(info, ModelSpec(TinyBackbone, {"layers": 2, "hidden": 6}, "sum", 1), seed=0)
    made.annotations = {"expected_risk": torch.linspace(0.2, 2.0, 12)}
    return made


PARTS = with_parts(PACKED)


def weights(made, batch):
    return made.attention(*made.means(batch), batch)


def test_attention_is_the_masked_softmax_over_all_fragments_of_the_batch():
    """The form of the paper: every fragment scored for every molecule, foreign ones masked."""
    made, batch = attending().eval(), PARTS.batch(torch.arange(12))
    h, parts = made.means(batch)
    score = made.query(h) @ made.key(parts).t() / math.sqrt(6)
    foreign = batch.parts_of.unsqueeze(0) != torch.arange(12).unsqueeze(1)
    dense = score.masked_fill(foreign, -math.inf).softmax(1)
    assert torch.allclose(dense[batch.parts_of, torch.arange(len(parts))], weights(made, batch), atol=1e-6)
    assert torch.allclose(made.embed(batch), dense @ parts, atol=1e-5)


def test_prediction_does_not_depend_on_the_order_of_fragments_nor_on_other_molecules():
    made = attending().eval()
    whole = made(PARTS.batch(torch.arange(12)))
    other_order = made(with_parts(PACKED, reverse=True).batch(torch.arange(12)))
    assert torch.allclose(whole, other_order, atol=1e-5)
    alone = torch.cat([made(PARTS.batch(torch.tensor([i]))) for i in range(12)])
    assert torch.allclose(whole, alone, atol=1e-5)


def test_large_scores_do_not_overflow():
    made, batch = attending().eval(), PARTS.batch(torch.arange(12))
    with torch.no_grad():
        made.query.weight.mul_(1e6)
    assert torch.isfinite(made(batch)).all()


def test_attention_does_not_sharpen_with_the_number_of_atoms():
    """By the suite's readout, a sum, scores would grow with the square of the size, and the softmax saturate."""
    made = attending().eval()
    raw = [replace(graph, parts=[one_node(graph), graph]) for graph in raw_graphs(PACKED)]
    larger = [replace(repeated(graph, 50), parts=[repeated(part, 50) for part in graph.parts]) for graph in raw]
    small, large = (PackedGraphs.pack(graphs).batch(torch.arange(12)) for graphs in (raw, larger))
    assert torch.allclose(weights(made, small), weights(made, large), atol=1e-5)
    assert torch.allclose(made.embed(small), made.embed(large), atol=1e-5)


def test_all_networks_learn_from_each_term():
    made, batch = attending(), PARTS.batch(torch.arange(12))
    for name in ("environments", "deviation"):
        found = gradients(made, made.loss(batch)[name])
        assert all(reached(found, module) for module in ("backbone", "part_backbone", "query", "key", "head"))


def test_without_substructures_fragments_are_not_looked_at():
    made = attending(substructures="none")
    assert same(dict(made.state_dict()), dict(learner().state_dict()))
    assert same(train(made, PARTS), train(learner(), PACKED))


def test_insisting_on_fragments_that_are_not_there_is_refused():
    with pytest.raises(UserError, match="gives no fragments"):
        make(MoleOOD, substructures="brics")
    assert attending(substructures="brics").attends
