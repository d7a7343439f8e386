"""Prepare one dataset by itself, through the store, and describe it without its secrets. No torch in this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from harness.data import Task
from harness.engine import EngineOptions, Job
from harness.engine import run as run_stages
from harness.errors import BenchError, DataError
from harness.plan.components import Components
from harness.plan.datasets import Declarations
from harness.plan.factory import planned_data
from harness.registry.catalog import Catalog
from harness.results.rows import METRICS
from harness.stages.context import Context, run_stage
from harness.stages.reading_numpy import read_some
from harness.store import Artifact, Store
from harness.suite.spec import ComponentSpec, DatasetSpec

LADDER = (1, 5, 10, 15, 20, 25, 30, 40, 50, 75, 100, 150, 200, 300, 500, 1000)
"""Lower bounds of the size histogram's classes, the same for every dataset."""
NO_ENVIRONMENT = "-1"
SEALED = "sealed"
"""In place of labels and environments of a test split."""


def prepare(
    catalog: Catalog, facts: Declarations, spec: ComponentSpec, store: Store, data_dir: Path, begin: Callable[[], None]
) -> Artifact:
    """Build a dataset unless the store has it, as ``bench run`` would; ``begin`` is called before it is built.

    Returns:
        its open tier.

    Raises:
        DataError: its files are missing or cannot be used.
        BenchError: its code failed.
    """
    stage = planned_data(DatasetSpec(spec.name, spec), Components(catalog), facts).prepared
    if not store.has(stage.key):
        store.require_writable()
        begin()
        job = Job(run_stage, Context(store, data_dir, core_files=catalog.core_files))
        with EngineOptions(jobs=1).make() as engine:
            outcome = run_stages([stage], store=store, job=job, engine=engine, retry_failed=True)
        for failure in outcome.failures.values():
            raise (DataError if failure.status == "data" else BenchError)(f"cannot {stage.title}: {failure.reason}")
    return store.open(stage.key)


def describe(facts: Declarations, spec: ComponentSpec, artifact: Artifact) -> dict[str, Any]:
    """Return all that may be told of a prepared dataset, as JSON. Labels and environments of test splits are sealed."""
    declared, info = facts.declare(spec), artifact.read_json("info")
    task, plain = declared.task, asdict(declared)
    splits = {split: _split(task, role, artifact.path(split)) for split, role in declared.splits.items()}
    (train,) = (split for split in splits.values() if split["role"] == "train")
    return {
        "dataset": spec.name,
        "settings": dict(spec.params),
        **{
            name: plain[name] for name in ("task", "node_features", "edge_features", "variant", "version", "validation")
        },
        "default_val": declared.default_val,
        "own_environments": len(set(train["environments"]) - {NO_ENVIRONMENT}) if declared.environments else 0,
        "oracle": list(declared.oracle),
        "groups": list(declared.groups),
        "splits": splits,
        "size_classes": list(LADDER),
        "notes": [*info["notes"], *_one_class(splits, task)],
        "facts": info["facts"],
        "skipped": info["skipped"],
        "fingerprint": info["fingerprint"],
        "key": artifact.meta.key,
    }


def _one_class(splits: Mapping[str, Mapping[str, Any]], task: Task) -> list[str]:
    """Warn of each open split whose labels are all of one class; of many tasks, of one class in each."""
    metric = "" if task.metric == "accuracy" else f": {METRICS.get(task.metric, task.metric)} is undefined there"
    notes = []
    for name, split in splits.items():
        labels = split["labels"]
        if labels == SEALED:
            continue
        if "classes" in labels:
            counts = [sum(count > 0 for count in labels["classes"])]
        else:
            tasks = zip(labels["positive"], labels["labelled"], strict=True)
            counts = [(positive > 0) + (positive < labelled) for positive, labelled in tasks]
        if max(counts, default=0) == 1:
            notes.append(f"split '{name}' holds one class{metric}")
    return notes


def _split(task: Task, role: str, path: Path) -> dict[str, Any]:
    import numpy as np

    arrays = read_some(path, ("node_ptr", "edge_ptr", "y", "env"))
    nodes, edges = np.diff(arrays["node_ptr"]), np.diff(arrays["edge_ptr"])
    sizes = np.bincount(np.searchsorted(LADDER, nodes, side="right"), minlength=len(LADDER) + 1)[1:].tolist()
    split: dict[str, Any] = {"role": role, "graphs": len(nodes), "nodes": _range(nodes), "edges": _range(edges)}
    split |= {"sizes": sizes, "labels": SEALED, "environments": SEALED}
    if role == "test":
        return split
    y = arrays["y"]
    if task.kind == "multitask":  # for each task, how many graphs are labelled and how many of them 1
        split["labels"] = {"labelled": np.isfinite(y).sum(0).tolist(), "positive": (y == 1).sum(0).tolist()}
    else:
        split["labels"] = {"classes": np.bincount(y, minlength=task.num_classes).tolist()}
    ids, counts = np.unique(arrays.get("env", ()), return_counts=True)
    split["environments"] = dict(zip(map(str, ids.tolist()), counts.tolist(), strict=True))
    return split


def _range(counts: Any) -> dict[str, float]:
    return {"min": int(counts.min()), "mean": round(float(counts.mean()), 2), "max": int(counts.max())}
