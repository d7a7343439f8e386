"""Making room in a store: what may go by age, size and need, and taking it away beside running processes. No torch."""

from __future__ import annotations

import time
import uuid
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness.store import leftovers
from harness.store import listing as upkeep
from harness.store.listing import Info
from harness.store.references import keys_in_use, needed

if TYPE_CHECKING:
    from harness.store.store import Store

_YOUNG = 3600.0


@dataclass(frozen=True)
class Rules:
    """What may go. Where several are given an artifact goes only if each allows it; with none nothing goes.

    Attributes:
        older_than: seconds since an artifact was last opened, at least.
        max_size: bytes that all artifacts together may have; the least recently used go first, until that is so.
        keep: keys of the stages that are still wanted.
    """

    older_than: float | None = None
    max_size: int | None = None
    keep: Collection[str] | None = None

    @property
    def given(self) -> bool:
        """Whether anything may go."""
        return self.older_than is not None or self.max_size is not None or self.keep is not None


@dataclass(frozen=True)
class Choice:
    """What the rules condemn.

    Attributes:
        artifacts: in the order in which they go.
        leftovers: files and folders of dead processes, and damaged artifacts that were put aside.
        size: bytes of both.
        total: bytes of all artifacts.
        in_use: how many artifacts stay only because a run that is going on needs them.
    """

    artifacts: tuple[Info, ...]
    leftovers: tuple[Path, ...]
    size: int
    total: int
    in_use: int = 0


@dataclass(frozen=True)
class Removed:
    """What was removed: artifacts, how many leftovers, bytes of both; and how many artifacts were held meanwhile."""

    artifacts: tuple[Info, ...]
    leftovers: int
    size: int
    held: int = 0


def choose(store: Store, rules: Rules, now: float | None = None) -> Choice:
    """What may go by the rules, and is not needed by a run that is going on. Removes nothing.

    Args:
        now: the current time, in seconds since 1970.

    Raises:
        StoreError: the store cannot be written, so that nobody can tell which runs are going on.
    """
    moment = time.time() if now is None else now
    infos = upkeep.listing(store)
    total = sum(info.size for info in infos)
    condemned, in_use = [], 0
    if rules.given:
        used = keys_in_use(store)
        for info in sorted(infos, key=lambda info: (info.used, info.key)):
            if not _allowed(store, info, rules, moment):
                continue
            if _needed(store, info, used):
                in_use += 1
            else:
                condemned.append(info)
    if rules.max_size is not None:
        condemned = list(_until(condemned, total, rules.max_size))
    left = tuple(_leftovers(store, moment))
    size = sum(info.size for info in condemned) + sum(map(_size, left))
    return Choice(tuple(condemned), left, size, total, in_use)


def remove(store: Store, choice: Choice) -> Removed:
    """Take away what was chosen, but for what a process holds or has opened since.

    Each artifact goes in one step, so that no reader meets half of it; a run that loses one makes it again.

    Raises:
        StoreError: the store cannot be written.
    """
    gone, held = [], 0
    used = keys_in_use(store)  # once more: a run may have begun since
    for info in choice.artifacts:
        if not _needed(store, info, used) and _remove(store, info):
            gone.append(info)
        else:
            held += 1
    size = sum(info.size for info in gone)
    for path in choice.leftovers:
        size += _size(path)
        leftovers.delete(path)
    leftovers.sweep(store.root)
    return Removed(tuple(gone), len(choice.leftovers), size, held)


def _allowed(store: Store, info: Info, rules: Rules, now: float) -> bool:
    if rules.older_than is not None and now - info.used <= rules.older_than:
        return False
    return rules.keep is None or not _needed(store, info, rules.keep)


def _needed(store: Store, info: Info, keys: Collection[str]) -> bool:
    meta = store.meta(info.key) if keys else None
    return meta is not None and needed(meta, keys)


def _until(infos: list[Info], total: int, most: int) -> Iterator[Info]:
    for info in infos:
        if total <= most:
            return
        total -= info.size
        yield info


def _remove(store: Store, info: Info) -> bool:
    """Whether it is gone: not while someone holds it, nor if it was opened since it was chosen."""
    lease = store.try_lease(info.key)
    if lease is None:
        return False
    with lease, suppress(OSError):
        folder = store.artifact_folder(info.key)
        if folder.stat().st_mtime != info.used:
            return False
        debris = store.root / "debris"
        debris.mkdir(exist_ok=True)
        gone = debris / f"{info.key}-{uuid.uuid4().hex[:8]}"
        folder.rename(gone)
        leftovers.delete(gone)
        for path in (store.place_folder(info.place) / f"{info.key}.json", store.record_path(info.key)):
            path.unlink(missing_ok=True)
        return True
    return False


def _leftovers(store: Store, now: float) -> Iterator[Path]:
    """Debris, drafts of dead writers, and part files of the first version of the store."""
    yield from (store.root / "debris").glob("*")
    yield from leftovers.leftovers(store.root)
    for pattern in ("*.part", "*/*.part", "*/*/*.part"):
        for path in store.root.glob(pattern):
            with suppress(OSError):
                if now - path.stat().st_mtime > _YOUNG:
                    yield path


def _size(path: Path) -> int:
    with suppress(OSError):
        return upkeep.size(path) if path.is_dir() else path.lstat().st_size
    return 0
