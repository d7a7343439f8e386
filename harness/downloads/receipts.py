"""What was fetched: sizes and digests of the files as they were placed, so that later damage is found."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from harness.downloads.disk import writing
from harness.store.keys import hash_file

FOLDER = ".fetched"


@dataclass(frozen=True)
class Receipt:
    """One fetched download.

    Attributes:
        url, sha256: where it came from, and the digest of what was sent.
        fetched: when, ISO 8601.
        files: path below the data folder -> SHA-256 as placed.
    """

    url: str
    sha256: str
    fetched: str
    files: Mapping[str, str]


def receipt_path(root: Path, name: str) -> Path:
    """Where the receipt of a download is kept, in the data folder."""
    return root / FOLDER / f"{name.replace('/', '--')}.json"


def write_receipt(root: Path, name: str, url: str, sha256: str, files: Iterable[Path]) -> None:
    """Keep what was placed."""
    digests = {path.relative_to(root).as_posix(): hash_file(path) for path in files}
    made = Receipt(url, sha256, datetime.now(UTC).isoformat(timespec="seconds"), digests)
    path = receipt_path(root, name)
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        part.write_text(json.dumps(asdict(made), indent=1), encoding="utf-8")
        part.replace(path)


def read_receipt(root: Path, name: str) -> Receipt | None:
    """What was placed, or None where it was put there by hand."""
    with suppress(OSError, ValueError, TypeError):
        return Receipt(**json.loads(receipt_path(root, name).read_text(encoding="utf-8")))
    return None
