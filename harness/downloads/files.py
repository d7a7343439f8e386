"""The data folder: where a download may lie, room on the disk, receipts of what was fetched, and advice."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from harness.data import Dataset
from harness.errors import DataError, DiskFullError
from harness.safe_io import size_text, write_text, writing
from harness.store import data_root, hash_file

HINT = " (--data-dir or BENCH_DATA name another data folder)"
_RECEIPTS = ".fetched"
_DRIVE = re.compile(r"[A-Za-z]:")


def safe_parts(name: str) -> tuple[str, ...] | None:
    """Split a relative path at ``/``; None where it is absolute, leads upwards or is not portable.

    What is not printable is not portable either, and could steer the terminal that shows it.
    """
    parts = tuple(part for part in name.split("/") if part not in ("", "."))
    unsafe = name.startswith("/") or "\\" in name or not name.isprintable() or _DRIVE.match(name)
    return None if unsafe or ".." in parts else parts


def below(root: Path, name: str) -> Path:
    """Return the place that a download names, below the data folder.

    Raises:
        DataError: the name leads elsewhere.
    """
    parts = safe_parts(name)
    if not parts:
        raise DataError(f"a dataset wants its file at '{name}', which is not below the data folder; nothing is fetched")
    return root.joinpath(*parts)


def require_room(folder: Path, needed: int) -> None:
    """Refuse what will not fit, before it is begun.

    Raises:
        DiskFullError: fewer bytes are free than needed.
    """
    with writing(folder, HINT):
        free = shutil.disk_usage(folder).free
    if needed > free:
        raise DiskFullError(f"no room in {folder}: {size_text(needed)} needed, {size_text(free)} free{HINT}")


@dataclass(frozen=True)
class Receipt:
    """A fetched download, kept so that later damage is found.

    Attributes:
        url, sha256: where it came from, and the digest of what was sent.
        fetched: when, ISO 8601.
        files: path below the data folder -> SHA-256 as placed.
    """

    url: str
    sha256: str
    fetched: str
    files: Mapping[str, str]


def _receipt_path(root: Path, name: str) -> Path:
    return root / _RECEIPTS / f"{name.replace('/', '--')}.json"


def write_receipt(root: Path, name: str, url: str, sha256: str, files: Iterable[Path]) -> None:
    """Keep the digests of the files that a download was placed as."""
    digests = {path.relative_to(root).as_posix(): hash_file(path) for path in files}
    receipt = Receipt(url, sha256, datetime.now(UTC).isoformat(timespec="seconds"), digests)
    path = _receipt_path(root, name)
    with writing(path, HINT):
        write_text(path, json.dumps(asdict(receipt), indent=1))


def read_receipt(root: Path, name: str) -> Receipt | None:
    """Return the receipt of a download, or None where it was put there by hand."""
    with suppress(OSError, ValueError, TypeError):
        return Receipt(**json.loads(_receipt_path(root, name).read_text(encoding="utf-8")))
    return None


def command(verb: str, name: str, params: Mapping[str, Any], root: Path | None = None) -> str:
    """Return a ``bench data`` command line to be typed; ``root`` where it may not be the default folder."""
    settings = (f"{key}={value if isinstance(value, str) else json.dumps(value)}" for key, value in params.items())
    folder = [] if root is None or root == data_root() else ["--data-dir", str(root)]
    return shlex.join(["bench", "data", verb, name, *(word for item in settings for word in ("--set", item)), *folder])


def advised(dataset: Dataset, params: Mapping[str, Any], root: Path | None, error: str) -> str:
    """Add to a dataset's message, where files are missing, the command that fetches them and the data folder."""
    if root is None:
        return error
    first, *rest = error.splitlines() or [""]
    missing = [item for item in dataset.downloads(root) if not (root / item.path).exists()]
    if missing:
        does = "fetches it" if all(item.url is not None for item in missing) else "tells how to get it"
        rest.insert(0, f"`{command('fetch', dataset.name, params, root)}` {does}")
    if str(root) in error and "--data-dir" not in error:
        rest.append(f"the data folder is {root}; --data-dir FOLDER or BENCH_DATA name another")
    return "\n".join([first, *rest])
