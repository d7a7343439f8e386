"""One small cell of each method, encoder, quantifier and decorrelator gives what is recorded in ``golden/``.

A test that fails here says that users' numbers change. Where that is meant, write those records anew with
``BENCH_GOLDEN='ciga;table' pytest tests/integration/test_golden.py`` (rows, ``table``, or ``all``) and say why in the
changelog.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from integration_kit import HERE, Workshop
from torch import Tensor

from harness.plan.build import Plan
from harness.report import make_report, render
from harness.store import Stage, Store

GOLDEN = HERE / "golden"
CLOSE = 1e-4
SAME_ARITHMETIC = {
    "ATEN_CPU_CAPABILITY": "default",
    "MKL_CBWR": "COMPATIBLE",
    "ONEDNN_MAX_CPU_ISA": "SSE41",
    "OPENBLAS_CORETYPE": "Nehalem",
    "OMP_NUM_THREADS": "1",
}  # as chosen by torch (its own kernels, MKL, oneDNN) and by NumPy and SciPy, where they would use what a processor has
FIRST = 4  # graphs recorded of each split
STYLES = ("plain", "markdown", "latex")
WRITTEN = {
    "train": ("predictions", "checkpoints"),
    "encode": ("embeddings", "snapshots"),
    "quantify": ("probabilities", "candidates"),
}  # kind of stage -> its tensors, and what is kept beside them


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    """The golden suite, run once, with the arithmetic that all processors of a family share.

    Rounding must not differ: Adam's first steps are as long for a gradient that is rounding noise (a bias before batch
    normalisation) as for any other.
    """
    workshop = Workshop(tmp_path_factory.mktemp("golden"))
    workshop.command("run", str(GOLDEN / "suite.yaml"), "--engine", "inline", apart=True, **SAME_ARITHMETIC)
    return workshop


def test_embeddings_candidates_and_logits_are_those_recorded(ran: Workshop) -> None:
    session = ran.open(GOLDEN / "suite.yaml")
    stages = named(session.plan)
    moved = [name for name, stage in stages.items() if not kept(name, numbers(session.store, stage))]
    assert not moved, f"these moved: {moved}"
    assert {path.stem for path in GOLDEN.glob("rows/*.json")} == {file_name(name) for name in stages}


def named(plan: Plan) -> dict[str, Stage]:
    """The stages that are recorded, by a name that does not follow from a key."""
    rows = {cell.method: plan.stages[cell.train] for cell in plan.cells}
    encoders = {stage.payload.encoder["name"]: stage for stage in plan.stages.values() if stage.kind == "encode"}
    names = {stage.key: name for name, stage in encoders.items()}
    quantifiers = {
        f"{names[stage.payload.encode]} {stage.payload.quantifier['name']}": stage
        for stage in plan.stages.values()
        if stage.kind == "quantify"
    }
    return {**rows, **encoders, **quantifiers}


@pytest.mark.parametrize("style", STYLES)
def test_tables_are_those_recorded(ran: Workshop, style: str) -> None:
    results = ran.run_of("golden")
    text = render(make_report(results), style).replace(results.run, "RUN")
    path = GOLDEN / f"table.{style}.txt"
    assert remade("table", path, text) or path.read_text(encoding="utf-8") == text


def numbers(store: Store, stage: Stage) -> dict[str, Any]:
    """What a stage wrote for the first graphs of each split, with scores and checkpoints."""
    made = store.open(stage.key)
    table, extra = WRITTEN[stage.kind]
    values = {name: rounded(value[:FIRST]) for name, value in made.tensors(table).items()}
    return {table: values, extra: made.read_json(extra)}


def rounded(values: Tensor) -> Any:
    """Six digits of each value, in lists."""
    return np.vectorize(lambda value: float(f"{value:.6g}"))(values.numpy()).tolist()


def kept(row: str, found: dict[str, Any]) -> bool:
    path = GOLDEN / "rows" / f"{file_name(row)}.json"
    text = json.dumps(found, sort_keys=True) + "\n"
    return remade(row, path, text) or close(json.loads(path.read_text(encoding="utf-8")), json.loads(text))


def close(one: Any, other: Any) -> bool:
    """The same structure with numbers that are alike."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(close(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(close, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return one == pytest.approx(other, rel=CLOSE, abs=CLOSE)
    return bool(one == other)


def remade(name: str, path: Path, text: str) -> bool:
    """Write a record anew where the user asks for it."""
    asked = os.environ.get("BENCH_GOLDEN", "").split(";")
    if name not in asked and "all" not in asked:
        return False
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return True


def file_name(row: str) -> str:
    return re.sub(r"\W+", "-", row).strip("-")
