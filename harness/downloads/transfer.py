"""A transfer into a ``.part`` file; a later one goes on where the last one ended."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from harness import __version__
from harness.downloads.files import HINT
from harness.errors import DataError
from harness.safe_io import size_text, writing
from harness.store import hash_file

Report = Callable[[str], None]
"""Called with a line for people: what is fetched, a retry, a wait."""
_CHUNK = 1 << 13
"""Bytes that are written at once; of these a connection that breaks loses the last."""
_TIMEOUT = 30.0
"""Seconds without a byte after which a connection counts as lost."""
_ATTEMPTS = 4
"""Requests in a row that may bring nothing new."""
_PAUSE = 1.0
"""Seconds before the second request; doubled each time."""
_ENCODING = "Content-Encoding"
_TRANSIENT = (408, 416, 425, 429, 500, 502, 503, 504)


class Unreachable(DataError):
    """The address gives no such file; what has arrived stays."""


def transfer(url: str, part: Path, size: int | None, sha256: str | None, report: Report) -> None:
    """Fetch until the part is whole.

    Args:
        url: http or https.
        part: the file in which the bytes gather; its folder exists.
        size, sha256: what is expected, where known.
        report: called with a line for people.

    Raises:
        Unreachable: the address gives no such file, or too many attempts brought nothing.
        DataError: what came is not what was expected; it has been removed.
        FileError: the disk is full or cannot be written; what has arrived stays.
    """
    import requests

    most, failed = _bytes_of(part), 0
    while True:
        try:
            _request(url, part, size, report)
            break
        except requests.RequestException as error:
            failed = 1 if _bytes_of(part) > most else failed + 1
            most = max(most, _bytes_of(part))
            fault = _fault(url, error)
            if failed >= _ATTEMPTS or not _may_pass(error):
                raise Unreachable(fault) from None
            wait = _PAUSE * 2 ** (failed - 1)
            report(f"{fault}; trying again in {wait:.0f} s")
            time.sleep(wait)
    try:
        _check(url, part, size, sha256)
    except DataError:
        discard(part)
        raise


def discard(part: Path) -> None:
    """Remove a part and what is known of it."""
    part.unlink(missing_ok=True)
    _mark_path(part).unlink(missing_ok=True)


def _bytes_of(part: Path) -> int:
    """Return how many bytes have arrived."""
    return part.stat().st_size if part.exists() else 0


def resumable(part: Path) -> int:
    """Return how many of the bytes that have arrived a later transfer need not ask for again."""
    return _bytes_of(part) if _read_mark(part).get("validator") else 0


def _request(url: str, part: Path, size: int | None, report: Report) -> None:
    """Request what the part lacks, with the same file only, and append it."""
    import requests
    from tqdm import tqdm

    headers = {"User-Agent": f"equad-bench/{__version__}", "Accept-Encoding": "identity"}
    mark, have = _read_mark(part), _bytes_of(part)
    if have and mark.get("url") == url:
        if mark.get("total") == have:
            return
        if mark.get("validator"):
            headers |= {"Range": f"bytes={have}-", "If-Range": mark["validator"]}
    with requests.get(url, headers=headers, stream=True, timeout=_TIMEOUT) as answer:
        if answer.status_code == 416:
            discard(part)  # the server has no rest of what is here
        answer.raise_for_status()
        if url.endswith((".gz", ".tgz")):  # the encoding is the file's own, and would be unpacked on its way
            for received in (answer.headers, answer.raw.headers):
                received.pop(_ENCODING, None)
        length = "" if _ENCODING in answer.headers else answer.headers.get("Content-Length", "")
        resumed = answer.headers.get("Content-Range", "").startswith(f"bytes {have}-")
        have = have if resumed else 0
        total = have + int(length) if length.isdecimal() else size
        if not resumed:
            _begin(url, part, answer, total)
        going_on = f", going on after {size_text(have)}" if have else ""
        name = part.name.removesuffix(".part")
        report(f"fetching {name}{f' ({size_text(total)})' if total else ''}{going_on}")
        with writing(part, HINT):
            stream = part.open("ab" if resumed else "wb")
        with stream, tqdm(total=total, initial=have, unit="B", unit_scale=True, disable=None, leave=False) as bar:
            for block in answer.iter_content(_CHUNK):
                with writing(part, HINT):
                    stream.write(block)
                bar.update(len(block))


def _begin(url: str, part: Path, answer: Any, total: int | None) -> None:
    """Refuse what is no file, and note what is needed to go on later."""
    if "text/html" in answer.headers.get("Content-Type", "") and not url.endswith((".html", ".htm")):
        raise Unreachable(f"{url} answers with a web page, not with a file: a log-in or a proxy may be between")
    etag = answer.headers.get("ETag") or ""
    validator = etag if etag and not etag.startswith("W/") else answer.headers.get("Last-Modified")
    if _ENCODING in answer.headers:  # a rest would be one of what was sent, and not of what is here
        validator = None
    with writing(part, HINT):
        mark = {"url": url, "validator": validator, "total": total}
        _mark_path(part).write_text(json.dumps(mark), encoding="utf-8")


def _may_pass(error: Any) -> bool:
    import requests

    if isinstance(error, requests.HTTPError):
        return error.response is not None and error.response.status_code in _TRANSIENT
    lost = (requests.ConnectionError, requests.Timeout, requests.exceptions.ChunkedEncodingError)
    return isinstance(error, lost) and not isinstance(error, requests.exceptions.SSLError)


def _fault(url: str, error: Any) -> str:
    import requests

    if isinstance(error, requests.HTTPError) or not _may_pass(error):
        return f"{url}: {error}"
    cause: BaseException = error
    while (inner := cause.__cause__ or cause.__context__) is not None:
        cause = inner
    return f"{url}: the connection to {urlsplit(url).hostname} failed or ended early ({cause})"


def _mark_path(part: Path) -> Path:
    return part.with_name(f"{part.name}.json")


def _read_mark(part: Path) -> dict[str, Any]:
    """Return what is known of the file behind a part."""
    with suppress(OSError, ValueError):
        mark = json.loads(_mark_path(part).read_text(encoding="utf-8"))
        if isinstance(mark, dict):
            return mark
    return {}


def _check(url: str, part: Path, size: int | None, sha256: str | None) -> None:
    have = _bytes_of(part)
    if have == 0:
        raise DataError(f"{url} sent an empty file")
    if size is not None and have != size:
        raise DataError(f"{url} sent {have} bytes where {size} are expected; they have been removed")
    if sha256 is not None and (digest := hash_file(part)) != sha256:
        raise DataError(
            f"{url} sent a file with SHA-256 {digest}, expected {sha256}: it is damaged or another file "
            "is there now; it has been removed"
        )
