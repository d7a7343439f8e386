"""What to tell a user whose data files are missing: the command that fetches them, and which folder was looked in."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.data import Dataset


def command(verb: str, name: str, params: Mapping[str, Any]) -> str:
    """A ``bench data`` command line as the user would type it."""
    settings = (f"{key}={value if isinstance(value, str) else json.dumps(value)}" for key, value in params.items())
    return shlex.join(["bench", "data", verb, name, *(word for item in settings for word in ("--set", item))])


def advice(dataset: Dataset, params: Mapping[str, Any], root: Path | None, error: str) -> str:
    """Lines to put after a dataset's message: empty, or each with a line break before it."""
    if root is None:
        return ""
    lines = []
    missing = [item for item in dataset.downloads(root) if not (root / item.path).exists()]
    if missing:
        does = "fetches it" if all(item.url is not None for item in missing) else "tells how to get it"
        lines.append(f"`{command('fetch', dataset.name, params)}` {does}")
    if str(root) in error and "--data-dir" not in error:
        lines.append(f"the data folder is {root}; --data-dir FOLDER or BENCH_DATA name another")
    return "".join(f"\n{line}" for line in lines)
