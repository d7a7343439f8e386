"""The statistics of a table cell: count, mean and sample standard deviation over seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum, sqrt

from harness.results.means import mean


@dataclass(frozen=True)
class Summary:
    """Values aligned with the suite's seeds, None where a seed has none."""

    values: tuple[float | None, ...]

    @property
    def present(self) -> list[float]:
        """The values that are there."""
        return [value for value in self.values if value is not None]

    @property
    def n(self) -> int:
        """How many values are there."""
        return len(self.present)

    @property
    def complete(self) -> bool:
        """Whether every seed has a value."""
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
    """The differences seed by seed; None where either side has no value."""
    return Summary(
        tuple(None if a is None or b is None else a - b for a, b in zip(values, reference, strict=True)),
    )
