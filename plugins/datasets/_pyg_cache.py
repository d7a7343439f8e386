"""Graphs of a PyG dataset, read once in a process of its own and kept until what they follow from changes."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, MutableMapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from harness import DataError, cache_root, file_digest

_START = """
import json, pathlib, sys
sys.path[:] = json.loads(sys.argv[1])
from plugins.datasets._pyg_extract import end_with, main
end_with(int(sys.argv[3]))
main(pathlib.Path(sys.argv[2]))
"""


@dataclass(frozen=True)
class Extract:
    """``summary`` of the graphs, and the ``file`` that holds them."""

    summary: Mapping[str, Any]
    file: Path


def extract(request: Mapping[str, Any], read_once: Callable[..., Any]) -> Extract:
    """The graphs that a request asks for; see :mod:`plugins.datasets._pyg_extract`.

    Args:
        request: the class, its arguments, and what of its graphs is wanted.
        read_once: :meth:`harness.Dataset.read_once`.

    Raises:
        DataError: the class cannot be found or made, or its graphs cannot be used.
    """
    found = read_once(request, partial(_holds, _memo_file(request)), partial(_read, request))
    return Extract(found.read_json("summary"), found.path("graphs"))


def _memo_file(request: Mapping[str, Any]) -> Path:
    """Where digests of the files that graphs follow from are remembered while size and times stay the same."""
    text = json.dumps(request, sort_keys=True)
    return cache_root() / "pyg" / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"


def _holds(memo_file: Path, known: Mapping[str, Any]) -> bool:
    """Return True if all that graphs follow from is as it was."""
    try:
        memo = json.loads(memo_file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        memo = {}
    before = dict(memo)
    try:
        return (
            all(content_digest(Path(path), memo) == digest for path, digest in known["code"].items())
            and all(content_digest(Path(path), memo) == digest for path, digest in known["data"].items())
            and all(importlib.metadata.version(name) == version for name, version in known["versions"].items())
            and bool(known["reader"] == _reader())
        )
    except (DataError, importlib.metadata.PackageNotFoundError):
        return False
    finally:
        if memo != before:
            _write(memo_file, memo)


def _write(path: Path, memo: Mapping[str, Any]) -> None:
    part = path.with_suffix(f".{os.getpid()}")
    with suppress(OSError):  # a memory only
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(json.dumps(memo), encoding="utf-8")
        part.replace(path)


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
    path = [str(Path(__file__).resolve().parents[2]), *filter(None, sys.path)]
    environment = {**os.environ, "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1"}
    ours, theirs = _life_line()
    command = [sys.executable, "-c", _START, json.dumps(path), str(folder / "request.json"), str(theirs)]
    try:
        done = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            pass_fds=() if theirs < 0 else (theirs,),
        )
    finally:
        for end in {ours, theirs} - {-1}:
            os.close(end)
    try:
        answer: dict[str, Any] = json.loads((folder / "answer.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        last = " / ".join(done.stderr.strip().splitlines()[-3:]) or "it printed nothing"
        raise DataError(f"{target}: the process that reads it ended with code {done.returncode}: {last}") from None
    if "error" in answer:
        raise DataError(str(answer["error"]))
    return answer


def _life_line() -> tuple[int, int]:
    """Both ends of a pipe: theirs reads its end when this process is gone, however it went. -1 twice on Windows."""
    if os.name != "posix":
        return -1, -1
    theirs, ours = os.pipe()
    return ours, theirs


def _reader() -> str:
    here = Path(__file__).resolve().parent
    return "".join(file_digest(here / name)[:16] for name in ("_pyg_extract.py", "_pyg_graphs.py"))


def content_digest(path: Path, memo: MutableMapping[str, Any] | None = None) -> str:
    """SHA-256 of what a file holds, or of the names and contents of all files below a folder.

    Args:
        path: file or folder.
        memo: see :func:`harness.file_digest`.

    Raises:
        DataError: it is not there, or cannot be read.
    """
    if not path.is_dir():
        return file_digest(path, memo)
    files = sorted(file for file in path.rglob("*") if file.is_file())
    told = [[file.relative_to(path).as_posix(), file_digest(file, memo)] for file in files]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()
