"""Graphs of a PyG dataset, read once in a process of its own and kept until what they follow from changes."""

from __future__ import annotations

import importlib.metadata
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from harness import DataError, file_digest
from plugins.datasets._child import command
from plugins.datasets._pyg_extract import content_digest


@dataclass(frozen=True)
class Extract:
    """``summary`` of the graphs, and the ``file`` that holds them."""

    summary: Mapping[str, Any]
    file: Path


def extract(request: Mapping[str, Any], read_once: Callable[..., Any]) -> Extract:
    """The graphs that a request asks for; see :mod:`plugins.datasets._pyg_extract`."""
    found = read_once(request, _unchanged, partial(_read, request))
    return Extract(found.read_json("summary"), found.path("graphs"))


def _unchanged(known: Mapping[str, Any]) -> bool:
    """Return True if all that graphs follow from is as it was."""
    try:
        return (
            all(content_digest(Path(path)) == digest for path, digest in {**known["code"], **known["data"]}.items())
            and all(importlib.metadata.version(name) == version for name, version in known["versions"].items())
            and bool(known["reader"] == _reader())
        )
    except (DataError, importlib.metadata.PackageNotFoundError):
        return False


def _read(request: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Write the graphs and their summary into a folder; returns what they follow from."""
    work = folder / "work"
    work.mkdir()
    (work / "request.json").write_text(json.dumps(request), encoding="utf-8")
    answer = _ask(work, str(request["target"]))
    (work / "graphs.safetensors").rename(folder / "graphs.safetensors")
    shutil.rmtree(work)
    (folder / "summary.json").write_text(json.dumps(answer.pop("summary"), allow_nan=False), encoding="utf-8")
    return {**answer, "reader": _reader()}


def _ask(folder: Path, target: str) -> dict[str, Any]:
    """Run the reader; what the class prints is shown only where it fails without an answer.

    ``torch.load`` is told to take any pickle, since a class written before torch 2.6 reads what it has stored itself
    without saying so. A pickle runs code: whoever can write the class's raw or processed files can run code as you. It
    holds in the reader's process alone, which runs the class's own code anyway.
    """
    call = "from plugins.datasets._pyg_extract import main; main(sys.argv[1])"
    done = subprocess.run(
        command(call, str(folder / "request.json")),
        env={**os.environ, "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1"},
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
    return answer


def _reader() -> str:
    here = Path(__file__).resolve().parent
    return "".join(file_digest(here / name)[:16] for name in ("_pyg_extract.py", "_pyg_graphs.py"))
