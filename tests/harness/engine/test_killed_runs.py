"""Runs as processes of their own: interrupted, killed, and two of them on one store."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from toy import ToyStore, stage, wait_until

from harness.engine import EngineOptions, run
from harness.store.maintenance import inspect

PROGRAM = """
import sys
from dataclasses import replace
from pathlib import Path
from toy import Recorder, ToyStore, stage
from harness.engine import EngineOptions, Terminated, run

if __name__ == "__main__":
    store = ToyStore(Path(sys.argv[1]))
    seconds, count = float(sys.argv[2]), int(sys.argv[3])
    stages = [stage("first")] + [stage(f"s{i}", "first", slow=seconds) for i in range(count)]
    job, recorder = replace(store.job, preload=sys.argv[4:]), Recorder()
    try:
        with EngineOptions(jobs=2).make() as engine:
            outcome = run(stages, store=store, job=job, engine=engine, observer=recorder)
    except Terminated as stop:
        sys.exit(stop.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)
    print(len(outcome.finished), len(outcome.cached), len(outcome.failures), len(recorder.keys("waiting")))
"""


@pytest.fixture
def launch(store: ToyStore, tmp_path: Path) -> Any:
    """Start a run of its own: ``first``, then ``count`` stages that write for some seconds, on two workers."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    here = Path(__file__).parent
    started: list[subprocess.Popen[str]] = []

    def start(seconds: float, count: int, *preload: str) -> subprocess.Popen[str]:
        command = [sys.executable, str(program), str(store.root), str(seconds), str(count), *preload]
        environment = {**os.environ, "PYTHONPATH": f"{here}:{here.parents[2]}"}
        process = subprocess.Popen(
            command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def family(pid: int) -> list[psutil.Process]:
    """A run's processes: the fork server, its workers and the resource tracker, not the run itself."""
    return psutil.Process(pid).children(recursive=True)


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 143), (signal.SIGUSR1, 143)],
)
def test_an_interrupt_keeps_what_is_finished(store: ToyStore, launch: Any, number: signal.Signals, code: int) -> None:
    if signal.getsignal(number) is signal.SIG_IGN:
        pytest.skip("these tests run under nohup, which a run obeys too")
    process = launch(60, 4)
    wait_until(lambda: bool(store.ran("s0") and store.ran("s1")))
    relatives = family(process.pid)
    if number == signal.SIGTERM:
        process.send_signal(number)
    else:
        os.killpg(process.pid, number)  # as a terminal or a batch scheduler does: everyone gets it
    began = time.monotonic()
    _, errors = process.communicate(timeout=20)
    assert process.returncode == code
    assert time.monotonic() - began < 5
    assert errors == ""
    assert store.has("first")
    assert not store.ran("s2"), "nothing is handed out after the interrupt"
    wait_until(lambda: not any(relative.is_running() for relative in relatives), 5)


def test_ctrl_c_while_the_workers_start(store: ToyStore, launch: Any) -> None:
    process = launch(60, 2, "harness.engine.preload")
    wait_until(lambda: bool(family(process.pid)))
    relatives = family(process.pid)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == 130
    assert errors == ""
    wait_until(lambda: not any(relative.is_running() for relative in relatives), 10)
    assert not store.ran("s0")


def test_a_killed_parent_leaves_no_worker(store: ToyStore, launch: Any) -> None:
    process = launch(60, 2)
    wait_until(lambda: bool(store.ran("s0") and store.ran("s1")))
    relatives = family(process.pid)
    assert {store.ran("s0")[0], store.ran("s1")[0]} <= {relative.pid for relative in relatives}
    process.kill()
    wait_until(lambda: not any(relative.is_running() for relative in relatives), 10)
    lease = store.try_lease("s0")
    assert lease is not None, "the lease ended with its process"
    lease.release()


def test_two_runs_on_one_store_share_the_work(store: ToyStore, launch: Any) -> None:
    both = [launch(0.3, 12) for _ in range(2)]
    reports = [process.communicate(timeout=60) for process in both]
    assert [process.returncode for process in both] == [0, 0], reports
    counts = [[int(number) for number in output.split()] for output, _ in reports]
    assert [finished + cached for finished, cached, _, _ in counts] == [13, 13]
    assert sum(finished for finished, _, _, _ in counts) == 13
    assert all(len(store.ran(key)) == 1 for key in ["first", *[f"s{i}" for i in range(12)]])
    assert any(waiting for _, _, _, waiting in counts)
    assert list(inspect(store)) == []


@pytest.mark.parametrize("victim", ["worker", "parent"])
def test_a_kill_while_writing_then_a_run_ends_as_if_undisturbed(store: ToyStore, launch: Any, victim: str) -> None:
    process = launch(0.3, 2)
    wait_until(lambda: bool(store.ran("s0")))
    time.sleep(0.1)
    (worker,) = store.ran("s0")
    os.kill(worker if victim == "worker" else process.pid, signal.SIGKILL)
    assert process.wait(60) == (0 if victim == "worker" else -signal.SIGKILL)
    wait_until(lambda: not psutil.pid_exists(worker))
    stages = [stage("first"), stage("s0", "first"), stage("s1", "first")]
    with EngineOptions(jobs=2).make() as engine:
        outcome = run(stages, store=store, job=store.job, engine=engine)
    assert outcome.failures == {}
    assert [store.open(key).read_json("number") for key in ("first", "s0", "s1")] == [1, 2, 2]
    assert len(store.ran("first")) == 1, "what was finished is not run again"
    assert list(inspect(store)) == []


def test_a_stage_whose_holder_dies_is_taken_over(store: ToyStore, launch: Any) -> None:
    lease = store.try_lease("s0")
    assert lease is not None
    process = launch(0.1, 2)
    wait_until(lambda: store.has("s1"))
    time.sleep(0.5)
    assert not store.has("s0")
    lease.release()
    output, _ = process.communicate(timeout=30)
    assert output.split() == ["3", "0", "0", "1"]
