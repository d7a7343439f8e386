"""What ``benchmarks/edits.py`` compares; ``test_changed_files.py`` has edits under a run."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

from edits import compare, stored

from harness.store import Failure, Stage, Store, digest


def test_what_an_edit_would_change_is_found(tmp_path: Path) -> None:
    """Another content, a key of no state and a stored failure are differences."""
    store = Store(tmp_path)
    for seed in (1, 2):
        preimage = {"seed": seed}
        with store.create(stage := Stage("train", digest(preimage), "place", preimage, title=f"train {seed}")) as draft:
            draft.write_json("info", {"value": seed})
    known = stored(store)
    first, second = known
    assert compare(store, known) == []
    store.record_failure(key := digest("lost"), Failure("failed", "why"), stage)
    (failure,) = [path for path in (tmp_path / "failures").rglob("*") if key in path.name]
    assert compare(store, {second: dict.fromkeys(known[second], "0")}) == [
        f"{first}: no state has this key",
        f"{second}: info.json differs",
        f"left over: {failure.relative_to(tmp_path)}",
    ]
