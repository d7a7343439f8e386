"""A table of cells as they are done, for spreadsheets."""

import csv
from collections.abc import Mapping, Sequence
from typing import Any

from harness import Register, TrackedCell, TrackedRun, Tracker, hookimpl, hparam


class NewComponent(Tracker):
    """Write a CSV file into the run folder: a line for each score of each cell.

    A tracker tells another tool of a run. It changes no number, and one that fails is
    told once and left behind. Say in this docstring what it writes and what it needs.
    """

    name = "new-component"

    file: str = hparam("cells.csv", help="name of the file in the run folder")

    def start(self, run: TrackedRun) -> None:
        """The run begins. Import here what the tracker wraps."""
        path = run.folder / self.file
        self.stream = path.open("w", newline="", encoding="utf-8", buffering=1)
        self.writer = csv.writer(self.stream)
        self.writer.writerow(["dataset", "method", "seed", "status", "score", "value"])

    def cell(self, cell: TrackedCell) -> None:
        """A cell has a result, or has failed; cached ones come too."""
        about = (cell.dataset, cell.method, cell.seed, cell.status)
        for score in cell.scores.items() or [("", "")]:
            self.writer.writerow([*about, *score])

    def finish(self, table: Sequence[Mapping[str, Any]], status: str) -> None:
        """The run ends; `table` holds the rows of the comparison table."""
        del table, status
        self.stream.close()


@hookimpl
def bench_register(register: Register) -> None:
    register(NewComponent)
