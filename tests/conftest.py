"""Fixtures that all tests share."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parents[1]

# As in a worker: two tests at a time on two cores, and threads that wait for each other cost more than they bring.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# The same examples at every run, so that a change is what breaks a test; `--hypothesis-profile default` draws new ones.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")

# A shell that starts the tests in the background makes them ignore Ctrl-C, and every process they start with them.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real data files: ``BENCH_DATA``, else ``shared/data`` beside the checkout; skips without one."""
    given = os.environ.get("BENCH_DATA")
    folder = Path(given) if given else ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no real data: {folder} is not there; set BENCH_DATA to a folder that holds it")
    return folder
