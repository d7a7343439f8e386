"""What cached stages were made with, compared with now: one line for each difference."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.plan import status
from harness.store import Stage, Store

NOW = {"python": "3.11.7", "torch": "2.13.0", "equad-bench": "0.2.0"}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def record(store: Store, *keys: str, device: str = "cpu", **versions: str) -> None:
    for key in keys:
        made = {"versions": {**NOW, **versions}, "device": device}
        store.record_run(Stage("train", key, "train/a", {}), {"seconds": 1.0, "provenance": made})


@pytest.fixture(autouse=True)
def versions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status, "versions", lambda: NOW)


def told(store: Store, *keys: str, device: str = "cpu", gone: str = "") -> list[str]:
    stages = {key: Stage("train" if key.startswith("t") else "quantify", key, "train/a", {}) for key in keys}
    for key in {*keys} - {gone}:
        store.artifact_folder(key).mkdir(parents=True, exist_ok=True)
    plan: Any = SimpleNamespace(stages=stages)
    return status.made_otherwise(plan, store, device)


def test_equal_versions_say_nothing(store: Store) -> None:
    assert told(store, "t1") == []
    record(store, "t1", "t2")
    assert told(store, "t1", "t2") == []


def test_stages_are_counted_by_what_differs(store: Store) -> None:
    record(store, "t1", "t2", "q1", torch="2.12.0")
    record(store, "t3")
    record(store, "t4", torch="2.12.0", python="3.12.0")
    assert told(store, "t1", "t2", "t3", "t4", "q1") == [
        "3 cached stages were made with torch 2.12.0 (now 2.13.0)",
        "1 cached stage was made with python 3.12.0 (now 3.11.7), torch 2.12.0 (now 2.13.0)",
    ]


def test_our_own_version_is_in_the_keys(store: Store) -> None:
    record(store, "t1", **{"equad-bench": "0.1.0"})
    assert told(store, "t1") == []


def test_another_device_matters_to_trainings(store: Store) -> None:
    record(store, "t1", "q1", device="NVIDIA H100")
    record(store, "t2")
    assert told(store, "t1", "t2", "q1") == ["1 cached stage was made on NVIDIA H100 (now the CPU)"]
    assert told(store, "t1", "t2", device="cuda:0") == ["1 cached stage was made on the CPU (now cuda:0)"]


def test_only_the_plans_stages_that_are_there_count(store: Store) -> None:
    record(store, "t1", "t2", "t3", torch="2.12.0")
    assert told(store, "t1", "t2", gone="t2") == ["1 cached stage was made with torch 2.12.0 (now 2.13.0)"]


def test_the_latest_execution_counts(store: Store) -> None:
    record(store, "t1", torch="2.12.0")
    record(store, "t1")
    assert told(store, "t1") == []
