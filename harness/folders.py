"""Where the harness keeps what it can make again: the user's cache folder."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def cache_root() -> Path:
    """``BENCH_CACHE``, else ``equad-bench`` in ``XDG_CACHE_HOME`` or ``~/.cache``.

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
    """``BENCH_STORE``, else ``store`` in :func:`cache_root`."""
    chosen = os.environ.get("BENCH_STORE")
    return Path(chosen).expanduser().absolute() if chosen else cache_root() / "store"


def data_root() -> Path:
    """Where data files are by default: ``BENCH_DATA``, else ``data`` in :func:`cache_root`."""
    chosen = os.environ.get("BENCH_DATA")
    return Path(chosen).expanduser().absolute() if chosen else cache_root() / "data"


def index_root() -> Path:
    """Where the index of components is kept."""
    return cache_root() / "index"
