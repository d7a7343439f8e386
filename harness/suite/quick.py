"""Make the rows of a suite as small as they go, for ``bench run --quick``: all is tried, no number is a result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from harness.registry.catalog import Catalog
from harness.suite.components import coerced
from harness.suite.layers import Decision, Flat
from harness.suite.settings import KIND_OF, PARTS
from harness.suite.tree import Items, Leaf, Place, plain

EPOCHS = 2
_SMALL: Mapping[str, Callable[[Any], Any]] = {
    "epochs": lambda epochs: min(epochs or EPOCHS, EPOCHS),
    "snapshots": lambda epochs: [min([*epochs, EPOCHS])],
    "num_per_class": lambda counts: [min(count, 30) for count in counts or [30, 30, 30]],
    "graphs": lambda graphs: min(graphs or 300, 300),
    "limit": lambda graphs: min(graphs or 90, 90),
}
"""Names of hyperparameters that say how much is done, of whatever component -> the value that a quick run takes."""


def quick(flat: Flat, catalog: Catalog) -> Flat:
    """Return the decisions of a row with small sizes and, of a pool, one architecture."""
    place = Place("--quick")
    small = {path: replace(one, value=_first(one)) if one.way == "pool" else one for path, one in flat.items()}
    for role in ("dataset", "analysis", *PARTS):
        entry = catalog.find(KIND_OF.get(role, role), str(plain(flat[role].value))) if role in flat else None
        hparams = entry.hparams if entry else {}
        for name in _SMALL.keys() & hparams:
            declared, given = hparams[name], flat.get(f"{role}.{name}")
            value = plain(given.value) if given and given.way == "given" else declared.default
            try:
                chosen = coerced(declared, _SMALL[name](coerced(declared, value)))
            except ValueError:  # told with its place when the row is checked
                continue
            small[f"{role}.{name}"] = Decision(_tree(chosen, place), given.place if given else place)
    return small


def _first(one: Decision) -> Items:
    assert isinstance(one.value, Items)  # checked with the file
    return replace(one.value, items=one.value.items[:1])


def _tree(value: Any, place: Place) -> Leaf | Items:
    if isinstance(value, list):
        return Items(tuple(Leaf(item, place) for item in value), place)
    return Leaf(value, place)
