"""Graphs that break careless code go through every shipped method, or are refused by name."""

from __future__ import annotations

import math
from itertools import cycle
from pathlib import Path

import pytest
from integration_kit import HERE, Workshop

from harness.registry.index import load_catalog

HEAD = """\
bench: 1
name: hard
plugins: [hard_plugin.py]
seeds: [1]
model: {hidden: 8, layers: 2}
train: {epochs: 2, batch_size: 8}
datasets:
  Hard: {use: hard}
methods:
"""
ENCODERS = {"mvgrl", "graphcl", "infograph", "dgi", "pygcl"}
QUANTIFIERS = {"svm": "{use: svm, C: [1.0]}", "mlp": "{use: mlp, epochs: 2}"}
DECORRELATORS = {"eqn7", "reweighted-erm"}


def pipelines() -> dict[str, str]:
    """A method of each pair of encoder and quantifier, with the decorrelators in turn."""
    rows, decorrelators = {}, cycle(sorted(DECORRELATORS))
    for encoder in sorted(ENCODERS):
        first = f"{{use: {encoder}, layers: 2, hidden: 8, snapshots: [1, 2], batch_size: 8}}"
        for name, quantifier in QUANTIFIERS.items():
            last = f"{{use: {next(decorrelators)}, keep: 2}}"
            rows[f"{encoder} {name}"] = f"{{encoder: {first}, quantifier: {quantifier}, decorrelator: {last}}}"
        next(decorrelators)  # so that each comes after each quantifier
    return rows


BASELINES = {
    "erm": "{baseline: erm}",
    "irm": "{baseline: irm}",
    "irm, base": "{baseline: irm, envs: base}",
    "irm, batch": "{baseline: irm, envs: random-batch(2)}",
    "irm, cross2": "{baseline: {use: irm, form: cross2}, envs: random(2)}",
    "ciga 1": "{baseline: ciga}",
    "ciga 2": "{baseline: {use: ciga, variant: v2}}",
    "balanced": "{encoder: {use: dgi, snapshots: [1]}, quantifier: oracle, decorrelator: balanced-sampler}",
    "oracle votes": "{encoder: {use: dgi, snapshots: [1]}, quantifier: oracle, decorrelator: reweighted-erm}",
    "gcn": "{baseline: erm, model: {backbone: gcn}}",
    "mean": "{baseline: erm, model: {readout: mean}}",
    "max": "{baseline: erm, model: {readout: max}}",
    "leconv": "{baseline: erm, model: {backbone: leconv}}",
    "gala, subgraph": "{baseline: {use: gala, assistant: subgraph, environment: kmeans, warmup_epochs: 0}}",
    "gil, mlp": "{baseline: {use: gil, scorer: mlp, penalty_params: all}}",
    "disc, residual masks": "{baseline: {use: disc, masker: residual}}",
    "gsat, node": "{baseline: {use: gsat, attention: node}}",
    "dir, leconv": "{baseline: {use: dir, generator: leconv, update: epoch}}",
}
ENVIRONMENTS = ("random(2)", "random-batch(2)", "base", "domain", "kmeans(2)", "size(2)", "eiil", "moleood")


def every_baseline() -> dict[str, str]:
    """Each shipped baseline at its defaults, and one that needs environments on each kind of them."""
    rows = {}
    for entry in load_catalog(()).of_kind("baseline"):
        asks = "environments" in entry.traits["needs"] and not entry.traits["default_environment"]
        rows[entry.name] = f"{{baseline: {entry.name}{', envs: random(2)' if asks else ''}}}"
    rows |= {f"vrex on {name}": f"{{baseline: vrex, envs: {name}}}" for name in ENVIRONMENTS}
    return rows


@pytest.fixture
def hard(workshop: Workshop) -> Workshop:
    """A workshop with the dataset of hard graphs."""
    Path(workshop.folder / "hard_plugin.py").write_bytes((HERE / "hard_plugin.py").read_bytes())
    return workshop


def run(hard: Workshop, methods: dict[str, str], head: str = HEAD):
    text = head + "".join(f"  '{name}': {value}\n" for name, value in methods.items())
    return hard.run(hard.write(text))


def test_the_rows_cover_every_shipped_component() -> None:
    catalog = load_catalog(())
    assert {entry.name for entry in catalog if entry.kind == "encoder"} == ENCODERS
    environments = {entry.name for entry in catalog if entry.kind == "environment"} - {"scaffold"}
    assert {name.split("(")[0] for name in ENVIRONMENTS} == environments
    assert {entry.name for entry in catalog if entry.kind == "quantifier"} == {*QUANTIFIERS, "oracle"}
    assert {entry.name for entry in catalog if entry.kind == "decorrelator"} == {*DECORRELATORS, "balanced-sampler"}


@pytest.mark.parametrize("methods", [BASELINES, every_baseline(), pipelines()], ids=["forms", "baselines", "pipelines"])
def test_hard_graphs_go_through_every_method(hard: Workshop, methods: dict[str, str]) -> None:
    outcome = run(hard, methods)
    assert {failure.reason for failure in outcome.record.failures.values()} == set()
    rows = outcome.results.rows
    assert {row.method for row in rows} == set(methods)
    assert {row.status for row in rows} == {"ok"}
    calibrated = {
        row.method for row in rows if row.reason == "calibration folds reduced to 3: a class has 3 training graphs"
    }
    assert calibrated == {row.method for row in rows if row.reason} == {name for name in methods if name in pipelines()}
    assert all(row.value is not None and math.isfinite(row.value) for row in rows)


def test_a_training_split_of_one_graph_is_refused_by_name(hard: Workshop) -> None:
    outcome = run(hard, pipelines(), HEAD.replace("{use: hard}", "{use: hard, graphs: 1}"))
    assert outcome.exit_code == 1
    assert {row.status for row in outcome.results.rows} == {"skipped"}
    for name in ENCODERS:
        reasons = {row.reason for row in outcome.results.rows if row.method.startswith(name)}
        assert all(name in reason and "found 1" in reason and "Hard" in reason for reason in reasons), reasons
