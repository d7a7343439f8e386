"""Graphs of a PyG dataset, read once in a process of its own and kept until something that they follow from changes."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import DataError, Lease, cache_root, try_lock

_START = """
import json, pathlib, sys
sys.path[:] = json.loads(sys.argv[1])
from plugins.datasets._pyg_extract import main
main(pathlib.Path(sys.argv[2]))
"""


@dataclass(frozen=True)
class Extract:
    """``summary`` of the graphs, the ``file`` that holds them, and the ``files`` that they were read from."""

    summary: Mapping[str, Any]
    file: Path
    sources: tuple[Path, ...]
    data: tuple[Path, ...]


def extract(request: Mapping[str, Any]) -> Extract:
    """The graphs that a request asks for; see :mod:`plugins.datasets._pyg_extract`. One process at a time reads them.

    Raises:
        DataError: the class cannot be found or made, or its graphs cannot be used.
    """
    text = json.dumps(request, sort_keys=True)
    folder = cache_root() / "pyg" / hashlib.sha256(text.encode()).hexdigest()[:16]
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _lock(folder.with_suffix(".lock")):
        answer = _kept(folder)
        if answer is None:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            (folder / "request.json").write_text(text, encoding="utf-8")
            answer = _ask(folder, str(request["target"]))
    return Extract(
        answer["summary"],
        folder / "graphs.safetensors",
        tuple(map(Path, answer["sources"])),
        tuple(map(Path, answer["data"])),
    )


def _lock(path: Path) -> Lease:
    while True:
        lease = try_lock(path)
        if lease is not None:
            return lease
        time.sleep(0.1)


def _kept(folder: Path) -> dict[str, Any] | None:
    """The answer in a folder, if all that it follows from is as it was."""
    try:
        answer: dict[str, Any] = json.loads((folder / "answer.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if "error" in answer or not (folder / "graphs.safetensors").is_file():
        return None
    try:
        same = (
            all(file_digest(Path(path)) == digest for path, digest in answer["sources"].items())
            and all(file_mark(Path(path)) == mark for path, mark in answer["data"].items())
            and all(importlib.metadata.version(name) == version for name, version in answer["versions"].items())
            and answer["reader"] == _reader()
        )
    except (OSError, importlib.metadata.PackageNotFoundError):
        return None
    return answer if same else None


def _ask(folder: Path, target: str) -> dict[str, Any]:
    """Run the reader; what the class prints is shown only where it fails without an answer."""
    path = [str(Path(__file__).resolve().parents[2]), *filter(None, sys.path), str(Path.cwd())]
    # A class written before torch 2.6 reads what it has stored itself with plain torch.load.
    environment = {**os.environ, "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1"}
    command = [sys.executable, "-c", _START, json.dumps(path), str(folder / "request.json")]
    done = subprocess.run(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    try:
        answer: dict[str, Any] = json.loads((folder / "answer.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        last = " / ".join(done.stderr.strip().splitlines()[-3:]) or "it printed nothing"
        raise DataError(f"{target}: the process that reads it ended with code {done.returncode}: {last}") from None
    if "error" in answer:
        raise DataError(str(answer["error"]))
    answer["reader"] = _reader()
    (folder / "answer.json").write_text(json.dumps(answer), encoding="utf-8")
    return answer


def _reader() -> str:
    here = Path(__file__).resolve().parent
    return "".join(file_digest(here / name)[:16] for name in ("_pyg_extract.py", "_pyg_graphs.py"))


def file_digest(path: Path) -> str:
    """SHA-256 of a file's content.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def file_mark(path: Path) -> list[int]:
    """Size and time of a file, which change with its content.

    Raises:
        OSError: it is not there.
    """
    found = path.stat()
    return [found.st_size, found.st_mtime_ns]
