"""Classifier heads."""

from __future__ import annotations

from torch import nn

from harness.nn.linear import Linear


class MLPHead(nn.Sequential):
    """``hidden_layers`` times (Linear, ReLU) of the input's width, then a Linear to the logits."""

    def __init__(self, in_dim: int, out_dim: int, hidden_layers: int) -> None:
        layers: list[nn.Module] = []
        for _ in range(hidden_layers):
            layers += [Linear(in_dim, in_dim), nn.ReLU(inplace=True)]
        super().__init__(*layers, Linear(in_dim, out_dim))
