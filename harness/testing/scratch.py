"""Folders that are gone when the process ends, also one that multiprocessing started."""

from __future__ import annotations

import shutil
import tempfile
from multiprocessing.util import Finalize
from pathlib import Path


def scratch_folder(name: str) -> Path:
    """A new folder for the rest of the process."""
    folder = tempfile.mkdtemp(prefix=f"bench-check-{name}-")
    Finalize(None, shutil.rmtree, args=(folder, True), exitpriority=0)
    return Path(folder)
