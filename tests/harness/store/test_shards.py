"""Looking for many keys at once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.store.keys import digest
from harness.store.shards import present


@pytest.mark.parametrize("count", [1, 40, 4000])
@pytest.mark.parametrize("suffix", ["", ".json"])
def test_exactly_what_is_there_is_found(tmp_path: Path, count: int, suffix: str) -> None:
    keys = [digest(number) for number in range(count)]
    there = keys[::3]
    for key in there:
        (tmp_path / key[:2]).mkdir(exist_ok=True)
        (tmp_path / key[:2] / f"{key}{suffix}").touch()
    assert present(tmp_path, keys, suffix) == set(there)
    assert present(tmp_path, [digest("other")], suffix) == set()


def test_a_folder_that_is_absent_holds_nothing(tmp_path: Path) -> None:
    keys = [digest(number) for number in range(9000)]
    assert present(tmp_path / "none", keys) == set()
    (tmp_path / "file").touch()
    assert present(tmp_path / "file", keys) == set()


def test_many_keys_cost_a_listing_of_each_subfolder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed: list[str] = []
    real = os.listdir
    monkeypatch.setattr(os, "listdir", lambda folder: listed.append(folder) or real(folder))
    monkeypatch.setattr(os.path, "lexists", lambda _: pytest.fail("a look at a single key"))
    keys = [f"{number % 4:02x}{number:062x}" for number in range(20_000)]
    present(tmp_path, keys)
    assert len(listed) == 4
