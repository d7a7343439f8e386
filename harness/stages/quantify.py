"""``quantify``: fit a quantifier on every snapshot of one encoder; keep every candidate with its scores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from harness.errors import UserError
from harness.randomness import derive
from harness.registry.returned import expect, expect_array, expect_json, expect_texts
from harness.stages.context import Context, component
from harness.stages.payloads import QuantifyPayload
from harness.stages.reading import read_labels, read_oracle
from harness.store import Stage, Store
from harness.training.bases import Fitted, Quantifier
from harness.training.metrics import score_probabilities


def body(stage: Stage, context: Context) -> None:
    """Write ``candidates`` (epoch, setting, scores) and ``probabilities`` (K, n, C) of the training graphs."""
    payload: QuantifyPayload = stage.payload
    store, data, train = context.store, payload.data, payload.train
    task = payload.task
    quantifier: Quantifier = component(payload.quantifier)
    quantifier.seed = derive(payload.seed, "quantifier") % 2**31
    encoded = store.open(payload.encode)
    labels = {split: read_labels(store, data, split).numpy() for split in (train, *payload.validation)}
    embeddings = encoded.tensors("embeddings")
    columns = {split: oracle_columns(store, payload, split) for split in labels} if payload.fields else {}
    candidates, stacked = [], []
    snapshots = encoded.read_json("snapshots")
    for epoch in snapshots["epochs"]:
        rows = columns or {split: embeddings[f"{epoch}/{split}"].numpy().astype(np.float64) for split in labels}
        for setting in settings(quantifier):
            fitted = fit(quantifier, rows[train], labels[train], task.num_classes, setting)
            on_train = fitted.predict(rows[train]) if fitted.training is None else fitted.training
            check(quantifier, on_train, len(labels[train]), task.num_classes)
            scores: dict[str, float | None] = {}
            for split in payload.validation:
                found = fitted.predict(rows[split])
                check(quantifier, found, len(labels[split]), task.num_classes)
                scores[split] = score_probabilities(found, labels[split], task).value
            candidates.append(
                {
                    "epoch": epoch,
                    "setting": setting,
                    "flags": [*snapshots["flags"], *fitted.flags],
                    "train_score": score_probabilities(on_train, labels[train], task).value,
                    "scores": scores,
                }
            )
            stacked.append(torch.from_numpy(np.ascontiguousarray(on_train, dtype=np.float32)))
    with store.create(stage) as draft:
        draft.write_json("candidates", candidates)
        draft.write_tensors("probabilities", {"probabilities": torch.stack(stacked)})


def oracle_columns(store: Store, payload: QuantifyPayload, split: str) -> NDArray[np.float64]:
    """Return (n, number of fields) values of the oracle fields that the quantifier declares, in order of their names.

    Raises:
        UserError: a field does not hold one number per graph.
    """
    found = read_oracle(store, payload.oracle, split, payload.fields)
    for name, values in found.items():
        if name.startswith(("node_", "edge_")) or values.ndim != 1:
            raise UserError(f"a quantifier reads oracle fields with one number per graph; '{name}' is none")
    return np.stack([values.numpy().astype(np.float64) for values in found.values()], axis=1)


def settings(quantifier: Quantifier) -> list[dict[str, Any]]:
    """Return the checked result of ``settings``."""
    found = quantifier.settings()
    listed = isinstance(found, (list, tuple)) and bool(found) and all(isinstance(item, dict) for item in found)
    expect(listed, quantifier, "settings", found, "a list of dicts, at least one")
    expect_json(quantifier, "settings", found)
    return list(found)


def fit(quantifier: Quantifier, embeddings: Any, labels: Any, classes: int, setting: Mapping[str, Any]) -> Fitted:
    """Return the checked result of ``fit``."""
    fitted = quantifier.fit(embeddings, labels, classes, **setting)
    expect(isinstance(fitted, Fitted), quantifier, "fit", fitted, "a Fitted")
    expect(callable(fitted.predict), quantifier, "fit, predict", fitted.predict, "a function")
    expect_texts(quantifier, "fit, flags", fitted.flags)
    return fitted


def check(quantifier: Quantifier, probabilities: Any, rows: int, classes: int) -> None:
    """Refuse a value that is not a table of class probabilities."""
    expect_array(quantifier, "fit, predict", probabilities, (rows, classes))
    proper = np.isfinite(probabilities).all() and not (probabilities < 0).any()
    proper = proper and np.allclose(probabilities.sum(1), 1.0, atol=1e-6)
    allowed = "probabilities: finite, not negative, the sum of each row one"
    expect(bool(proper), quantifier, "fit, predict", probabilities, allowed)
