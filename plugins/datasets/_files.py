"""Reading the files that a user puts into the data folder: every fault becomes one clear ``DataError``."""

from __future__ import annotations

import gzip
import io
import stat
import zlib
from pathlib import Path

from harness import DataError

GZIP_MAGIC = b"\x1f\x8b"
GROWTH = 200
"""Times its size that a gzip file of more than ``SMALL`` bytes may unpack to; tables of molecules take 3 to 20."""
SMALL = 256 << 20
_CHUNK = 1 << 20


def given_path(text: str, data_dir: Path | None) -> Path:
    """The path that a user wrote for ``path``: ``~`` is the home folder, a relative one starts at the data folder.

    One that is there beside the suite has become absolute before.
    """
    try:
        path = Path(text).expanduser()
    except RuntimeError:  # a home folder of nobody
        path = Path(text)
    if path.is_absolute():
        return path
    if data_dir is None:
        raise DataError(
            f"'path: {text}' is relative, not beside the suite, and no data folder is known: give --data-dir "
            "FOLDER or set BENCH_DATA"
        )
    return data_dir / path


def is_file(path: Path) -> bool:
    """Return True if there is a file at ``path``."""
    mode = _mode(path)
    if mode and not stat.S_ISREG(mode):
        raise DataError(f"{path}: a file is expected here, but this is a folder or a device")
    return mode != 0


def required(path: Path, how: str) -> Path:
    """Return ``path``, where there is a file."""
    if not is_file(path):
        raise DataError(f"missing data file: {path}\n{how}")
    return path


def known_folder(data_dir: Path | None, how: str = "") -> Path:
    """Return the data folder."""
    if data_dir is None:
        raise DataError(f"no data folder is known: give --data-dir FOLDER or set BENCH_DATA\n{how}".rstrip())
    return data_dir


def in_any_case(path: Path) -> Path:
    """The file that is there under this name, or under one that differs from it only in case; else ``path`` itself."""
    if is_file(path) or not is_folder(path.parent):
        return path
    return min((other for other in path.parent.iterdir() if other.name.lower() == path.name.lower()), default=path)


def is_folder(path: Path) -> bool:
    """Return True if there is a folder at ``path``."""
    return stat.S_ISDIR(_mode(path))


def _mode(path: Path) -> int:
    """Return the mode of what is there, 0 where there is nothing."""
    try:
        return path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return 0
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from None
    except ValueError as error:  # a null byte in the name
        raise DataError(f"{str(path)!r}: not a path: {error}") from None


def read_text(path: Path) -> str:
    """The text of a UTF-8 file, plain or gzipped, with or without a byte order mark."""
    if not is_file(path):
        raise DataError(f"{path}: there is no such file")
    try:
        data: bytes | bytearray = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from None
    if not data:
        raise DataError(f"{path}: the file is empty (0 bytes); delete it and put the whole file there")
    if data.startswith(GZIP_MAGIC):
        data = _gunzip(path, data)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not a UTF-8 text file (byte {error.start} cannot be read)") from None
    if "\0" in text:
        raise DataError(f"{path}: not a text file (it holds null bytes)")
    return text


def _gunzip(path: Path, data: bytes | bytearray) -> bytearray:
    most, found = max(SMALL, GROWTH * len(data)), bytearray()
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as stream:
            while len(found) <= most and (block := stream.read(_CHUNK)):
                found += block
    except (EOFError, OSError, zlib.error) as error:
        raise DataError(
            f"{path}: the gzip file is truncated or damaged ({error}); delete it and put the whole file there"
        ) from None
    if len(found) > most:
        raise DataError(
            f"{path}: {len(data):,} bytes of gzip unpack to more than {most:,}, which no table does; if it is meant, "
            "unpack it yourself"
        )
    return found
