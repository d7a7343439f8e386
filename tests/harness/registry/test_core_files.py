"""The core's own code: a process computes with what was planned, or says which file is another."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness.errors import ChangedError
from harness.registry import core_files
from harness.registry.catalog import Catalog
from harness.registry.core_files import HARNESS, is_as_at_start, refuse_changed
from harness.registry.index import load_catalog
from harness.stages import run_stage
from harness.stages.context import Context
from harness.store import Stage, Store


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load_catalog()


def test_the_planned_rooms_are_those_of_this_process(catalog: Catalog) -> None:
    assert {"graphs/packed.py", "training/loop.py", "stages/prepare.py", "randomness.py"} <= set(catalog.core_files)
    refuse_changed(catalog.core_files)
    assert is_as_at_start(HARNESS / "randomness.py")
    assert not is_as_at_start(HARNESS / "cli" / "main.py"), "of what enters no digest nothing is known"


def test_a_stage_does_not_run_with_other_code_than_was_planned(catalog: Catalog, store: Store) -> None:
    planned = {**catalog.core_files, "training/loop.py": "0" * 64}
    with pytest.raises(ChangedError, match=re.escape(f"changed since it was planned: {HARNESS / 'training/loop.py'}")):
        run_stage(Stage("score", "1" * 64, "score", {}), Context(store, core_files=planned))


def test_a_file_that_was_written_after_it_may_have_been_loaded_is_told(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plan is of the file as it is now, this process may hold what it was: a notebook that goes on for days."""
    before = dict(core_files._AT_START)
    path = HARNESS / "nn" / "layers.py"
    monkeypatch.setattr(core_files, "_AT_START", {**before, path: (0, 0)})
    assert not is_as_at_start(path)
    with pytest.raises(ChangedError, match=f"changed since this process started.*{path}; start it again"):
        refuse_changed(catalog.core_files)


def test_a_room_that_is_gone_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core_files, "HARNESS", tmp_path)
    with pytest.raises(ChangedError, match="changed since it was planned"):
        refuse_changed({"nn/gone.py": "0" * 64})
