"""What to tell a user whose data files are missing: the command that fetches them, and which folder was looked in."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.data import Dataset
from harness.store.folders import data_root


def command(verb: str, name: str, params: Mapping[str, Any], root: Path | None = None) -> str:
    """A ``bench data`` command line as the user would type it; ``root`` where it may not be the default folder."""
    settings = (f"{key}={value if isinstance(value, str) else json.dumps(value)}" for key, value in params.items())
    folder = [] if root is None or root == data_root() else ["--data-dir", str(root)]
    return shlex.join(["bench", "data", verb, name, *(word for item in settings for word in ("--set", item)), *folder])


def advised(dataset: Dataset, params: Mapping[str, Any], root: Path | None, error: str) -> str:
    """A dataset's message and, where files are missing, the command after its first line and the folder last."""
    if root is None:
        return error
    first, *rest = error.splitlines() or [""]
    missing = [item for item in dataset.downloads(root) if not (root / item.path).exists()]
    if missing:
        does = "fetches it" if all(item.url is not None for item in missing) else "tells how to get it"
        rest.insert(0, f"`{command('fetch', dataset.name, params, root)}` {does}")
    if str(root) in error and "--data-dir" not in error:
        rest.append(f"the data folder is {root}; --data-dir FOLDER or BENCH_DATA name another")
    return "\n".join([first, *rest])
