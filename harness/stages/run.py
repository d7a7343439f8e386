"""Dispatch from a stage's kind to its body."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import import_module
from typing import Any

from harness.engine.devices import CPU, on_device
from harness.stages.context import Context, load_planned
from harness.store import STAGE_KINDS, Stage


def body_of(stage: Stage) -> Callable[[Stage, Context], dict[str, Any] | None]:
    """Return the function that runs a stage and writes its artifact."""
    if stage.kind not in STAGE_KINDS:
        raise ValueError(f"no body for stages of kind '{stage.kind}'")
    body: Callable[[Stage, Context], dict[str, Any] | None] = import_module(f"harness.stages.{stage.kind}").body
    return body


def run_stage(stage: Stage, context: Context | Mapping[str, Any]) -> dict[str, Any]:
    """Run one stage and write its artifact, on the context's device if the stage trains networks, else on the CPU.

    Args:
        stage: the stage.
        context: where the stage works; as JSON in a worker.

    Returns:
        facts for the record and the progress display; ``placed`` says on which device, where it is not the CPU.

    Raises:
        ChangedError: code is no longer what it was when the stage was planned.
        Exception: whatever the stage raises.
    """
    if not isinstance(context, Context):
        context = Context.from_json(context)
    load_planned(stage.payload, context)
    device = context.device if stage.trains else CPU
    with on_device(device) as facts:
        found = body_of(stage)(stage, replace(context, device=device)) or {}
    return {**found, "placed": facts} if facts else found
