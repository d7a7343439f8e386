"""``analyse``: one analysis looks at one trained cell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from harness.analysis import Analysis
from harness.randomness import seeded
from harness.registry.returned import expect, expect_json
from harness.stages.cell import TrainedCell
from harness.stages.context import Context, component
from harness.stages.payloads import AnalysePayload
from harness.store import Stage


def body(stage: Stage, context: Context) -> None:
    """Write ``values`` and ``arrays``."""
    payload: AnalysePayload = stage.payload
    analysis: Analysis = component(payload.analysis)
    cell = TrainedCell(context, payload, payload.fields)
    with seeded(cell.seed, "analysis"):
        found = answered(analysis, cell)
    arrays = {name: value for name, value in found.items() if isinstance(value, np.ndarray)}
    values: dict[str, Any] = {name: value for name, value in found.items() if name not in arrays}
    with context.store.create(stage) as draft:
        draft.write_json("values", values)
        draft.write_tensors("arrays", {name: torch.from_numpy(np.array(value)) for name, value in arrays.items()})


def answered(analysis: Analysis, cell: TrainedCell) -> Mapping[str, Any]:
    """Return the checked result of ``measure``."""
    found = analysis.measure(cell)
    named = isinstance(found, Mapping) and all(isinstance(name, str) for name in found)
    expect(named, analysis, "measure", found, "a dict: name -> array, or JSON")
    for name, value in found.items():
        if isinstance(value, np.ndarray):
            numeric = value.dtype.kind in "biuf"
            expect(numeric, analysis, f"measure, '{name}'", value, "an array of numbers or of true and false")
        else:
            expect_json(analysis, f"measure, '{name}'", value)
    return found
