"""The scheduler, run inline on toy stages: order, isolation, caching, kept failures, stages of the parent."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from toy import REMEMBERED, Recorder, ToyStore, broken_body, remembering_body, stage

from harness.engine import EngineOptions, Job, StageOutcomes, run
from harness.engine.graph import StageGraph
from harness.errors import DataError
from harness.stages.context import Context
from harness.store import Failure, Stage


def go(stages: list[Stage], store: ToyStore, **options: Any) -> StageOutcomes:
    return run(stages, store=store, job=store.job, engine=EngineOptions("inline").make(), **options)


def test_runs_inputs_first_whatever_the_order_given(store: ToyStore) -> None:
    stages = [stage("d", "b", "c"), stage("b", "a"), stage("c", "a"), stage("a")]
    recorder = Recorder()
    outcome = go(stages, store, observer=recorder)
    assert outcome.finished == ["a", "b", "c", "d"]
    assert outcome.failures == {}
    assert [len(store.ran(key)) for key in "abcd"] == [1, 1, 1, 1]
    assert recorder.kinds("d") == ["started", "finished"]
    assert set(recorder.last("d").detail) >= {"wall", "cpu", "peak_rss"}
    assert outcome.seconds > 0


def test_an_input_may_be_a_further_output(store: ToyStore) -> None:
    outcome = go([stage("score", "sealed"), stage("prepare", outputs=("oracle", "sealed"))], store)
    assert outcome.finished == ["prepare", "score"]


def test_a_missing_further_output_runs_its_stage_again(store: ToyStore) -> None:
    store.write(stage("prepare"))
    assert go([stage("prepare", outputs=("sealed",))], store).finished == ["prepare"]


def test_second_run_runs_nothing(store: ToyStore) -> None:
    stages = [stage("a"), stage("b", "a")]
    go(stages, store)
    recorder = Recorder()
    outcome = go(stages, store, observer=recorder)
    assert (outcome.cached, outcome.finished) == (["a", "b"], [])
    assert recorder.keys("cached") == ["a", "b"]
    assert len(store.ran("a")) == 1


def test_equal_keys_are_one_stage(store: ToyStore) -> None:
    go([stage("a"), stage("a"), stage("b", "a", "a")], store)
    assert len(store.ran("a")) == len(store.ran("b")) == 1


def test_an_input_from_an_earlier_suite_is_taken_from_the_store(store: ToyStore) -> None:
    store.write(stage("old"))
    assert go([stage("new", "old")], store).finished == ["new"]


@pytest.mark.parametrize(
    ("do", "status", "reason"),
    [
        ("raise", "failed", "ValueError: the loss is"),
        ("exit", "failed", "SystemExit: already finished"),
        ("diverge", "diverged", "the loss was nan in epoch 3"),
        ("no-memory", "memory", "MemoryError"),
        ("disk", "disk", "RuntimeError: cannot save"),
    ],
)
def test_a_failure_takes_only_what_reads_it(store: ToyStore, do: str, status: str, reason: str) -> None:
    recorder = Recorder()
    stages = [stage("bad", do=do), stage("child", "bad"), stage("grandchild", "child"), stage("good")]
    outcome = go(stages, store, observer=recorder)
    assert outcome.finished == ["good"]
    failure = outcome.failures["bad"]
    assert failure.status == status
    assert failure.reason.startswith(reason)
    assert ("(toy.py:" in failure.reason) == (do != "diverge")
    for key in ("child", "grandchild"):
        assert outcome.failures[key] == Failure("skipped", f"needs stage bad: {failure.reason}")
        assert recorder.kinds(key) == ["skipped"]
    assert (store.failure("bad") is not None) == failure.kept
    assert store.failure("child") is None


def test_the_traceback_is_short_and_the_plugins_own(store: ToyStore) -> None:
    failure = go([stage("bad", do="raise")], store).failures["bad"]
    assert "in _raise" in failure.traceback
    assert failure.traceback.endswith("ValueError: the loss is\nof the wrong shape")
    assert "harness/engine/worker.py" not in failure.traceback


def test_a_kept_failure_runs_again_only_when_asked(store: ToyStore) -> None:
    stages = [stage("bad", do="raise"), stage("child", "bad")]
    go(stages, store)
    again = go(stages, store)
    assert again.failures["bad"].reason.startswith("ValueError: the loss is (toy.py:")
    assert again.failures["child"].status == "skipped"
    assert again.failures["bad"].remark, "it is told as stored"
    assert len(store.ran("bad")) == 1
    go(stages, store, retry_failed=True)
    assert len(store.ran("bad")) == 2


def test_a_kept_failure_is_forgotten_after_a_success(store: ToyStore) -> None:
    store.record_failure("a", Failure("diverged", "nan"), stage("a"))
    assert go([stage("a")], store).failures["a"].status == "diverged"
    assert go([stage("a")], store, retry_failed=True).finished == ["a"]
    assert store.failure("a") is None


def test_other_failures_run_again(store: ToyStore) -> None:
    for _ in range(2):
        assert go([stage("bad", do="no-memory")], store).failures["bad"].status == "memory"
    assert len(store.ran("bad")) == 2


def test_an_artifact_below_a_failed_input_counts(store: ToyStore) -> None:
    store.write(stage("child"))
    outcome = go([stage("bad", do="raise"), stage("child", "bad")], store)
    assert outcome.cached == ["child"]
    assert list(outcome.failures) == ["bad"]


def test_an_artifact_may_show_late(store: ToyStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a network file system, whose clients remember for a while that something is not there."""
    real, hidden = ToyStore.has, [3]

    def has(self: ToyStore, key: str) -> bool:
        there = real(self, key)
        if there and hidden[0]:
            hidden[0] -= 1
            return False
        return there

    monkeypatch.setattr(ToyStore, "has", has)
    outcome = go([stage("a")], store)
    assert (outcome.finished, outcome.failures, hidden) == (["a"], {}, [0])


def test_a_stage_must_write_its_artifact(store: ToyStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.engine.scheduler._LATE", 0.0)
    outcome = run(
        [stage("a")], store=store, job=replace(store.job, body=broken_body), engine=EngineOptions("inline").make()
    )
    assert outcome.failures["a"].reason == "the stage ended without writing its artifact"


def dataset(key: str, **more: Any) -> Stage:
    return replace(stage(key, **more), kind="prepare")


def test_datasets_are_prepared_before_anything_else_runs(store: ToyStore) -> None:
    recorder = Recorder()
    stages = [dataset("a"), stage("train", "a"), dataset("bad", do="raise"), stage("lost", "bad"), dataset("z")]
    outcome = go(stages, store, observer=recorder)
    assert recorder.keys("started") == ["a", "bad", "z", "train"]
    assert (outcome.finished, set(outcome.failures)) == (["a", "z", "train"], {"bad", "lost"})


def test_faults_of_data_end_the_run_before_anything_is_trained(store: ToyStore) -> None:
    recorder = Recorder()
    stages = [dataset("a"), stage("train", "a"), dataset("b", do="no-data"), dataset("c", do="no-data")]
    with pytest.raises(DataError) as fault:
        go([*stages, stage("other", "b")], store, observer=recorder)
    assert str(fault.value).splitlines() == [f"cannot stage {key}: no such file" for key in "bc"]
    assert recorder.keys("started") == ["a", "b", "c"]
    assert recorder.keys("skipped") == []


def test_the_longest_chain_starts_first(store: ToyStore) -> None:
    recorder = Recorder()
    stages = [stage("alone"), stage("first"), stage("second", "first"), stage("third", "second"), stage("other")]
    go(stages, store, observer=recorder)
    assert recorder.keys("started") == ["first", "second", "alone", "third", "other"]


def test_the_cost_decides_what_is_long(store: ToyStore) -> None:
    recorder = Recorder()
    stages = [stage("short"), stage("child", "short"), stage("long")]
    go(stages, store, observer=recorder, cost=lambda stage: 100.0 if stage.key == "long" else 1.0)
    assert recorder.keys("started") == ["long", "short", "child"]


def test_a_lost_input_is_made_again(store: ToyStore) -> None:
    recorder = Recorder()
    stages = [stage("a"), stage("b", "a", do="find-damage"), stage("c", "b")]
    outcome = go(stages, store, observer=recorder)
    assert outcome.failures == {}
    assert outcome.finished == ["a", "b", "c"]
    assert [len(store.ran(key)) for key in "abc"] == [2, 2, 1]
    assert recorder.kinds("b") == ["started", "retried", "started", "finished"]
    assert store.failure("b") is None


def test_a_lost_input_is_made_again_from_the_reserve(store: ToyStore) -> None:
    everything = [stage("root"), stage("a", "root"), stage("b", "a", do="find-damage"), stage("other", "root")]
    store.write(stage("a"))  # its own input was never asked for, or collected
    outcome = go(everything[2:3], store, reserve=everything)
    assert outcome.finished == ["root", "a", "b"]
    assert outcome.cached == []
    assert not store.ran("other"), "what nobody needs stays in reserve"


def test_an_input_of_the_reserve_that_is_not_there_runs(store: ToyStore) -> None:
    assert go([stage("b", "a")], store, reserve=[stage("a"), stage("c")]).finished == ["a", "b"]


def test_an_input_that_is_lost_again_and_again_is_a_failure(store: ToyStore) -> None:
    outcome = go([stage("a"), stage("b", "a", do="find-damage", times=9)], store)
    assert outcome.failures["b"].reason.startswith("RuntimeError: an input is damaged (toy.py:")
    assert len(store.ran("b")) == 2


def test_an_interrupt_goes_through(store: ToyStore) -> None:
    with pytest.raises(KeyboardInterrupt):
        go([stage("a"), stage("b", "a", do="interrupt-self"), stage("c", "b")], store)
    assert store.has("a")
    lease = store.try_lease("b")
    assert lease is not None, "the lease of the interrupted stage is free again"
    lease.release()


def test_the_parent_gets_its_threads_back(store: ToyStore) -> None:
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        recorder = Recorder()
        go([stage("a", do="environment")], store, observer=recorder)
        assert recorder.last("a").detail["threads"] == 1
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_ten_thousand_stages_cost_little() -> None:
    lease = SimpleNamespace(release=lambda: None)
    store: Any = SimpleNamespace(
        has=REMEMBERED.__contains__, try_lease=lambda _: lease, failure=lambda _: None, refresh=lambda _: None
    )
    stages = [stage(f"s{i}", *([f"s{i // 3}"] if i else [])) for i in range(10_000)]
    began = time.process_time()
    job = Job(remembering_body, Context(store))
    outcome = run(stages, store=store, job=job, engine=EngineOptions("inline").make())
    assert len(outcome.finished) == 10_000
    assert time.process_time() - began < 5  # measured: 1.0 s; the rest is for slower machines


def test_priorities_follow_the_longest_chain() -> None:
    graph = StageGraph([stage("a"), stage("b", "a"), stage("c", "a"), stage("d", "c")])
    assert graph.priorities(lambda _: 1.0) == {"a": 3.0, "b": 1.0, "c": 2.0, "d": 1.0}
    assert graph.dependants["a"] == ["b", "c"]


def test_a_cached_run_starts_no_process_and_no_torch(store: ToyStore) -> None:
    store.write(stage("a"))
    store.write(stage("b"))
    program = """
import sys, multiprocessing
from pathlib import Path
from toy import *
from harness.engine import EngineOptions, run
store = ToyStore(Path(sys.argv[1]))
engine = EngineOptions().make()
outcome = run([stage("a"), stage("b", "a")], store=store, job=store.job, engine=engine)
assert outcome.cached == ["a", "b"], outcome
assert multiprocessing.active_children() == []
assert "torch" not in sys.modules and "numpy" not in sys.modules
from multiprocessing import forkserver
assert forkserver._forkserver._forkserver_pid is None
"""
    subprocess.run([sys.executable, "-c", program, str(store.root)], check=True, env=_environment())


def _environment() -> dict[str, str]:
    here = Path(__file__).parent
    return {"PYTHONPATH": f"{here}:{here.parents[2]}", "PATH": "/usr/bin:/bin"}
