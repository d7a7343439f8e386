"""One HTTP request: http and https only, the environment's proxies, and faults sorted by what may pass."""

from __future__ import annotations

import email.message
import http.client
import socket
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any
from urllib.parse import urlsplit

from harness._version import __version__
from harness.errors import DataError

SCHEMES = ("http", "https")
_PASSING = (408, 425, 429, 500, 502, 503, 504)
_LONGEST_WAIT = 30.0


class Unreachable(DataError):
    """The address gives no file; trying again now would not help."""


class Interrupted(Exception):
    """A fault that may pass: what has arrived stays, and the request may be made again.

    Attributes:
        wait: seconds that the server asks for, or None.
    """

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait


class OutOfRange(Exception):
    """The server has nothing from the asked byte on; ``total`` is its size of the file, or None."""

    def __init__(self, total: int | None) -> None:
        super().__init__(total)
        self.total = total


class Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects to http and https, never from https to http."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        fp.close()
        check_address(newurl)
        if req.type == "https" and urlsplit(newurl).scheme == "http":
            raise Unreachable(f"{req.full_url} leads to an address without encryption: {newurl}")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def check_address(url: str) -> None:
    """Refuse what is not a web address.

    Raises:
        Unreachable: another scheme, or no host.
    """
    try:
        parts = urlsplit(url)
        usable = url.isascii() and parts.scheme in SCHEMES and bool(parts.hostname)
    except ValueError:
        usable = False
    if not usable:
        raise Unreachable(f"'{url}' is not an http or https address")


def open_url(url: str, headers: Mapping[str, str], timeout: float) -> http.client.HTTPResponse:
    """Open an address; the caller closes the response.

    Raises:
        Unreachable: the address is refused, unknown or not there.
        Interrupted: a fault that may pass.
        OutOfRange: the answer to a range that the file does not have.
    """
    check_address(url)
    sent = {"User-Agent": f"equad-bench/{__version__}", "Accept-Encoding": "identity", **headers}
    with sorting_faults(url):
        try:
            response: http.client.HTTPResponse = _opener().open(
                urllib.request.Request(url, headers=sent), timeout=timeout
            )
        except urllib.error.HTTPError as error:
            error.close()
            raise _answered(url, error) from None
    return response


def _opener() -> urllib.request.OpenerDirector:
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
        Redirects(),
    ):
        opener.add_handler(handler)
    return opener


def _answered(url: str, error: urllib.error.HTTPError) -> Exception:
    told = f"the server answers {error.code} {error.reason or ''}".rstrip()
    if error.code == 416:
        return OutOfRange(total_of(error.headers))
    if error.code in _PASSING:
        return Interrupted(told, _seconds(error.headers.get("Retry-After")))
    return Unreachable(f"{told} for {url}")


def _seconds(text: str | None) -> float | None:
    try:
        wait = _LONGEST_WAIT if text is None else float(text)
    except ValueError:
        return None
    return None if text is None or wait != wait else min(max(wait, 0.0), _LONGEST_WAIT)  # noqa: PLR0124 - not a number


def total_of(headers: email.message.Message) -> int | None:
    """The whole file's size in ``Content-Range``, or None."""
    return byte_count((headers.get("Content-Range") or "").rpartition("/")[2].strip())


def byte_count(text: str | None) -> int | None:
    """A number of bytes as a header gives it, or None for anything else."""
    return int(text) if text and text.isascii() and text.isdecimal() and len(text) < 20 else None


@contextmanager
def sorting_faults(url: str) -> Iterator[None]:
    """Turn faults of the network into messages.

    Raises:
        Unreachable: trying again would not help.
        Interrupted: the fault may pass.
    """
    try:
        yield
    except (OSError, http.client.HTTPException) as error:
        raise _fault(url, error) from None


def _fault(url: str, error: BaseException) -> Exception:
    host = urlsplit(url).hostname
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(cause, socket.gaierror):
        return Unreachable(f"the host {host} is not found: no network, or a wrong address")
    if isinstance(cause, ssl.SSLCertVerificationError):
        return Unreachable(f"the certificate of {host} cannot be trusted: {cause.verify_message}")
    if isinstance(cause, http.client.InvalidURL):
        return Unreachable(f"'{url}' is not an address: {cause}")
    if isinstance(cause, TimeoutError):
        return Interrupted(f"{host} did not answer in time")
    if isinstance(cause, (OSError, http.client.HTTPException)):
        return Interrupted(_words(cause))
    return Unreachable(f"{url}: {cause}")


def _words(error: BaseException) -> str:
    if isinstance(error, http.client.IncompleteRead):
        return "the connection ended early"
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return f"the connection failed: {text}"
