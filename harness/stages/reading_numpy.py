"""Reading tensors as NumPy arrays, for the parent process, which does not import torch."""

from __future__ import annotations

from pathlib import Path

from safetensors.numpy import load_file

from harness.data import Array


def read_arrays(path: Path) -> dict[str, Array]:
    """The arrays of one safetensors file."""
    return dict(load_file(path))
