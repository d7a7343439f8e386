"""Dispatch from a stage's kind to its body."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from harness.stage import Stage
from harness.stages.context import Context

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
        facts for the progress display (may be empty).
    """
    return body_of(stage)(stage, Context.from_json(context)) or {}
