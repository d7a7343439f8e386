"""The command ``bench``, in a module of a name that no project has: it tells what shadows the packages it needs."""

from __future__ import annotations

import os
import signal
import sys
import threading
from importlib.util import find_spec
from pathlib import Path

GRACE = 5.0
"""Seconds that threads and exit handlers have after a command has ended."""
INTERRUPTED = 130


def main() -> None:
    """Run the command line, unless another ``harness`` or ``plugins`` stands before this distribution's."""
    for name in ("harness", "plugins"):
        spec = find_spec(name)
        places = [spec.origin, *(spec.submodule_search_locations or ())] if spec else []
        place = next((Path(place).resolve() for place in places if place), None)
        if place != Path(__file__).resolve().with_name(name) / "__init__.py":
            text = (
                f"error: {place} shadows the package '{name}' of bench; rename it, or take its folder from PYTHONPATH"
            )
            print(text, file=sys.stderr)
            sys.exit(2)
    from harness.cli import main as command_line

    code = 1
    try:
        command_line()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(bool(ended.code))
        raise
    except KeyboardInterrupt:  # a further Ctrl-C, while the command ended after the first
        code = INTERRUPTED
        raise SystemExit(code) from None
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # how it ends is settled, and within the time of grace
        last = threading.Timer(GRACE, _leave, [code])
        last.daemon = True
        last.start()


def _leave(code: int) -> None:
    """End the process, which a thread or an exit handler of a plugin keeps from ending."""
    threads = [thread for thread in threading.enumerate() if not thread.daemon and thread != threading.main_thread()]
    names = ", ".join(ascii(thread.name) for thread in threads) or "an exit handler"
    print(f"note: what a plugin left running is ended: {names}", file=sys.stderr, flush=True)
    os._exit(code)
