"""The Dask engine when workers or the scheduler die, come late or never come; each test has a cluster of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

pytest.importorskip("distributed", reason="needs the extra `cluster`")

from cluster_kit import HERE, ROOT, Processes, contents, go, inline, profile
from toy import Recorder, ToyStore, diamond, stage, wait_until

from harness.engine.cluster import Profile, start_cluster
from harness.errors import BenchError, UserError
from harness.store import Stage


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    (tmp_path / "dask").mkdir()
    made = Processes(tmp_path / "dask")
    yield made
    made.stop()


def slow_stages(count: int, seconds: float) -> list[Stage]:
    return [stage("first"), *(stage(f"s{index}", "first", slow=seconds) for index in range(count))]


def meanwhile(action: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=action)
    thread.start()
    return thread


def test_a_worker_killed_in_the_middle_of_a_stage(processes: Processes, store: ToyStore, tmp_path: Path) -> None:
    """Its stage runs on the other worker; its stage process does not outlive it."""
    processes.start_scheduler()
    for name in ("one", "two"):
        processes.start_worker(name, "--no-nanny")
    processes.wait_for_workers()
    stages = slow_stages(4, 1.5)
    lost: list[int] = []

    def kill() -> None:
        wait_until(lambda: len([item for item in stages if store.ran(item.key)]) >= 3)
        lost.extend(child.pid for child in psutil.Process(processes.workers["one"].pid).children(recursive=True))
        processes.workers["one"].kill()

    watcher = meanwhile(kill)
    try:
        outcome = go(stages, store, profile(processes))
    finally:
        watcher.join()
    assert outcome.failures == {}
    assert len(outcome.finished) == 5
    assert sum(len(store.ran(item.key)) for item in stages) > 5, "a stage ran twice"
    assert contents(store) == contents(inline(stages, tmp_path / "inline"))
    wait_until(lambda: not any(map(psutil.pid_exists, lost)), 10)


def test_a_lost_scheduler_ends_the_run_and_the_next_one_goes_on(
    processes: Processes, store: ToyStore, tmp_path: Path
) -> None:
    processes.start_scheduler()
    processes.start_worker("one", "--no-nanny")
    processes.wait_for_workers()
    stages = slow_stages(2, 3)

    def stop() -> None:
        wait_until(lambda: any(store.ran(item.key) for item in stages[1:]))
        processes.stop()

    watcher = meanwhile(stop)
    try:
        with pytest.raises(BenchError, match="was lost; the same command goes on from here"):
            go(stages, store, profile(processes))
    finally:
        watcher.join()
    assert store.failure(stages[1].key) is None, "it runs again next time"
    processes.workers.clear()
    processes.start_scheduler()
    processes.start_worker("two", "--no-nanny")
    again = go(stages, store, profile(processes))
    assert (again.cached, len(again.finished), again.failures) == ([stages[0].key], 2, {})
    assert len(store.ran(stages[0].key)) == 1
    assert contents(store) == contents(inline(stages, tmp_path / "inline"))


def test_a_cluster_without_workers(processes: Processes, store: ToyStore) -> None:
    processes.start_scheduler()
    with pytest.raises(UserError, match=f"has had no worker for 1 s; .* `dask worker {processes.address}"):
        go(diamond(), store, profile(processes, wait=1.0))


def test_nobody_at_the_address(store: ToyStore) -> None:
    nowhere = Profile("address", address="tcp://127.0.0.1:9", wait=1.0)
    with pytest.raises(UserError, match=r"the cluster at tcp://127.0.0.1:9 does not answer"):
        go(diamond(), store, nowhere)


def test_a_worker_s_refusal_of_an_option_is_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UserError, match=r"the local cluster cannot be started with these options: .*'no_such'"):
        start_cluster(Profile("local", workers=1, options={"no_such": 1}), None)
    assert capfd.readouterr().err == ""


def test_workers_that_come_and_go_with_the_work(store: ToyStore, tmp_path: Path) -> None:
    """A cluster of our own with adaptive scaling: from none to two workers; nothing is left of it at the end."""
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    options = {"env": {"PYTHONPATH": f"{HERE}:{ROOT}"}}
    stages = diamond()
    outcome = go(stages, store, Profile("local", adapt=(0, 2), options=options))
    assert len(outcome.finished) == 4
    assert contents(store) == contents(inline(stages, tmp_path / "inline"))
    wait_until(
        lambda: (
            not {
                child.pid
                for child in psutil.Process().children(recursive=True)
                if child.pid not in before and "tracker" not in " ".join(child.cmdline())
            }
        ),
        10,
    )


PROGRAM = """
import sys
from pathlib import Path
from cluster_kit import go
from toy import ToyStore, stage
from harness.engine.cluster import Profile

if __name__ == "__main__":
    store = ToyStore(Path(sys.argv[1]))
    where = sys.argv[2]
    cluster = Profile("local", workers=1) if where == "local" else Profile("address", address=where)
    try:
        go([stage("a", do="sleep", seconds=60)], store, cluster)
    except KeyboardInterrupt:
        sys.exit(130)
"""


def test_a_killed_run_leaves_no_stage_running(processes: Processes, store: ToyStore, tmp_path: Path) -> None:
    """Nobody is there to say so: the worker notices that its task is no longer wanted."""
    processes.start_scheduler()
    processes.start_worker("one", "--no-nanny")
    (tmp_path / "program.py").write_text(PROGRAM)
    environment = {**os.environ, "PYTHONPATH": f"{HERE}:{ROOT}"}
    command = [sys.executable, str(tmp_path / "program.py"), str(store.root), processes.address]
    program = subprocess.Popen(command, env=environment)
    try:
        wait_until(lambda: bool(store.ran("a")))
        program.kill()
        wait_until(lambda: not psutil.pid_exists(store.ran("a")[0]), 20)
    finally:
        program.kill()
        program.wait()


def test_ctrl_c_ends_a_cluster_of_our_own_without_a_word(store: ToyStore, tmp_path: Path) -> None:
    """A terminal sends it to every process of the group."""
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, str(tmp_path / "program.py"), str(store.root), "local"]
    environment = {**os.environ, "PYTHONPATH": f"{HERE}:{ROOT}"}
    program = subprocess.Popen(
        command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    )
    try:
        wait_until(lambda: bool(store.ran("a")))
        family = psutil.Process(program.pid).children(recursive=True)
        os.killpg(program.pid, signal.SIGINT)
        output, _ = program.communicate(timeout=30)
    finally:
        program.kill()
        program.wait()
    assert (program.returncode, output) == (130, "")
    wait_until(lambda: not any(one.is_running() and one.status() != psutil.STATUS_ZOMBIE for one in family), 10)


def test_a_slow_worker_does_less(processes: Processes, store: ToyStore) -> None:
    """Stages are not dealt out beforehand: what one worker has not begun, the other takes."""
    processes.start_scheduler()
    processes.start_worker("slow", "--no-nanny", BENCH_TOY_DELAY="2")
    processes.start_worker("quick", "--no-nanny")
    processes.wait_for_workers()
    recorder = Recorder()
    stages = [stage(f"s{i}", do="delay") for i in range(10)]
    outcome = go(stages, store, profile(processes), observer=recorder)
    assert len(outcome.finished) == 10
    slow = [event for event in recorder.events if event.kind == "finished" and event.worker.startswith("slow")]
    assert 1 <= len(slow) < 5


def _namespaces() -> str:
    """Why there can be no hosts made of network namespaces; empty where there can."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "needs root on Linux"
    tried = subprocess.run(["ip", "netns", "add", "bench-probe"], capture_output=True, text=True, check=False)
    if tried.returncode:
        return f"no network namespaces: {tried.stderr.strip()}"
    subprocess.run(["ip", "netns", "delete", "bench-probe"], check=False)
    return ""


@pytest.fixture
def hosts() -> Iterator[list[str]]:
    """Two network namespaces with addresses 10.83.7.2 and .3 on a bridge that has 10.83.7.1."""
    try:
        reason = _namespaces()
    except FileNotFoundError:
        reason = "no command `ip`"
    if reason:
        pytest.skip(reason)

    def ip(*words: str, check: bool = True) -> None:
        subprocess.run(["ip", *words], check=check, capture_output=True)

    names = ["benchhost2", "benchhost3"]
    try:
        ip("link", "add", "benchbr", "type", "bridge")
        ip("addr", "add", "10.83.7.1/24", "dev", "benchbr")
        ip("link", "set", "benchbr", "up")
        for number, name in enumerate(names, 2):
            ip("netns", "add", name)
            ip("link", "add", f"benchv{number}", "type", "veth", "peer", "name", "eth0", "netns", name)
            ip("link", "set", f"benchv{number}", "master", "benchbr", "up")
            ip("-n", name, "addr", "add", f"10.83.7.{number}/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")
            ip("-n", name, "link", "set", "lo", "up")
        yield names
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no network namespaces: {error.stderr.decode().strip()}")
    finally:
        for name in names:
            ip("netns", "delete", name, check=False)
        ip("link", "delete", "benchbr", check=False)


def test_workers_on_two_hosts_that_share_a_folder(
    hosts: list[str], processes: Processes, store: ToyStore, tmp_path: Path
) -> None:
    processes.host = "10.83.7.1"
    processes.start_scheduler()
    for number, name in enumerate(hosts, 2):
        processes.start_worker(name, "--no-nanny", "--host", f"10.83.7.{number}", prefix=("ip", "netns", "exec", name))
    processes.wait_for_workers()
    recorder, stages = Recorder(), slow_stages(4, 0.3)
    go(stages, store, profile(processes), observer=recorder)
    assert contents(store) == contents(inline(stages, tmp_path / "inline"))
    used = {event.worker.split()[0] for event in recorder.events if event.kind == "finished"}
    assert used == set(hosts)
