"""Child processes from a fork server that may be killed at any time."""

from __future__ import annotations

import os
import signal
import time
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from harness.engine import supervisor
from harness.engine.contract import Job
from harness.engine.supervisor import Child


def answer(line: Connection) -> None:
    line.send("here")


def claim(line: Connection) -> None:
    os.write(line.fileno(), (1 << 30).to_bytes(4, "big") + b"text")
    time.sleep(60)


def test_a_message_that_claims_a_gigabyte_is_not_waited_for() -> None:
    child = Child.fork(claim)
    with pytest.raises(EOFError):
        child.receive(30)
    assert not child.wait(10)
    assert child.ending() == "died of SIGKILL"


def answer_late(line: Connection) -> None:
    line.recv()
    line.send("here")


def test_a_message_that_does_not_come_in_time_ends_nothing() -> None:
    child = Child.fork(answer_late)
    for seconds in (0, 0.1):
        with pytest.raises(TimeoutError):
            child.receive(seconds)
    child.line.send(None)
    assert child.receive(60) == "here"


def test_memory_of_a_process_that_ends_while_it_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: object) -> list[Path]:
        raise FileNotFoundError

    child = Child.fork(answer_late)
    monkeypatch.setattr(Path, "glob", gone)
    assert child.memory() > 0
    child.kill()
    assert not child.wait(10)
    assert child.memory() == 0


@pytest.mark.parametrize("kills", [1, 2])
def test_a_fork_server_that_is_killed_is_started_again(monkeypatch: pytest.MonkeyPatch, kills: int) -> None:
    ensure, left = forkserver.ensure_running, [signal.SIGKILL] * kills

    def ensure_and_kill() -> None:
        ensure()
        if left:
            os.kill(forkserver._forkserver._forkserver_pid, left.pop())

    monkeypatch.setattr(forkserver, "ensure_running", ensure_and_kill)
    child = Child.fork(answer)
    assert child.receive(60) == "here"
    assert not child.wait(10)


def test_files_written_since_the_fork_server_was_prepared_are_not_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "_PREPARED", [])
    file = tmp_path / "core.py"
    file.touch()
    os.utime(file, (1, 1))
    assert not supervisor.forks_have_loaded([file]), "no fork server was prepared"
    supervisor.prepare_fork_server(Job.preload)
    assert supervisor.forks_have_loaded([file])
    os.utime(file, (time.time() + 1, time.time() + 1))
    assert not supervisor.forks_have_loaded([file])
