"""The source digests of our components and the keys of shipped suites do not change unseen.

An edit of numerics makes their stages stale: a test that fails here says which. Where that is meant,
``BENCH_GOLDEN=keys pytest tests/harness/plan/test_shipped_keys.py`` writes the records anew.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from harness.plan import build_plan
from harness.plan.datasets import Declarations
from harness.registry.catalog import Catalog
from harness.registry.index import load_catalog
from harness.store import Store, digest
from harness.suite import find_suite, load_suite

RECORDS = Path(__file__).with_name("shipped_keys.json")
SUITES = ("quick", "ablation", "two-piece")


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load_catalog()


def test_source_digests_are_those_recorded(catalog: Catalog) -> None:
    digests = {f"{entry.kind}/{entry.name}": entry.digest[:16] for entry in catalog if entry.plugin == "built-in"}
    assert recorded("components", digests) == digests


@pytest.mark.parametrize("name", SUITES)
def test_keys_of_a_suite_are_those_recorded(name: str, catalog: Catalog, tmp_path: Path) -> None:
    facts = Declarations(catalog, None, Store(tmp_path))
    plan = build_plan(load_suite(find_suite(name), catalog, facts.declare), catalog, facts)
    keys: dict[str, list[str]] = {}
    for stage in plan.stages.values():
        keys.setdefault(stage.kind, []).append(stage.key)
    digests = {kind: f"{len(of_kind)} stages: {digest(of_kind)[:16]}" for kind, of_kind in keys.items()}
    assert recorded(name, digests) == digests


def recorded(name: str, value: Any) -> Any:
    records = json.loads(RECORDS.read_text(encoding="utf-8")) if RECORDS.exists() else {}
    if os.environ.get("BENCH_GOLDEN") == "keys":
        records[name] = value
        RECORDS.write_text(json.dumps(records, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return records.get(name)
