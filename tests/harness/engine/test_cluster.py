"""The Dask engine on a real scheduler with two real worker processes, which stay for all tests of this file."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

pytest.importorskip("distributed", reason="needs the extra `cluster`")

from cluster_kit import Processes, contents, go, inline, profile
from toy import Recorder, ToyStore, diamond, stage, wait_until

from harness.engine import EngineOptions, run
from harness.engine import dask as dask_engine
from harness.engine.cluster import Profile
from harness.engine.dask import Dask
from harness.errors import UserError


@pytest.fixture(scope="module")
def dask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    processes = Processes(tmp_path_factory.mktemp("dask"))
    processes.start_scheduler()
    processes.start_worker("one", "--no-nanny", "--resources", "GPU=1")
    processes.start_worker("two")
    processes.wait_for_workers()
    yield processes
    processes.stop()


@pytest.fixture
def cluster(dask: Processes) -> Profile:
    return profile(dask)


def test_results_equal_the_inline_run_and_the_cluster_is_left_alone(
    dask: Processes, cluster: Profile, store: ToyStore, tmp_path: Path
) -> None:
    recorder = Recorder()
    run_log = store.root / "runs" / "one" / "workers.log"
    run_log.parent.mkdir(parents=True)
    stages = diamond()
    outcome = go(stages, store, cluster, observer=recorder, run_log=run_log)
    assert sorted(outcome.finished) == sorted(item.key for item in stages)
    assert contents(store) == contents(inline(stages, tmp_path / "inline"))
    assert {event.worker.split()[0] for event in recorder.events if event.kind == "finished"} <= {"one", "two"}
    assert recorder.events[-1].detail["machine"]["host"] == os.uname().nodename
    assert list(run_log.parent.glob("workers-*.log"))
    dask.wait_for_workers()


@pytest.mark.parametrize(
    ("do", "limits", "status", "reason"),
    [
        ("raise", {}, "failed", "ValueError: the loss is"),
        ("quit", {}, "killed", "the worker process left with exit code 7 (something calls os._exit, or crashed), 2 t"),
        ("loop", {"timeout": 0.5}, "timeout", "ran longer than 0.5 s (in toy.py:"),
        ("hog", {"memory": 300 * 2**20}, "memory", "used "),
    ],
)
def test_failures_are_reported_as_by_the_local_pool(
    cluster: Profile, store: ToyStore, do: str, limits: dict[str, Any], status: str, reason: str
) -> None:
    outcome = go([stage("bad", do=do), stage("good")], store, cluster, limits=limits)
    assert outcome.finished == ["good"]
    assert outcome.failures["bad"].status == status
    assert outcome.failures["bad"].reason.startswith(reason)
    assert len(store.ran("bad")) == (2 if status == "killed" else 1)


def test_one_cluster_serves_several_runs(cluster: Profile, store: ToyStore) -> None:
    with Dask(EngineOptions(cluster=cluster)) as opened:
        for key in ("a", "b"):
            outcome = run([stage(key)], store=store, job=store.job, engine=opened)
            assert outcome.finished == [key]
    assert len({*store.ran("a"), *store.ran("b")}) <= 2, "a process serves several stages"


def test_a_store_under_another_path(dask: Processes, store: ToyStore, tmp_path: Path) -> None:
    (tmp_path / "mounted").symlink_to(store.root)
    mounted, recorder = profile(dask, store=str(tmp_path / "mounted")), Recorder()
    go([stage("only")], store, mounted, observer=recorder)
    assert recorder.events[-1].kind == "finished"
    assert recorder.events[-1].detail["store"] == str(tmp_path / "mounted")


def test_a_store_that_workers_do_not_share(dask: Processes, store: ToyStore, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cannot write to the store at .*elsewhere") as refused:
        go(diamond(), store, profile(dask, store=str(tmp_path / "elsewhere")))
    assert len(str(refused.value).splitlines()) == 3, "a line for each worker"
    (tmp_path / "other").mkdir()
    run_log = store.root / "runs" / "one" / "workers.log"
    with pytest.raises(UserError, match=r"other is another store: it has no .*runs/one"):
        go(diamond(), store, profile(dask, store=str(tmp_path / "other")), run_log=run_log)
    assert not store.ran("first")


def test_workers_with_other_versions_are_refused(
    cluster: Profile, store: ToyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask_engine, "versions", lambda: {"numpy": "0.9", "mine": "1"})
    with pytest.raises(UserError, match=r"instead of 0\.9; mine is missing instead of 1"):
        go(diamond(), store, cluster)
    assert not store.ran("first")


def test_resources(dask: Processes, store: ToyStore) -> None:
    recorder = Recorder()
    stages = [stage(f"s{i}") for i in range(3)]
    go(stages, store, profile(dask, resources={"train": {"GPU": 1}}), observer=recorder)
    assert {event.worker for event in recorder.events if event.kind == "finished"} == {"one"}
    with pytest.raises(UserError, match="a stage of kind 'train' takes GPU=2; a worker offers at most 1"):
        go([stage("x")], store, profile(dask, resources={"train": {"GPU": 2}}))


def test_what_ran_code_of_a_plugin_runs_no_other_stage(dask: Processes, store: ToyStore) -> None:
    plugin = {"qualname": "Mine", "plugin": "/mine.py"}
    stages = [stage("a"), stage("mine", "a", of=plugin), stage("b", "mine"), stage("c", "b")]
    go(stages, store, profile(dask, resources={"train": {"GPU": 1}}))
    a, mine, b, c = (store.ran(item.key) for item in stages)
    assert a == mine != b == c
    wait_until(lambda: not psutil.pid_exists(mine[0]), 20)  # rather than after a minute without work


def test_slots_are_the_workers_threads_and_jobs_the_most_at_a_time(cluster: Profile, store: ToyStore) -> None:
    for jobs, slots in ((None, 2), (1, 1), (9, 2)):
        with Dask(EngineOptions(jobs=jobs, cluster=cluster)) as opened:
            run([stage(f"s{jobs}")], store=store, job=store.job, engine=opened)
            assert opened.slots == slots
    slurm = Profile("slurm", workers=4, options={"cores": 6, "processes": 2})
    assert Dask(EngineOptions(cluster=slurm)).slots == 12
    assert Dask(EngineOptions(cluster=Profile("local", adapt=(0, 5)))).slots == 5
    assert Dask(EngineOptions(jobs=3, cluster=slurm)).slots == 3


def test_an_interrupt_ends_the_stages_on_all_workers(cluster: Profile, store: ToyStore) -> None:
    stages = [stage(key, do="sleep", seconds=60) for key in ("a", "b")]
    sent: list[float] = []

    def interrupt() -> None:
        wait_until(lambda: all(map(store.ran, "ab")))
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    watcher = threading.Thread(target=interrupt)
    watcher.start()
    with pytest.raises(KeyboardInterrupt):
        go(stages, store, cluster)
    watcher.join()
    assert time.monotonic() - sent[0] < 25, "the stages sleep for a minute"
    wait_until(lambda: not any(psutil.pid_exists(store.ran(key)[0]) for key in "ab"), 10)
