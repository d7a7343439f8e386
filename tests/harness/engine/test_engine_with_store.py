"""The engines on the real store: kills while an artifact is written, damage, several engines at once."""

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
from toy import BODY, ToyStore, diamond, stage, wait_until

from harness.engine import EngineOptions, StageOutcomes, run
from harness.errors import DivergedError
from harness.store import Failure, Stage
from harness.store.maintenance import inspect

ROOT = Path(__file__).parents[3]


def go(stages: list[Stage], store: ToyStore, engine: str = "processes", **options: Any) -> StageOutcomes:
    with EngineOptions(engine, jobs=2 if engine == "processes" else None).make() as made:
        return run(stages, store=store, body=BODY, context=store.context, engine=made, **options)


@pytest.mark.parametrize("engine", ["inline", "processes"])
def test_both_engines_leave_the_same(store: ToyStore, engine: str) -> None:
    stages = diamond()
    assert go(stages, store, engine).finished == [each.key for each in stages]
    assert store.open(stages[-1].key).read_json("number") == 5
    assert go(stages, store, engine).cached == [each.key for each in stages]
    assert all(len(store.ran(each.key)) == 1 for each in stages)


@pytest.mark.parametrize("damage", ["truncated", "flipped"])
def test_a_damaged_artifact_is_made_again(store: ToyStore, damage: str) -> None:
    stages = diamond()
    go(stages[:3], store)
    path = store.artifact_folder(stages[1].key) / "number.json"
    content = path.read_bytes()
    path.write_bytes(content[:-1] if damage == "truncated" else bytes([content[0] ^ 1]) + content[1:])
    outcome = go(stages[3:], store, reserve=stages)
    assert outcome.failures == {}
    assert store.open(stages[-1].key).read_json("number") == 5
    assert [len(store.ran(each.key)) for each in stages[:3]] == [1, 2, 1]


def test_a_worker_killed_while_it_writes_leaves_no_artifact(store: ToyStore) -> None:
    slow = stage("slow", slow=60)
    with EngineOptions("processes", jobs=1, timeout=1).make() as engine:
        outcome = run([slow], store=store, body=BODY, context=store.context, engine=engine)
    assert outcome.failures[slow.key].status == "timeout"
    assert not store.has(slow.key)
    assert store.failure(slow.key) is None


PROGRAM = """
import sys
from pathlib import Path
from toy import BODY, ToyStore, diamond
from harness.engine import EngineOptions, run
from harness.engine.processes import Processes

if __name__ == "__main__":
    store = ToyStore(Path(sys.argv[1]))
    with Processes(EngineOptions(jobs=2), preload=[]) as engine:
        outcome = run(diamond(slow=float(sys.argv[2])), store=store, body=BODY, context=store.context, engine=engine)
    sys.exit(1 if outcome.failures else 0)
"""


def launch(store: ToyStore, tmp_path: Path, slow: float) -> subprocess.Popen[bytes]:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    environment = {**os.environ, "PYTHONPATH": f"{Path(__file__).parent}:{ROOT}"}
    return subprocess.Popen(
        [sys.executable, program, str(store.root), str(slow)], env=environment, stderr=subprocess.DEVNULL
    )


def test_concurrent_runs_compute_each_stage_once(store: ToyStore, tmp_path: Path) -> None:
    runs = [launch(store, tmp_path, 0.2) for _ in range(2)]
    assert [process.wait(60) for process in runs] == [0, 0]
    assert all(len(store.ran(each.key)) == 1 for each in diamond())
    assert list(inspect(store)) == []


@pytest.mark.parametrize("victim", ["worker", "parent"])
def test_a_kill_while_writing_then_a_run_ends_as_if_undisturbed(store: ToyStore, tmp_path: Path, victim: str) -> None:
    stages = diamond(slow=0.3)
    process = launch(store, tmp_path, 0.3)
    wait_until(lambda: bool(store.ran(stages[1].key)))
    time.sleep(0.1)
    worker = store.ran(stages[1].key)[0]
    os.kill(worker if victim == "worker" else process.pid, signal.SIGKILL)
    assert process.wait(60) == (0 if victim == "worker" else -signal.SIGKILL)
    wait_until(lambda: victim == "worker" or not psutil.pid_exists(worker))
    outcome = go(stages, store)
    assert outcome.failures == {}
    assert [store.open(each.key).read_json("number") for each in stages] == [1, 2, 2, 5]
    assert len(store.ran(stages[0].key)) == 1, "what was finished is not run again"
    assert list(inspect(store)) == []


def test_a_kept_failure_is_forgotten_after_a_success(store: ToyStore) -> None:
    first = stage("first")
    store.record_failure(first.key, Failure("diverged", str(DivergedError("nan"))), first)
    assert go([first], store, "inline").failures[first.key].status == "diverged"
    assert go([first], store, "inline", retry_failed=True).finished == [first.key]
    assert store.failure(first.key) is None
