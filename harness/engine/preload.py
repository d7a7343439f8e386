"""Imported once by the fork server: workers start from a process that has torch already. Never import it elsewhere."""

from __future__ import annotations

import os
import signal
from contextlib import suppress

from harness.engine.process_state import SAFE_PATH, limit_threads

signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole terminal group; the parent acts on it
os.environ.pop(SAFE_PATH, None)  # the server's own; what a plugin starts has the paths that Python gives it
limit_threads()  # before torch and NumPy read the environment

with suppress(ImportError):  # a job that needs no torch runs without
    import torch

    import harness.stages.train  # noqa: F401

    torch.set_num_threads(1)
    # The first optimizer of a process imports eight hundred modules of torch: once here rather than in each worker.
    torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))])
