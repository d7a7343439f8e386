"""The live display prints what plugins and labels say as it stands."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any, cast

from rich.console import Console
from rich.progress import Progress

from harness.cli.progress import Screen


def test_a_failure_is_shown_as_it_was_said() -> None:
    failure = SimpleNamespace(status="failed", reason="method.py:100: [red] is no colour", remark="")
    stage = SimpleNamespace(key="k", title="train erm on 'a :100: [b]', seed 1")
    tally = SimpleNamespace(add=lambda _: None, counts={"failed": 1, "skipped": 0, "finished": 0, "cached": 0})
    tally.done, tally.total, tally.seconds_left = 1, 1, lambda: None
    console = Console(file=io.StringIO(), width=200, force_terminal=True, color_system=None)
    with Progress(console=console, transient=True) as progress:
        screen = Screen(cast(Any, tally), progress)
        screen.observe(cast(Any, SimpleNamespace(kind="failed", stage=stage, failure=failure)))
    assert f"✗ {stage.title}: failed: {failure.reason}" in cast(io.StringIO, console.file).getvalue()
