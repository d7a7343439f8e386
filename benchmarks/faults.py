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
import logging
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from field import Field, ended
from sabotage import Disk, Harm, damage, failing_writes, kill_one, no_locks, odd_renames

from harness.results.run_record import RECORD, RunRecord
from harness.store import Store
from harness.store.maintenance import inspect, listing

GRACE = 20.0
"""Seconds within which a run must have ended after SIGTERM; batch schedulers give thirty and more."""


@dataclass
class Tally:
    """What became of the rounds of one kind."""

    rounds: int = 0
    faults: int = 0
    runs: int = 0
    differences: list[str] = field(default_factory=list)


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
    statuses = {RunRecord.load(path.parent).status for path in Store(store).runs.glob(f"*/{RECORD}")}
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
        for score in [info for info in listing(Store(store)) if info.kind in ("score", "train")]:
            shutil.rmtree(Store(store).artifact_folder(score.key))
        code = ended(at.start(store))
        assert code == 0, f"after {told} the run ended with {code}"
    for problem in list(inspect(Store(store))):
        problem.mend(Store(store))
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
    logging.getLogger("harness.store.store").setLevel(logging.ERROR)  # what was damaged on purpose is told enough
    folder = Path(tempfile.mkdtemp(prefix="bench-faults-"))
    kinds = [kind for kind in given.kinds if not kind.endswith("-disk") or Disk.possible(folder)]
    tallies = campaign(folder, given.rounds, given.seed, kinds, lambda line: print(line, flush=True))
    print(table(tallies))
    if not given.keep:
        shutil.rmtree(folder)
    raise SystemExit(1 if any(tally.differences for tally in tallies.values()) else 0)


if __name__ == "__main__":
    main()
