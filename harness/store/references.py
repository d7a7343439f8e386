"""Which artifacts suites and runs need. No torch."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from harness.errors import DataError
from harness.results.run_record import RunRecord
from harness.store.artifact import Meta
from harness.store.holds import running
from harness.store.keys import DIGEST, digest
from harness.store.stage import tier_key

if TYPE_CHECKING:
    from harness.store.store import Store


def stage_key(meta: Meta) -> str:
    """The key of the stage that wrote an artifact: its own, but for the further tiers of a prepared dataset."""
    return digest(meta.preimage)


def keys_of_stage(key: str) -> tuple[str, str, str]:
    """All keys that a stage may write: its own, and those of a prepared dataset's further tiers."""
    return key, tier_key(key, "oracle"), tier_key(key, "sealed")


def needed(meta: Meta, keys: Collection[str]) -> bool:
    """Whether an artifact belongs to stages with these keys: it is theirs, or an analysis of what is theirs."""
    if meta.key in keys or stage_key(meta) in keys:
        return True
    inputs = [value for value in meta.preimage.values() if isinstance(value, str) and DIGEST.fullmatch(value)]
    return meta.kind == "analyse" and bool(inputs) and all(key in keys for key in inputs)


def keys_of_run(record: RunRecord) -> set[str]:
    """Keys of the stages whose artifacts a run is made of."""
    found = set(record.prepared.values())
    for cell in record.cells:
        found |= {cell.train, cell.score, *cell.needs}
    return found


def keys_of_runs(store: Store, ids: Iterable[str] | None = None) -> set[str]:
    """Keys of several runs, all where none are named; those without a readable record count for nothing."""
    names = ids if ids is not None else [path.name for path in store.runs.glob("*") if path.is_dir()]
    found: set[str] = set()
    for name in names:
        try:
            found |= keys_of_run(RunRecord.load(store.runs / name))
        except DataError:
            continue
    return found


def keys_in_use(store: Store) -> set[str]:
    """Keys that the runs need which are going on now.

    Raises:
        StoreError: the store cannot be written.
    """
    return keys_of_runs(store, running(store))
