"""Folders of many entries by key, spread over subfolders named by a key's first two digits. No torch."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

_MANY = 16
"""From so many keys of one subfolder on, listing it is cheaper than a look at each (on network disks by far)."""


def present(folder: Path, keys: Iterable[str], suffix: str = "") -> set[str]:
    """Those of the keys for which there is an entry (``ab/abcd…`` and the suffix); a folder that is absent has none."""
    by_shard: dict[str, list[str]] = defaultdict(list)
    for key in keys:
        by_shard[key[:2]].append(key)
    found: set[str] = set()
    for shard, wanted in by_shard.items():
        inside = os.path.join(folder, shard)  # noqa: PTH118 - plain text is several times faster, and there are many
        if len(wanted) < _MANY:
            found.update(key for key in wanted if os.path.lexists(f"{inside}{os.sep}{key}{suffix}"))
            continue
        with suppress(FileNotFoundError, NotADirectoryError):
            names = set(os.listdir(inside))  # noqa: PTH208 - as above
            found.update(key for key in wanted if f"{key}{suffix}" in names)
    return found
