"""Two stores and what is between them."""

from __future__ import annotations

from pathlib import Path

from harness.store.exchange import Copied, open_target, pull, push
from harness.store.store import Store


def quiet(done: int, total: int, size: int) -> None:
    """No progress."""


def give(store: Store, target: str, runs: tuple[str, ...] = ()) -> Copied:
    """Push everything."""
    return push(store, open_target(target, store), store.artifact_keys(), runs, quiet)


def take(store: Store, target: str, runs: tuple[str, ...] = ()) -> Copied:
    """Pull everything."""
    source = open_target(target, store)
    return pull(store, source, source.keys(), runs, quiet)


def contents(store: Store) -> dict[str, bytes]:
    """Every file of every artifact."""
    folder = store.root / "artifacts"
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def clean(store: Store) -> bool:
    """Whether nothing is half there."""
    return store.verify() == [] and list((store.root / "tmp").glob("*")) == []


def other(store: Store, name: str = "other") -> Store:
    """Another store beside one."""
    return Store(Path(store.root).with_name(name))
