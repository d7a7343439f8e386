"""The result of reading a dataset's files once, kept as an artifact until what it follows from changes. No torch."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.store.artifact import Artifact, MissingArtifact
from harness.store.keys import digest
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
    """Return the artifact of a request: one that is sound and still holds, else a new one. One process at a time reads.

    Args:
        dataset: the component's name.
        request: what is to be read, as JSON.
        holds: returns True if what an artifact follows from, as ``read`` returned it, is as it was.
        read: writes JSON and safetensors files into a folder and returns what they follow from, as JSON.

    Raises:
        FileError: the store cannot be written.
        Exception: whatever ``read`` raises; nothing is kept then.
    """
    place = f"read/{dataset}/{digest(request)}"
    if (artifact := _kept(store, place, holds)) is not None:
        return artifact
    while (lease := store.try_lease(digest(place))) is None:
        time.sleep(0.1)
    with lease:
        if (artifact := _kept(store, place, holds)) is not None:
            return artifact
        with store.draft_folder("read") as folder:
            preimage = {"reading": place, "sources": read(folder)}
            stage = Stage("prepare", digest(preimage), place, preimage, title=f"read {dataset}")
            with store.create(stage) as draft:
                for path in folder.iterdir():
                    path.rename(draft.path(path.name))
        return store.open(stage.key)


def _kept(store: Store, place: str, holds: Callable[[Sources], bool]) -> Artifact | None:
    """Return the latest artifact that holds and of which every file is as it was written; put damaged ones aside."""
    for key, preimage in reversed(store.preimages(place)):
        if holds(preimage["sources"]):
            try:
                artifact = store.open(key)
                for name in artifact.meta.files:
                    artifact.path(name)
            except MissingArtifact:
                continue
            return artifact
    return None
