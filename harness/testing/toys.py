"""Toy graphs and components for the conformance kit, and a finished toy run for analyses and trackers."""

from __future__ import annotations

import inspect
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from multiprocessing.util import Finalize
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from harness.component import Component
from harness.data import Dataset, Declaration, Features, RawDataset, RawGraph, Task, TaskKind
from harness.engine import EngineOptions
from harness.graphs import Batch, PackedGraphs
from harness.hparams import hparam
from harness.nn.conv import GINConv
from harness.nn.front import make_front
from harness.nn.layers import pool
from harness.plan import build_plan
from harness.plan.datasets import Declarations
from harness.randomness import derive
from harness.registry.catalog import Catalog, Entry
from harness.registry.discovery import Source
from harness.registry.index_build import entry
from harness.results.rows import RunResults
from harness.results.run_record import RunRecord
from harness.run.collect import collect
from harness.run.execute import run_targets
from harness.run.record import start_record
from harness.run.session import Session
from harness.stages.context import Context
from harness.store import Store, new_run_name
from harness.suite import load_suite
from harness.training.bases import Backbone, Baseline, Decorrelator, Encoder, Fitted, Quantifier
from harness.training.optim import Adam

WIDTH = 8
"""Width of the kit's networks; differs from every number of classes and tasks."""
FEATURES = Features("numeric", (4,))
TRAIN, VALIDATION = 24, 6
TASKS = {
    "multiclass": Task("multiclass", 3),
    "binary": Task("binary", 2),
    "multitask": Task("multitask", 2, num_tasks=3, metric="rocauc"),
}


@dataclass(frozen=True)
class Toy:
    """Training graphs with labels and environments, and validation graphs with labels of their own.

    Attributes:
        task: the prediction task.
        train: graphs with ``y`` and ``env``.
        validation: graphs without labels.
        validation_y: their labels.
        environments: number of environments; some may have no graph.
        raw: the training graphs one by one.
    """

    task: Task
    train: PackedGraphs
    validation: PackedGraphs
    validation_y: Tensor
    environments: int = 2
    raw: tuple[RawGraph, ...] = field(default=(), repr=False)

    def changed(self, change: Callable[[RawGraph], RawGraph], every: int = 3) -> Toy:
        """Return the data with each third, or so, of the training graphs changed, and labels as they were."""
        graphs = [change(graph) if i % every == 0 else graph for i, graph in enumerate(self.raw)]
        graphs = graphs if self.train.parts is None else [with_halves(graph) for graph in graphs]
        return replace(self, train=replace(PackedGraphs.pack(graphs), y=self.train.y, env=self.train.env))


def toy_graphs(kind: TaskKind = "multiclass") -> list[RawGraph]:
    """Return connected graphs of 4 to 8 nodes whose features follow label and environment; training's come first.

    Of several tasks every fifth label, and all of the fourth graph's, is missing.
    """
    task, count = TASKS[kind], TRAIN + VALIDATION
    rng = np.random.default_rng(derive(0, f"conformance/{kind}"))
    labels, env = rng.integers(task.num_classes, size=count), rng.integers(2, size=count)
    graphs = [_graph(rng, int(y), int(e)) for y, e in zip(labels, env, strict=True)]
    if kind != "multitask":
        return graphs
    y = np.stack([labels, *rng.integers(2, size=(task.num_tasks - 1, count))], axis=1).astype(np.float32)
    y.reshape(-1)[4::5] = np.nan
    y[3] = np.nan
    return [replace(graph, y=row) for graph, row in zip(graphs, y, strict=True)]


def _graph(rng: np.random.Generator, y: int, env: int) -> RawGraph:
    size = int(rng.integers(4, 9))
    edges = {(node, (node + 1) % size) for node in range(size)}
    edges |= {(int(a), int(b)) for a, b in rng.integers(size, size=(2 + y, 2)) if a != b}
    ends = np.array(sorted(edges | {(b, a) for a, b in edges}), dtype=np.int64).T
    x = rng.normal(size=(size, FEATURES.sizes[0]))
    x[:, 0] += 0.7 * y
    x[:, 1] += 1.5 * env
    return RawGraph(x.astype(np.float32), ends, y, env=env)


def toy(kind: TaskKind = "multiclass", *, parts: bool = False) -> Toy:
    """Return the ordinary toy set; with ``parts``, each graph comes with its two halves."""
    raw = [with_halves(graph) for graph in toy_graphs(kind)] if parts else toy_graphs(kind)
    y = torch.from_numpy(np.array([graph.y for graph in raw]))
    env = torch.tensor([graph.env for graph in raw[:TRAIN]])
    train = replace(PackedGraphs.pack(raw[:TRAIN]), y=y[:TRAIN], env=env)
    return Toy(TASKS[kind], train, PackedGraphs.pack(raw[TRAIN:]), y[TRAIN:], raw=tuple(raw[:TRAIN]))


def with_halves(graph: RawGraph) -> RawGraph:
    """Return the graph with the halves of its nodes as parts; a single node is one part."""
    size = len(graph.x)
    cuts = [range((size + 1) // 2), range((size + 1) // 2, size)]
    return replace(graph, parts=[_induced(graph, nodes) for nodes in cuts if len(nodes)])


def _induced(graph: RawGraph, nodes: range) -> RawGraph:
    inside = np.isin(graph.edge_index, nodes).all(0)
    return RawGraph(graph.x[nodes.start : nodes.stop], graph.edge_index[:, inside] - nodes.start, graph.y)


def without_edges(graph: RawGraph) -> RawGraph:
    """Return the nodes alone."""
    attributes = None if graph.edge_attr is None else graph.edge_attr[:0]
    return RawGraph(graph.x, np.zeros((2, 0), dtype=np.int64), graph.y, attributes, graph.env)


def one_node(graph: RawGraph) -> RawGraph:
    """Return the first node alone."""
    return replace(without_edges(graph), x=graph.x[:1])


class KitBackbone(Backbone):
    """A small GIN: graph convolutions with BatchNorm inside, ReLU between, dropout after each."""

    name = "conformance-kit"

    def build(self, node_features: Features, edge_features: Features) -> None:
        """Create the layers."""
        del edge_features
        self.front = make_front(node_features, self.hidden)
        self.convs = nn.ModuleList(GINConv(self.hidden, self.hidden) for _ in range(self.layers))

    def forward(self, batch: Batch, x: Tensor | None = None, edge_weight: Tensor | None = None) -> Tensor:
        """Return (N, hidden) node embeddings."""
        h: Tensor = self.front(batch.x if x is None else x)
        for conv in self.convs:
            h = conv(h, batch, edge_weight)
            if self.dropout:
                h = nn.functional.dropout(h, self.dropout, self.training)
        return h


class PlainERM(Baseline):
    """The base class as it is, the reference of ``equals_erm``."""

    name = "conformance-kit-erm"


NAME = "conformance-kit"


class KitDataset(Dataset):
    """The toy graphs in three splits, with or without what not every dataset has."""

    name = NAME
    family = "synthetic"
    task: str = hparam("multiclass", choices=["multiclass", "binary", "multitask"], help="task")
    bare: bool = hparam(False, help="without environments and without ground truth")
    one_class: bool = hparam(False, help="every graph has the label 0")

    def declare(self, data_dir: Path | None) -> Declaration:
        """Declare three splits."""
        del data_dir
        oracle = () if self.bare else ("base",)
        return Declaration(TASKS[self.task], FEATURES, environments=0 if self.bare else 2, oracle=oracle)

    def build(self, data_dir: Path | None) -> RawDataset:
        """Return the graphs; the test split has all of them again with other features."""
        del data_dir
        kind: Any = self.task
        graphs = [self._dressed(place, graph) for place, graph in enumerate(toy_graphs(kind))]
        rng = np.random.default_rng(derive(1, "conformance/test"))
        moved = [replace(g, x=(g.x + rng.normal(size=g.x.shape)).astype(np.float32)) for g in graphs]
        return RawDataset({"train": graphs[:16], "val": graphs[16:], "test": moved})

    def _dressed(self, place: int, graph: RawGraph) -> RawGraph:
        truth = {} if self.bare else {"base": (place * 7 // 5) % TASKS[self.task].num_classes}
        y = graph.y * 0 if self.one_class else graph.y
        return replace(graph, y=y, env=-1 if self.bare else graph.env, oracle=truth)


class KitBaseline(Baseline):
    """ERM with two more terms, so that there is something to tune."""

    name = NAME
    size: float = hparam(0.1, low=0.0, weight_of="size", help="weight of the logits' size")
    tilt: float = hparam(0.1, low=0.0, weight_of="tilt", help="weight of the first logit")

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        """Return the risk and the two terms."""
        logits = self(batch)
        risk = self.risk(logits, batch)
        return {"erm": risk.mean(), "size": logits.square().mean(), "tilt": logits[:, 0].mean()}


class KitDecorrelator(Decorrelator):
    """ERM on top of a pipeline, whose votes it ignores."""

    name = NAME


class _Network(nn.Module):
    def __init__(self, backbone: KitBackbone) -> None:
        super().__init__()
        self.backbone = backbone

    def forward(self, batch: Batch) -> Tensor:
        return pool(self.backbone(batch), batch, "mean")


class KitEncoder(Encoder):
    """Learns embeddings of norm one; an epoch is one step on all graphs."""

    name = NAME

    def fit(self, graphs: PackedGraphs) -> Iterator[tuple[int, nn.Module]]:
        """Train and yield the snapshots."""
        backbone = KitBackbone(layers=self.layers, hidden=self.hidden)
        backbone.build(self.node_features, self.edge_features)
        network = _Network(backbone).to(graphs.x.device)
        adam = Adam(network.parameters(), lr=self.lr)
        everything = graphs.batch(torch.arange(len(graphs)))
        for epoch in range(1, max(self.snapshots) + 1):
            adam.zero_grad()
            (network(everything).square().sum(1) - 1).square().mean().backward()
            adam.step()
            if epoch in self.snapshots:
                yield epoch, network


class KitQuantifier(Quantifier):
    """Gaussian classes of one spread; a class without graphs has the mean of all."""

    name = NAME

    def settings(self) -> list[dict[str, Any]]:
        """Return two candidates."""
        return [{"spread": 1.0}, {"spread": 3.0}]

    def fit(
        self, embeddings: NDArray[np.float64], labels: NDArray[np.int64], num_classes: int, **setting: Any
    ) -> Fitted:
        """Compute the classes' means."""
        groups = [embeddings[labels == y] for y in range(num_classes)]
        means = np.stack([(group if len(group) else embeddings).mean(0) for group in groups])

        def predict(rows: NDArray[np.float64]) -> NDArray[np.float64]:
            distance = ((rows[:, None] - means) ** 2).sum(2)
            odds = np.exp((distance.min(1, keepdims=True) - distance) / setting["spread"])
            probabilities: NDArray[np.float64] = odds / odds.sum(1, keepdims=True)
            return probabilities

        return Fitted(predict)


COMPONENTS = (KitBackbone, KitDataset, KitBaseline, KitDecorrelator, KitEncoder, KitQuantifier)
_HEAD = f"""\
bench: 1
name: {NAME}
seeds: [1, 2]
model: {{backbone: {NAME}, layers: 1, hidden: 4}}
train: {{epochs: 2, batch_size: 8, lr: 1e-2}}
"""
_METHODS = f"""\
methods:
  Plain: {{baseline: {NAME}}}
  Tuned: {{baseline: {{use: {NAME}, tune: {{size: [0.1, 0.5], tilt: [0.1, 0.5]}}}}}}
"""
USUAL = f"""\
{_HEAD}
datasets:
  Usual: {{use: {NAME}}}
  Bare: {{use: {NAME}, task: binary, bare: true}}
  One class: {{use: {NAME}, one_class: true}}
{_METHODS}
  Pipeline:
    encoder: {{use: {NAME}, layers: 1, hidden: 4, snapshots: [1, 2]}}
    quantifier: {NAME}
    decorrelator: {{use: {NAME}, keep: 2}}
"""
SEVERAL_TASKS = f"""\
{_HEAD}
datasets:
  Several tasks: {{use: {NAME}, task: multitask}}
{_METHODS}
"""
"""Pipelines are for one label per graph."""


@dataclass(frozen=True)
class ToyRun:
    """A finished run, with the session that made it."""

    session: Session
    record: RunRecord
    results: RunResults

    @property
    def context(self) -> Context:
        """Return the context in which its stages ran."""
        return Context(self.session.store)


@lru_cache(maxsize=2)
def toy_run(suite_text: str = USUAL) -> ToyRun:
    """Return the run of a suite, in a store of its own; its cells are trained on the first call."""
    folder = scratch_folder("toy")
    path = folder / f"{NAME}.yaml"
    path.write_text(suite_text, encoding="utf-8")
    catalog = Catalog(map(kit_entry, COMPONENTS))
    store = Store(folder / "store")
    facts = Declarations(catalog, None, store)
    suite = load_suite(path, catalog, facts.declare)
    session = Session(suite, catalog, facts, build_plan(suite, catalog, facts), store)
    targets = [cell.score for cell in session.plan.cells]
    failure = run_targets(session, EngineOptions("inline"), lambda _: None, targets)
    assert failure is None, failure
    record = start_record(session, store.new_run(new_run_name(suite.name, store.runs)).name)
    return ToyRun(session, record, collect(record, store))


def scratch_folder(name: str) -> Path:
    """Return a new folder that is deleted when the process ends, also a process of multiprocessing."""
    folder = tempfile.mkdtemp(prefix=f"bench-check-{name}-")
    Finalize(None, shutil.rmtree, args=(folder, True), exitpriority=0)
    return Path(folder)


def kit_entry(cls: type[Component]) -> Entry:
    """Return the catalog's row of a class that need not be registered."""
    file = Path(inspect.getfile(cls)).resolve()
    return entry(Source(NAME, cls.__module__, file, file.parent), cls)
