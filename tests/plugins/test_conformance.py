"""Every component of this repository passes the conformance kit."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.component import BUILT_IN
from harness.registry.discovery import load_one
from harness.registry.index import load_catalog
from harness.testing import check_component

ENTRIES = [entry for entry in load_catalog() if entry.plugin == BUILT_IN]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: f"{entry.kind}/{entry.name}")
def test_conforms(entry):
    report = check_component(load_one(entry))
    assert report.passed, report.text()


def test_ogb_conforms(data_dir: Path):
    (entry,) = [entry for entry in ENTRIES if entry.name == "ogb"]
    report = check_component(load_one(entry), data_dir)
    assert report.passed, report.text()
    assert [outcome.check for outcome in report.with_status("skipped")] == ["hyperparameters_matter"]
