"""The context of a stage's body: where the store and the data are, its components, and running it. No torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from harness.engine.devices import CPU, on_device
from harness.errors import ChangedError
from harness.registry.catalog import Entry
from harness.registry.core_files import refuse_changed
from harness.registry.discovery import load_one
from harness.registry.planned_code import KeptCode
from harness.store import STAGE_KINDS, Stage, Store, references


@dataclass(frozen=True)
class Context:
    """The surroundings of a stage body.

    Attributes:
        store: where inputs are read and the output is written.
        data_dir: the user's data folder, or None.
        device: where networks are trained: ``cpu``, ``cuda`` (the process's current one) or ``cuda:INDEX``.
        core_files: path below the core -> SHA-256 of each file of the planned code; nothing is refused without.
        run: the run whose folder keeps plugins' code as it was planned, or nothing.
    """

    store: Store
    data_dir: Path | None = None
    device: str = CPU
    core_files: Mapping[str, str] = field(default_factory=dict)
    run: str = ""


def load_planned(payload: Any, context: Context) -> None:
    """Load all components that a payload names, as they were when the suite was planned, before any of them works.

    Raises:
        ChangedError: the code of one, or of the core, has changed since.
    """
    refuse_changed(context.core_files)
    for ref in references(payload):
        try:
            component_class(ref)
        except ChangedError:
            if not context.run:
                raise
            load_one(_entry(ref), KeptCode.read(context.store.runs / context.run))


def component_class(ref: Mapping[str, Any]) -> type[Any]:
    """Import the class that a payload names.

    Raises:
        ChangedError: its code has changed since it was planned.
    """
    return load_one(_entry(ref))


def _entry(ref: Mapping[str, Any]) -> Entry:
    return Entry(digest="", **{name: value for name, value in ref.items() if name != "params"})


def component(ref: Mapping[str, Any]) -> Any:
    """Import and construct the component that a payload names, with its values."""
    return component_class(ref)(**ref["params"])


def body_of(stage: Stage) -> Callable[[Stage, Context], dict[str, Any] | None]:
    """Return the function that runs a stage and writes its artifact."""
    if stage.kind not in STAGE_KINDS:
        raise ValueError(f"no body for stages of kind '{stage.kind}'")
    body: Callable[[Stage, Context], dict[str, Any] | None] = import_module(f"harness.stages.{stage.kind}").body
    return body


def run_stage(stage: Stage, context: Context) -> dict[str, Any]:
    """Run one stage and write its artifact, on the context's device if the stage trains networks, else on the CPU.

    Args:
        stage: the stage.
        context: where the stage works.

    Returns:
        facts for the record and the progress display; ``placed`` says on which device, where it is not the CPU.

    Raises:
        ChangedError: code is no longer what it was when the stage was planned.
        Exception: whatever the stage raises.
    """
    load_planned(stage.payload, context)
    device = context.device if stage.trains else CPU
    with on_device(device) as facts:
        found = body_of(stage)(stage, replace(context, device=device)) or {}
    return {**found, "placed": facts} if facts else found
