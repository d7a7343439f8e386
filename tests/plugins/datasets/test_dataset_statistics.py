"""The comparison with the published generators holds at a tenth of their size, and notices a wrong number."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

SCRIPT = Path(__file__).resolve().parents[3] / "benchmarks" / "dataset_statistics.py"


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("dataset_statistics", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


@pytest.fixture(scope="module")
def claims(script):
    return list(script.claims(0.1))


def test_every_published_statistic_is_within_four_standard_errors(claims):
    assert not [str(claim) for claim in claims if not claim.holds]


def test_every_set_and_split_is_compared(claims):
    for start in ("spmotif 0.33", "spmotif 0.40", "spmotif 0.60", "spmotif 0.90", "spmotif dir", "mspmotif 0.90"):
        for split in ("train", "val", "test"):
            assert any(claim.what.startswith(f"{start} {split}") for claim in claims)
    for setting in ("(0.8, 0.6)", "(0.8, 0.7)", "(0.8, 0.9)", "(0.7, 0.9)"):
        for split in ("train", "val", "test"):
            assert any(claim.what.startswith(f"two-piece {setting} {split}") for claim in claims)
    assert sum(claim.what.startswith("good-motif") for claim in claims) == 16


def test_a_wrong_mean_is_noticed(claims):
    nodes = next(claim for claim in claims if claim.what == "spmotif 0.90 train, y=2, nodes")
    assert nodes.holds
    assert not replace(nodes, reported="19.82").holds, "the mean at bias 0.60"


def test_rounding_of_what_was_reported_is_allowed_for(script):
    claim = script.Claim("x", "0.3", np.inf, np.full(10, 0.34))
    assert claim.difference == 0
    assert script.Claim("x", "0.30", np.inf, np.full(10, 0.34)).difference == pytest.approx(0.035)
