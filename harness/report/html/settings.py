"""The settings of each configuration, from the resolved suite that the run folder keeps, as flat names and texts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

Flat = dict[str, str]
"""``model.hidden`` -> ``32``; a component's name stands at its role: ``model.backbone`` -> ``gin``."""
_SECTIONS = ("model", "train", "select", "envs")
_ROLES = ("baseline", "encoder", "quantifier", "decorrelator")


class Settings:
    """All configurations of a run; what is the same is kept once.

    Args:
        suite: the resolved suite as plain data; empty where it is not known.
    """

    def __init__(self, suite: Mapping[str, Any]) -> None:
        self._datasets: Mapping[str, Any] = suite.get("datasets") or {}
        self._methods: Mapping[str, Any] = suite.get("methods") or {}
        self.pool: list[Flat] = []
        self._numbers: dict[tuple[tuple[str, str], ...], int] = {}
        self._known: dict[tuple[str, str, str], int] = {}

    def number(self, dataset: str, method: str, values: Mapping[str, Any]) -> int | None:
        """The position in the pool of a configuration's settings; None where the suite does not tell them."""
        if method not in self._methods or dataset not in self._datasets:
            return None
        asked = (dataset, method, repr(values))
        if asked not in self._known:
            flat = self.flat(dataset, method, values)
            number = self._numbers.setdefault(tuple(flat.items()), len(self.pool))
            if number == len(self.pool):
                self.pool.append(flat)
            self._known[asked] = number
        return self._known[asked]

    def flat(self, dataset: str, method: str, values: Mapping[str, Any]) -> Flat:
        """The settings of one configuration, the method's own over the dataset's, the tuned values over both."""
        of_method, of_dataset = self._methods[method] or {}, self._datasets[dataset] or {}
        if not isinstance(of_dataset, Mapping):
            of_dataset = {}
        tree: dict[str, Any] = {role: _component(of_method[role]) for role in _ROLES if role in of_method}
        for name in _SECTIONS:
            below, above = _component(of_dataset.get(name)), _component(of_method.get(name))
            if below or above:
                tree[name] = _over(below, above)
        for path, value in values.items():
            _put(tree, path.split("."), value)
        return dict(_flatten(tree))


def differences(mine: Flat, theirs: Flat) -> list[tuple[str, str, str]]:
    """What differs between two configurations: name, here, there; an empty text where one does not have it."""
    names = [*mine, *(name for name in theirs if name not in mine)]
    pairs = ((name, mine.get(name, ""), theirs.get(name, "")) for name in names)
    return [pair for pair in pairs if pair[1] != pair[2]]


def _component(given: Any) -> dict[str, Any]:
    """A component or a table of settings as a mapping."""
    if given is None:
        return {}
    return dict(given) if isinstance(given, Mapping) else {"use": given}


def _over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """One table laid over another; a component that is named anew keeps nothing of the old one."""
    if "use" in above and above["use"] != below.get("use"):
        return dict(above)
    merged = dict(below)
    for name, value in above.items():
        old = merged.get(name)
        merged[name] = _over(old, _component(value)) if isinstance(old, Mapping) else value
    return merged


def _put(tree: dict[str, Any], path: list[str], value: Any) -> None:
    for name in path[:-1]:
        inner = tree.get(name)
        tree[name] = tree = dict(inner) if isinstance(inner, Mapping) else {}
    tree[path[-1]] = value


def _flatten(tree: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    found = []
    for name, value in sorted(tree.items(), key=lambda item: item[0] != "use"):
        path = prefix.rstrip(".") if name == "use" else prefix + str(name)
        if isinstance(value, Mapping) and value:
            found += _flatten(value, f"{path}.")
        else:
            found.append((path, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)))
    return found
