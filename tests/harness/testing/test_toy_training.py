"""The toy data, and what learners are given of what they declare."""

from __future__ import annotations

import torch

from harness import Baseline, Decorrelator, hparam, upstream
from harness.testing.learner_rig import LearnerRig, environment_of, logits, prepare, upstream_outputs
from harness.testing.toys import TASKS, WIDTH, PlainERM, toy, without_edges


class Builds(Baseline):
    """Needs a reference training, and ids in one of its modes."""

    name = "builds"
    needs = frozenset({"environments", "words"})
    upstream = {
        "reference": upstream("baseline", "erm", train={"epochs": "$reference_epochs"}),
        "ids": upstream("environment", "random", k=2, when={"mode": ["ids"]}),
    }
    reference_epochs: int = hparam(3)
    mode: str = hparam("plain", choices=["plain", "ids"])


def test_the_toy_set_never_changes() -> None:
    one, two = toy(), toy()
    assert all(torch.equal(one.train.tensors()[name], value) for name, value in two.train.tensors().items())
    assert round(float(one.train.x.sum()), 2) == round(float(two.train.x.sum()), 2)


def test_the_toy_set_holds_every_class_and_environment() -> None:
    for kind, task in TASKS.items():
        data = toy(task.kind)
        assert len(data.train.env.unique()) == data.environments == 2
        if kind != "multitask":
            assert data.train.y.unique().tolist() == list(range(task.num_classes))
        else:
            assert bool(torch.isnan(data.train.y).all(1).any())
            assert not bool(torch.isnan(data.train.y).all(0).any())
        assert task.outputs != WIDTH


def test_every_third_graph_is_changed() -> None:
    data = toy().changed(without_edges)
    edges = data.train.edge_ptr.diff()
    assert (edges == 0).tolist() == [i % 3 == 0 for i in range(len(edges))]
    assert torch.equal(data.train.y, toy().train.y)
    assert torch.equal(data.train.x, toy().train.x)


def test_upstream_results_follow_from_the_declaration() -> None:
    data = toy()
    plain, longer = (upstream_outputs(Builds(reference_epochs=epochs), data) for epochs in (3, 4))
    assert set(plain) == {"reference"}
    assert plain["reference"].logits.shape == (24, 3)
    assert plain["reference"].embeddings.shape == (24, WIDTH)
    assert not torch.equal(plain["reference"].logits, longer["reference"].logits)
    ids = upstream_outputs(Builds(mode="ids"), data)
    assert torch.equal(ids["reference"].logits, plain["reference"].logits)
    assert ids["ids"].dtype == torch.int64
    assert ids["ids"].shape == (24,)


def test_a_reference_is_mostly_right() -> None:
    data = toy()
    right = upstream_outputs(Builds(), data)["reference"].logits.argmax(1) == data.train.y
    assert 0.6 < float(right.float().mean()) < 1.0


def test_default_environments_are_made_where_more_than_ids_is_needed() -> None:
    class Grouped(Builds):
        name = "grouped"
        default_environment = "random(3)"

    class OnlyIds(Grouped):
        name = "only-ids"
        needs = frozenset({"environments"})

    assert environment_of(Grouped()).k == 3
    assert environment_of(OnlyIds()) is None
    assert prepare(Grouped(), toy()).learner.info.num_environments == 3
    assert prepare(OnlyIds(), toy()).learner.info.num_environments == 2


def test_ids_drawn_per_batch() -> None:
    class Drawn(Builds):
        name = "drawn"
        default_environment = "random-batch(4)"

    prepared = prepare(Drawn(), toy())
    assert prepared.data.train.env is None
    assert prepared.learner.info.num_environments == 4
    assert prepared.data.assign_batch(toy().train.batch(torch.arange(20))).shape == (20,)


def test_decorrelators_get_kept_and_weighted_votes() -> None:
    class Votes(Decorrelator):
        name = "votes"

    prepared = prepare(Votes(keep=2), toy())
    assert prepared.data.spurious.shape == (24, 2, 3)
    assert prepared.learner.model_scores.tolist() == sorted(prepared.learner.model_scores.tolist())
    assert float(prepared.learner.model_weights.sum()) == 1.0


def test_watching_changes_nothing() -> None:
    plain = prepare(PlainERM(), toy())
    plain.fit()
    watched = LearnerRig(PlainERM).outcome()
    assert all(torch.equal(watched.state[name], value) for name, value in plain.learner.state_dict().items())
    assert torch.equal(watched.outputs["predictions of training graphs"], logits(plain.learner, toy().train))
    assert "loss" not in vars(watched.learner)


def test_parts_are_the_halves_of_each_graph() -> None:
    data = toy(parts=True)
    batch = data.train.batch(torch.arange(4))
    assert torch.bincount(batch.parts_of).tolist() == [2, 2, 2, 2]
    assert torch.equal(batch.parts.x, batch.x)
    assert torch.equal(data.train.x, toy().train.x)

    class Reads(Baseline):
        name = "reads"
        reads_parts = True

    assert prepare(Reads(), data).learner.info.has_parts
    assert not prepare(Reads(), toy()).learner.info.has_parts
