"""What every stage body is handed besides the stage: where things are, and how to make components. No torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.catalog import Entry
from harness.devices import CPU
from harness.registry import load_one
from harness.store import Store


@dataclass(frozen=True)
class Context:
    """Where a stage body works.

    Attributes:
        store: where inputs are read and the output is written.
        data_dir: the user's data folder, or None.
        device: where networks are trained: ``cpu``, ``cuda`` (the process's current one) or ``cuda:INDEX``.
    """

    store: Store
    data_dir: Path | None = None
    device: str = CPU

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Context:
        """The inverse of :meth:`to_json`; opens the store."""
        folder = data.get("data_dir")
        return cls(Store(Path(data["store"])), None if folder is None else Path(folder), data.get("device", CPU))

    def to_json(self) -> dict[str, Any]:
        """A plain mapping for a worker."""
        folder = None if self.data_dir is None else str(self.data_dir)
        return {"store": str(self.store.root), "data_dir": folder, "device": self.device}


def component_class(ref: Mapping[str, Any]) -> type[Any]:
    """Import the class that a payload names."""
    place = {name: ref[name] for name in ("kind", "name", "module", "qualname", "file", "plugin")}
    return load_one(Entry(digest="", **place))


def component(ref: Mapping[str, Any]) -> Any:
    """Import and construct the component that a payload names, with its values."""
    return component_class(ref)(**ref["params"])
