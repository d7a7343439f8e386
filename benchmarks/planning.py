"""What planning costs: time and memory of ``bench plan`` against the number of cells, and looks at the store.

    python benchmarks/planning.py [--cells 1000 10000 100000] [--shapes grid rows seeds mixed] [--artifacts 20000]

* ``grid``, ``rows``, ``seeds``, ``mixed``: suites of IRM on two-piece graphs whose cells come from a tuned learning
  rate, from rows of a matrix, from seeds, or from all three. Opening the suite, planning, looking at an empty store and
  writing the lines of the screen, in a process of its own each: wall time, processor time and peak memory, with the
  exponent of the processor time in the number of cells (1: linear).
* ``store``: a store filled with small artifacts. Looks a second at artifacts that are there and that are not: one by
  one by a new store object (cold: every description is read), once more (warm), and all at once as planning does.

Nothing is trained and torch is not loaded. ``--tiny`` shrinks everything, to see whether the script works.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from harness.store import Stage, Store, digest  # noqa: E402

SHAPES = ("grid", "rows", "seeds", "mixed")
SUITE = """
bench: 1
name: planning
seeds: {seeds}
datasets: {datasets}
methods:
  IRM: {{baseline: irm, envs: random(2), tune: {{train.lr: {rates}}}, matrix: {{baseline.penalty: {penalties}}}}}
"""


def suite_text(shape: str, cells: int) -> str:
    """A suite with so many cells (a power of ten from 1,000)."""
    thousands = cells // 1000
    datasets, rates, penalties, seeds = {
        "grid": (10, 20 * thousands, 1, 5),
        "rows": (10, 1, min(20 * thousands, 2000), 5 * max(1, thousands // 100)),
        "seeds": (5, 2, 2, 50 * thousands),
        "mixed": (5 * (1 + (thousands >= 100)), 4 * min(thousands, 10), 5 * max(1, thousands // 20), 10),
    }[shape]
    table = {
        f"D{seed}": {"use": "two-piece", "invariant": 0.7, "spurious": 0.9, "seed": seed} for seed in range(datasets)
    }
    return SUITE.format(
        seeds=list(range(1, seeds + 1)),
        datasets=json.dumps(table),
        rates=[round(1e-5 * (number + 1), 8) for number in range(rates)],
        penalties=[number + 1 for number in range(penalties)],
    )


def plan_once(suite: str, store: str) -> None:
    """Plan in this process, and print what it took."""
    wall, cpu = time.perf_counter(), time.process_time()
    from harness.cli.suites import _counts, _in_short
    from harness.plan.status import survey
    from harness.run.find import needed_before
    from harness.run.session import Options, open_session

    session = open_session(suite, Options(store=Path(store)))
    statuses = survey(session.plan, session.store, needed_before(session))
    lines = [*_counts(session.plan, statuses), *_in_short(statuses)]
    found = {
        "cells": len(session.plan.cells),
        "stages": len(session.plan.stages),
        "wall": time.perf_counter() - wall,
        "cpu": time.process_time() - cpu,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "lines": len(lines),
    }
    print(json.dumps(found))


def planning(folder: Path, shape: str, sizes: list[int]) -> None:
    """One shape at several sizes."""
    seen = []
    for cells in sizes:
        suite = folder / f"{shape}-{cells}.yaml"
        suite.write_text(suite_text(shape, cells), encoding="utf-8")
        words = [sys.executable, __file__, "--one", str(suite), str(folder / "empty")]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        found = json.loads(done.stdout)
        seen.append(found)
        print(
            f"plan, {shape:5} {found['cells']:>7,} cells, {found['stages']:>7,} stages: {found['wall']:6.2f} s wall, "
            f"{found['cpu']:6.2f} s processor, {found['cpu'] / found['cells'] * 1e6:4.0f} us a cell, "
            f"peak {found['peak']:.0f} MiB",
            flush=True,
        )
    for before, after in pairwise(seen):
        slope = math.log(after["cpu"] / before["cpu"]) / math.log(after["cells"] / before["cells"])
        print(f"  exponent from {before['cells']:,} to {after['cells']:,} cells: {slope:.2f}")


def store_lookups(folder: Path, count: int) -> None:
    """Looks a second at a store of so many artifacts."""
    store = Store(folder / "full")
    stages = [_stage(number) for number in range(2 * count)]
    there, absent = stages[:count], [stage.key for stage in stages[count:]]
    cpu = time.process_time()
    for stage in there:
        with store.create(stage) as draft:
            draft.write_json("scores", [])
    _told("artifacts written", count, time.process_time() - cpu)
    keys = [stage.key for stage in there]
    fresh = Store(store.root)
    _look("has, there, cold", count, lambda: all(fresh.has(key) for key in keys))
    few = keys[:200]
    _look(
        "has, there, warm (200 asked again and again)",
        200 * 50,
        lambda: all(fresh.has(k) for _ in range(50) for k in few),
    )
    _look("has, absent", count, lambda: not any(fresh.has(key) for key in absent))
    _look("present, there", count, lambda: len(fresh.present(keys)) == count)
    _look("present, absent", count, lambda: not fresh.present(absent))


def _stage(number: int) -> Stage:
    preimage = {"stage": "score", "train": digest(number), "seed": number}
    return Stage("score", digest(preimage), f"score/two-piece/erm-{number // 1000}", preimage, title=f"score {number}")


def _look(what: str, count: int, look: Callable[[], bool]) -> None:
    wall, cpu = time.perf_counter(), time.process_time()
    if not look():
        raise SystemExit(f"'{what}' found something else than is there")
    _told(what, count, time.process_time() - cpu, time.perf_counter() - wall)


def _told(what: str, count: int, cpu: float, wall: float | None = None) -> None:
    by_wall = "" if wall is None else f", {count / wall:>10,.0f} by wall time"
    print(f"store, {what:46} {count / cpu:>10,.0f} a second of processor time{by_wall}", flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", nargs="+", type=int, default=[1_000, 10_000, 100_000])
    parser.add_argument("--shapes", nargs="*", choices=SHAPES, default=SHAPES)
    parser.add_argument("--artifacts", type=int, default=20_000)
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--one", nargs=2, metavar=("SUITE", "STORE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        plan_once(*options.one)
        return
    sizes, artifacts = ([1_000], 200) if options.tiny else (options.cells, options.artifacts)
    with tempfile.TemporaryDirectory() as name:
        for shape in options.shapes:
            planning(Path(name), shape, sizes)
        if artifacts:
            store_lookups(Path(name), artifacts)


if __name__ == "__main__":
    main()
