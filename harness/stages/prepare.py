"""``prepare``: build a dataset and write it in three tiers: open, oracle and sealed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from harness.data import Dataset, Declaration, RawDataset, RawGraph, check_built, check_declaration
from harness.errors import DataError
from harness.graphs.packed import GROUP, PackedGraphs, order_edges
from harness.stages.context import Context, component
from harness.stages.payloads import PreparePayload
from harness.store import FileMark, Stage, file_mark

TIERS = ("oracle", "sealed")


def body(stage: Stage, context: Context) -> None:
    """Write the sealed and oracle tiers first, so that an open tier never stands alone.

    Raises:
        DataError: a file cannot be used, or was changed between planning and the end of reading.
    """
    payload: PreparePayload = stage.payload
    dataset: Dataset = component(payload.dataset)
    dataset.store = context.store
    before = _planned_files(stage, dataset, context)
    declared = check_declaration(dataset, dataset.declare(context.data_dir))
    raw = check_built(dataset, dataset.build(context.data_dir))
    for path, after in _planned_files(stage, dataset, context).items():
        if after != before.get(path):
            raise _changed(dataset, path)
    if asdict(declared) != payload.declared:
        raise DataError(f"changed since it was planned: what dataset '{dataset.name}' declares")
    check(declared, raw)
    tiers = split_tiers(declared, raw)
    info = {**describe(declared, raw), "fingerprint": fingerprint(tiers, declared.version)}
    del raw  # the packed copy is written; both together would be the most memory of all
    keys = dict(zip(TIERS, stage.outputs, strict=True))
    for tier in (*TIERS, "open"):
        with context.store.create(stage, key=keys.get(tier)) as draft:
            for split, tensors in tiers[tier].items():
                draft.write_tensors(split, tensors)
            draft.write_json("info", info if tier == "open" else {"tier": tier, "splits": list(tiers[tier])})


def _planned_files(stage: Stage, dataset: Dataset, context: Context) -> dict[Path, FileMark]:
    """Return the dataset's input files, each with a mark that changes when it is written.

    Raises:
        DataError: one is not as it was when its digest entered the stage's key.
    """
    paths, planned = dataset.files(context.data_dir), stage.preimage["files"]
    marks = {path: file_mark(path) for path in paths}
    for path, item in zip(paths, planned, strict=False):
        if item != {"name": path.name, "sha256": context.store.file_digest(path)}:
            raise _changed(dataset, path)
    if len(paths) != len(planned):
        raise DataError(f"changed since it was planned: which files dataset '{dataset.name}' reads")
    return marks


def _changed(dataset: Dataset, path: Path) -> DataError:
    code = " and ".join(str(getattr(dataset, name)) for name in dataset.names_code)
    return DataError(f"changed since it was planned: {f'what {code} gives, ' if code else ''}{path}")


def check(declared: Declaration, raw: RawDataset) -> None:
    """Refuse a dataset that differs from what it declared.

    Raises:
        DataError: a split is missing or empty, a label, an id or a feature code is out of range.
    """
    if set(raw.splits) != set(declared.splits):
        raise DataError(f"declared the splits {sorted(declared.splits)} but built {sorted(raw.splits)}")
    for split, graphs in raw.splits.items():
        if not graphs:
            raise DataError(f"the split '{split}' is empty")
        if any(set(graph.groups) != set(declared.groups) for graph in graphs):
            raise DataError(f"split '{split}': a graph's groups are not the declared {sorted(declared.groups)}")
        _check_labels(declared, split, graphs)
        _check_ids(declared, split, graphs)


def _check_labels(declared: Declaration, split: str, graphs: Sequence[RawGraph]) -> None:
    task = declared.task
    if task.kind == "multitask":
        for number, graph in enumerate(graphs):
            labels = np.asarray(graph.y, dtype=float)
            if labels.shape != (task.num_tasks,) or not (np.isin(labels, (0, 1)) | np.isnan(labels)).all():
                raise DataError(
                    f"split '{split}', graph {number}: its labels are {graph.y!r}; expected {task.num_tasks} numbers, "
                    "0, 1 or NaN for a missing one"
                )
        return
    for number, graph in enumerate(graphs):
        values = np.asarray(graph.y)
        if values.size != 1 or values.item() not in range(task.num_classes):
            raise DataError(
                f"split '{split}', graph {number}: its label is {graph.y!r}; expected one class, from 0 to "
                f"{task.num_classes - 1}"
            )


def _check_ids(declared: Declaration, split: str, graphs: Sequence[RawGraph]) -> None:
    """Refuse environments and groups that are not whole numbers where they are stored as such."""
    for number, graph in enumerate(graphs):
        where = f"split '{split}', graph {number}"
        for name, group in graph.groups.items():
            if not _is_id(group):
                raise DataError(f"{where}: its group in '{name}' is {group!r}; expected 0, 1 … or -1 for none")
        most = declared.environments if declared.splits[split] == "train" else None
        if declared.environments and not _is_id(graph.env, most):
            raise DataError(
                f"{where}: its environment is {graph.env!r}; expected a whole number from 0 (in training to "
                f"{declared.environments - 1}, as declared), or -1 for none"
            )


def _is_id(value: Any, most: int | None = None) -> bool:
    """Return True if a value is a whole number from -1, and below ``most``."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    return whole and value >= -1 and (most is None or value < most)


def split_tiers(declared: Declaration, raw: RawDataset) -> dict[str, dict[str, dict[str, Tensor]]]:
    """Return tier -> split -> field -> tensor; labels and domains of test splits are in the sealed tier alone."""
    tiers: dict[str, dict[str, dict[str, Tensor]]] = {"open": {}, "oracle": {}, "sealed": {}}
    for split in declared.splits:
        graphs = raw.splits[split]
        truth = {"y": _labels(declared, graphs)}
        if declared.environments:
            truth["env"] = torch.tensor([graph.env for graph in graphs], dtype=torch.int64)
        oracle = _oracle(declared.oracle, graphs)
        tiers["open"][split] = _pack(declared, split, graphs).tensors()
        groups = {
            f"{GROUP}{name}": torch.tensor([graph.groups[name] for graph in graphs], dtype=torch.int64)
            for name in declared.groups
        }
        if declared.splits[split] == "test":
            tiers["sealed"][split] = {**truth, **oracle}
        else:
            tiers["open"][split] |= {**truth, **groups}
            tiers["oracle"][split] = oracle
    return tiers


def _pack(declared: Declaration, split: str, graphs: Sequence[RawGraph]) -> PackedGraphs:
    try:
        return PackedGraphs.pack(graphs, declared.node_features, declared.edge_features)
    except DataError as error:
        raise DataError(f"split '{split}', {error}") from None


def _labels(declared: Declaration, graphs: Sequence[RawGraph]) -> Tensor:
    if declared.task.kind == "multitask":
        return torch.from_numpy(np.stack([np.asarray(graph.y, dtype=np.float32) for graph in graphs]))
    return torch.tensor([int(np.asarray(graph.y).reshape(-1)[0]) for graph in graphs], dtype=torch.int64)


def _oracle(names: Sequence[str], graphs: Sequence[RawGraph]) -> dict[str, Tensor]:
    """Return per-graph fields as (n,), node and edge fields concatenated (edges in the packed order)."""
    fields: dict[str, Tensor] = {}
    for name in names:
        values = [np.asarray(graph.oracle[name]) for graph in graphs]
        if name.startswith("edge_"):
            values = [value[order_edges(graph.edge_index)] for value, graph in zip(values, graphs, strict=True)]
        joined = np.concatenate(values) if name.startswith(("edge_", "node_")) else np.stack(values)
        fields[name] = torch.from_numpy(np.ascontiguousarray(joined))
    return fields


def fingerprint(
    tiers: Mapping[str, Mapping[str, Mapping[str, Tensor]]], version: str = "", *, whole: bool = False
) -> str:
    """Return a digest of the stored graphs and the data's edition, by which datasets of one name are told apart.

    Args:
        whole: with scaffolds and fragments, which a dataset may have or not and still be the same graphs.
    """
    digest = hashlib.sha256(version.encode())
    for tier, splits in sorted(tiers.items()):
        for split, tensors in sorted(splits.items()):
            for name, tensor in sorted(tensors.items()):
                if name.startswith((GROUP, "part")) and not whole:
                    continue
                digest.update(f"{tier}/{split}/{name}/{tensor.dtype}/{tuple(tensor.shape)}".encode())
                digest.update(tensor.contiguous().reshape(-1).numpy().view(np.uint8).data)
    return digest.hexdigest()


def describe(declared: Declaration, raw: RawDataset) -> dict[str, Any]:
    """Return facts for captions and ``bench describe``; of test graphs sizes alone, and no label."""
    splits: dict[str, dict[str, Any]] = {}
    for split, role in declared.splits.items():
        graphs = raw.splits[split]
        nodes = np.array([len(graph.x) for graph in graphs])
        edges = np.array([graph.edge_index.shape[1] for graph in graphs])
        splits[split] = {
            "role": role,
            "graphs": len(graphs),
            "nodes": {"mean": float(nodes.mean()), "min": int(nodes.min()), "max": int(nodes.max())},
            "edges": {"mean": float(edges.mean()), "min": int(edges.min()), "max": int(edges.max())},
        }
        if role != "test" and declared.task.kind != "multitask":
            labels = _labels(declared, graphs)
            splits[split]["classes"] = torch.bincount(labels, minlength=declared.task.num_classes).tolist()
    return {
        "splits": splits,
        "variant": declared.variant,
        "version": declared.version,
        "validation": declared.validation,
        "notes": [*declared.notes, *raw.notes],
        "facts": raw.facts,
        "skipped": raw.skipped,
    }
