"""The parts of a step do not overlap, and a training is the sum of its parts."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.autograd.profiler import record_function

from harness.profile import MARK, TrainingProfile, _parts


def event(name: str, own: float, *within: SimpleNamespace) -> SimpleNamespace:
    return SimpleNamespace(name=name, self_cpu_time_total=own, cpu_children=list(within))


def test_a_part_within_another_counts_once_and_a_slow_step_does_not_count() -> None:
    def step(forward: float) -> list[SimpleNamespace]:
        risk = event("aten::sum", 2.0)
        inside = event(MARK + "forward", 1.0, event("aten::addmm", forward))
        loss = event(MARK + "loss", 1.0, inside, risk, event(MARK + "backward", 4.0))
        optimizer = event("Optimizer.step#Adam.step", 3.0, event("aten::add_", 2.0))
        whole = event(MARK + "other", 1.0, loss, event("aten::zeros", 1.0), optimizer)
        return [whole, loss, inside, risk, optimizer]

    parts = _parts([*step(4.0), *step(400.0), *step(4.0)], step=0.38)
    assert parts == pytest.approx({"forward": 0.1, "loss": 0.06, "backward": 0.08, "optimizer": 0.1, "other": 0.04})


def test_torch_records_what_the_parts_are_read_from() -> None:
    network = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities) as recorded, record_function(MARK + "other"):
        with record_function(MARK + "forward"):
            risk = network(torch.ones(3, 4)).sum()
        risk.backward()
        optimizer.step()
    (step,) = (event for event in recorded.events() if event.name == MARK + "other")
    parts = _parts(recorded.events(), step=1.0)
    assert sum(parts.values()) == pytest.approx(1.0)
    assert parts["loss"] == parts["backward"] == 0.0
    for name, part in ((MARK + "forward", "forward"), ("Optimizer.step#SGD.step", "optimizer")):
        (inner,) = (event for event in recorded.events() if event.name == name)
        assert parts[part] == pytest.approx(inner.cpu_time_total / step.cpu_time_total, rel=1e-3)


def test_the_whole_training_is_the_sum_of_its_parts() -> None:
    profile = TrainingProfile(
        steps=5,
        sections={"batch": 0.1, "forward": 0.4},
        fit_start=3.0,
        epoch_hooks=0.5,
        evaluation=1.5,
        steps_per_epoch=10,
        epochs=4,
    )
    assert profile.step == pytest.approx(0.5)
    assert profile.epoch == pytest.approx(10 * 0.5 + 0.5 + 1.5)
    assert profile.total == pytest.approx(3 + 4 * 7.0)
