"""The bundles: what the public code runs is ERM bit for bit, whatever lambda is; the paper's reading is not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from integration_kit import Workshop
from safetensors.numpy import load_file

SUITE = """\
bench: 1
name: bundles
plugins: [toy_plugin.py]
seeds: [1]
train: {epochs: 3}
datasets:
  Toy: {use: toy, classes: 3}
methods:
  ERM: {bundle: BUNDLE, baseline: erm}
  "lambda {strength}":
    bundle: BUNDLE
    encoder: {SMALL}
    matrix: {decorrelator.strength: [0.001, 100.0]}
"""
SMALL = {
    "equad/official-multi": "layers: 2, hidden: 8, snapshots: [1, 2, 3], batch_size: 16",
    "equad/paper": "pool: {layers: [2], hidden: [8]}, snapshots: [1, 2, 3], batch_size: 16",
}


def weights(workshop: Workshop, bundle: str) -> dict[str, dict[str, np.ndarray]]:
    """Row -> parameter -> value at the last epoch."""
    text = SUITE.replace("BUNDLE", bundle).replace("{SMALL}", "{" + SMALL[bundle] + "}")
    text = text.replace("}", "}")
    suite = workshop.write(text)
    outcome = workshop.run(suite)
    assert outcome.exit_code == 0, outcome.record.failures
    session = workshop.open(suite)
    cells = session.plan.cells
    return {cell.method: dict(load_file(Path(session.store.open(cell.train).path("weights-last")))) for cell in cells}


def same(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> bool:
    shared = set(one) & set(other)
    assert len(shared) > 5
    return all(np.array_equal(one[name], other[name]) for name in shared)


def test_official_multi_is_erm_whatever_lambda_is(workshop: Workshop) -> None:
    found = weights(workshop, "equad/official-multi")
    assert same(found["lambda 0.001"], found["ERM"])
    assert same(found["lambda 100"], found["ERM"])


def test_the_papers_reading_is_not_erm(workshop: Workshop) -> None:
    found = weights(workshop, "equad/paper")
    assert not same(found["lambda 0.001"], found["ERM"])
    assert not same(found["lambda 100"], found["lambda 0.001"])
