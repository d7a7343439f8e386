"""Cost of a training epoch of every registered learner, relative to ERM's.

    python benchmarks/method_cost.py [--only NAME ...] [--repetitions 7] [--graphs 512] [--tiny]

All baselines and decorrelators at their defaults (CIGA as v2 too) train the same network (GIN in EQuAD's flavour, three
layers of width 32, sum readout) on the same SPMotif graphs in batches of 32, on one thread. They take turns of four
epochs each, so that a busy machine slows all of them alike and alternating schedules are averaged; figures are medians
over the turns after the first, their ratios to ERM's of the same turn. Time is CPU time, as in ``erm_step.py``.

An epoch is what the training loop does between two validations: the hooks, drawing batches, and the steps. Environment
ids, an assistant's predictions, expected losses and the quantifiers' votes are made up beforehand, as stages of their
own make them in a run; what a method infers while it trains is in its time. The bars are those of the project.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness import Decorrelator, Features, Learner, PackedGraphs, Task
from harness.component import LEARNER_KINDS
from harness.registry.discovery import load_one
from harness.registry.index import load_catalog
from harness.suite.settings import TrainSettings
from harness.testing.learner_rig import upstream_outputs, votes
from harness.testing.toys import Toy
from harness.training.bases import LearnerInfo, ModelSpec
from harness.training.loop import total_steps
from harness.training.sampler import epoch_batches
from plugins.backbones.gin import GIN
from plugins.datasets.spmotif import SPMotif

REFERENCE = "erm"
BATCH = 32
TURN = 4
ENVIRONMENTS = 2
VARIANTS: Mapping[str, Mapping[str, Any]] = {"ciga": {"variant": "v2"}}
BARS = {
    **dict.fromkeys(("irm", "vrex", "coral", "ib-irm"), 1.4),
    **dict.fromkeys(("ciga", "gsat", "dir", "cal", "grea"), 4.0),
}
MODEL = ModelSpec(GIN, {"layers": 3, "hidden": 32})


def graphs_with_labels(count: int) -> Toy:
    """SPMotif training graphs with labels and fixed random environments."""
    raw = SPMotif(num_per_class=[-(-count // 3), 1, 1]).build(None).splits["train"][:count]
    train = PackedGraphs.pack(raw)
    y = torch.tensor([graph.y for graph in raw])
    env = torch.randint(ENVIRONMENTS, (len(raw),), generator=torch.Generator().manual_seed(0))
    few = PackedGraphs.pack(raw[:2])
    return Toy(Task("multiclass", 3), replace(train, y=y, env=env), few, y[:2], ENVIRONMENTS)


def set_up(cls: type[Learner], values: Mapping[str, Any], data: Toy, epochs: int) -> Learner:
    """A learner as the engine sets it up, with made-up results of the stages before it."""
    learner = cls(**values)
    count = len(data.train)
    info = LearnerInfo(
        task=data.task,
        node_features=Features("numeric", (data.train.x.size(1),)),
        edge_features=Features("none"),
        num_environments=ENVIRONMENTS if "environments" in cls.needs else 0,
        num_train=count,
        total_steps=total_steps(data.train, TrainSettings(epochs, BATCH, 256)),
        epochs=epochs,
    )
    learner.setup(info, MODEL, seed=0)
    learner.annotations = {name: torch.rand(count) for name in sorted(cls.needs - {"environments"})}
    learner.upstream_outputs = upstream_outputs(learner, data)
    return learner


def turns(learner: Learner, data: Toy, epochs: int) -> Iterator[None]:
    """Training, paused after every turn."""
    train = data.train if "environments" in learner.needs else replace(data.train, env=None)
    spurious = votes(learner, data) if isinstance(learner, Decorrelator) else None
    order = torch.Generator().manual_seed(0)
    optimizers = learner.optimizers()
    learner.on_fit_start(train)
    for epoch in range(epochs):
        learner.epoch = epoch
        learner.train()
        learner.on_epoch_start(train)
        learner.train()
        batches = epoch_batches(train, BATCH, order, reorder=learner.training_order)
        learner.epoch_steps = len(batches)
        for learner.epoch_step, batch in enumerate(batches):
            if spurious is not None:
                batch.spurious = spurious[batch.index]
            learner.training_step(batch, optimizers)
            learner.step += 1
        learner.on_epoch_end(0.5)
        if (epoch + 1) % TURN == 0:
            yield


def measure(sides: Mapping[str, Iterator[None]], repetitions: int) -> dict[str, list[float]]:
    """Milliseconds per epoch of each side, one figure per turn, after a turn to warm up."""
    times: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(repetitions + 1):
        for name, side in sides.items():
            start = time.process_time()
            next(side)
            times[name].append((time.process_time() - start) / TURN * 1e3)
    return {name: values[1:] for name, values in times.items()}


def learners(only: Sequence[str]) -> dict[str, tuple[type[Learner], Mapping[str, Any]]]:
    """Label -> class and values, the reference first; variants follow their method."""
    found: dict[str, tuple[type[Learner], Mapping[str, Any]]] = {}
    known = {entry.name: load_one(entry) for entry in load_catalog() if entry.kind in LEARNER_KINDS}
    for name in [REFERENCE, *sorted(set(known) - {REFERENCE})]:
        if name != REFERENCE and only and name not in only:
            continue
        found[name] = (known[name], {})
        if name in VARIANTS:
            found[f"{name}, {', '.join(map(str, VARIANTS[name].values()))}"] = (known[name], VARIANTS[name])
    return found


def table(times: Mapping[str, Sequence[float]]) -> list[str]:
    """Lines of the result, with the bar of each method that has one."""
    lines = [f"{'':18}{'ms/epoch':>10}{'/ ERM':>8}{'min':>8}{'max':>8}  bar"]
    for name, values in times.items():
        ratios = [own / base for own, base in zip(values, times[REFERENCE], strict=True)]
        middle, bar = statistics.median(ratios), BARS.get(name.partition(",")[0])
        told = "" if bar is None else f"{bar:.1f} {'kept' if middle <= bar else 'MISSED'}"
        shown = (statistics.median(values), middle, min(ratios), max(ratios))
        lines.append(("{:18}{:10.1f}{:8.2f}{:8.2f}{:8.2f}  ".format(name, *shown) + told).rstrip())
    return lines


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="these learners, beside ERM")
    parser.add_argument("--repetitions", type=int, default=7)
    parser.add_argument("--graphs", type=int, default=512)
    parser.add_argument("--tiny", action="store_true", help="shrink everything, to see whether the script works")
    options = parser.parse_args()
    torch.set_num_threads(1)
    repetitions, count = (1, 64) if options.tiny else (options.repetitions, options.graphs)
    data, epochs = graphs_with_labels(count), (repetitions + 1) * TURN
    sides = {
        name: turns(set_up(cls, values, data, epochs), data, epochs)
        for name, (cls, values) in learners(options.only).items()
    }
    times = measure(sides, repetitions)
    print(
        f"GIN 3x32, {count} SPMotif graphs, batches of {BATCH}, {epochs} epochs, one thread; medians of {repetitions}"
    )
    print("\n".join(table(times)))


if __name__ == "__main__":
    main()
