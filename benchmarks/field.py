"""A folder for a campaign of faults: a toy suite, its undisturbed reference run, and runs of it in other stores."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import sys
import time
import traceback
from contextlib import chdir, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from unittest import mock

from sabotage import Harm, lingering

from harness.cli.main import main as command
from harness.results.run_record import RESULTS
from harness.run.find import all_runs
from harness.store import Store
from harness.store.maintenance import inspect, listing

ROOT = Path(__file__).resolve().parents[1]
SLOWEST = 240.0
SUITE = """\
bench: 1
name: toy
plugins: [toy_plugin.py]
seeds: [1]
model: {hidden: 8, layers: 2}
train: {epochs: 1, batch_size: 8}
datasets:
  Toy: {use: toy}
methods:
  ERM: {baseline: erm}
  IRM: {baseline: irm, envs: random(2)}
  EQuAD:
    encoder: {use: mvgrl, layers: 2, hidden: 8, snapshots: [1], batch_size: 8}
    quantifier: {use: svm, C: [1.0]}
    decorrelator: {use: reweighted-erm}
"""


class Field:
    """A folder with the suite, the reference store, and a store for each round."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "suite.yaml").write_text(SUITE, encoding="utf-8")
        shutil.copy(ROOT / "tests" / "integration" / "toy_plugin.py", folder)
        began = time.monotonic()
        self._warm_up()
        self.reference = self.complete(folder / "reference")
        again = time.monotonic()
        assert self.complete(folder / "second") == self.reference, "two undisturbed runs differ"
        self.seconds, self.pool_seconds = time.monotonic() - again, again - began
        shutil.rmtree(folder / "second")

    def _warm_up(self) -> None:
        """Run the suite here, so that the forks have loaded what they need."""
        with (
            mock.patch.dict(os.environ, self._environment(self.folder / "first")),
            redirect_stdout(io.StringIO()),
            redirect_stderr(io.StringIO()),
            chdir(self.folder),
            suppress(SystemExit),
        ):
            command(["run", "suite.yaml", "--engine", "inline"])

    def _environment(self, store: Path) -> dict[str, str]:
        return {"BENCH_STORE": str(store), "BENCH_CACHE": str(self.folder / "cache"), "PYTHONPATH": str(ROOT)}

    def start(self, store: Path, harm: Harm | None = None, *words: str) -> int:
        """Run the suite in a process of its own, forked from this one, which has loaded everything; its id."""
        sys.stdout.flush()
        if pid := os.fork():
            return pid
        code = 70
        try:
            os.setsid()
            self._as_a_command(store)
            if harm is not None:
                harm()
            command(["run", "suite.yaml", *(words or ("--engine", "inline"))])
        except SystemExit as end:
            code = int(end.code or 0)
        except BaseException:
            traceback.print_exc()
        with suppress(Exception):
            sys.stdout.flush()
        os._exit(code)

    def _as_a_command(self, store: Path) -> None:
        os.environ.update(self._environment(store))
        os.chdir(self.folder)
        log = os.open(self.folder / f"{store.name}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for descriptor in (1, 2):
            os.dup2(log, descriptor)

    def complete(self, store: Path) -> dict[str, str]:
        """Run the suite undisturbed; what it left, file by file and value by value."""
        code = ended(self.start(store))
        log = self.folder / f"{store.name}.log"
        assert code == 0, f"the undisturbed run ended with {code}: {log.read_text()[-400:]}"
        return content(Store(store))

    def check(self, store: Path) -> list[str]:
        """Run the suite undisturbed after the faults; what is not as in the reference."""
        try:
            now = self.complete(store)
        except AssertionError as error:
            return [str(error)]
        there = {name: value for name, value in now.items() if value != self.reference.get(name)}
        found = [f"{name} differs" for name in there]
        found += [
            f"{name} is missing" for name in self.reference if name.startswith(("score", "value")) and name not in now
        ]
        found += [f"verify: {problem}" for problem in inspect(Store(store))]
        for folder in ("tmp", "leases"):
            found += [f"left over: {folder}/{path.name}" for path in (store / folder).glob("*")]
        found += [f"left over: {path.relative_to(store)}" for path in store.glob("runs/*/.*")]
        found += [f"still running: {process}" for process in lingering(store)]
        return found


def content(store: Store) -> dict[str, str]:
    """Checksums of all files of all artifacts, and the values of the latest table."""
    found: dict[str, str] = {}
    for info in listing(store):
        meta = store.meta(info.key)
        assert meta is not None
        found |= {f"{info.title} {info.key[:8]} {name}": item["sha256"] for name, item in meta.files.items()}
    rows = json.loads((store.runs / all_runs(store)[-1].id / RESULTS).read_text())["rows"]
    names = ("method", "seed", "split", "checkpoint")
    return found | {"value " + " ".join(str(row[name]) for name in names): repr(row["value"]) for row in rows}


def ended(pid: int, seconds: float = SLOWEST) -> int:
    """Wait for a process; its exit code, negative for a signal. One that hangs is killed."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    raise AssertionError(f"it hung for {seconds:.0f} s")
