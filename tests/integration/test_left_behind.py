"""Nothing that a plugin leaves in the parent keeps ``bench`` from ending."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from integration_kit import Workshop

ROOT = Path(__file__).resolve().parents[2]
THREAD = """
import threading, time
threading.Thread(target=lambda: time.sleep(60), name="ticker").start()  # as a plugin that is imported
import equad_bench
equad_bench.GRACE = 0.2
equad_bench.main()
"""


@pytest.mark.parametrize(("words", "code"), [(("runs",), 0), (("report", "none"), 2)])
def test_a_thread_in_the_parent_keeps_no_command_from_ending(
    workshop: Workshop, words: tuple[str, ...], code: int
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", THREAD, *words],
        cwd=workshop.folder,
        env=workshop.environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )
    assert done.returncode == code, done.stderr
    assert done.stderr.endswith("note: what a plugin left running is ended: 'ticker'\n")


AGAIN = """
import atexit, os, signal, sys
import equad_bench, harness.cli

def command():
    raise {"exit": SystemExit(130), "interrupt": KeyboardInterrupt()}[sys.argv[1]]

harness.cli.main = command
atexit.register(os.kill, os.getpid(), signal.SIGINT)
equad_bench.main()
"""


@pytest.mark.parametrize("how", ["exit", "interrupt"])
def test_a_further_interrupt_while_the_command_ends_leaves_no_traceback(how: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", AGAIN, how], cwd=ROOT, capture_output=True, text=True, check=False, timeout=50
    )
    assert (done.returncode, done.stderr) == (130, "")
