"""Scores without the rounding of floating-point sums, so that equal ones compare as equal. Imports nothing heavy."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import fsum

_LARGEST = 10**7
_ROUNDING = 1e-13
"""More than sums and differences of a few scores, as fractions or in percent, are off by."""


def settled(value: float) -> float:
    """The number nearest to the ratio that a finite score is but for rounding; the score itself where it is none.

    Accuracies, areas under a curve and their means over seeds are ratios of whole numbers: they are told apart, and
    equal ones are equal to the bit, as long as the denominator is at most ten million.
    """
    ratio = float(Fraction(value).limit_denominator(_LARGEST))
    return ratio if abs(ratio - value) < _ROUNDING else value


def mean(values: Sequence[float]) -> float:
    """The mean of one or more scores: where two true means are equal, so are these."""
    return settled(fsum(values) / len(values))
