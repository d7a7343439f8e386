"""What the harness itself costs: workers, time outside of stages, an empty cell, and the command line.

    python benchmarks/overhead.py [--only workers inline empty commands] [--repetitions 5] [--tiny]

* ``workers``: wall time of ``bench run suites/quick.yaml --seeds 1,2,3,4 --epochs 5`` with one worker and with two,
  each time in a fresh store, taking turns; the ratio of the medians over two turns. An otherwise idle machine with two
  cores.
* ``inline``: the same suite with one seed in this process; wall time of the run that is not wall time of a stage
  (planning, scheduling, the store's bookkeeping, results), as a share of the run and per stage.
* ``empty``: cells of a learner that computes nothing, on graphs as in ``quick``: the time of a cell is what the
  harness adds to a training (batches, evaluation on validation, files) and to its score.
* ``commands``: wall time of ``bench --help``, ``bench list`` and a ``bench run suites/ablation.yaml`` of which every
  stage is cached. Datasets and epochs of the latter are shrunk to fill the store; its stages are as many as at full
  size. Bare Python and ``import torch`` are timed beside them.

``--tiny`` shrinks everything, to see whether the script works.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness.engine import EngineOptions, Event
from harness.run.execute import execute
from harness.run.session import Options, open_session
from harness.suite import Overrides

ROOT = Path(__file__).resolve().parents[1]
BENCH = (sys.executable, "-c", "from harness.cli import main; main()")
QUICK = str(ROOT / "suites" / "quick.yaml")
ABLATION = str(ROOT / "suites" / "ablation.yaml")
GRAPHS = "datasets.Two-piece (0.7, 0.9), small.num_per_class="
EMPTY = '''
"""A learner that computes nothing."""
import torch
from harness import Baseline, hookimpl


class Empty(Baseline):
    """The same logits for every graph, never trained."""

    name = "empty"

    def build(self):
        self.logits = torch.nn.Parameter(torch.zeros(self.info.task.outputs))

    def forward(self, batch):
        return self.logits.expand(batch.num_graphs, -1)

    def training_step(self, batch, optimizers):
        return {"loss": torch.zeros(())}


@hookimpl
def bench_register(register):
    register(Empty)
'''
EMPTY_SUITE = """
bench: 1
plugins: [empty.py]
train: {epochs: 1}
datasets:
  Two-piece: {use: two-piece, invariant: 0.7, spurious: 0.9, num_per_class: [600, 200, 300]}
methods:
  Empty: {baseline: empty}
"""


def seconds(words: Sequence[str]) -> float:
    """Wall time of a command that must succeed."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    start = time.perf_counter()
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(words[3:])} failed:\n{done.stdout}\n{done.stderr}")
    return time.perf_counter() - start


def workers(folder: Path, tiny: bool) -> None:
    """One worker against two."""
    small = ["--epochs", "1", "--set", f"{GRAPHS}[20, 10, 10]"] if tiny else ["--epochs", "5"]
    times: dict[int, list[float]] = {1: [], 2: []}
    for turn in range(1 if tiny else 2):
        for jobs, found in times.items():
            store = str(folder / f"workers-{turn}-{jobs}")
            found.append(
                seconds([*BENCH, "run", QUICK, "--seeds", "1,2,3,4", "--jobs", str(jobs), "--store", store, *small])
            )
    one, two = statistics.median(times[1]), statistics.median(times[2])
    print(f"workers: one {one:.1f} s, two {two:.1f} s, {one / two:.2f} times as fast")


def timed_run(suite: str, options: Options) -> tuple[float, float, int]:
    """Wall time of an inline run, wall time inside its stages, number of stages."""
    inside: list[float] = []

    def watch(event: Event) -> None:
        if event.kind == "finished":
            inside.append(float(event.detail["wall"]))

    start = time.perf_counter()
    session = open_session(suite, options)
    outcome = execute(session, EngineOptions("inline"), watch)
    total = time.perf_counter() - start
    if outcome.exit_code:
        raise SystemExit(f"the run failed: {dict(outcome.record.failures)}")
    return total, sum(inside), len(inside)


def inline(folder: Path, tiny: bool) -> None:
    """What of an inline run is not in a stage."""
    overrides = Overrides(seeds="1", epochs=1, sets=(f"{GRAPHS}[20, 10, 10]",)) if tiny else Overrides(seeds="1")
    total, inside, stages = timed_run(QUICK, Options(store=folder / "inline", overrides=overrides))
    outside = total - inside
    print(
        f"inline: {total:.2f} s, of which {outside:.3f} s outside of its {stages} stages "
        f"({outside / total:.2%}, {outside / stages * 1e3:.1f} ms a stage)"
    )


def empty(folder: Path, tiny: bool) -> None:
    """Cells of an empty learner."""
    (folder / "empty.py").write_text(EMPTY, encoding="utf-8")
    suite = folder / "empty.yaml"
    suite.write_text(EMPTY_SUITE, encoding="utf-8")
    # A first run builds the dataset and warms up; only cells are left in the second.
    first = Options(store=folder / "empty", overrides=Overrides(seeds="0"))
    timed_run(str(suite), first)
    seeds = ",".join(str(seed) for seed in range(1, 4 if tiny else 51))
    total, inside, stages = timed_run(str(suite), Options(store=folder / "empty", overrides=Overrides(seeds=seeds)))
    cells = stages // 2
    print(
        f"empty: {total / cells * 1e3:.1f} ms a cell ({inside / cells * 1e3:.1f} ms in its two stages, "
        f"{(total - inside) / cells * 1e3:.1f} ms outside), {cells} cells"
    )


def commands(folder: Path, repetitions: int, tiny: bool) -> None:
    """The command line, and what Python and torch take to start."""
    store = str(folder / "commands")
    sets = [f"datasets.{label}.num_per_class=[10, 5, 5]" for label in ("SPMotif-0.60", "Two-piece (0.7, 0.9)")]
    pipelines = ("{encoder} + {quantifier} + eqn7", "{encoder} + {quantifier} + reweighted-erm")
    sets += [
        f"methods.{name}.encoder.snapshots=[1, 2]" for name in (*pipelines, "mvgrl + svm + reweighted-erm, {weighting}")
    ]
    words = [word for text in sets for word in ("--set", text)] + ["--epochs", "1", "--store", store]
    words += ["--seeds", "1", "--methods", "ERM", "--methods", "IRM"] if tiny else []
    cached = [*BENCH, "run", ABLATION, *words]
    sides: dict[str, Callable[[], float]] = {
        "python -c pass": lambda: seconds([sys.executable, "-c", "pass"]),
        "python -c 'import torch'": lambda: seconds([sys.executable, "-c", "import torch"]),
        "bench --help": lambda: seconds([*BENCH, "--help"]),
        "bench list": lambda: seconds([*BENCH, "list"]),
        "bench run suites/ablation.yaml, cached": lambda: seconds(cached),
    }
    filling = seconds(cached)
    print(f"commands: filling the store took {filling:.0f} s; wall time, median (min, max) of {repetitions}")
    times: dict[str, list[float]] = {name: [] for name in sides}
    for turn in range(repetitions + 1):
        for name, side in sides.items():
            value = side()
            if turn:  # the first one warms up the disk and the index
                times[name].append(value)
    for name, values in times.items():
        print(f"  {name:40}{statistics.median(values):7.2f} s ({min(values):.2f}, {max(values):.2f})")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parts = ("workers", "inline", "empty", "commands")
    parser.add_argument("--only", nargs="+", choices=parts, default=parts)
    parser.add_argument("--repetitions", type=int, default=5, help="of the commands")
    parser.add_argument("--tiny", action="store_true")
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.pop("BENCH_STORE", None)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if "workers" in options.only:
            workers(folder, options.tiny)
        if "inline" in options.only or "empty" in options.only:
            import torch

            torch.set_num_threads(1)
        if "inline" in options.only:
            inline(folder, options.tiny)
        if "empty" in options.only:
            empty(folder, options.tiny)
        if "commands" in options.only:
            commands(folder, options.repetitions, options.tiny)


if __name__ == "__main__":
    main()
