"""Run one cell in this process, where breakpoints work and exceptions come through as they are raised.

Nothing that is run here is stored: who is in a debugger may change any value.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from harness.engine.devices import CPU
from harness.engine.process_state import one_thread, terminable
from harness.plan.status import needed
from harness.run.collect import ScoreRow, read_scores
from harness.run.find import OpenedCell
from harness.stages.context import Context, run_stage
from harness.store import Scratch


def debug(
    opened: OpenedCell, say: Callable[[str], None], *, device: str = CPU
) -> tuple[list[ScoreRow], list[ScoreRow] | None]:
    """Run a cell's training and score, and what they need that is not stored, stage after stage, in this process.

    Args:
        opened: the cell.
        say: told which stage runs, and how long it took.
        device: where networks are trained, see :class:`harness.stages.context.Context`.

    Returns:
        the scores, and those that the store holds for the same cell, or None where it holds none.

    Raises:
        Exception: whatever a stage raises.
    """
    session, cell = opened.session, opened.cell
    with tempfile.TemporaryDirectory(prefix="bench-debug-") as folder, one_thread(), terminable():
        scratch = Scratch(session.store, Path(folder), {cell.train, cell.score})
        context = Context(scratch, session.data_dir, device, session.catalog.core_files)
        for stage in needed(session.plan, scratch, [cell.score]):
            say(f"running: {stage.title}")
            began = time.monotonic()
            run_stage(stage, context)
            say(f"  ended after {time.monotonic() - began:.1f} s")
        return read_scores(scratch, cell.score) or [], read_scores(session.store, cell.score)
