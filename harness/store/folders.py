"""The folders of the harness: its cache, the store, data files, the index."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from harness.errors import UserError


def cache_root() -> Path:
    """Return ``BENCH_CACHE``, else ``equad-bench`` in ``XDG_CACHE_HOME`` or ``~/.cache``.

    Without a home it is in the folder for temporary files.
    """
    chosen = os.environ.get("BENCH_CACHE")
    if chosen:
        return Path(chosen).expanduser().absolute()
    xdg = os.environ.get("XDG_CACHE_HOME", "")
    if Path(xdg).is_absolute():
        return Path(xdg) / "equad-bench"
    try:
        return Path.home() / ".cache" / "equad-bench"
    except RuntimeError:
        return Path(tempfile.gettempdir()) / "equad-bench"


def store_root() -> Path:
    """Return ``BENCH_STORE``, else ``store`` in :func:`cache_root`."""
    chosen = os.environ.get("BENCH_STORE")
    return Path(chosen).expanduser().absolute() if chosen else cache_root() / "store"


def data_root() -> Path:
    """Return the default folder of data files: ``BENCH_DATA``, else ``data`` in :func:`cache_root`."""
    chosen = os.environ.get("BENCH_DATA")
    return Path(chosen).expanduser().absolute() if chosen else cache_root() / "data"


def data_folder(given: Path | None, named: str, *, made: bool = False) -> Path:
    """Return the folder of data files: the given one, else the default one, which need not be there.

    Args:
        given: the user's choice.
        named: the option or variable that names it, for the error.
        made: the caller makes the folder where it is absent.

    Raises:
        UserError: the given folder is a file, or does not exist.
    """
    if given is None:
        return data_root()
    folder = given.expanduser().absolute()
    if not folder.is_dir() and (folder.exists() or not made):
        what = "is a file" if folder.exists() else "does not exist"
        raise UserError(f"the data folder {given} {what}; {named} names it")
    return folder


def index_root() -> Path:
    """Return the folder of the index of components."""
    return cache_root() / "index"
