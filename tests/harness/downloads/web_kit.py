"""A small web server within the test's process that misbehaves on request, and data folders to fetch into."""

from __future__ import annotations

import hashlib
import io
import threading
import zipfile
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from harness.data import Download
from harness.downloads.fetch import fetch
from harness.errors import UserError

CONTENT = bytes(range(256)) * 2000


def wanted(url: str | None, **more: object) -> Download:
    return Download("set/file.csv", url, **more)  # type: ignore[arg-type]


def content(root: Path) -> bytes:
    """What was fetched as :func:`wanted`."""
    return (root / "set" / "file.csv").read_bytes()


def refused(download: Download, root: Path, *texts: str) -> str:
    """The message of a fetch that fails, and leaves nothing under the final name."""
    with pytest.raises(UserError) as caught:
        fetch(download, root, Story())
    told = str(caught.value)
    assert not (root / download.path).exists()
    for text in (*texts, str(root / download.path)):
        assert text in told
    return told


def left(root: Path) -> set[str]:
    """The files in the data folder."""
    return {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def zipped(files: dict[str, bytes | str]) -> bytes:
    """A zip archive; names are taken as they are."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as opened:
        for name, content in files.items():
            opened.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return made.getvalue()


@dataclass
class Page:
    """One address.

    Attributes:
        content: the file.
        etag: its entity tag; None for a server without.
        ranges: whether ranges are honoured.
        cuts: bytes after which each answer breaks off, one for each request; later ones are whole.
        status: an error to answer instead, or several, one for each request.
        stall: seconds of silence before the last byte.
        length: whether the size is said.
        leads_to: where a redirect goes.
        headers: further ones.
    """

    content: bytes = CONTENT
    etag: str | None = '"one"'
    ranges: bool = True
    cuts: list[int] = field(default_factory=list)
    status: list[int] = field(default_factory=list)
    stall: float = 0.0
    length: bool = True
    leads_to: str | None = None
    headers: dict[str, str] = field(default_factory=dict)


class Site:
    """The server: pages by path, and the ``Range`` header of every request."""

    def __init__(self) -> None:
        self.pages: dict[str, Page] = {}
        self.asked: list[tuple[str, str | None]] = []
        self._closing = threading.Event()
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                site.answer(self)

            def log_message(self, *_: Any) -> None:
                """Silent."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()

    def url(self, path: str, page: Page | None = None) -> str:
        """The address of a path, with a page put there."""
        if page is not None:
            self.pages[path] = page
        return f"http://127.0.0.1:{self._server.server_port}/{path}"

    def close(self) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        path = request.path.lstrip("/")
        asked = request.headers.get("Range")
        self.asked.append((path, asked))
        page = self.pages.get(path)
        if page is None or page.status:
            request.send_error(404 if page is None else page.status.pop(0))
            return
        if page.leads_to is not None:
            request.send_response(302)
            request.send_header("Location", page.leads_to)
            request.end_headers()
            return
        start = self._start(request, page, asked)
        if start is not None:
            self._send(request, page, start)

    def _start(self, request: BaseHTTPRequestHandler, page: Page, asked: str | None) -> int | None:
        current = request.headers.get("If-Range") in (None, page.etag)
        start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked and page.ranges and current else 0
        if start >= len(page.content) > 0:
            request.send_response(416)
            request.send_header("Content-Range", f"bytes */{len(page.content)}")
            request.send_header("Content-Length", "0")
            request.end_headers()
            return None
        return start

    def _send(self, request: BaseHTTPRequestHandler, page: Page, start: int) -> None:
        body = page.content[start:]
        request.send_response(206 if start else 200)
        if start:
            request.send_header("Content-Range", f"bytes {start}-{len(page.content) - 1}/{len(page.content)}")
        if page.etag is not None:
            request.send_header("ETag", page.etag)
        if page.length:
            request.send_header("Content-Length", str(len(body)))
        for name, value in page.headers.items():
            request.send_header(name, value)
        request.end_headers()
        sent = body[: page.cuts.pop(0)] if page.cuts else body
        try:
            request.wfile.write(sent[:-1])
            self._closing.wait(page.stall)
            request.wfile.write(sent[-1:])
        except OSError:
            return  # the client has gone, as some tests want it to
        if len(sent) < len(body):
            request.close_connection = True


class Story:
    """Keeps the lines that a fetch reports."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def __call__(self, text: str) -> None:
        self.texts.append(text)

    @property
    def starts(self) -> list[str]:
        """From where each answer was taken, such as ``100 kB``."""
        starts = [text.partition("going on after ")[2] for text in self.texts if text.startswith("fetching")]
        return [start or "0" for start in starts]
