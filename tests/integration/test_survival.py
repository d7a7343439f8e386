"""A bounded slice of ``benchmarks/faults.py``: one round of each kind that needs no start of worker processes."""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

from faults import KINDS, Field, Tally, one_round, table

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning"),
]
SLICE = ("kill-parent", "sigterm", "full", "gone", "damage", "two", "renames", "no-locks")


@pytest.fixture(scope="module")
def field(tmp_path_factory: pytest.TempPathFactory) -> Field:
    """The suite and what an undisturbed run leaves."""
    return Field(tmp_path_factory.mktemp("faults"))


@pytest.mark.parametrize("kind", SLICE)
def test_after_faults_all_is_as_if_nothing_had_happened(field: Field, kind: str) -> None:
    tally = Tally()
    found = one_round(random.Random(f"slice-{kind}"), field, field.folder / kind, kind, tally)
    assert found == []
    assert (tally.rounds, tally.runs, tally.differences) == (1, 1, [])
    assert tally.faults >= (kind not in ("full", "gone"))  # these may come after the last write
    assert f"| `{kind}` | 1 | {tally.faults} | 1 | 0 |" in table({kind: tally})


def test_what_a_fault_would_change_is_found(field: Field) -> None:
    """The campaign's own check: a wrong value, a leftover and damage are differences."""
    store = field.folder / "checked"
    assert field.check(store) == []
    (store / "tmp" / "left").touch()
    (store / "leases" / "left.lock").touch()
    field.reference = {**field.reference, "value nothing": "0.5"}
    try:
        found = field.check(store)
    finally:
        del field.reference["value nothing"]
    assert found == ["value nothing is missing"], "the next start sweeps the rest"


def test_every_kind_is_told_of() -> None:
    text = (ROOT / "benchmarks" / "faults.py").read_text(encoding="utf-8").split('"""')[1]
    assert [kind for kind in KINDS if f"``{kind}``" not in text] == []
