"""Reads global random state, to see whether a component touched it."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch


def python_states() -> tuple[Any, ...]:
    """The states of NumPy's and Python's global generators, comparable."""
    kind, keys, *rest = np.random.get_state()
    return str(kind), np.asarray(keys).tobytes(), *rest, random.getstate()


def all_states() -> tuple[Any, ...]:
    """The states of torch's, NumPy's and Python's global generators, comparable."""
    return torch.get_rng_state().numpy().tobytes(), *python_states()
