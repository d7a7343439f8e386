"""A transfer by pooch into a ``.part`` file; a later one goes on where the last one ended."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

from harness._version import __version__
from harness.downloads.files import HINT, require_room
from harness.errors import DataError
from harness.safe_io import size_text, writing
from harness.store import hash_file

MOST_BYTES = 64 * 10**9
"""Bytes that are taken from a server that does not say how many come."""
Report = Callable[[str], None]
"""Called with a line for people: what is fetched, a retry, a wait."""
_SPARE = 10**9
"""Bytes that such a server leaves on the disk."""
_LOOK = 1 << 26
_CHUNK = 1 << 13
"""Bytes that are written at once; of these a connection that breaks loses the last."""
_TIMEOUT = 30.0
"""Seconds without a byte after which a connection counts as lost."""
_ATTEMPTS = 4
"""Requests in a row that may bring nothing new."""
_PAUSE = 1.0
"""Seconds before the second request; doubled each time."""
_TRANSIENT = (408, 425, 429, 500, 502, 503, 504)


class Unreachable(DataError):
    """The address gives no such file; trying again now would not help."""


class Interrupted(Exception):
    """A fault that may pass: what has arrived stays, and the request may be made again."""


def transfer(url: str, part: Path, size: int | None, sha256: str | None, report: Report) -> str:
    """Fetch until the part is whole, and return its SHA-256.

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
    while True:
        resumed = _request_until_whole(url, part, size, report)
        try:
            return _checked(url, part, size, sha256)
        except DataError:
            discard(part)
            if not resumed:
                raise
            report("the parts do not fit together; fetching it whole")


def discard(part: Path) -> None:
    """Remove a part and what is known of it."""
    part.unlink(missing_ok=True)
    _mark_path(part).unlink(missing_ok=True)


def bytes_of(part: Path) -> int:
    """Return how many bytes have arrived."""
    return part.stat().st_size if part.exists() else 0


def _request_until_whole(url: str, part: Path, size: int | None, report: Report) -> bool:
    """Request until the last byte is there, and return True if an earlier transfer was gone on with."""
    most, failed = bytes_of(part), 0
    while True:
        try:
            return _request(url, part, size, report)
        except Interrupted as fault:
            failed = 1 if bytes_of(part) > most else failed + 1
            most = max(most, bytes_of(part))
            if failed >= _ATTEMPTS:
                raise Unreachable(f"{fault} ({url}, {failed} attempts)") from None
            wait = _PAUSE * 2 ** (failed - 1)
            report(f"{fault}; trying again in {wait:.0f} s")
            time.sleep(wait)


def _request(url: str, part: Path, size: int | None, report: Report) -> bool:
    import requests
    from pooch import HTTPDownloader

    check_address(url)
    headers = {"User-Agent": f"equad-bench/{__version__}", "Accept-Encoding": "identity"}
    mark, have = _read_mark(part), bytes_of(part)
    if have and mark.get("url") == url:
        if mark.get("total") == have:
            return True
        if mark.get("validator"):
            headers |= {"Range": f"bytes={have}-", "If-Range": mark["validator"]}
    sink = _Sink(url, part, size, report)
    fetch = HTTPDownloader(
        chunk_size=_CHUNK, timeout=_TIMEOUT, headers=headers, hooks={"response": lambda answer, **_: sink.begin(answer)}
    )
    try:
        fetch(url, sink, None)
    except requests.RequestException as error:
        raise _fault(url, error) from None
    finally:
        sink.close()
    return sink.resumed


class _Sink:
    """The part, as pooch writes into it: judges each answer of the server, bounds its bytes and shows progress."""

    def __init__(self, url: str, part: Path, size: int | None, report: Report) -> None:
        self._url, self._part, self._size, self._report = url, part, size, report
        self._answer: Any = None
        self._stream: Any = None
        self._bar: Any = None
        self._at = self._looked = 0
        self._total: int | None = None
        self.resumed = False

    def begin(self, answer: Any) -> None:
        """Judge an answer before its body is read; requests calls it for redirects too."""
        self._answer = answer
        if answer.is_redirect:
            _check_redirect(answer.url, answer.headers["location"])
            return
        have, status = bytes_of(self._part), answer.status_code
        self.resumed = status == 206
        if status == 416 or (self.resumed and not answer.headers.get("Content-Range", "").startswith(f"bytes {have}-")):
            discard(self._part)
            raise Interrupted("the server does not send the rest of what is here")
        if status >= 400:
            return  # pooch raises
        total = _byte_count(answer.headers.get("Content-Length"))
        if self.resumed:
            self._at = have
            total = None if total is None else have + total
        else:
            self._require_file(answer, total)
        self._total = total
        require_room(self._part.parent, (total or self._size or self._at) - self._at)
        with writing(self._part, HINT):
            if not self.resumed:
                etag = answer.headers.get("ETag") or ""
                validator = etag if etag and not etag.startswith("W/") else answer.headers.get("Last-Modified")
                mark = {"url": self._url, "validator": validator, "total": total}
                _mark_path(self._part).write_text(json.dumps(mark), encoding="utf-8")
            self._stream = self._part.open("ab" if self.resumed else "wb")
        self._show()

    def _require_file(self, answer: Any, total: int | None) -> None:
        if answer.status_code != 200:
            raise Unreachable(f"the server answers {answer.status_code} {answer.reason} for {self._url}")
        if "text/html" in answer.headers.get("Content-Type", "") and not self._url.endswith((".html", ".htm")):
            raise Unreachable(
                f"{self._url} answers with a web page, not with a file: a log-in or a proxy may be between"
            )
        if self._size is not None and total not in (None, self._size):
            raise Unreachable(
                f"{self._url} sends {total} bytes where {self._size} are expected: another file is there now"
            )

    def _show(self) -> None:
        from tqdm import tqdm

        name, total = self._part.name.removesuffix(".part"), self._total or self._size
        going_on = f", going on after {size_text(self._at)}" if self._at else ""
        self._report(f"fetching {name}{f' ({size_text(total)})' if total else ''}{going_on}")
        self._bar = tqdm(total=total, initial=self._at, unit="B", unit_scale=True, disable=None, leave=False)

    def write(self, block: bytes) -> None:
        """Append bytes."""
        self._at += len(block)
        most = self._size or self._total or MOST_BYTES
        if self._at > most:
            discard(self._part)
            raise DataError(f"{self._url} sends more than the {most} bytes that it may")
        if self._total is None and self._at - self._looked > _LOOK:
            require_room(self._part.parent, _SPARE)
            self._looked = self._at
        with writing(self._part, HINT):
            self._stream.write(block)
        self._bar.update(len(block))

    def flush(self) -> None:
        """Hand over what is buffered, so that it is kept whatever happens next."""
        with writing(self._part, HINT):
            self._stream.flush()

    def close(self) -> None:
        """Close the part and the connection, which pooch leaves open after an error."""
        for opened in (self._answer, self._stream, self._bar):
            if opened is not None:
                opened.close()


def check_address(url: str) -> None:
    """Refuse an address that is not on the web.

    Raises:
        Unreachable: another scheme than http and https, or no host.
    """
    with suppress(ValueError):
        parts = urlsplit(url)
        if url.isascii() and parts.scheme in ("http", "https") and parts.hostname:
            return
    raise Unreachable(f"'{url}' is not an http or https address")


def _check_redirect(url: str, location: str) -> None:
    target = urljoin(url, location)
    check_address(target)
    if url.startswith("https:") and not target.startswith("https:"):
        raise Unreachable(f"{url} leads to an address without encryption: {target}")


def _byte_count(text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < 20):
        raise Unreachable(f"the server says that the file has {text[:20]!r} bytes")
    return int(text)


def _fault(url: str, error: Any) -> Exception:
    """Sort a fault of the network: it may pass, or it will not."""
    import requests

    host, causes = urlsplit(url).hostname, [error]
    while cause := causes[-1].__cause__ or causes[-1].__context__:
        causes.append(cause)
    if isinstance(error, requests.HTTPError) and error.response is not None:
        return Interrupted(str(error)) if error.response.status_code in _TRANSIENT else Unreachable(str(error))
    if any(isinstance(cause, socket.gaierror) for cause in causes):
        return Unreachable(f"the host {host} is not found: no network, or a wrong address")
    if any(isinstance(cause, (TimeoutError, requests.Timeout)) for cause in causes):
        return Interrupted(f"{host} did not answer in time")
    lost = (requests.ConnectionError, requests.exceptions.ChunkedEncodingError)
    if isinstance(error, lost) and not isinstance(error, requests.exceptions.SSLError):
        return Interrupted(f"the connection failed or ended early: {causes[-1]}")
    return Unreachable(f"{url}: {error}")


def _mark_path(part: Path) -> Path:
    return part.with_name(f"{part.name}.json")


def _read_mark(part: Path) -> dict[str, Any]:
    """Return what is known of the file behind a part, to go on with the same file only."""
    with suppress(OSError, ValueError):
        mark = json.loads(_mark_path(part).read_text(encoding="utf-8"))
        if isinstance(mark, dict):
            return mark
    return {}


def _checked(url: str, part: Path, size: int | None, sha256: str | None) -> str:
    with writing(part, HINT):
        have, digest = bytes_of(part), hash_file(part) if part.exists() else ""
    if have == 0:
        raise DataError(f"{url} sent an empty file")
    if size is not None and have != size:
        raise DataError(f"{url} sent {have} bytes where {size} are expected; they have been removed")
    if sha256 is not None and digest != sha256:
        raise DataError(
            f"{url} sent a file with SHA-256 {digest}, expected {sha256}: it is damaged or another file "
            "is there now; it has been removed"
        )
    return digest
