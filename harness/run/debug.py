"""Run one cell in this process, where breakpoints work and exceptions come through as they are raised.

Nothing that is run here is stored: who is in a debugger may change any value.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Collection
from pathlib import Path

from harness.engine.devices import CPU
from harness.engine.process_state import one_thread, terminable
from harness.plan.status import needed
from harness.run.collect import ScoreRow, read_scores
from harness.run.find import OpenedCell
from harness.stages.context import Context, run_stage
from harness.store import STAGE_KINDS, Scratch

ALWAYS = ("train", "score")
KINDS = tuple(kind for kind in STAGE_KINDS if kind != "analyse")


def debug(
    opened: OpenedCell,
    say: Callable[[str], None],
    *,
    again: Collection[str] = ALWAYS,
    keep_upstream: bool = False,
    device: str = CPU,
) -> tuple[list[ScoreRow], list[ScoreRow] | None]:
    """Run what a cell needs, stage after stage, in this process.

    Args:
        opened: the cell.
        say: told which stage runs, and how long it took.
        again: kinds of stages that run although the store has them, and with them all that reads their output.
        keep_upstream: store stages before the training, as a run would; without it nothing is stored.
        device: where networks are trained, see :class:`harness.stages.context.Context`.

    Returns:
        the scores, and those that the store holds for the same cell, or None where it holds none.

    Raises:
        Exception: whatever a stage raises.
    """
    plan, store = opened.session.plan, opened.session.store
    with tempfile.TemporaryDirectory(prefix="bench-debug-") as folder, one_thread(), terminable():
        scratch = Scratch(store, Path(folder), _hidden(opened, again))
        data_dir, core_files = opened.session.data_dir, opened.session.catalog.core_files
        for stage in needed(plan, scratch, [opened.cell.score]):
            kept = keep_upstream and stage.kind not in ALWAYS
            say(f"running: {stage.title}")
            began = time.monotonic()
            run_stage(stage, Context(store if kept else scratch, data_dir, device, core_files))
            say(f"  ended after {time.monotonic() - began:.1f} s")
        return read_scores(scratch, opened.cell.score) or [], read_scores(store, opened.cell.score)


def _hidden(opened: OpenedCell, again: Collection[str]) -> set[str]:
    """Return the keys of the stages to run again: those of the given kinds, and those that read what they write."""
    plan = opened.session.plan
    ancestry = plan.ancestry(opened.cell.score)
    hidden: set[str] = set()
    for key, stage in plan.stages.items():  # inputs come first
        if key in ancestry and (stage.kind in again or hidden.intersection(stage.inputs)):
            hidden.update((key, *stage.outputs))
    return hidden
