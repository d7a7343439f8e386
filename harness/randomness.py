"""Random state, owned by the engine alone: one stream per (seed, role), never a draw by a plugin from global state."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


def derive(seed: int, role: str) -> int:
    """Return a 63-bit seed for one role; equal inputs give equal outputs on every machine and Python."""
    digest = hashlib.sha256(f"{seed}/{role}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def generator(seed: int, role: str) -> torch.Generator:
    """Return a CPU generator of its own for one role."""
    return torch.Generator().manual_seed(derive(seed, role))


@contextmanager
def seeded(seed: int, role: str) -> Iterator[None]:
    """Run a block with the global states (torch, its GPU, NumPy, ``random``) seeded for a role, then put them back.

    ``nn.Linear`` and dropout draw from torch's global generator; NumPy's and Python's are covered so that a
    third-party library that uses them is reproducible too.
    """
    states = torch.get_rng_state(), np.random.get_state(), random.getstate()
    # A GPU that has not started is left alone: in a worker for the CPU it never does.
    device = torch.cuda.get_rng_state() if torch.cuda.is_initialized() else None
    value = derive(seed, role)
    if torch.backends.cuda.is_built():
        torch.manual_seed(value)
    else:  # what it does for the CPU alone; it looks for other devices for longer than a small stage takes
        torch.default_generator.manual_seed(value)
    np.random.seed(value % 2**32)
    random.seed(value)
    try:
        yield
    finally:
        torch.set_rng_state(states[0])
        np.random.set_state(states[1])
        random.setstate(states[2])
        if device is not None:
            torch.cuda.set_rng_state(device)
