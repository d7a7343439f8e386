"""Reading tensors as NumPy arrays, for the parent process, which does not import torch."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from safetensors import safe_open
from safetensors.numpy import load_file

from harness.data import Array


def read_arrays(path: Path) -> dict[str, Array]:
    """Return the arrays of one safetensors file."""
    return dict(load_file(path))


def read_some(path: Path, names: Collection[str]) -> dict[str, Array]:
    """Return those of the named arrays that a safetensors file has; read no others."""
    with safe_open(path, framework="np") as opened:
        return {name: opened.get_tensor(name) for name in opened.keys() if name in names}  # noqa: SIM118
