"""Trackers with one known bug each."""

import json
import random

from harness import Tracker


class SoundTracker(Tracker):
    """No bug: a line for each cell."""

    name = "sound"

    def start(self, run):
        self.stream = (run.folder / "cells.txt").open("w", encoding="utf-8")

    def cell(self, cell):
        self.stream.write(f"{cell.name} {cell.status}\n")

    def finish(self, table, status):
        self.stream.close()


class NeedsScores(SoundTracker):
    """Fails on a cell that failed."""

    name = "needs-scores"

    def cell(self, cell):
        self.stream.write(f"{max(cell.scores.values())}\n")


class NeedsFiniteNumbers(SoundTracker):
    name = "needs-finite-numbers"

    def cell(self, cell):
        json.dumps([dict(row) for row in cell.history], allow_nan=False)


class OpensLate(SoundTracker):
    """Opens its file with the first cell, and closes one that may not be there."""

    name = "opens-late"

    def start(self, run):
        self.folder = run.folder

    def cell(self, cell):
        if not hasattr(self, "stream"):
            self.stream = (self.folder / "cells.txt").open("w", encoding="utf-8")
        super().cell(cell)


class AddsToConfiguration(SoundTracker):
    name = "adds-to-configuration"

    def start(self, run):
        super().start(run)
        run.config["tracker"] = self.name


class DrawsName(SoundTracker):
    name = "draws-name"

    def start(self, run):
        super().start(run)
        self.label = random.random()
