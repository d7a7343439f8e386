"""The stopwatch: sections do not overlap, and forward passes, gradients and optimizer steps are told apart."""

from __future__ import annotations

import time

import pytest
import torch
from torch import nn

from harness.profiling.result import TrainingProfile
from harness.profiling.sections import BACKWARD, FORWARD, LOSS, OPTIMIZER, OTHER, Sections, watching


def work(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def test_a_section_within_another_stops_its_clock() -> None:
    sections = Sections()
    with sections.section("outer"):
        work(0.02)
        with sections.section("inner"):
            work(0.06)
        work(0.02)
    taken = sections.taken()
    assert taken["outer"] == pytest.approx(0.04, abs=0.015)
    assert taken["inner"] == pytest.approx(0.06, abs=0.015)
    assert sections.taken() == {}


def test_the_parts_of_a_step_are_told_apart() -> None:
    sections = Sections()
    network = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))
    backward, grad = torch.autograd.backward, torch.autograd.grad
    with watching(sections):
        optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
        seen = []
        with sections.section(OTHER):
            with sections.section(LOSS):
                risk = network(torch.ones(3, 4)).sum()
                seen.append(set(sections.seconds))
                torch.autograd.grad(risk, network[0].weight, retain_graph=True)
                seen.append(set(sections.seconds))
            risk.backward()
            optimizer.step()
    assert seen[0] == {OTHER, LOSS, FORWARD}
    assert seen[1] == {OTHER, LOSS, FORWARD, BACKWARD}  # a gradient that the loss asks for
    assert set(sections.taken()) == {OTHER, LOSS, FORWARD, BACKWARD, OPTIMIZER}
    network(torch.ones(3, 4)).sum().backward()
    assert sections.taken() == {}  # nothing is watched any more
    assert (torch.autograd.backward, torch.autograd.grad) == (backward, grad)


def test_a_forward_pass_that_raises_leaves_the_clock_in_order() -> None:
    sections = Sections()
    with watching(sections), sections.section(OTHER):
        with pytest.raises(RuntimeError):
            nn.Linear(4, 4)(torch.ones(3, 5))
        work(0.03)
    taken = sections.taken()
    assert taken[OTHER] > taken[FORWARD]


def test_the_whole_training_is_the_sum_of_its_parts() -> None:
    profile = TrainingProfile(
        steps=5,
        sections={"batch": 0.1, "forward": 0.4},
        fit_start=3.0,
        epoch_hooks=0.5,
        evaluation=1.5,
        steps_per_epoch=10,
        epochs=4,
        parameters=7,
    )
    assert profile.step == pytest.approx(0.5)
    assert profile.epoch == pytest.approx(10 * 0.5 + 0.5 + 1.5)
    assert profile.to_json()["total"] == pytest.approx(3 + 4 * 7.0)
