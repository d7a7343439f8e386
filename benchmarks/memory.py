"""Memory of preparing and training on a large set of molecules, and the time to open a prepared set again.

    python benchmarks/memory.py [--only size ...] [--graphs 40000] [--repetitions 5] [--tiny]

* ``prepare``: peak resident memory of the stage that builds and writes 40,000 synthetic graphs in the form of DrugOOD's
  (39 float columns a node, 10 an edge, 40 nodes on average, both directions of each edge).
* ``train``: two workers train ERM for one epoch on it at the same time, as the engine starts them. Peak resident
  memory, which counts the memory-mapped data set in each of them; the most seen of their proportional share (PSS), and
  of what they wrote themselves (private dirty), which show that the two share one copy of it. The bar: 2 GB a worker.
* ``open``: a set of the size of DrugOOD's ``lbap_core_ec50_scaffold`` (12,661 graphs, 508,000 nodes, 1.08 million
  directed edges) is opened by a fresh process, all its splits are read, checksums included, and one batch of each is
  cut. Interpreter and imports are not counted. Wall and CPU time, median over the repetitions. The bar: 0.3 s.

Linux only: the figures come from ``/proc``. ``--tiny`` shrinks everything, to see whether the script works.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness.engine.worker import Attempt
from harness.run.session import Options, Session, open_session
from harness.stages.context import Context
from harness.store import Stage

ROOT = Path(__file__).resolve().parents[1]
MIB = 2**20
EC50 = {"graphs": 12_661, "nodes": 508_000, "edges": 1_080_000}
PLUGIN = '''
"""Synthetic graphs of the size and form of molecules."""
import numpy as np
from harness import Dataset, Declaration, Features, RawDataset, RawGraph, Task, hookimpl, hparam


class MoleculeLike(Dataset):
    """Random trees with a few further edges; random features."""

    name = "molecule-like"
    graphs: int = hparam(40_000, low=30)
    nodes: float = hparam(40.0, low=5.0)
    edges: float = hparam(86.0, low=4.0)

    def declare(self, data_dir):
        return Declaration(Task("binary", 2, metric="rocauc"), Features("numeric", (39,)), Features("numeric", (10,)))

    def build(self, data_dir):
        rng = np.random.default_rng(0)
        counts = np.maximum(rng.poisson(rng.gamma(4.0, self.nodes / 4, self.graphs)), 2)
        ends = np.cumsum([0.8, 0.1, 0.1]) * self.graphs
        rows = [self.one(rng, int(n)) for n in counts]
        starts = [0, *ends[:-1].astype(int)]
        return RawDataset({s: rows[a:int(b)] for s, a, b in zip(("train", "val", "test"), starts, ends)})

    def one(self, rng, n):
        further = int(round((self.edges / self.nodes / 2 - 1) * n)) + 1
        tree = np.stack([np.arange(1, n), (rng.random(n - 1) * np.arange(1, n)).astype(np.int64)])
        pairs = np.concatenate([tree, rng.integers(0, n, (2, further))], axis=1)
        edge_index = np.concatenate([pairs, pairs[::-1]], axis=1)
        x = rng.random((n, 39), dtype=np.float32)
        return RawGraph(x, edge_index, int(x[0, 0] > 0.5), rng.random((edge_index.shape[1], 10), dtype=np.float32))


@hookimpl
def bench_register(register):
    register(MoleculeLike)
'''
SUITE = """
bench: 1
protocol: drugood
plugins: [molecule_like.py]
seeds: [1, 2]
train: {epochs: 1}
datasets:
  Molecules: {use: molecule-like, GIVEN}
methods:
  ERM: {baseline: erm}
"""
OPENING = """
import json, sys, time
import harness.graphs, harness.training.bases  # not counted: interpreter and imports
from pathlib import Path
from harness.stages.reading import read_graphs, read_labels
from harness.store import Store
wall, cpu = time.perf_counter(), time.process_time()
store = Store(Path(sys.argv[1]))
sizes = {}
for split in ("train", "val", "test"):
    graphs = read_graphs(store, sys.argv[2], split, labels=split != "test")
    sizes[split] = len(graphs), graphs.x.size(0), graphs.edge_index.size(1)
seconds = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
print(json.dumps({**seconds, "sizes": sizes}))
"""


def planned(folder: Path, given: str) -> Session:
    """The suite on one synthetic set, with a store of its own."""
    folder.mkdir(parents=True)
    (folder / "molecule_like.py").write_text(PLUGIN, encoding="utf-8")
    suite = folder / "memory.yaml"
    suite.write_text(SUITE.replace("GIVEN", given), encoding="utf-8")
    return open_session(str(suite), Options(store=folder / "store"))


def run_stage(stage: Stage, context: Context) -> dict[str, Any]:
    """Run a stage in this process and measure it, memory in MiB."""
    from harness.stages.context import run_stage as run

    with Attempt() as attempt:
        run(stage, context)
    assert attempt.report.failure is None, attempt.report.failure
    return {**attempt.report.detail, "peak_rss": attempt.report.detail["peak_rss"] / MIB}


def rollup(pid: int) -> dict[str, float]:
    """PSS and private dirty memory of a process in MiB; nothing where it has ended."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()[1:]
    except OSError:
        return {}
    found = {line.split(":")[0]: int(line.split()[1]) / 1024 for line in lines}
    return {"pss": found["Pss"], "private_dirty": found["Private_Dirty"]}


def together(stages: list[Stage], context: Context) -> list[dict[str, Any]]:
    """Run stages at the same time, each in a worker of its own that is forked with torch loaded."""
    server = get_context("forkserver")
    server.set_forkserver_preload(["harness.engine.preload"])
    pools = [ProcessPoolExecutor(1, mp_context=server) for _ in stages]
    pids = [pool.submit(os.getpid).result() for pool in pools]
    futures: list[Future[dict[str, Any]]] = [
        pool.submit(run_stage, stage, context) for pool, stage in zip(pools, stages, strict=True)
    ]
    most: list[dict[str, float]] = [{} for _ in stages]
    while not all(future.done() for future in futures):
        for seen, pid in zip(most, pids, strict=True):
            for name, value in rollup(pid).items():
                seen[name] = max(seen.get(name, 0.0), value)
        time.sleep(1.0)  # a look is not cheap itself
    found = [{**future.result(), **seen} for future, seen in zip(futures, most, strict=True)]
    for pool in pools:
        pool.shutdown()
    return found


def show(what: str, found: Mapping[str, Any]) -> None:
    """One row of the table."""
    cells = [f"{found[name]:8.0f}" if name in found else f"{'':8}" for name in ("peak_rss", "pss", "private_dirty")]
    print(f"{what:28}{''.join(cells)}  {found['wall']:7.1f} s  {found['cpu']:7.1f} s", flush=True)


def stored(session: Session, split: str = "train") -> float:
    """MiB of a split's file."""
    (prepared,) = (stage for stage in session.plan.stages.values() if stage.kind == "prepare")
    return session.store.open(prepared.key).path(split).stat().st_size / MIB


def measure_memory(folder: Path, graphs: int) -> None:
    """Preparing and two trainings at a time."""
    session = planned(folder, f"graphs: {graphs}")
    context = Context(session.store)
    kinds = {kind: [s for s in session.plan.stages.values() if s.kind == kind] for kind in ("prepare", "train")}
    print(f"{'MiB':28}{'peak':>8}{'PSS':>8}{'dirty':>8}  {'wall':>9}  {'CPU':>9}")
    show(f"prepare {graphs} graphs", together(kinds["prepare"], context)[0])
    for number, found in enumerate(together(kinds["train"], context), 1):
        show(f"train, worker {number} of 2", found)
    print(f"the training split's file: {stored(session):.0f} MiB")


def measure_opening(folder: Path, repetitions: int, sizes: Mapping[str, int]) -> None:
    """Opening a prepared set in fresh processes."""
    per_graph = {name: sizes[name] / sizes["graphs"] for name in ("nodes", "edges")}
    given = f"graphs: {sizes['graphs']}, nodes: {per_graph['nodes']:.3f}, edges: {per_graph['edges']:.3f}"
    session = planned(folder, given)
    (prepared,) = (stage for stage in session.plan.stages.values() if stage.kind == "prepare")
    together([prepared], Context(session.store))
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    words = [sys.executable, "-c", OPENING, str(session.store.root), prepared.key]
    found = []
    for _ in range(repetitions):
        done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
        found.append(json.loads(done.stdout))
    total = [sum(column) for column in zip(*found[0]["sizes"].values(), strict=True)]
    times = {name: [item[name] for item in found] for name in ("wall", "cpu")}
    print(f"open {total[0]} graphs, {total[1]} nodes, {total[2]} edges:", end="")
    print("".join(f" {name} {statistics.median(v):.3f} s ({min(v):.3f}, {max(v):.3f})" for name, v in times.items()))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parts = ("memory", "open")
    parser.add_argument("--only", nargs="+", choices=parts, default=parts)
    parser.add_argument("--graphs", type=int, default=40_000)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--tiny", action="store_true")
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    small = {name: value // 40 for name, value in EC50.items()}
    with tempfile.TemporaryDirectory() as name:
        if "memory" in options.only:
            measure_memory(Path(name) / "memory", 600 if options.tiny else options.graphs)
        if "open" in options.only:
            measure_opening(Path(name) / "open", options.repetitions, small if options.tiny else EC50)


if __name__ == "__main__":
    main()
