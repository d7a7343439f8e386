"""The identity of a cell: plan, record, results, analyses and trackers name cells by it. No torch."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CellId:
    """One (dataset, method, configuration, seed) of a suite, by its labels.

    ``config_id`` is the short name of a method's configuration, ``-`` where there is only one.
    """

    dataset: str
    method: str
    config_id: str
    seed: int

    @property
    def coordinates(self) -> tuple[str, str, str, int]:
        """Dataset, method, configuration and seed, as a key of mappings."""
        return self.dataset, self.method, self.config_id, self.seed

    @property
    def name(self) -> str:
        """``method on dataset, seed 1``, with the configuration where there are several."""
        chosen = "" if self.config_id == "-" else f" ({self.config_id})"
        return f"{self.method}{chosen} on {self.dataset}, seed {self.seed}"
