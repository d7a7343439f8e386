"""Keeping quantifiers: which are eligible, and which of equal ones."""

from __future__ import annotations

import torch

from harness import Task
from harness.training.candidates import Kept, keep_lowest

THREE = Task("multiclass", 3)


def kept(*scores: tuple[float, float], keep: int = 2, margin: float = 0.0) -> Kept:
    """Of candidates with these training and validation scores."""
    rows = [{"train_score": train, "scores": {"val": value}} for train, value in scores]
    tables = torch.full((len(rows), 4, 3), 1 / 3)
    return keep_lowest(tables, rows, "val", THREE, keep=keep, tau=0.1, weighting="average", min_train_margin=margin)


def test_the_lowest_are_kept_and_the_first_of_equal_ones() -> None:
    assert kept((1, 0.5), (1, 0.4), (1, 0.5), (1, 0.3), keep=3).chosen == (3, 1, 0)


def test_a_training_score_of_chance_plus_the_margin_is_enough() -> None:
    """1/3 + 0.4 is 22/30, but 0.7333333333333334 as a sum and 0.7333333333333333 as a quotient."""
    assert kept((22 / 30, 0.5), (21 / 30, 0.1), margin=0.4).chosen == (0,)
