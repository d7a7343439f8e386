"""Start processes that end with the one that started them, though that one were killed."""

from __future__ import annotations

import os
import sys
import threading
import time
from pathlib import Path


def command(call: str, *arguments: str) -> list[str]:
    """Return the command of a process that finds the same modules as this one, and runs ``call``."""
    path = [str(Path(__file__).resolve().parents[2]), *filter(None, sys.path)]
    start = f"import sys; sys.path[:] = {path!r}; from {__name__} import end_with; end_with({os.getpid()}); {call}"
    return [sys.executable, "-c", start, *arguments]


def end_with(parent: int) -> None:
    """End this process when its parent is another than that one (not on Windows)."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.2)
        os._exit(1)

    threading.Thread(target=watch, name="bench-parent-watch", daemon=True).start()
