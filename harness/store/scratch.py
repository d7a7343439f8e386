"""A store for work that must leave nothing behind: it reads from another one and writes to a folder of its own."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

from harness.store.artifact import Artifact, Meta
from harness.store.store import Store


class Scratch(Store):
    """Artifacts of another store, and those written here in front of them. Stored failures are not seen.

    Args:
        base: what is read where nothing was written here; it is never written to.
        root: the folder of what is written, for the caller to remove.
        hidden: keys of ``base`` that are taken for absent, so that their stages run again.
    """

    def __init__(self, base: Store, root: Path, hidden: Collection[str] = ()) -> None:
        super().__init__(root)
        self._base, self._hidden = base, frozenset(hidden)

    def meta(self, key: str) -> Meta | None:
        """The description of an artifact that is here or in the other store."""
        own = super().meta(key)
        return self._base.meta(key) if own is None and key not in self._hidden else own

    def present(self, keys: Iterable[str]) -> set[str]:
        """Those of the keys that have an artifact here or in the other store, complete or not."""
        wanted = set(keys)
        return super().present(wanted) | (self._base.present(wanted) - self._hidden)

    def open(self, key: str) -> Artifact:
        """The artifact that is here, else the other store's.

        Raises:
            MissingArtifact: neither has it.
        """
        ours = super().meta(key) is not None or key in self._hidden
        return super().open(key) if ours else self._base.open(key)

    def record(self, key: str) -> dict[str, Any]:
        """What is known of a stage's execution, here or in the other store."""
        return super().record(key) or self._base.record(key)
