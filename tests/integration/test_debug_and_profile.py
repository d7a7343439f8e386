"""One cell in this process: breakpoints, whole tracebacks, where the time goes, and nothing left in the store."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
import torch
from integration_kit import Workshop, bench
from torch import nn

from harness.cli.cells import profile_lines
from harness.cli.output import require_known
from harness.errors import UserError
from harness.profile import Limits, profile
from harness.run.debug import KINDS, debug
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
    words = bench("debug", "suite.yaml", "--methods", "Stops", "--seeds", "1", "--pdb")
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


def test_stages_on_request_run_again_with_all_that_reads_them(workshop: Workshop) -> None:
    workshop.run(methods=("EQuAD",), seeds="1")
    told: list[str] = []
    debug(address(workshop, methods=("EQuAD",), seeds="1"), told.append, again=("encode",))
    kinds = [line.split()[1] for line in told if line.startswith("running")]
    assert kinds == ["encode", "quantify", "train", "score"]
    told.clear()
    debug(address(workshop, methods=("EQuAD",), seeds="1"), told.append, again=())
    assert told == []
    with pytest.raises(UserError, match="did you mean 'encode'"):
        require_known("--again", "encod", KINDS)


def test_upstream_stages_are_kept_where_asked(workshop: Workshop) -> None:
    found = address(workshop, methods=("ERM",), seeds="1")
    debug(found, lambda _: None, keep_upstream=True)
    store = workshop.open().store
    plan = found.session.plan
    assert {stage.kind for key, stage in plan.stages.items() if store.has(key)} == {"prepare"}


def test_what_is_no_cell_is_told(workshop: Workshop) -> None:
    with pytest.raises(UserError, match="not the id of a cell"):
        address(workshop, "nothing")
    with pytest.raises(UserError, match="no run in"):
        address(workshop, "0123abcd")
    with pytest.raises(UserError, match="narrow a suite"):
        address(workshop, "0123abcd", methods=("ERM",))
    options = Options(store=workshop.store, overrides=Overrides(methods=("ERM",)))
    with pytest.raises(UserError, match="no configuration is called 'penalty=3'"):
        open_cell(str(workshop.folder / "suite.yaml"), options, "penalty=3")


def test_a_profile_says_where_the_time_goes(stopping: Workshop) -> None:
    found = address(stopping, methods=("Penalised",), seeds="1")
    limits = Limits(steps=4, seconds=100.0)
    trace = stopping.folder / "traces"
    unmarked = nn.Module.__call__, torch.autograd.backward, torch.autograd.grad
    done = profile(found, limits, lambda _: None, top=3, functions=True, trace=trace)
    assert (nn.Module.__call__, torch.autograd.backward, torch.autograd.grad) == unmarked
    own, erm = done.training, done.erm
    assert own.steps == erm.steps == 4
    assert set(own.sections) == {"batch", "forward", "loss", "backward", "optimizer", "other"}
    for name in ("batch", "forward", "backward", "optimizer"):
        assert own.sections[name] > 0
        assert erm.sections[name] > 0
    assert (own.epochs, own.steps_per_epoch) == (2, 3)
    assert own.parameters == erm.parameters
    assert own.total == pytest.approx(own.fit_start + 2 * (3 * own.step + own.epoch_hooks + own.evaluation))
    assert [stage["kind"] for stage in done.stages] == ["prepare", "train", "score"]
    assert done.stages[0]["seconds"] is not None  # ran for the profile, as in a run
    assert done.stages[1]["seconds"] is None
    kinds = {
        stage.kind for key, stage in address(stopping).session.plan.stages.items() if stopping.open().store.has(key)
    }
    assert kinds == {"prepare"}
    assert len(done.operations) == len(done.functions) == 3
    assert any(operation.name.startswith("aten::") for operation in done.operations)
    assert not any(operation.name.startswith("bench: ") for operation in done.operations)
    assert done.trace is not None
    events = json.loads(Path(done.trace).read_text(encoding="utf-8"))["traceEvents"]
    assert {"bench: forward", "bench: backward"} <= {event.get("name") for event in events}
    plain = json.loads(json.dumps(done.to_json()))
    assert plain["times_erm"]["total"] == pytest.approx(own.total / erm.total)
    told = "\n".join(profile_lines(done))
    for text in ("Penalised", "forward passes", "× ERM", "aten::", "times ERM's", "prepare Toy"):
        assert text in told
    for text in ("Stages of the cell, in wall time", "s (processor)", "s of processor time, "):  # never to be compared
        assert text in told


def test_a_trace_that_cannot_be_written_is_told_before_anything_runs(workshop: Workshop) -> None:
    found = address(workshop, methods=("ERM",), seeds="1")
    taken = workshop.folder / "suite.yaml"
    with pytest.raises(UserError, match=r"cannot write .*suite\.yaml is a file, and not a folder"):
        profile(found, Limits(), lambda _: None, trace=taken)
    assert not artifacts(workshop)


def test_a_method_is_told_of_a_later_epoch(stopping: Workshop) -> None:
    """Whoever asks for epoch 7 gets the steps of epoch 7: those before it are not run, but counted."""
    plugin = STOPS.replace("if self.step == 1:", "if self.epoch < 7 or self.step < 21:").replace(
        "breakpoint()", 'raise AssertionError(f"{self.epoch} {self.step}")'
    )
    (stopping.folder / "stops.py").write_text(plugin, encoding="utf-8")
    found = address(stopping, methods=("Stops",), seeds="1")
    done = profile(found, Limits(steps=1, seconds=100.0, epoch=7), lambda _: None)
    assert done.training.steps == 1
