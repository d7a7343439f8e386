"""Randomised faults on Dask clusters of this machine: does every run complete, with the undisturbed run's bits?

    python benchmarks/cluster_faults.py [--seeds 12] [--faults 3] [--suite] [--disk]

Each seed draws a graph of stages, runs it undisturbed in this process, and then on a scheduler and two workers of its
own while faults are injected at random moments: a worker or a stage's process killed (SIGKILL), a worker held up for
seconds (SIGSTOP), the scheduler killed and started again, and the run itself killed and started again. Lost workers are
replaced, as a batch system would. Compared are all files of all artifacts; at the end no process of the run may be
left, and nothing in the store but artifacts and records.

``--suite`` runs real stages (``suites/quick.yaml`` on fewer graphs, two seeds, few epochs) inline and on two workers of
which one is killed on the way, and compares results and artifacts. ``--disk`` (root, Linux) puts the store on a file
system of two megabytes that fills up on the way, makes room, and runs again.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KIT = ROOT / "tests" / "harness" / "engine"
sys.path[:0] = [str(ROOT), str(KIT)]

import psutil  # noqa: E402
from cluster_kit import Processes, contents, go, inline, kill_tree, profile  # noqa: E402
from toy import ToyStore, stage, wait_until  # noqa: E402

from harness.errors import BenchError  # noqa: E402
from harness.store import Stage, Store  # noqa: E402
from harness.store.maintenance import inspect  # noqa: E402

KINDS = ("worker", "stage", "hold", "scheduler", "run")


def graph(rng: random.Random) -> list[Stage]:
    """Twelve stages, each of which reads up to three earlier ones and takes up to a second."""
    stages: list[Stage] = []
    for index in range(12):
        inputs = [other.key for other in rng.sample(stages, min(len(stages), rng.randint(0, 3)))]
        stages.append(stage(f"s{index}-{rng.random()}", *inputs, slow=rng.uniform(0.1, 1.0)))
    return stages


class Faults:
    """Injects faults into a cluster until told to stop."""

    def __init__(self, rng: random.Random, processes: Processes, most: int) -> None:
        self.rng, self.processes, self.most = rng, processes, most
        self.injected: Counter[str] = Counter()
        self.program: subprocess.Popen[bytes] | None = None
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self._inject)
        self.thread.start()

    def stop(self) -> None:
        self.stopped.set()
        self.thread.join()

    def _inject(self) -> None:
        for _ in range(self.most):
            if self.stopped.wait(self.rng.uniform(1.5, 4)):
                return
            kind = self.rng.choice(KINDS)
            with suppress(psutil.Error, IndexError):
                getattr(self, f"_{kind}")()
                self.injected[kind] += 1

    def _pick(self) -> tuple[str, int]:
        name = self.rng.choice(sorted(self.processes.workers))
        return name, self.processes.workers[name].pid

    def _worker(self) -> None:
        name, pid = self._pick()
        os.kill(pid, signal.SIGKILL)
        self.processes.workers.pop(name).wait()
        self.processes.start_worker(f"{name}x", "--no-nanny")

    def _stage(self) -> None:
        found = [child for worker in self.processes.workers.values() for child in psutil.Process(worker.pid).children()]
        self.rng.choice([child for child in found if "harness.engine.supervisor" in " ".join(child.cmdline())]).kill()

    def _hold(self) -> None:
        _, pid = self._pick()
        os.kill(pid, signal.SIGSTOP)
        time.sleep(2)
        os.kill(pid, signal.SIGCONT)

    def _scheduler(self) -> None:
        scheduler = self.processes.scheduler
        assert scheduler is not None
        scheduler.kill()
        scheduler.wait()
        self.processes.start_scheduler()
        for name in sorted(self.processes.workers):  # workers leave with their scheduler
            worker = self.processes.workers.pop(name)
            kill_tree(worker.pid)
            worker.wait()
            self.processes.start_worker(f"{name}y", "--no-nanny")

    def _run(self) -> None:
        if self.program is None:
            raise IndexError
        self.program.kill()


def child(seed: int, folder: Path, address: str) -> None:
    """One run, as a process of its own that may be killed."""
    stages = graph(random.Random(seed))
    made = Processes(folder)
    made.port = int(address.rpartition(":")[2])
    store = ToyStore(folder / "store")
    store.require_writable()
    try:
        outcome = go(stages, store, profile(made, wait=60.0))
    except BenchError as error:
        sys.exit(f"  to run again: {error}")
    for reason in sorted({failure.reason for failure in outcome.failures.values() if failure.status != "skipped"}):
        print(f"  failed, to run again: {reason}", flush=True)
    sys.exit(1 if outcome.failures else 0)


def disturbed(seed: int, folder: Path, most: int) -> tuple[Store, Counter[str], int]:
    """The same stages on a cluster with faults, run again until a run completes."""
    (folder / "dask").mkdir(parents=True)
    processes = Processes(folder / "dask")
    processes.start_scheduler()
    for name in ("one", "two"):
        processes.start_worker(name, "--no-nanny")
    faults = Faults(random.Random(seed + 1000), processes, most)
    command = [sys.executable, __file__, "--child", str(seed), str(folder), processes.address]
    runs = 0
    try:
        while True:
            runs += 1
            faults.program = subprocess.Popen(command)
            if faults.program.wait() == 0:
                break
            assert runs < 10, "no run completes"
        faults.stop()
        wait_until(lambda: not left_of(processes), 150)  # a process that nobody told leaves after two minutes
    finally:
        faults.stopped.set()
        faults.stop()
        processes.stop()
    return Store(folder / "store"), faults.injected, runs


def left_of(processes: Processes) -> list[psutil.Process]:
    """Processes that still run stages or could."""
    with suppress(psutil.Error):
        return [child for worker in processes.workers.values() for child in psutil.Process(worker.pid).children()]
    return []


def random_faults(first: int, seeds: int, most: int) -> bool:
    """Every seed; prints the counts."""
    total: Counter[str] = Counter()
    completed = runs = differences = 0
    for seed in range(first, first + seeds):
        with tempfile.TemporaryDirectory(prefix="bench-faults-") as name:
            folder = Path(name)
            expected = contents(inline(graph(random.Random(seed)), folder / "inline"))
            store, injected, tries = disturbed(seed, folder / "cluster", most)
            store.require_writable()  # sweeps what killed writers left
            same = contents(store) == expected and not list(inspect(store)) and not list((store.root / "tmp").iterdir())
            total += injected
            runs += tries
            completed += 1
            differences += not same
            print(f"seed {seed}: {dict(injected)}, {tries} run(s), {'equal' if same else 'DIFFERENT'}", flush=True)
    counts = ", ".join(f"{kind} {count}" for kind, count in sorted(total.items()))
    print(f"{sum(total.values())} faults ({counts}); {completed} of {seeds} graphs completed in {runs} runs; ", end="")
    print(f"differences: {differences}")
    return differences == 0


def bench(*words: str, store: Path, **settings: str) -> int:
    """The command."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "BENCH_STORE": str(store), **settings}
    program = [sys.executable, "-c", "from harness.cli import main; main()", *words]
    return subprocess.run(program, env=environment, stdout=subprocess.DEVNULL, check=False).returncode


def real_suite(folder: Path) -> bool:
    """Real stages inline and on workers of which one is killed."""
    small = "datasets.Two-piece (0.7, 0.9), small.num_per_class=[200, 60, 60]"
    words = ("run", "quick", "--epochs", "3", "--seeds", "1,2", "--set", small, "--quiet")
    assert bench(*words, "--engine", "inline", store=folder / "inline") == 0
    processes = Processes(folder)
    processes.start_scheduler()
    for name in ("one", "two"):
        processes.start_worker(name, "--no-nanny")
    processes.wait_for_workers()

    def kill() -> None:
        wait_until(lambda: len(list((folder / "dask" / "artifacts").glob("*/*"))) >= 6, 600)
        processes.workers["one"].kill()

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        code = bench(*words, "--engine", "dask", "--cluster", processes.address, store=folder / "dask")
    finally:
        killer.join()
        processes.stop()
    rows = [
        json.loads(next((folder / name / "runs").glob("*/results.json")).read_text())["rows"]
        for name in ("inline", "dask")
    ]
    for row in (row for some in rows for row in some):
        for name in [name for name in row if "seconds" in name or "memory" in name or name == "worker"]:
            del row[name]
    first, second = (contents(Store(folder / name)) for name in ("inline", "dask"))
    timed = {name for name in first if name.endswith("history.json")}
    same = first.keys() == second.keys() and all(first[name] == second[name] for name in first.keys() - timed)
    print(f"suite quick: exit code {code}, results equal: {rows[0] == rows[1]}, {len(first)} files equal: {same}")
    return code == 0 and rows[0] == rows[1] and same


def full_disk(folder: Path) -> bool:
    """A store that fills up on the way."""
    disk = folder / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)], check=True)
    processes = Processes(folder)
    try:
        filler = disk / "filler"
        filler.write_bytes(b"x" * 2_040_000)
        processes.start_scheduler()
        processes.start_worker("one", "--no-nanny")
        stages = [stage(f"s{index}", note="x" * 20_000) for index in range(8)]
        store = ToyStore(disk / "store")
        store.require_writable()
        outcomes = []
        for _ in range(2):
            outcomes.append(go(stages, store, profile(processes)))
            filler.unlink(missing_ok=True)
        full = Counter(failure.status for failure in outcomes[0].failures.values())
        same = contents(store) == contents(inline(stages, folder / "inline"))
        print(f"full disk: first {dict(full)}, then {len(outcomes[1].finished)} run, equal: {same}")
        return set(full) == {"disk"} and not outcomes[1].failures and same
    finally:
        processes.stop()
        subprocess.run(["umount", str(disk)], check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=12)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--faults", type=int, default=3)
    parser.add_argument("--suite", action="store_true")
    parser.add_argument("--disk", action="store_true")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.child:
        child(int(chosen.child[0]), Path(chosen.child[1]), chosen.child[2])
    good = random_faults(chosen.first, chosen.seeds, chosen.faults)
    with tempfile.TemporaryDirectory(prefix="bench-faults-") as folder:
        if chosen.disk:
            good &= full_disk(Path(folder))
    with tempfile.TemporaryDirectory(prefix="bench-faults-") as folder:
        if chosen.suite:
            good &= real_suite(Path(folder))
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
