"""Reads global random state, to see whether a component touched it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from harness.randomness import seeded


def python_states() -> tuple[Any, ...]:
    """The states of NumPy's and Python's global generators, comparable."""
    kind, keys, *rest = np.random.get_state()
    return str(kind), np.asarray(keys).tobytes(), *rest, random.getstate()


def all_states() -> tuple[Any, ...]:
    """The states of torch's, NumPy's and Python's global generators, comparable."""
    return torch.get_rng_state().numpy().tobytes(), *python_states()


@contextmanager
def scrambled(name: str) -> Iterator[None]:
    """Run a block from global states that nobody expects, another for each name, and put them back.

    What leans on global state, or sets it to a value of its own, then shows.
    """
    with seeded(0, f"conformance/{name}"):
        torch.rand(7)
        np.random.rand(7)
        random.random()
        yield
