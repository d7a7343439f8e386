"""Sealed test sets: spies of every kind find nothing, and permuted test labels change no weight and no choice."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from integration_kit import HERE, TOY, Workshop
from safetensors.numpy import load_file

SUITE = """\
bench: 1
name: spy
plugins: [toy_plugin.py, spy_plugin.py]
seeds: [1]
model: {{backbone: {{use: spy-backbone, log: "{log}"}}, hidden: 4, layers: 1}}
train: {{epochs: 2, batch_size: 8}}
datasets:
  Toy: {{use: toy, classes: 3}}
methods:
  Spy: {{baseline: {{use: spy-baseline, log: "{log}"}}, envs: {{use: spy-environment, log: "{log}"}}}}
  Spies:
    encoder: {{use: spy-encoder, log: "{log}", snapshots: [1, 2]}}
    quantifier: {{use: spy-quantifier, log: "{log}"}}
    decorrelator: {{use: spy-decorrelator, log: "{log}", keep: 1}}
"""
SPIES = {"backbone", "environment", "encoder", "quantifier", "learner"}


def contains(row: list[float], sequence: np.ndarray) -> bool:
    """Whether a flat array holds a sequence, one item after the other."""
    found = np.asarray(row)
    if len(found) < len(sequence):
        return False
    windows = np.lib.stride_tricks.sliding_window_view(found, len(sequence))
    return bool((windows == sequence).all(1).any())


@pytest.fixture
def spied(workshop: Workshop) -> tuple[Workshop, list[tuple[str, list[list[float]]]]]:
    (workshop.folder / "spy_plugin.py").write_text((HERE / "spy_plugin.py").read_text(encoding="utf-8"))
    log = workshop.folder / "log.jsonl"
    outcome = workshop.run(workshop.write(SUITE.format(log=log), "spy.yaml"))
    assert outcome.exit_code == 0, outcome.record.failures
    return workshop, [tuple(json.loads(line)) for line in log.read_text(encoding="utf-8").splitlines()]


def truth(workshop: Workshop) -> dict[str, np.ndarray]:
    """What is hidden, read straight from the store."""
    session = workshop.open(workshop.folder / "spy.yaml")
    prepare = next(stage for stage in session.plan.stages.values() if stage.kind == "prepare")
    store = session.store
    oracle, sealed = (store.open(key) for key in prepare.outputs)
    opened = store.open(prepare.key)
    read = {
        "test y": load_file(sealed.path("test"))["y"],
        "test env": load_file(sealed.path("test"))["env"],
        "test base": load_file(sealed.path("test"))["base"],
        "train base": load_file(oracle.path("train"))["base"],
        "train node_gt": load_file(oracle.path("train"))["node_gt"],
        "val base": load_file(oracle.path("val"))["base"],
        "val y": load_file(opened.path("val"))["y"],
        "val env": load_file(opened.path("val"))["env"],
        "train y": load_file(opened.path("train"))["y"],
        "train env": load_file(opened.path("train"))["env"],
    }
    assert "y" not in load_file(opened.path("test"))
    assert "env" not in load_file(opened.path("test"))
    return {name: np.asarray(value, dtype=float) for name, value in read.items()}


def test_spies_find_no_sealed_or_oracle_field_and_encoders_no_label(spied) -> None:
    workshop, notes = spied
    assert {who for who, _ in notes} >= SPIES
    hidden = truth(workshop)
    never = [name for name in hidden if name.startswith("test") or "base" in name or "node_gt" in name]
    per_spy = {who: [*never, "val y", "val env"] for who in (*SPIES, "backbone, training")}
    per_spy["encoder"] = list(hidden)
    per_spy["quantifier"] = [*never, "val y", "val env", "train env"]
    for who, rows in notes:
        for row in rows:
            for name in per_spy[who]:
                assert not contains(row, hidden[name]), f"{who} can reach {name}"


def test_the_spies_would_find_a_label_that_is_there(spied) -> None:
    workshop, notes = spied
    hidden = truth(workshop)
    for who, name in (("environment", "train y"), ("quantifier", "train y"), ("learner", "train y")):
        assert any(contains(row, hidden[name]) for other, rows in notes if other == who for row in rows)


def test_permuting_the_test_labels_changes_no_weight_and_no_choice(workshop: Workshop) -> None:
    suite = TOY.replace("{use: toy}", "{use: toy, permute_test: SEED}").replace(
        "{baseline: irm, ", "{baseline: {use: irm, tune: {penalty: [0.1, 10]}}, "
    )
    runs = [workshop.run(workshop.write(suite.replace("SEED", str(seed)), f"{seed}.yaml")) for seed in (1, 2)]
    trained = [_artifacts(workshop, seed) for seed in (1, 2)]
    assert [title for title, _ in trained[0]] == [title for title, _ in trained[1]]
    assert all(a == b for (_, a), (_, b) in zip(*trained, strict=True))
    chosen = [
        {(r.method, r.config_id, r.seed, r.split, r.checkpoint) for r in run.results.rows if r.selected} for run in runs
    ]
    assert chosen[0] == chosen[1]
    tests = [[r.value for r in run.results.rows if r.split == "test"] for run in runs]
    assert tests[0] != tests[1]


def _artifacts(workshop: Workshop, seed: int) -> list[tuple[str, dict[str, bytes]]]:
    """Title and the bytes of every file of each artifact between preparing and scoring."""
    session = workshop.open(workshop.folder / f"{seed}.yaml")
    found = []
    for stage in session.plan.stages.values():
        if stage.kind not in ("prepare", "score"):
            artifact = session.store.open(stage.key)
            files = {name: Path(artifact.path(name)).read_bytes() for name in artifact.meta.files}
            found.append((stage.title, files))
    return found
