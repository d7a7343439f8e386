"""Trackers with one known bug each. Nothing heavy is imported at the top, as that is one of the rules."""

import json
import random
import subprocess
import sys
import threading
from pathlib import Path

from harness import Tracker, UserError


class SoundTracker(Tracker):
    """No bug: a line for each cell."""

    name = "sound"

    def start(self, run):
        self.stream = (run.folder / "cells.txt").open("w", encoding="utf-8")

    def cell(self, cell):
        self.stream.write(f"{cell.name} {cell.status}\n")

    def finish(self, table, status):
        self.stream.close()


class LeavesFileOpen(SoundTracker):
    name = "leaves-file-open"

    def finish(self, table, status):
        self.stream.flush()


class KeepsThread(SoundTracker):
    """A thread of its own that nobody ends, and that would keep the process alive."""

    name = "keeps-thread"

    def start(self, run):
        super().start(run)
        if not any(thread.name == "kept" for thread in threading.enumerate()):
            threading.Thread(target=RELEASE.wait, name="kept", daemon=False).start()


RELEASE = threading.Event()
"""Lets the thread above end, so that the tests do."""


class KeepsProcess(SoundTracker):
    """A helper process that nobody ends."""

    name = "keeps-process"

    def start(self, run):
        super().start(run)
        self.helper = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(30)"])


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


class NoHint(SoundTracker):
    """Lets the ImportError out."""

    name = "no-hint"

    def start(self, run):
        super().start(run)
        import packaging  # noqa: F401

    def cell(self, cell):
        Path(self.stream.name).exists()


class LongHint(SoundTracker):
    name = "long-hint"

    def start(self, run):
        try:
            import packaging  # noqa: F401
        except ImportError:
            raise UserError("it needs a package;\nread the manual") from None
        super().start(run)
