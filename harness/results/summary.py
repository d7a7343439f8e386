"""Means and spreads over seeds, without the rounding of floating-point sums. Imports nothing heavy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import fsum, sqrt

_LARGEST = 10**7
_ROUNDING = 1e-13
"""Upper bound of the rounding error of sums and differences of a few scores, as fractions or in percent."""


def settled(value: float) -> float:
    """Round a finite score to the ratio of whole numbers that it stands for; return other scores unchanged.

    Accuracies, areas under a curve and their means over seeds are ratios of whole numbers: they are told apart, and
    equal ones are equal to the bit, as long as the denominator is at most ten million.
    """
    ratio = float(Fraction(value).limit_denominator(_LARGEST))
    return ratio if abs(ratio - value) < _ROUNDING else value


def mean(values: Sequence[float]) -> float:
    """Return the mean of one or more scores; equal true means give equal results."""
    return settled(fsum(values) / len(values))


@dataclass(frozen=True)
class Summary:
    """Values aligned with the suite's seeds, None for a seed without a value."""

    values: tuple[float | None, ...]

    @property
    def present(self) -> list[float]:
        """The values that are not None."""
        return [value for value in self.values if value is not None]

    @property
    def n(self) -> int:
        """The number of present values."""
        return len(self.present)

    @property
    def complete(self) -> bool:
        """True if every seed has a value."""
        return bool(self.values) and self.n == len(self.values)

    @property
    def mean(self) -> float | None:
        """The mean, or None without values."""
        return mean(self.present) if self.n else None

    @property
    def spread(self) -> float | None:
        """The sample standard deviation (n - 1 in the denominator); None for fewer than two values."""
        mean = self.mean
        if mean is None or self.n < 2:
            return None
        return sqrt(fsum((value - mean) ** 2 for value in self.present) / (self.n - 1))


def paired_difference(values: Sequence[float | None], reference: Sequence[float | None]) -> Summary:
    """Subtract seed by seed; None where a side has no value."""
    pairs = zip(values, reference, strict=True)
    return Summary(tuple(None if a is None or b is None else a - b for a, b in pairs))
