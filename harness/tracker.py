"""The base class of trackers: observers that report a run to another tool and can neither change nor fail it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from harness.component import Component
from harness.results.rows import CellId


@dataclass(frozen=True)
class TrackedRun:
    """A run that begins.

    Attributes:
        id, suite, protocol, seeds: which run.
        folder: the run folder; a tracker may write below it.
        config: the resolved suite, as plain data.
        provenance: machine, versions, command line.
    """

    id: str
    suite: str
    protocol: str
    seeds: tuple[int, ...]
    folder: Path
    config: Mapping[str, Any] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class TrackedStage:
    """An event of a stage.

    Attributes:
        event: ``started``, ``finished``, ``cached``, ``failed``, ``retried``, ``waiting`` or ``skipped``.
        kind, title: of the stage.
        seconds: since it started, where it has ended.
        reason: why it failed, in one line.
    """

    event: str
    kind: str
    title: str
    seconds: float | None = None
    reason: str = ""


@dataclass(frozen=True)
class TrackedCell(CellId):
    """A cell with its result, or the reason why it has none.

    Attributes:
        id: as the run's record names the cell.
        hyperparameters: the tuned values, by axis.
        history: a row per epoch: ``epoch``, the loss terms, validation scores.
        scores: ``metric/split/checkpoint rule`` -> value, a fraction.
        seconds: wall time of its training.
        cached: its result was there before the run.
        status, reason: ``ok``, or what went wrong.
    """

    id: str = ""
    hyperparameters: Mapping[str, Any] = field(default_factory=dict)
    history: Sequence[Mapping[str, Any]] = ()
    scores: Mapping[str, float] = field(default_factory=dict)
    seconds: float | None = None
    cached: bool = False
    status: str = "ok"
    reason: str = ""

    @property
    def numbers(self) -> list[tuple[int, dict[str, float]]]:
        """(epoch, name -> finite number) of each row of the history."""
        return [(int(row["epoch"]), _flat(row)) for row in self.history]


def _flat(row: Mapping[str, Any], prefix: str = "") -> dict[str, float]:
    found: dict[str, float] = {}
    for name, value in row.items():
        if isinstance(value, Mapping):
            found |= _flat(value, f"{prefix}{name}/")
        elif name == "epoch" or isinstance(value, bool):
            continue
        elif isinstance(value, (int, float)) and math.isfinite(value):
            found[f"{prefix}{name}"] = float(value)
    return found


class Tracker(Component):
    """Base class of trackers. Override what you need; import what you wrap inside :meth:`start`.

    All methods of one tracker run one after the other in a thread of its own, in the parent process. One that raises is
    told once and not called again; the run goes on.
    """

    kind: ClassVar[str] = "tracker"

    def start(self, run: TrackedRun) -> None:
        """Note the beginning of the run."""

    def stage(self, stage: TrackedStage) -> None:
        """Note an event of a stage."""

    def cell(self, cell: TrackedCell) -> None:
        """Note the result or failure of a cell. Each cell of the run comes once, cached ones at the end."""

    def finish(self, table: Sequence[Mapping[str, Any]], status: str) -> None:
        """Note the end of the run as ``finished``, ``failed`` or ``interrupted``.

        Args:
            table: the rows of the comparison table, as ``bench report --json`` has them.
            status: how it ended.
        """
