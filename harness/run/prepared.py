"""One dataset prepared by itself, through the store, and what may be told of it. No torch in this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from harness.data import Task
from harness.engine import make_engine
from harness.engine import run as run_stages
from harness.errors import BenchError, DataError
from harness.plan.datasets import DatasetFacts
from harness.plan.factory import StageFactory
from harness.registry.catalog import Catalog
from harness.report.caption import METRICS
from harness.run.execute import BODY
from harness.stages.context import Context
from harness.stages.reading_numpy import read_some
from harness.store.artifact import Artifact
from harness.store.store import Store
from harness.suite.spec import ComponentSpec, DatasetSpec

LADDER = (1, 5, 10, 15, 20, 25, 30, 40, 50, 75, 100, 150, 200, 300, 500, 1000)
"""Lower bounds of the size histogram's classes, the same for every dataset."""
SEALED = "sealed"
"""In place of what is not told of a test split."""


@dataclass(frozen=True)
class Prepared:
    """A dataset's open tier; ``seconds`` is 0 where it was in the store."""

    artifact: Artifact
    seconds: float


def prepare(
    catalog: Catalog, facts: DatasetFacts, spec: ComponentSpec, store: Store, data_dir: Path, begin: Callable[[], None]
) -> Prepared:
    """Build a dataset unless the store has it, as ``bench run`` would; ``begin`` is called before it is built.

    Raises:
        DataError: its files are missing or cannot be used.
        BenchError: its code failed.
    """
    stage = StageFactory(catalog, facts).prepare(DatasetSpec(spec.name, spec))
    seconds = 0.0
    if not store.has(stage.key):
        store.require_writable()
        begin()
        outcome = run_stages(
            [stage],
            store=store,
            body=BODY,
            engine=make_engine("processes", jobs=1),
            context=Context(store, data_dir, rooms=catalog.rooms).to_json(),
            retry_failed=True,
        )
        for failure in outcome.failures.values():
            raise (DataError if failure.status == "data" else BenchError)(f"cannot {stage.title}: {failure.reason}")
        seconds = outcome.seconds
    return Prepared(store.open(stage.key), seconds)


def describe(facts: DatasetFacts, spec: ComponentSpec, artifact: Artifact) -> dict[str, Any]:
    """All that may be told of a prepared dataset, as JSON. Labels and environments of test splits are sealed."""
    declared, info = facts.declare(spec), artifact.read_json("info")
    shown = asdict(declared)
    splits = {
        split: _split(declared.task.kind, declared.task.num_classes, role, artifact, split)
        for split, role in declared.splits.items()
    }
    return {
        "dataset": spec.name,
        "settings": dict(spec.params),
        **{
            name: shown[name] for name in ("task", "node_features", "edge_features", "variant", "version", "validation")
        },
        "default_val": declared.default_val,
        "own_environments": _environments(splits) if declared.environments else 0,
        "oracle": list(declared.oracle),
        "groups": list(declared.groups),
        "splits": splits,
        "size_classes": list(LADDER),
        "notes": [*info["notes"], *_one_class(splits, declared.task)],
        "facts": info["facts"],
        "skipped": info["skipped"],
        "fingerprint": info["fingerprint"],
        "key": artifact.key,
    }


def _one_class(splits: Mapping[str, Mapping[str, Any]], task: Task) -> list[str]:
    """A warning for each open split whose labels are all of one class."""
    metric = "" if task.metric == "accuracy" else f": {METRICS.get(task.metric, task.metric)} is undefined there"
    return [
        f"split '{name}' holds one class{metric}"
        for name, split in splits.items()
        if split["labels"] != SEALED and _classes(split["labels"]) == 1
    ]


def _classes(labels: Mapping[str, Any]) -> int:
    """How many classes there are; of many tasks, the most that one has."""
    if "classes" in labels:
        return sum(count > 0 for count in labels["classes"])
    counts = zip(labels["positive"], labels["labelled"], strict=True)
    return max((int(positive > 0) + int(positive < labelled) for positive, labelled in counts), default=0)


def _environments(splits: Mapping[str, Mapping[str, Any]]) -> int:
    """Environments that training graphs have; -1 is none."""
    (train,) = (split for split in splits.values() if split["role"] == "train")
    return len(set(train["environments"]) - {"-1"})


def _split(kind: str, classes: int, role: str, artifact: Artifact, split: str) -> dict[str, Any]:
    import numpy as np

    arrays = read_some(artifact.path(split), ("node_ptr", "edge_ptr", "y", "env"))
    nodes, edges = np.diff(arrays["node_ptr"]), np.diff(arrays["edge_ptr"])
    told: dict[str, Any] = {"role": role, "graphs": len(nodes), "nodes": _range(nodes), "edges": _range(edges)}
    told["sizes"] = np.bincount(np.searchsorted(LADDER, nodes, side="right"), minlength=len(LADDER) + 1)[1:].tolist()
    if role == "test":
        return {**told, "labels": SEALED, "environments": SEALED}
    told["labels"] = _labels(kind, classes, arrays["y"])
    if "env" in arrays:
        ids, counts = np.unique(arrays["env"], return_counts=True)
        told["environments"] = dict(zip(map(str, ids.tolist()), counts.tolist(), strict=True))
    else:
        told["environments"] = {}
    return told


def _range(counts: Any) -> dict[str, float]:
    return {"min": int(counts.min()), "mean": round(float(counts.mean()), 2), "max": int(counts.max())}


def _labels(kind: str, classes: int, y: Any) -> dict[str, Any]:
    """Graphs of each class, or for each task of a multi-task set how many are labelled and how many of them 1."""
    import numpy as np

    if kind == "multitask":
        return {"labelled": np.isfinite(y).sum(0).tolist(), "positive": (y == 1).sum(0).tolist()}
    return {"classes": np.bincount(y, minlength=classes).tolist()}
