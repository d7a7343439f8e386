"""``quantify``: fit a quantifier on every snapshot of one encoder; keep every candidate with its scores."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from harness.randomness import derive
from harness.stage import Stage
from harness.stages.context import Context, component
from harness.stages.reading import read_labels, read_task
from harness.training.bases import Fitted, Quantifier
from harness.training.metrics import score_probabilities


def body(stage: Stage, context: Context) -> None:
    """Write ``candidates`` (epoch, setting, scores) and ``probabilities`` (K, n, C) of the training graphs."""
    payload = stage.payload
    store, data, train = context.store, payload["data"], payload["train"]
    task = read_task(payload["task"])
    quantifier: Quantifier = component(payload["quantifier"])
    quantifier.seed = derive(payload["seed"], "quantifier") % 2**31
    encoded = store.open(payload["encode"])
    embeddings = {name: value.numpy().astype(np.float64) for name, value in encoded.tensors("embeddings").items()}
    labels = {split: read_labels(store, data, split).numpy() for split in (train, *payload["validation"])}
    candidates, stacked = [], []
    snapshots = encoded.read_json("snapshots")
    for epoch in snapshots["epochs"]:
        for setting in quantifier.settings():
            matrix = embeddings[f"{epoch}/{train}"]
            fitted = quantifier.fit(matrix, labels[train], task.num_classes, **setting)
            on_train = fitted.predict(matrix) if fitted.training is None else fitted.training
            check(quantifier.name, on_train, len(matrix), task.num_classes)
            row: dict[str, Any] = {"epoch": epoch, "setting": setting, "flags": [*snapshots["flags"], *fitted.flags]}
            row["train_score"] = score_probabilities(on_train, labels[train], task).value
            row["scores"] = _validation_scores(fitted, embeddings, labels, epoch, payload)
            candidates.append(row)
            stacked.append(torch.from_numpy(np.ascontiguousarray(on_train, dtype=np.float32)))
    with store.create(stage) as draft:
        draft.write_json("candidates", candidates)
        draft.write_tensors("probabilities", {"probabilities": torch.stack(stacked)})


def _validation_scores(
    fitted: Fitted, embeddings: dict[str, Any], labels: dict[str, Any], epoch: int, payload: Any
) -> dict[str, float | None]:
    task = read_task(payload["task"])
    return {
        split: score_probabilities(fitted.predict(embeddings[f"{epoch}/{split}"]), labels[split], task).value
        for split in payload["validation"]
    }


def check(name: str, probabilities: Any, rows: int, classes: int) -> None:
    """Refuse what is not a table of class probabilities.

    Raises:
        ValueError: wrong shape, non-finite values, or rows that do not sum to one.
    """
    if probabilities.shape != (rows, classes):
        raise ValueError(f"quantifier '{name}' gave shape {probabilities.shape}, not {(rows, classes)}")
    if not np.isfinite(probabilities).all() or (probabilities < 0).any():
        raise ValueError(f"quantifier '{name}' gave values that are not probabilities")
    if not np.allclose(probabilities.sum(1), 1.0, atol=1e-6):
        raise ValueError(f"quantifier '{name}' gave rows that do not sum to one")
