"""One cell in this process: breakpoints, whole tracebacks, where the time goes, and nothing left in the store."""

from __future__ import annotations

import subprocess

import pytest
import torch
from integration_kit import Workshop, command_line
from torch import nn

from harness.cli.cells import profile_lines
from harness.errors import UserError
from harness.profile import profile
from harness.run.debug import debug
from harness.run.find import OpenedCell, open_cell
from harness.run.session import Options
from harness.suite import Overrides

STOPS = '''\
from harness import Baseline, hookimpl


class Stops(Baseline):
    """ERM that stops for its author."""

    name = "stops"

    def loss(self, batch):
        if self.step == 1:
            breakpoint()
        if self.step == 2:
            raise ValueError("here it broke")
        return super().loss(batch)


class Penalised(Baseline):
    """ERM with a penalty on the gradient of its logits, which takes a gradient within the loss."""

    name = "penalised"

    def loss(self, batch):
        import torch

        logits = self(batch)
        (slope,) = torch.autograd.grad(logits.sum(), [self.head[-1].weight], create_graph=True)
        return {"erm": self.risk(logits, batch).mean(), "slope": slope.square().sum()}


@hookimpl
def bench_register(register):
    register(Stops)
    register(Penalised)
'''


@pytest.fixture
def stopping(workshop: Workshop) -> Workshop:
    (workshop.folder / "stops.py").write_text(STOPS, encoding="utf-8")
    text = (workshop.folder / "suite.yaml").read_text(encoding="utf-8")
    text = text.replace("plugins: [toy_plugin.py]", "plugins: [toy_plugin.py, stops.py]")
    workshop.write(text + "  Stops: {baseline: stops}\n  Penalised: {baseline: penalised}\n")
    return workshop


def address(workshop: Workshop, target: str | None = None, **overrides: object) -> OpenedCell:
    options = Options(store=workshop.store, overrides=Overrides(**overrides))  # type: ignore[arg-type]
    return open_cell(target or str(workshop.folder / "suite.yaml"), options)


def artifacts(workshop: Workshop) -> set[str]:
    return {path.name for path in workshop.store.glob("artifacts/*/*")}


def test_a_breakpoint_stops_and_an_exception_comes_with_its_whole_traceback(stopping: Workshop) -> None:
    words = command_line("debug", "suite.yaml", "--methods", "Stops", "--seeds", "1", "--pdb")
    done = subprocess.run(
        words,
        cwd=stopping.folder,
        env=stopping.environment(),
        input="p 40 + self.step + 1\nc\np 'in', self.step\nq\n",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert "42" in done.stdout
    assert "('in', 2)" in done.stdout  # post mortem, in the frame of the exception
    assert "stops.py" in done.stderr
    assert "training_step" in done.stderr
    assert "ValueError: here it broke" in done.stderr
    assert not artifacts(stopping)
    assert not list(stopping.store.glob("failures/*/*"))


def test_a_cell_by_its_id_gives_what_is_stored_and_adds_nothing(workshop: Workshop) -> None:
    outcome = workshop.run(methods=("EQuAD",), seeds="1")
    (cell,) = outcome.record.cells
    before, told = artifacts(workshop), []
    scores, stored = debug(address(workshop, cell.id), told.append)
    assert scores == stored
    assert [line for line in told if line.startswith("running")] == [
        "running: train EQuAD on Toy, seed 1",
        "running: score EQuAD on Toy, seed 1",
    ]
    assert artifacts(workshop) == before


def test_what_is_no_cell_is_told(workshop: Workshop) -> None:
    with pytest.raises(UserError, match="not the id of a cell"):
        address(workshop, "nothing")
    with pytest.raises(UserError, match="no run in"):
        address(workshop, "0123abcd")
    with pytest.raises(UserError, match="narrow a suite"):
        address(workshop, "0123abcd", methods=("ERM",))


def test_a_profile_says_where_the_time_goes(stopping: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.profile.STEPS", 4)
    monkeypatch.setattr("harness.profile.SECONDS", 100.0)
    found = address(stopping, methods=("Penalised",), seeds="1")
    unmarked = nn.Module.__call__, torch.autograd.backward, torch.autograd.grad
    own, erm = profile(found, lambda _: None)
    assert (nn.Module.__call__, torch.autograd.backward, torch.autograd.grad) == unmarked
    assert own.steps == erm.steps == 4
    assert set(own.sections) == {"batch", "forward", "loss", "backward", "optimizer", "other"}
    for name in ("batch", "forward", "backward", "optimizer"):
        assert own.sections[name] > 0
        assert erm.sections[name] > 0
    assert (own.epochs, own.steps_per_epoch) == (2, 3)
    assert own.total == pytest.approx(own.fit_start + 2 * (3 * own.step + own.epoch_hooks + own.evaluation))
    kinds = {
        stage.kind for key, stage in address(stopping).session.plan.stages.items() if stopping.open().store.has(key)
    }
    assert kinds == {"prepare"}  # ran for the profile, as in a run
    told = "\n".join(profile_lines(found, own, erm))
    for text in ("Penalised", "forward passes", "× ERM", "times ERM's", "prepare Toy", "not run"):
        assert text in told
    for text in ("Stages of the cell, in wall time", "s (processor)", "s of processor time, "):  # never to be compared
        assert text in told
