"""Stages and artifacts for the store's tests, and harm to files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from harness.results.rows import RunResults
from harness.results.run_record import CellRecord, RunRecord
from harness.store import Stage, Store, digest
from harness.store.artifact import META
from harness.store.exchange import RUN_FILES
from harness.store.maintenance import listing


def stage(seed: int = 1, place: str = "train/two-piece/erm", **preimage: object) -> Stage:
    content = {"seed": seed, **preimage}
    return Stage(kind="train", key=digest(content), place=place, preimage=content, title=f"train ERM, seed {seed}")


def fill(store: Store, made: Stage, value: object = 1) -> Path:
    with store.create(made) as draft:
        draft.write_json("info", {"value": value})
        draft.write_tensors("weights", {"w": torch.arange(4.0)})
    return store.artifact_folder(made.key)


def rewrite(folder: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """Change the description of an artifact as somebody could who knows how its digest is made."""
    data = json.loads((folder / META).read_text(encoding="utf-8"))
    data.pop("digest")
    change(data)
    (folder / META).write_text(json.dumps({**data, "digest": digest(data)}), encoding="utf-8")
    return folder


def fresh(store: Store) -> Store:
    """The store as another process would see it."""
    return Store(store.root)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-3])


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def titles(store: Store) -> list[str]:
    return sorted(info.title.rsplit(" ", 1)[-1] for info in listing(fresh(store)))


def use(store: Store, made: Stage, second: int) -> None:
    """Set when an artifact was last opened."""
    os.utime(store.artifact_folder(made.key), (second, second))


def record_run(store: Store, made: Sequence[Stage], name: str = "20260101-000000-toy-0000") -> str:
    """A run folder that says it is made of these stages."""
    cells = tuple(
        CellRecord("Toy", "ERM", "-", 1, "id", {}, item.key, item.key, {item.key: item.title}) for item in made
    )
    results = RunResults(
        suite="toy", run=name, protocol="equad", seeds=(1,), datasets=(), methods=(), entries=(), rows=()
    )
    folder = store.runs / name
    folder.mkdir(parents=True)
    RunRecord(name, "toy.yaml", results, cells, {}, "").save(folder)
    for other in RUN_FILES[:-1]:
        (folder / other).write_text("{}")
    return name
