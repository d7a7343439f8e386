"""``analyse``: one analysis looks at one trained cell."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from harness.analysis import Analysis
from harness.randomness import seeded
from harness.stage import Stage
from harness.stages.cell import TrainedCell
from harness.stages.context import Context, component


def body(stage: Stage, context: Context) -> None:
    """Write ``values`` and ``arrays``."""
    payload = stage.payload
    analysis: Analysis = component(payload["analysis"])
    cell = TrainedCell(context, payload, payload["fields"])
    with seeded(cell.seed, "analysis"):
        found = analysis.measure(cell)
    arrays = {name: value for name, value in found.items() if isinstance(value, np.ndarray)}
    values: dict[str, Any] = {name: value for name, value in found.items() if name not in arrays}
    with context.store.create(stage) as draft:
        draft.write_json("values", values)
        draft.write_tensors("arrays", {name: torch.from_numpy(np.array(value)) for name, value in arrays.items()})
