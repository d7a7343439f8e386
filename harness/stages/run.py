"""Dispatch from a stage's kind to its body."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import import_module
from typing import Any

from harness.engine.devices import CPU, on_device
from harness.stages.context import Context, load_planned
from harness.store.stage import Stage

BODIES = ("prepare", "encode", "quantify", "annotate", "train", "score", "analyse")


def body_of(stage: Stage) -> Callable[[Stage, Context], dict[str, Any] | None]:
    """The function that runs a stage and writes its artifact."""
    if stage.kind not in BODIES:
        raise ValueError(f"no body for stages of kind '{stage.kind}'")
    body: Callable[[Stage, Context], dict[str, Any] | None] = import_module(f"harness.stages.{stage.kind}").body
    return body


def run(stage: Stage, context: Mapping[str, Any]) -> dict[str, Any]:
    """Run one stage and write its artifact.

    Returns:
        facts for the record and the progress display; ``placed`` says on which device, where it is not the CPU.
    """
    return run_placed(stage, Context.from_json(context))


def run_placed(stage: Stage, context: Context) -> dict[str, Any]:
    """Run a stage on the context's device if it trains networks, else on the CPU; see :func:`run`.

    Raises:
        ChangedError: code is no longer what it was when the stage was planned.
        Exception: whatever the stage raises.
    """
    load_planned(stage.payload, context)
    device = context.device if stage.trains else CPU
    with on_device(device) as facts:
        found = body_of(stage)(stage, replace(context, device=device)) or {}
    return {**found, "placed": facts} if facts else found
