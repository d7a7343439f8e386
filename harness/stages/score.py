"""``score``: compare predictions with labels. Runs in the parent process, the only place that opens the sealed tier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.stages.context import Context
from harness.stages.payloads import ScorePayload
from harness.stages.reading_numpy import read_arrays, read_some
from harness.store import Stage
from harness.training.metrics import Score, score


def body(stage: Stage, context: Context) -> None:
    """Write ``scores``, a row per checkpoint rule and split."""
    payload: ScorePayload = stage.payload
    trained = context.store.open(payload.train)
    task = payload.task
    predictions = read_arrays(trained.path("predictions"))
    checkpoints = trained.read_json("checkpoints")
    flags = trained.read_json("info")["flags"]
    rows: list[dict[str, Any]] = []
    for split, role in payload.splits.items():
        tier = context.store.open(payload.sealed if role == "test" else payload.data)
        labels = read_some(tier.path(split), ["y"])["y"]  # the file has the graphs too
        for rule, checkpoint in checkpoints.items():
            found = score(predictions[f"{rule}/{split}"], labels, task)
            rows.append(
                {
                    "split": split,
                    "rule": rule,
                    "epoch": checkpoint["epoch"],
                    "metric": task.metric,
                    "value": found.value,
                    "status": found.status,
                    "reason": _remarks(found, flags),
                }
            )
    with context.store.create(stage) as draft:
        draft.write_json("scores", rows)


def _remarks(found: Score, flags: Sequence[str]) -> str:
    """Return why a value is undefined, or the notes on a defined one, those of the stages before included."""
    return "; ".join(filter(None, [found.reason, *flags])) if found.status == "ok" else found.reason
