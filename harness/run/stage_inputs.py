"""What stored artifacts say they were made with, from the preimages of their keys. No torch.

A run's record names its stages; this reads back what a report or a comparison must know of them, also for runs that
were made before a report asked for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from harness.results.rows import MethodFacts
from harness.store.store import Store


def preimage(store: Store, key: str) -> Mapping[str, Any]:
    """What a key was made of; empty where the store does not hold its artifact."""
    meta = store.meta(key)
    return meta.preimage if meta is not None and isinstance(meta.preimage, Mapping) else {}


def dataset(store: Store, key: str) -> dict[str, Any]:
    """``component`` and ``values`` of :class:`harness.results.rows.DatasetFacts`; empty without built data."""
    made = preimage(store, key).get("dataset")
    return {"component": made["name"], "values": dict(made["params"])} if made else {}


def settings(store: Store, keys: Iterable[str], entry: MethodFacts) -> dict[str, Any]:
    """``settings`` of :class:`harness.results.rows.MethodFacts`, from the first training that the store holds."""
    made = next((found for key in keys if (found := preimage(store, key))), {})
    axes = {path for values in entry.configurations.values() for path in values}
    return {path: value for path, value in flat(made).items() if path not in axes}


def flat(made: Mapping[str, Any]) -> dict[str, Any]:
    """The network and training of a training's preimage, by the paths that a suite gives them under."""
    found = {f"{name}.{key}": value for name in ("train", "model") for key, value in made.get(name, {}).items()}
    backbone = made.get("backbone")
    if backbone:
        found["model.backbone"] = backbone["name"]
        found |= {f"model.{key}": value for key, value in backbone["params"].items()}
    return found
