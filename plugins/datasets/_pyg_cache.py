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
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness import DataError, Lease, cache_root, file_digest, try_lock

_START = """
import json, pathlib, sys
sys.path[:] = json.loads(sys.argv[1])
from plugins.datasets._pyg_extract import end_with, main
end_with(int(sys.argv[3]))
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
    memo: dict[str, Any] = dict(answer.get("memo", {}))
    try:
        same = (
            all(content_digest(Path(path), memo) == digest for path, digest in answer["sources"].items())
            and all(content_digest(Path(path), memo) == digest for path, digest in answer["data"].items())
            and all(importlib.metadata.version(name) == version for name, version in answer["versions"].items())
            and answer["reader"] == _reader()
        )
    except (DataError, importlib.metadata.PackageNotFoundError):
        return None
    if same and memo != answer.get("memo"):
        _write(folder, {**answer, "memo": memo})
    return answer if same else None


def _write(folder: Path, answer: Mapping[str, Any]) -> None:
    (folder / "answer.tmp").write_text(json.dumps(answer), encoding="utf-8")
    (folder / "answer.tmp").replace(folder / "answer.json")


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
    answer["reader"] = _reader()
    _write(folder, answer)
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
