"""The training loop's settings: drops of the learning rate, optimizers, which epochs count."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor
from training_kit import Watched, data, packed, ready

from harness import Decorrelator, PackedGraphs
from harness.errors import UserError
from harness.suite.settings import LAST, TrainSettings
from harness.training.loop import fit


class Separate(Watched):
    """With an optimizer for the backbone and one of another class and rate for the head."""

    name = "separate"
    separate = True


class Late(Watched):
    """May be chosen from epoch 4 on."""

    name = "late"
    selectable_from = 4


class Voting(Decorrelator):
    """Remembers the votes of all training graphs that it starts with."""

    name = "voting"

    def on_fit_start(self, train: PackedGraphs) -> None:
        del train
        self.known = self.spurious


def rates(learner: Watched) -> list[list[float]]:
    """The learning rates of each epoch; they are the same in all its steps."""
    steps = len(learner.rates) // len(learner.seen)
    by_epoch = [learner.rates[start : start + steps] for start in range(0, len(learner.rates), steps)]
    assert all(rate == epoch[0] for epoch in by_epoch for rate in epoch)
    return [epoch[0] for epoch in by_epoch]


def trained(settings: TrainSettings, cls: type[Watched] = Watched, **more: Any) -> Watched:
    learner = ready(settings, 12, cls=cls, **more)
    fit(learner, data(packed(12)), settings, seed=0)
    return learner


class TestLearningRate:
    """The drop is that of a multi-step schedule with one milestone."""

    def test_every_optimizer_drops_at_the_epoch(self) -> None:
        learner = trained(TrainSettings(5, 4, 32, lr_drop_epoch=3, lr_drop_factor=0.5), Separate, lr=0.01)
        assert rates(learner) == [[0.01, 0.5]] * 3 + [[0.005, 0.25]] * 2

    def test_it_is_a_tenth_by_default_and_none_at_epoch_0(self) -> None:
        assert rates(trained(TrainSettings(3, 4, 32, lr_drop_epoch=1), lr=1.0)) == [[1.0], [0.1], [0.1]]
        assert rates(trained(TrainSettings(3, 4, 32), lr=1.0)) == [[1.0]] * 3
        assert rates(trained(TrainSettings(2, 4, 32, lr_drop_epoch=9), lr=1.0)) == [[1.0]] * 2

    def test_it_is_torchs_multi_step_schedule(self) -> None:
        learner = trained(TrainSettings(5, 4, 32, lr_drop_epoch=2, lr_drop_factor=0.3), lr=0.7)
        parameter = torch.zeros(1, requires_grad=True)
        optimizer = torch.optim.SGD([parameter], lr=0.7)
        schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer, [2], gamma=0.3)
        expected = []
        for _ in range(5):
            expected.append([optimizer.param_groups[0]["lr"]])
            optimizer.step()
            schedule.step()
        assert rates(learner) == expected

    def test_the_weights_follow(self) -> None:
        """A factor of 0 stops training, in all of its parts."""
        settings = TrainSettings(4, 4, 32, lr_drop_epoch=2, lr_drop_factor=0.0)
        short = trained(TrainSettings(2, 4, 32), Separate).state_dict()
        stopped = trained(settings, Separate).state_dict()
        longer = trained(TrainSettings(4, 4, 32), Separate).state_dict()
        assert all(torch.equal(short[name], stopped[name]) for name in short)
        assert not any(torch.equal(short[name], longer[name]) for name in short)


@pytest.mark.parametrize(("name", "reference"), [("adam", torch.optim.Adam), ("adamw", torch.optim.AdamW)])
def test_the_suites_optimizer(name: str, reference: Any) -> None:
    settings = TrainSettings(3, 4, 32)
    learner = trained(settings, lr=0.01, weight_decay=0.1, optimizer=name)
    twin = ready(settings, 12, lr=0.01, weight_decay=0.1, optimizer=name)
    object.__setattr__(
        twin, "optimizers", lambda: [reference(twin.parameters(), lr=0.01, weight_decay=0.1, fused=True)]
    )
    fit(twin, data(packed(12)), settings, seed=0)
    assert all(torch.equal(value, twin.state_dict()[key]) for key, value in learner.state_dict().items())


def falling(*scores: float | None) -> Any:
    """Validation scores, one per epoch."""
    left = iter(scores)
    return lambda _split, _logits: next(left)


class TestWhichEpochsCount:
    """``selectable_from`` with checkpoints, patience and short trainings."""

    def run(self, settings: TrainSettings, scores: Any, cls: type[Watched] = Late) -> dict[str, Any]:
        learner = ready(settings, 12, cls=cls)
        found = fit(learner, data(packed(12), scores), settings, seed=0)
        return {"epochs": len(found.history), **{rule: point.epoch for rule, point in found.checkpoints.items()}}

    def test_the_first_of_equal_scores_is_chosen_and_an_undefined_one_never(self) -> None:
        scores = falling(None, 0.6, None, 0.7, 0.7)
        assert self.run(TrainSettings(5, 4, 32), scores, Watched) == {"epochs": 5, "best@val": 3, LAST: 4}

    def test_no_earlier_epoch_is_chosen(self) -> None:
        scores = falling(0.9, 0.8, 0.7, 0.6, 0.4, 0.5, 0.5)
        assert self.run(TrainSettings(7, 4, 32), scores) == {"epochs": 7, "best@val": 5, LAST: 6}

    def test_patience_waits_for_the_first_epoch_that_may_be_chosen(self) -> None:
        """Without, patience 2 would end training after epoch 1, before anything could be chosen."""
        scores = falling(*[0.5] * 10)
        assert self.run(TrainSettings(10, 4, 32, patience=2), scores) == {"epochs": 7, "best@val": 4, LAST: 6}

    def test_the_longer_of_warm_up_and_that_wait_holds(self) -> None:
        settings = TrainSettings(12, 4, 32, patience=2, warmup=6)
        assert self.run(settings, falling(*[0.5] * 12)) == {"epochs": 8, "best@val": 4, LAST: 7}
        assert self.run(settings, falling(*[0.5] * 12), Watched) == {"epochs": 8, "best@val": 0, LAST: 7}

    @pytest.mark.parametrize("epochs", [1, 3, 4])
    def test_a_shorter_training_chooses_its_last_epoch(self, epochs: int) -> None:
        scores = falling(0.9, 0.8, 0.7, 0.6)
        last = epochs - 1
        assert self.run(TrainSettings(epochs, 4, 32), scores) == {"epochs": epochs, "best@val": last, LAST: last}


def test_batches_of_one_graph_are_refused() -> None:
    settings = TrainSettings(1, 1, 32)
    with pytest.raises(UserError, match="at least 2"):
        fit(ready(settings, 12), data(packed(12)), settings, seed=0)


def test_dropping_the_last_batch_changes_which_graphs_are_seen() -> None:
    def seen(drop_last: bool) -> list[Tensor]:
        settings = TrainSettings(2, 5, 32, drop_last=drop_last)
        learner = ready(settings, 12)
        fit(learner, data(packed(12)), settings, seed=0)
        return [torch.cat(epoch) for epoch in learner.seen]

    every, full = seen(False), seen(True)
    assert [len(index) for index in every] == [12, 12]
    assert [len(index) for index in full] == [10, 10]
    assert all(torch.equal(one[:10], other) for one, other in zip(every, full, strict=True))
    assert all(not torch.equal(one, other) for one, other in pairwise(full))


def test_a_decorrelator_knows_the_votes_of_all_training_graphs_from_its_start() -> None:
    settings, votes = TrainSettings(1, 4, 32), torch.rand(12, 2, 3)
    learner = ready(settings, 12, cls=Voting)  # type: ignore[arg-type]
    fit(learner, replace(data(packed(12)), spurious=votes), settings, seed=0)
    assert torch.equal(learner.known, votes)  # type: ignore[attr-defined]
