"""The data folder: receipts of what was fetched, and advice on how to fetch what is missing."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from harness.data import Dataset
from harness.safe_io import write_text, writing
from harness.store import data_root, hash_file

HINT = " (--data-dir or BENCH_DATA name another data folder)"


def _receipt_path(root: Path, name: str) -> Path:
    return root / ".fetched" / f"{name.replace('/', '--')}.json"


def write_receipt(root: Path, name: str, url: str, sha256: str, files: Iterable[Path]) -> None:
    """Keep address, digest and time of a download, and the digests of its files, so that later damage is found."""
    receipt = {
        "url": url,
        "sha256": sha256,
        "fetched": datetime.now(UTC).isoformat(timespec="seconds"),
        "files": {path.relative_to(root).as_posix(): hash_file(path) for path in files},
    }
    path = _receipt_path(root, name)
    with writing(path, HINT):
        write_text(path, json.dumps(receipt, indent=1))


def fetched_digests(root: Path, name: str) -> dict[str, str]:
    """Return path below the data folder -> SHA-256 of a download's files; empty where it was put there by hand."""
    with suppress(OSError, ValueError, TypeError, KeyError):
        return dict(json.loads(_receipt_path(root, name).read_text(encoding="utf-8"))["files"])
    return {}


def command(verb: str, name: str, params: Mapping[str, Any], root: Path | None = None) -> str:
    """Return a ``bench data`` command line to be typed; ``root`` where it may not be the default folder."""
    settings = (f"{key}={value if isinstance(value, str) else json.dumps(value)}" for key, value in params.items())
    folder = [] if root is None or root == data_root() else ["--data-dir", str(root)]
    return shlex.join(["bench", "data", verb, name, *(word for item in settings for word in ("--set", item)), *folder])


def advised(dataset: Dataset, params: Mapping[str, Any], root: Path | None, error: str) -> str:
    """Add to a dataset's message, where files are missing, the command that fetches them and the data folder."""
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
