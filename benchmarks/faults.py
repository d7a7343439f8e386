"""Survival: faults of many kinds in runs of a toy suite; afterwards everything must be as if nothing had happened.

    python benchmarks/faults.py [--rounds 100] [--seed 0] [--kinds kill-parent …] [--keep]

A round takes a fresh store, runs the suite in it with faults of one kind, drawn from the seed, then runs the suite once
more undisturbed and checks that it ends with exit code 0, that every artifact and every value of the table equals the
undisturbed reference run's bit for bit, that ``bench cache verify`` finds nothing, and that no process, draft, lock or
half-written file is left. Kinds:

* ``kill-parent``: SIGKILL of ``bench`` at a random moment; ``kill-pool`` likewise, with worker processes;
* ``kill-worker``: SIGKILL of random workers, and of the fork server, during a run;
* ``sigterm``, ``sigterm-pool``: SIGTERM at a random moment, to the process or its group: exit code 143 within the grace
  period, and a run record that says so;
* ``full``, ``gone``, ``stale``: writes fail from a random one on, for a while or for good, with ENOSPC, EROFS or EIO,
  ESTALE;
* ``small-disk``, ``read-only-disk``: a tmpfs that is too small, or is read-only after a killed run (root only);
* ``damage``: files of a complete store are truncated, blanked, removed, or have a bit flipped;
* ``two``, ``four``: so many processes at once on the store, in some rounds one of them killed;
* ``renames``: renames that fail with ESTALE, EBUSY or EEXIST, are done but reported as failed, or show up late;
* ``no-locks``: two processes on a file system without locks, one of them killed.
"""

from __future__ import annotations

import argparse
import errno
import io
import json
import logging
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from sabotage import Disk, Harm, damage, failing_writes, kill_one, lingering, no_locks, odd_renames

from harness.cli.main import main as command
from harness.runs.find import all_runs
from harness.runs.record import RESULTS
from harness.storage.checking import inspect
from harness.store import Store

ROOT = Path(__file__).resolve().parents[1]
GRACE = 20.0
"""Seconds within which a run must have ended after SIGTERM; batch schedulers give thirty and more."""
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


@dataclass
class Tally:
    """What became of the rounds of one kind."""

    rounds: int = 0
    faults: int = 0
    runs: int = 0
    differences: list[str] = field(default_factory=list)


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
    found = {}
    for info in store.list():
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


def strike(pid: int, number: signal.Signals, *, group: bool = False) -> None:
    """Send a signal to a process, or to all that it started."""
    with suppress(ProcessLookupError):
        (os.killpg if group else os.kill)(pid, number)


def killed(pid: int) -> int:
    """Kill a run; how many faults that is: none where it had ended by itself."""
    strike(pid, signal.SIGKILL)
    return int(ended(pid) == -signal.SIGKILL)


POOL = ("--engine", "processes", "--jobs", "2")


def kill_parent(rng: random.Random, at: Field, store: Path) -> int:
    pid = at.start(store)
    time.sleep(rng.uniform(0, at.seconds))
    return killed(pid)


def kill_pool(rng: random.Random, at: Field, store: Path) -> int:
    pid = at.start(store, None, *POOL)
    time.sleep(rng.uniform(0, at.pool_seconds))
    return killed(pid)


def kill_worker(rng: random.Random, at: Field, store: Path) -> int:
    pid, struck = at.start(store, None, *POOL), 0
    for _ in range(rng.randrange(2, 6)):
        time.sleep(rng.uniform(0.05, 1.5))
        struck += kill_one(rng, pid)
    code = ended(pid)
    assert code in (0, 1), f"a run that lost workers ended with {code}"
    return struck


def sigterm(rng: random.Random, at: Field, store: Path, *words: str) -> int:
    pid = at.start(store, None, *words)
    time.sleep(rng.uniform(0, at.pool_seconds if words else at.seconds))
    strike(pid, signal.SIGTERM, group=rng.random() < 0.5)
    code = ended(pid, GRACE)
    assert code in (0, 143, -signal.SIGTERM), f"after SIGTERM it ended with {code}"
    statuses = {record.status for record in all_runs(Store(store))}
    assert statuses <= {"finished", "interrupted"}, f"after SIGTERM (exit code {code}) the record says {statuses}"
    return int(code != 0)  # otherwise it came too late


def sigterm_pool(rng: random.Random, at: Field, store: Path) -> int:
    return sigterm(rng, at, store, *POOL)


def writes(*numbers: int) -> Callable[[random.Random, Field, Path], int]:
    def inject(rng: random.Random, at: Field, store: Path) -> int:
        fired = at.folder / f"{store.name}.fired"
        harm = failing_writes(rng, rng.choice(numbers), fired, for_good=rng.random() < 0.6)
        code = ended(at.start(store, harm))
        assert code in (0, 1, 2), f"with failing writes it ended with {code}"
        return int(fired.exists())

    return inject


def on_a_disk(prepare: str) -> Callable[[random.Random, Field, Path], int]:
    def inject(rng: random.Random, at: Field, store: Path) -> int:
        struck = 1
        disk = Disk(store, f"{rng.randrange(40, 400)}k" if prepare == "full" else "64m")
        try:
            if prepare == "ro":
                kill_parent(rng, at, store)
                disk.again("ro")
            code = ended(at.start(store))
            assert code in (0, 1, 2), f"on a {prepare} disk it ended with {code}"
            struck = int(code != 0)  # it may have sufficed, or been too late
            disk.again("rw,size=64m")
            found = at.check(store)
            assert not found, "; ".join(found)
        finally:
            disk.close()
        return struck

    return inject


def damaged(rng: random.Random, at: Field, store: Path) -> int:
    shutil.copytree(at.folder / "reference", store)
    told = damage(rng, store, rng.randrange(1, 7))
    if rng.random() < 0.5:  # otherwise the run finds it, as far as it reads it
        for score in [info for info in Store(store).list() if info.kind in ("score", "train")]:
            shutil.rmtree(Store(store).artifact_folder(score.key))
        code = ended(at.start(store))
        assert code == 0, f"after {told} the run ended with {code}"
    for problem in list(inspect(Store(store))):
        problem.mend()
    return len(told)


def together(count: int, harm: Harm | None = None, *, kill: float = 0.5) -> Callable[[random.Random, Field, Path], int]:
    def inject(rng: random.Random, at: Field, store: Path) -> int:
        pids = [at.start(store, harm) for _ in range(count)]
        lost = rng.choice(pids) if rng.random() < kill else None
        if lost is not None:
            time.sleep(rng.uniform(0, at.seconds * count / 2))
            strike(lost, signal.SIGKILL)
        codes = {pid: ended(pid) for pid in pids}
        assert all(code == 0 for pid, code in codes.items() if pid != lost), f"they ended with {list(codes.values())}"
        return 1 + (lost is not None and codes[lost] == -signal.SIGKILL)

    return inject


def renames(rng: random.Random, at: Field, store: Path) -> int:
    fired = at.folder / f"{store.name}.fired"
    code = ended(at.start(store, odd_renames(rng, fired)))
    assert code in (0, 1, 2), f"with odd renames it ended with {code}"
    return int(fired.exists())


KINDS: dict[str, tuple[int, Callable[[random.Random, Field, Path], int]]] = {
    "kill-parent": (6, kill_parent),
    "kill-pool": (1, kill_pool),
    "kill-worker": (2, kill_worker),
    "sigterm": (3, sigterm),
    "sigterm-pool": (1, sigterm_pool),
    "full": (3, writes(errno.ENOSPC)),
    "gone": (2, writes(errno.EROFS, errno.EIO)),
    "stale": (1, writes(errno.ESTALE)),
    "small-disk": (2, on_a_disk("full")),
    "read-only-disk": (2, on_a_disk("ro")),
    "damage": (4, damaged),
    "two": (2, together(2)),
    "four": (1, together(4)),
    "renames": (2, renames),
    "no-locks": (1, together(2, no_locks)),
}
"""How many of a turn's rounds are of a kind, and what injects its faults; it gives how many there were."""


def campaign(
    folder: Path, rounds: int, seed: int, kinds: Sequence[str], say: Callable[[str], None]
) -> dict[str, Tally]:
    """So many rounds, the kinds in turn."""
    at = Field(folder)
    say(f"an undisturbed run takes {at.seconds:.1f} s")
    turn = [kind for kind in kinds for _ in range(KINDS[kind][0])]
    random.Random(seed).shuffle(turn)
    tallies = {kind: Tally() for kind in kinds}
    for number in range(rounds):
        kind = turn[number % len(turn)]
        store = folder / f"{number:04d}-{kind}"
        found = one_round(random.Random(f"{seed}-{number}"), at, store, kind, tallies[kind])
        for line in found:
            say(f"round {number} ({kind}): {line}")
        if not found:
            shutil.rmtree(store, ignore_errors=True)
            (folder / f"{store.name}.log").unlink(missing_ok=True)
    return tallies


def one_round(rng: random.Random, at: Field, store: Path, kind: str, tally: Tally) -> list[str]:
    """One round; what was found."""
    tally.rounds += 1
    try:
        tally.faults += KINDS[kind][1](rng, at, store)
        found = [] if kind.endswith("-disk") else at.check(store)  # a disk is checked before it is taken away
    except AssertionError as error:
        found = [str(error)]
    tally.runs += not found
    tally.differences += found
    return found


def table(tallies: dict[str, Tally]) -> str:
    """Rounds, faults, completed runs and differences by kind."""
    lines = ["| kind | rounds | faults | runs completed | differences |", "|---|---:|---:|---:|---:|"]
    total: Counter[str] = Counter()
    for kind, tally in tallies.items():
        numbers = {"rounds": tally.rounds, "faults": tally.faults, "runs": tally.runs, "diff": len(tally.differences)}
        total.update(numbers)
        lines.append("| " + " | ".join([f"`{kind}`", *map(str, numbers.values())]) + " |")
    return "\n".join(
        [*lines, "| " + " | ".join(["all", *(str(total[n]) for n in ("rounds", "faults", "runs", "diff"))]) + " |"]
    )


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--keep", action="store_true", help="keep the folder, with the stores of rounds that failed")
    given = parser.parse_args()
    import torch  # here, so that the forked runs have it

    torch.set_num_threads(1)
    logging.getLogger("harness.store").setLevel(logging.ERROR)  # what was damaged on purpose is told enough
    folder = Path(tempfile.mkdtemp(prefix="bench-faults-"))
    kinds = [kind for kind in given.kinds if not kind.endswith("-disk") or Disk.possible(folder)]
    tallies = campaign(folder, given.rounds, given.seed, kinds, lambda line: print(line, flush=True))
    print(table(tallies))
    if not given.keep:
        shutil.rmtree(folder)
    raise SystemExit(1 if any(tally.differences for tally in tallies.values()) else 0)


if __name__ == "__main__":
    main()
