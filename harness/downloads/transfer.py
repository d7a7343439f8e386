"""Transfers into a ``.part`` file that survive what interrupts them: a later one goes on where the last one ended."""

from __future__ import annotations

import hashlib
import http.client
import json
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from harness.downloads.disk import require_room, writing
from harness.downloads.web import Interrupted, OutOfRange, Unreachable, byte_count, open_url, sorting_faults, total_of
from harness.errors import DataError
from harness.safe_io import size_text

MOST_BYTES = 64 * 10**9
"""Bytes that are taken from a server that does not say how many come."""
_CHUNK = 1 << 16
_LOOK = 1 << 26
_SPARE = 10**9
"""Bytes that such a server leaves on the disk."""


@dataclass(frozen=True)
class Patience:
    """How long a transfer is tried.

    Attributes:
        timeout: seconds without a byte after which the connection counts as lost.
        attempts: requests in a row that may bring nothing new.
        pause: seconds before the second request; doubled each time.
    """

    timeout: float = 30.0
    attempts: int = 4
    pause: float = 1.0


class Watcher:
    """Told of a transfer as it goes; this one ignores it."""

    def begun(self, name: str, at: int, total: int | None) -> None:
        """Bytes come, from ``at`` on; ``total`` where the server says it."""

    def moved(self, at: int) -> None:
        """So many bytes are there."""

    def told(self, text: str) -> None:
        """Something to know: a retry, a wait."""


@dataclass(frozen=True)
class _Mark:
    """What is known of the file behind a ``.part``, kept beside it, to go on with the same file only."""

    url: str
    etag: str | None = None
    modified: str | None = None
    total: int | None = None

    @property
    def validator(self) -> str | None:
        """For ``If-Range``: a strong entity tag, else the date."""
        strong = self.etag if self.etag and not self.etag.startswith("W/") else None
        return strong or self.modified

    @classmethod
    def read(cls, path: Path) -> _Mark | None:
        try:
            return cls(**json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return None


class Transfer:
    """One file on its way from an address to a ``.part`` file.

    Args:
        url: http or https.
        part: where the bytes gather; its folder exists.
        size, sha256: what is expected, where known.
    """

    def __init__(
        self, url: str, part: Path, size: int | None, sha256: str | None, patience: Patience, watcher: Watcher
    ) -> None:
        self._url, self._part, self._size, self._sha256 = url, part, size, sha256
        self._patience, self._watcher = patience, watcher
        self._mark_path = part.with_name(part.name + ".json")
        self._resumed = False

    def run(self) -> str:
        """Fetch until the part is whole, and give its SHA-256.

        Raises:
            Unreachable: the address gives no such file, or too many attempts brought nothing.
            DataError: what came is not what was expected; it has been removed.
            NoRoomError, UserError: the disk is full or cannot be written; what has arrived stays.
        """
        while True:
            self._persist()
            try:
                return self._checked()
            except DataError:
                resumed = self._resumed
                self.discard()
                if not resumed:
                    raise
                self._resumed = False
                self._watcher.told("the parts do not fit together; fetching it whole")

    def discard(self) -> None:
        """Remove the part and what is known of it."""
        for path in (self._part, self._mark_path):
            with suppress(OSError):
                path.unlink()

    def _persist(self) -> None:
        """Request until the last byte is there."""
        most, failed = self._have(), 0
        while True:
            try:
                self._request()
            except Interrupted as fault:
                failed = 1 if self._have() > most else failed + 1
                most = max(most, self._have())
                if failed >= self._patience.attempts:
                    raise Unreachable(f"{fault} ({self._url}, {failed} attempts)") from None
                wait = fault.wait if fault.wait is not None else self._patience.pause * 2 ** (failed - 1)
                self._watcher.told(f"{fault}; trying again in {wait:.0f} s")
                time.sleep(wait)
            else:
                return

    def _have(self) -> int:
        try:
            return self._part.stat().st_size
        except OSError:
            return 0

    def _request(self) -> None:
        mark, have = _Mark.read(self._mark_path), self._have()
        usable = mark is not None and mark.url == self._url and have > 0 and (mark.validator or mark.total)
        if mark is None or not usable:
            self._from_start()
            return
        if mark.total == have:
            self._resumed = True
            return
        headers = {"Range": f"bytes={have}-"} | ({"If-Range": mark.validator} if mark.validator else {})
        try:
            response = open_url(self._url, headers, self._patience.timeout)
        except OutOfRange:
            self._from_start()
            return
        with response:
            if response.status == 206 and _continues(response, have) and _same(mark, response):
                self._resumed = True
                self._receive(response, have, total_of(response.headers))
                return
            if response.status != 206:
                self._begin(response)
                return
        self._from_start()

    def _from_start(self) -> None:
        self._resumed = False
        try:
            response = open_url(self._url, {}, self._patience.timeout)
        except OutOfRange:
            raise Unreachable(f"the server answers 416 for {self._url}") from None
        with response:
            self._begin(response)

    def _begin(self, response: http.client.HTTPResponse) -> None:
        """Take a whole file."""
        self._resumed = False
        if response.status != 200:
            raise Unreachable(f"the server answers {response.status} {response.reason} for {self._url}")
        kind = response.headers.get_content_type()
        if kind == "text/html" and not self._url.endswith((".html", ".htm")):
            raise Unreachable(
                f"{self._url} answers with a web page, not with a file: a log-in or a proxy may be between"
            )
        total = byte_count(response.headers.get("Content-Length"))
        if self._size is not None and total is not None and total != self._size:
            raise Unreachable(
                f"{self._url} sends {total} bytes where {self._size} are expected: another file is there now"
            )
        mark = _Mark(self._url, response.headers.get("ETag"), response.headers.get("Last-Modified"), total)
        with writing(self._part):
            self._part.write_bytes(b"")
            self._mark_path.write_text(json.dumps(asdict(mark)), encoding="utf-8")
        self._receive(response, 0, total)

    def _receive(self, response: http.client.HTTPResponse, at: int, total: int | None) -> None:
        require_room(self._part.parent, (total or self._size or at) - at)
        self._watcher.begun(self._part.name.removesuffix(".part"), at, total or self._size)
        most, looked = MOST_BYTES if total is None else total, at
        with writing(self._part), self._part.open("ab") as stream:
            while block := self._block(response):
                at += len(block)
                if self._size is not None and at > self._size:
                    raise Unreachable(f"{self._url} sends more than the {self._size} bytes expected")
                if at > most:
                    self.discard()
                    raise DataError(f"{self._url} sends ever more without saying how much; {size_text(at)} came")
                if total is None and at - looked > _LOOK:
                    require_room(self._part.parent, _SPARE)
                    looked = at
                stream.write(block)
                self._watcher.moved(at)
        if total is not None and at < total:
            raise Interrupted(f"the connection ended early, after {at} of {total} bytes")

    def _block(self, response: http.client.HTTPResponse) -> bytes:
        with sorting_faults(self._url):
            return response.read1(_CHUNK)

    def _checked(self) -> str:
        digest = hashlib.sha256()
        with writing(self._part), self._part.open("rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
        have, found = self._have(), digest.hexdigest()
        if have == 0:
            raise DataError(f"{self._url} sent an empty file")
        if self._size is not None and have != self._size:
            raise DataError(f"{self._url} sent {have} bytes where {self._size} are expected; they have been removed")
        if self._sha256 is not None and found != self._sha256:
            raise DataError(
                f"{self._url} sent a file with SHA-256 {found}, expected {self._sha256}: it is damaged or another file "
                "is there now; it has been removed"
            )
        return found


def _continues(response: http.client.HTTPResponse, have: int) -> bool:
    """Whether a partial answer begins where the part ends."""
    unit, _, rest = (response.headers.get("Content-Range") or "").partition(" ")
    return unit == "bytes" and rest.partition("-")[0].strip() == str(have)


def _same(mark: _Mark, response: http.client.HTTPResponse) -> bool:
    """Whether a partial answer is of the file that was begun."""
    total, tag = total_of(response.headers), response.headers.get("ETag")
    return total is not None and mark.total in (None, total) and (tag is None or mark.etag in (None, tag))
