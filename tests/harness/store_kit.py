"""Stages and artifacts for the store's tests, and harm to files."""

from __future__ import annotations

from pathlib import Path

import torch

from harness.keys import digest
from harness.stage import Stage
from harness.store import Store


def stage(seed: int = 1, place: str = "train/two-piece/erm", **preimage: object) -> Stage:
    content = {"seed": seed, **preimage}
    return Stage(kind="train", key=digest(content), place=place, preimage=content, title=f"train ERM, seed {seed}")


def fill(store: Store, made: Stage, value: object = 1) -> Path:
    with store.create(made, provenance={"torch": "2"}) as draft:
        draft.write_json("info", {"value": value})
        draft.write_tensors("weights", {"w": torch.arange(4.0)})
    return store.artifact_folder(made.key)


def fresh(store: Store) -> Store:
    """The store as another process would see it."""
    return Store(store.root)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-3])


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
