"""What of components and settings enters a key, reaches a worker and is told to people. No torch."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from harness.hparams import effective
from harness.registry.catalog import Entry
from harness.suite.spec import ComponentSpec, TrainSettings

_SILENT_DEFAULTS = (
    *("optimizer", "lr_drop_epoch", "lr_drop_factor"),
    *("groups_per_batch", "drop_last", "max_batch_nodes", "average_over"),
)
"""Training settings that leave no trace in a key at their default."""


def identity(entry: Entry, spec: ComponentSpec) -> dict[str, Any]:
    """What of a component enters a key: kind, name, source and the values that differ from the defaults."""
    return {"kind": entry.kind, "name": entry.name, "source": entry.digest, "params": _placeless(entry, spec.params)}


def _placeless(entry: Entry, params: Mapping[str, Any]) -> dict[str, Any]:
    """The values that differ from the defaults; of a path its last part."""
    paths = {*entry.traits.get("names_code", ()), *entry.traits.get("names_files", ())}
    return {name: _last(value) if name in paths else value for name, value in entry.changed(params).items()}


def _last(value: Any) -> Any:
    return [_last(item) for item in value] if isinstance(value, list) else value and PurePath(value).name


def reference(entry: Entry, spec: ComponentSpec) -> dict[str, Any]:
    """What a worker needs to construct a component."""
    place = {name: getattr(entry, name) for name in ("kind", "name", "module", "qualname", "file", "plugin", "files")}
    return {**place, "params": effective(entry.hparams, spec.params)[0]}


def brief(entry: Entry, spec: ComponentSpec) -> str:
    """A component for people: its name, and in parentheses the values that differ from the defaults."""
    changed = entry.changed(spec.params)
    inner = ", ".join(f"{name}={value}" for name, value in changed.items() if not isinstance(value, list))
    return f"{entry.name} ({inner})" if inner else entry.name


def train_identity(train: TrainSettings) -> dict[str, Any]:
    """What of the training settings enters a key, once those without effect have their defaults."""
    values = vars(train)
    silent = [name for name in _SILENT_DEFAULTS if values.get(name) == getattr(TrainSettings, name)]
    return {name: value for name, value in values.items() if name not in silent}


def upstream_identity(upstream: Mapping[str, Any]) -> dict[str, Any]:
    """What of the upstream stages enters a key; the default checkpoint leaves no trace."""
    return {
        role: item["key"] if item["checkpoint"] == "best-val" else [item["key"], item["checkpoint"]]
        for role, item in upstream.items()
    }


def filled(params: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Replace ``$name`` by the component's value of that hyperparameter; leave out those that are None."""
    filled = {
        name: values[value[1:]] if isinstance(value, str) and value.startswith("$") else value
        for name, value in params.items()
    }
    return {name: value for name, value in filled.items() if value is not None}
