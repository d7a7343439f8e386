"""Keeping quantifiers: the lowest, and which of equal ones."""

from __future__ import annotations

import torch

from harness.training.candidates import Kept, keep_lowest


def kept(*scores: tuple[float, float], keep: int = 2) -> Kept:
    """Of candidates with these training and validation scores."""
    rows = [{"train_score": train, "scores": {"val": value}} for train, value in scores]
    tables = torch.full((len(rows), 4, 3), 1 / 3)
    return keep_lowest(tables, rows, "val", keep=keep, tau=0.1, weighting="average")


def test_the_lowest_are_kept_and_the_first_of_equal_ones() -> None:
    assert kept((1, 0.5), (1, 0.4), (1, 0.5), (1, 0.3), keep=3).chosen == (3, 1, 0)
