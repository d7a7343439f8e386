"""Two stores and what is between them."""

from __future__ import annotations

from pathlib import Path

from harness.store import Store
from harness.store.exchange import Copied, Remote, pull, push
from harness.store.maintenance import inspect


def give(store: Store, target: str, runs: tuple[str, ...] = ()) -> Copied:
    """Push everything."""
    return push(store, Remote(target, store), None, runs)


def take(store: Store, target: str, runs: tuple[str, ...] = ()) -> Copied:
    """Pull everything."""
    return pull(store, Remote(target, store, exists=True), None, runs)


def contents(store: Store) -> dict[str, bytes]:
    """Every file of every artifact."""
    folder = store.root / "artifacts"
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def clean(store: Store) -> bool:
    """Return True if nothing is half there."""
    return list(inspect(store)) == [] and list((store.root / "tmp").glob("*")) == []


def other(store: Store, name: str = "other") -> Store:
    """Return another store beside one."""
    return Store(Path(store.root).with_name(name))
