"""A bounded slice of ``benchmarks/faults.py``: one round of each kind that needs no start of worker processes."""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

from faults import Field, Tally, one_round, table

from harness.store import Store
from harness.store.maintenance import listing

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning"),
]
LATE = ("full", "gone", "kill-parent", "sigterm")
"""Kinds that may come after the run's last write, or its end."""
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
    assert tally.faults >= (kind not in LATE)
    assert f"| `{kind}` | 1 | {tally.faults} | 1 | 0 |" in table({kind: tally})


def test_what_a_fault_would_change_is_found(field: Field) -> None:
    """The campaign's own check: a wrong value, a missing one, a held lock and a flipped bit are differences."""
    made = field.folder / "checked"
    assert field.check(made) == []
    store, known = Store(made), dict(field.reference)
    value = next(name for name in known if name.startswith("value"))
    trained = next(info for info in listing(store) if info.kind == "train")
    weights = next(store.artifact_folder(trained.key).glob("*.safetensors"))
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    lease = store.try_lease("left")
    assert lease is not None
    field.reference |= {value: "0.5", "value nothing": "0.5"}
    try:
        with lease:
            found = field.check(made)
    finally:
        field.reference = known
    assert found == [
        f"{value} differs",
        "value nothing is missing",
        f"verify: {trained.key[:12]}: the artifact of '{trained.title}' is damaged "
        f"({weights.name}: its checksum differs)",
        "left over: leases/left.lock",
    ]
