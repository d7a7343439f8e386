"""The process engine: dead workers, limits, interrupts, orphans, and two processes on one store."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
import toy
from toy import Recorder, ToyStore, diamond, stage, wait_until

from harness.engine import EngineOptions, StageOutcomes, process_state, run
from harness.engine.processes import Processes
from harness.engine.worker import Attempt
from harness.store import Failure, Stage

MIB = 2**20


def go(stages: list[Stage], store: ToyStore, **options: Any) -> StageOutcomes:
    limits = {name: options.pop(name) for name in ("jobs", "timeout", "memory", "log") if name in options}
    log = limits.pop("log", None)
    with EngineOptions(**{"jobs": 2, **limits}).make(log) as engine:
        return run(stages, store=store, job=store.job, engine=engine, **options)


def test_a_diamond_runs_once_in_workers(store: ToyStore) -> None:
    recorder = Recorder()
    stages = [stage("d", "b", "c"), stage("b", "a"), stage("c", "a"), stage("a"), stage("e", do="environment")]
    outcome = go(stages, store, observer=recorder)
    assert set(outcome.finished) == set("abcde")
    assert outcome.failures == {}
    assert [len(store.ran(key)) for key in "abcde"] == [1] * 5
    assert os.getpid() not in store.ran("a")
    assert len({pid for key in "abcde" for pid in store.ran(key)}) <= 2
    detail = recorder.last("e").detail
    assert (detail["threads"], detail["omp"], detail["own"]) == (1, "1", 1)
    assert detail["peak_rss"] > MIB
    assert recorder.last("e").worker.startswith("worker ")


def test_stages_of_the_parent_run_between_those_of_workers(store: ToyStore) -> None:
    stages = [stage("train"), stage("score", "train", in_parent=True), stage("after", "score")]
    assert go(stages, store).finished == ["train", "score", "after"]
    assert store.ran("score") == [os.getpid()]
    assert store.ran("after") != [os.getpid()]


def test_only_as_many_workers_as_there_is_work(store: ToyStore) -> None:
    go([stage("a"), stage("b", "a"), stage("c", "b")], store, jobs=8)
    assert len({pid for key in "abc" for pid in store.ran(key)}) == 1


def test_an_exception_costs_one_stage_and_no_worker(store: ToyStore) -> None:
    outcome = go([stage("bad", do="exit"), stage("child", "bad"), stage("good")], store, jobs=1)
    assert outcome.finished == ["good"]
    assert outcome.failures["bad"].reason.startswith("SystemExit: already finished")
    assert outcome.failures["child"].status == "skipped"
    assert store.ran("bad") == store.ran("good")


def test_what_cannot_be_sent_back_is_a_failure(store: ToyStore) -> None:
    outcome = go([stage("bad", do="unsendable"), stage("good")], store, jobs=1)
    assert outcome.failures["bad"].status == "failed"
    assert "pickle" in outcome.failures["bad"].reason
    assert outcome.finished == ["good"]


@pytest.mark.parametrize(
    ("do", "how"),
    [("quit", "left with exit code 7 (something calls os._exit, or crashed)"), ("suicide", "died of SIGKILL")],
)
def test_a_stage_that_kills_its_worker_is_tried_twice(store: ToyStore, do: str, how: str) -> None:
    recorder = Recorder()
    outcome = go([stage("bad", do=do), stage("child", "bad"), stage("good")], store, observer=recorder)
    assert outcome.finished == ["good"]
    assert outcome.failures["bad"] == Failure("killed", f"the worker process {how}, 2 times")
    assert recorder.kinds("bad") == ["started", "retried", "failed"]
    assert len(set(store.ran("bad"))) == 2, "the second attempt has a fresh worker"
    assert store.failure("bad") is None, "it runs again next time"


def test_a_stage_whose_worker_dies_once_ends_well(store: ToyStore) -> None:
    recorder = Recorder()
    outcome = go([stage("a", do="suicide-once"), stage("b", "a")], store, observer=recorder)
    assert outcome.finished == ["a", "b"]
    assert recorder.kinds("a") == ["started", "retried", "finished"]
    assert recorder.events[1].failure == Failure("killed", "the worker process died of SIGKILL")


def test_a_lost_input_of_several_running_stages_is_made_again_once(store: ToyStore) -> None:
    slow = stage("slow", "a", do="find-damage", seconds=0.5)
    quick = stage("quick", "a", do="find-damage")
    outcome = go([stage("a"), slow, quick, stage("end", "slow", "quick")], store)
    assert outcome.failures == {}
    assert set(outcome.finished) == {"a", "slow", "quick", "end"}
    assert [len(store.ran(key)) for key in ("slow", "quick", "end")] == [2, 2, 1]


@pytest.mark.parametrize("damage", ["truncated", "flipped"])
def test_a_damaged_artifact_is_made_again(store: ToyStore, damage: str) -> None:
    stages = diamond()
    go(stages[:3], store)
    path = store.artifact_folder("left") / "number.json"
    content = path.read_bytes()
    path.write_bytes(content[:-1] if damage == "truncated" else bytes([content[0] ^ 1]) + content[1:])
    assert go(stages[3:], store, reserve=stages).failures == {}
    assert store.open("last").read_json("number") == 5
    assert [len(store.ran(each.key)) for each in stages[:3]] == [1, 2, 1]


def test_a_stage_over_the_time_limit_is_ended(store: ToyStore) -> None:
    began = time.monotonic()
    outcome = go([stage("bad", do="loop"), *[stage(f"good{i}") for i in range(4)]], store, timeout=1)
    assert outcome.failures["bad"].status == "timeout"
    assert outcome.failures["bad"].reason in [f"ran longer than 1 s (in toy.py:{line})" for line in loop_lines()]
    assert len(outcome.finished) == 4
    assert len(store.ran("bad")) == 1, "what took too long once is not tried again"
    assert time.monotonic() - began < 20
    assert not psutil.pid_exists(store.ran("bad")[0])


def loop_lines() -> list[int]:
    """The lines on which the toy that loops can be: its condition is checked on the first, its body is the second."""
    lines = Path(toy.__file__).read_text().splitlines()
    first = lines.index("    while True:") + 1
    return [first, first + 1]


@pytest.mark.parametrize("do", ["stop", "deaf"])
def test_a_stage_that_cannot_say_where_it_is_is_ended_as_soon(store: ToyStore, do: str) -> None:
    """A stopped process answers no signal; one that has unset ours dies of it, which is not what the table must say."""
    began = time.monotonic()
    outcome = go([stage("bad", do=do), stage("good")], store, timeout=1)
    assert outcome.failures == {"bad": Failure("timeout", "ran longer than 1 s")}
    assert outcome.finished == ["good"]
    assert time.monotonic() - began < 20
    assert not psutil.pid_exists(store.ran("bad")[0])


def test_a_stage_that_waits_in_a_library_is_told_by_the_plugin_s_line(store: ToyStore) -> None:
    outcome = go([stage("bad", do="sleep", seconds=60)], store, timeout=1)
    line = Path(toy.__file__).read_text().partition('time.sleep(stage.payload["seconds"])')[0].count("\n") + 1
    assert outcome.failures["bad"].reason == f"ran longer than 1 s (in toy.py:{line})"


def test_a_stage_over_the_memory_limit_is_ended(store: ToyStore) -> None:
    limit = 600 * MIB
    outcome = go([stage("bad", do="hog"), stage("good")], store, memory=limit)
    assert outcome.failures["bad"].status == "memory"
    assert outcome.failures["bad"].reason.endswith("of memory, the limit is 629 MB")
    assert outcome.finished == ["good"]
    assert len(store.ran("bad")) == 1


def test_memory_of_what_a_stage_starts_counts(store: ToyStore) -> None:
    began = time.monotonic()
    outcome = go([stage("bad", do="child-hog"), stage("good")], store, memory=600 * MIB)
    assert outcome.failures["bad"].status == "memory"
    assert outcome.finished == ["good"]
    assert time.monotonic() - began < 30, "it would sleep for a minute"


def test_memory_that_forks_share_counts_once(store: ToyStore) -> None:
    assert go([stage("forks", do="forks")], store, memory=900 * MIB).finished == ["forks"]


def test_the_peak_is_that_of_the_stage(store: ToyStore) -> None:
    recorder = Recorder()
    go([stage("a", do="swell"), stage("b", "a")], store, jobs=1, observer=recorder)
    assert store.ran("a") == store.ran("b")
    assert recorder.last("a").detail["peak_rss"] - recorder.last("b").detail["peak_rss"] > 80 * MIB


def test_output_of_workers_goes_to_the_log(store: ToyStore, tmp_path: Path) -> None:
    log = tmp_path / "workers.log"
    go([stage("a", do="say")], store, log=log)
    assert log.read_text() == "a line from a plugin\n"


def test_the_log_stays_short(store: ToyStore, tmp_path: Path) -> None:
    log = tmp_path / "workers.log"
    go([stage("a", do="say"), stage("b", "a", do="shout")], store, log=log)
    assert log.stat().st_size < 64 * MIB
    text = log.read_text()
    assert text.startswith("a line from a plugin\n")
    assert "\n[bench: over 64 MiB were printed; some of it was dropped here]\n" in text
    assert text.endswith("the last line\n")


def test_no_worker_is_left_after_a_run(store: ToyStore) -> None:
    go([stage("a"), stage("b")], store)
    assert not [pid for key in "ab" for pid in store.ran(key) if psutil.pid_exists(pid)]


def test_a_worker_that_died_idle_is_replaced(store: ToyStore) -> None:
    def kill_idle(event: Any) -> None:
        if event.kind == "finished" and event.stage.key == "a":
            os.kill(store.ran("a")[0], signal.SIGKILL)
            time.sleep(0.2)

    outcome = go([stage("a"), stage("b", "a")], store, jobs=1, observer=kill_idle)
    assert outcome.finished == ["a", "b"]
    assert store.ran("a") != store.ran("b")


def test_a_thread_that_a_plugin_leaves_keeps_no_process(store: ToyStore) -> None:
    """Python waits for it at the end of a process: one for each stage of the plugin stayed, with all its memory."""
    stages = [stage(f"s{i}", do="thread", ref={"qualname": "Mine", "plugin": "mine"}) for i in range(6)]
    with EngineOptions(jobs=1).make() as engine:
        run(stages[:2], store=store, job=store.job, engine=engine)
        wait_until(lambda: not psutil.pid_exists(store.ran("s0")[0]), 20)
        run(stages[2:], store=store, job=store.job, engine=engine)
        began = time.monotonic()
    assert time.monotonic() - began < 5, "all of them have left at once"


def test_processes_that_have_left_keep_no_files_open(store: ToyStore) -> None:
    """Each stage of a plugin of the user's has a process of its own; some hundreds of them were too many."""
    opened: list[int] = []

    def count(_: Any) -> None:
        opened.append(len(list(Path("/proc/self/fd").iterdir())))

    stages = [stage(f"s{i}", ref={"qualname": "Mine", "plugin": "mine"}) for i in range(20)]
    go(stages, store, observer=count)
    assert max(opened) < opened[0] + 40


@pytest.mark.parametrize(("text", "share"), [("max 100000", 64), ("150000 100000", 2), ("5000 100000", 1), (None, 64)])
def test_slots_are_by_default_the_cores_that_a_container_has_time_of(
    text: str | None, share: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(64))
    monkeypatch.setattr(process_state, "_SHARE", tmp_path / "cpu.max")
    if text is not None:
        (tmp_path / "cpu.max").write_text(f"{text}\n")
    assert Processes(EngineOptions()).slots == share


def test_the_body_s_keyboard_interrupt_is_not_a_failure() -> None:
    with pytest.raises(KeyboardInterrupt), Attempt():
        raise KeyboardInterrupt


def test_no_thread_is_left_after_a_run_was_killed(store: ToyStore) -> None:
    engine = Processes(EngineOptions(jobs=2))
    engine.start(store.job)
    for key in ("a", "b"):
        engine.submit(stage(key, do="sleep", seconds=60))
    wait_until(lambda: bool(store.ran("a") and store.ran("b")))
    engine.kill()
    engine.close()
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("bench-worker")] == []


def test_the_failure_of_another_run_is_taken_over(store: ToyStore) -> None:
    lease = store.try_lease("a")
    assert lease is not None

    def fail_elsewhere(event: Any) -> None:
        if event.kind == "waiting":
            store.record_failure("a", Failure("failed", "ValueError: elsewhere"), event.stage)
            lease.release()

    outcome = go([stage("a"), stage("b", "a")], store, observer=fail_elsewhere)
    assert outcome.failures["a"].reason == "ValueError: elsewhere"
    assert outcome.failures["b"].status == "skipped"
    assert not store.ran("a")
