"""What a dataset has read once, an artifact with checksums, until what it follows from changes. No torch."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.store.artifact import Artifact, MissingArtifact
from harness.store.keys import digest
from harness.store.leases import Lease
from harness.store.stage import Stage

if TYPE_CHECKING:
    from harness.store.store import Store

Sources = Mapping[str, Any]


def reading(
    store: Store,
    dataset: str,
    request: Mapping[str, Any],
    holds: Callable[[Sources], bool],
    read: Callable[[Path], Sources],
) -> Artifact:
    """The artifact of a request: one that is sound and still holds, else a new one. One process at a time reads.

    Args:
        dataset: the component's name.
        request: what is to be read, as JSON.
        holds: whether what an artifact follows from, as ``read`` told it, is as it was.
        read: writes JSON and safetensors files into a folder and tells what they follow from, as JSON.

    Raises:
        FileError: the store cannot be written.
        Exception: whatever ``read`` raises; nothing is kept then.
    """
    place = f"read/{dataset}/{digest(request)}"
    found = _kept(store, place, holds)
    if found is not None:
        return found
    with _leased(store, digest(place)):
        return _kept(store, place, holds) or _made(store, place, dataset, read)


def _kept(store: Store, place: str, holds: Callable[[Sources], bool]) -> Artifact | None:
    for key, preimage in reversed(store.preimages(place)):
        if holds(preimage["sources"]):
            artifact = _sound(store, key)
            if artifact is not None:
                return artifact
    return None


def _sound(store: Store, key: str) -> Artifact | None:
    """The artifact, if every file of it is as it was written; else it is put aside, with a warning."""
    try:
        artifact = store.open(key)
        for name in artifact.meta.files:
            artifact.path(name)
    except MissingArtifact:
        return None
    return artifact


def _made(store: Store, place: str, dataset: str, read: Callable[[Path], Sources]) -> Artifact:
    with store.draft_folder("read") as folder:
        preimage = {"reading": place, "sources": read(folder)}
        stage = Stage("prepare", digest(preimage), place, preimage, title=f"read {dataset}")
        with store.create(stage) as draft:
            for path in folder.iterdir():
                path.rename(draft.path(path.name))
    return store.open(stage.key)


def _leased(store: Store, key: str) -> Lease:
    while (lease := store.try_lease(key)) is None:
        time.sleep(0.1)
    return lease
