"""Slots of devices: who runs where, several on each, CPU stages beside them, and a process whose device is spoilt."""

from __future__ import annotations

import sys
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from toy import Recorder, ToyStore, stage

from harness.engine import Engine, EngineOptions, devices, run
from harness.engine.graph import Ready
from harness.engine.worker import Attempt
from harness.store import Stage


def queues(slots: int, device_slots: int) -> Ready:
    engine = Engine()
    engine.slots, engine.device_slots = slots, device_slots
    return Ready(engine)


def of_kind(kind: str, key: str, **more: Any) -> Stage:
    return replace(stage(key, **more), kind=kind)


def test_which_stages_train_networks() -> None:
    kinds = ("prepare", "encode", "quantify", "train", "score", "analyse")
    assert [kind for kind in kinds if of_kind(kind, "a").trains] == ["encode", "train"]
    annotate = of_kind("annotate", "a")
    assert not replace(annotate, payload=SimpleNamespace(networks=None)).trains
    assert replace(annotate, payload=SimpleNamespace(networks=object())).trains


def test_each_lane_fills_by_itself() -> None:
    ready = queues(1, 2)
    train, quantify = of_kind("train", "t"), of_kind("quantify", "q")
    for rank, item in enumerate((train, quantify)):
        ready.push((0.0, rank), item)
    assert ready.open([])[0][1] == "q"
    assert ready.open([quantify])[0][1] == "t"
    assert ready.open([quantify, train])[0][1] == "t"
    assert ready.open([quantify, train, train]) is None


def test_without_device_slots_there_is_one_lane() -> None:
    ready = queues(1, 0)
    ready.push((0.0, 1), of_kind("quantify", "q"))
    ready.push((0.0, 0), of_kind("train", "t"))
    assert ready.open([])[0][1] == "t"
    assert ready.open([of_kind("train", "x")]) is None


@pytest.fixture
def two_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "device_count", lambda: 2)


@pytest.mark.usefixtures("two_gpus")
def test_stages_go_to_their_devices_and_never_share_a_process(store: ToyStore) -> None:
    recorder = Recorder()
    trainings = [stage(f"t{i}", do="sleep", seconds=0.3) for i in range(4)]
    others = [of_kind("quantify", f"q{i}", do="sleep", seconds=0.3) for i in range(2)]
    with EngineOptions(jobs=1, device="cuda").make() as engine:
        assert (engine.slots, engine.device_slots) == (1, 4)
        outcome = run([*trainings, *others], store=store, job=store.job, engine=engine, observer=recorder)
    assert outcome.failures == {}
    places = {key: recorder.last(key).detail["place"] for key in outcome.finished}
    assert sorted(places[item.key] for item in trainings) == ["cuda:0", "cuda:0", "cuda:1", "cuda:1"]
    assert {places[item.key] for item in others} == {"cpu"}
    pids = {key: store.ran(key)[0] for key in places}
    assert len({pids[item.key] for item in trainings}) == 4
    assert not {pids[item.key] for item in trainings} & {pids[item.key] for item in others}


@pytest.mark.usefixtures("two_gpus")
def test_a_worker_with_a_spoilt_device_runs_nothing_more(store: ToyStore) -> None:
    recorder = Recorder()
    stages = [stage("a", do="spoil"), stage("b")]
    with EngineOptions(jobs=1, device="cuda:0", jobs_per_device=1).make() as engine:
        outcome = run(stages, store=store, job=store.job, engine=engine, observer=recorder)
    assert outcome.finished == ["b"]
    assert outcome.failures["a"].status == "device"
    assert store.failure("a") is None, "it runs again next time"
    assert store.ran("a") != store.ran("b")


def test_the_fork_server_leaves_gpus_alone() -> None:
    """What it loads must not ask for devices: CUDA that has started does not survive a fork."""
    import torch

    asked: list[str] = []
    module = "harness.engine.preload"
    before = sys.modules.pop(module, None)
    with pytest.MonkeyPatch.context() as patch:
        for name in ("_lazy_init", "is_available", "device_count", "current_device"):
            patch.setattr(torch.cuda, name, lambda *_, name=name: asked.append(name))
        import signal

        patch.setattr(signal, "signal", lambda *_: None)
        __import__(module)
    sys.modules.pop(module, None)
    if before is not None:
        sys.modules[module] = before
    assert "_lazy_init" not in asked
    assert "current_device" not in asked
    assert not torch.cuda.is_initialized()


def test_spent_is_told_of_no_other_failure() -> None:
    with Attempt() as attempt:
        raise ValueError("no")
    assert "spent" not in attempt.report.detail
