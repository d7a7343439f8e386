"""The linear map, with its weights in the order in which products with many narrow rows are fast."""

from __future__ import annotations

from torch import nn


class Linear(nn.Linear):
    """``nn.Linear`` with the same weights, whose (out, in) matrix lies in memory column by column.

    The product of (N, in) rows and the transposed weights then reads both row by row, and autograd picks the order of
    factors for the weights' gradient by it. Where a layer is wider than its input, as the first map of a GIN layer
    is, torch's usual order costs up to five times as much. Names, start, copies and stored files are
    those of ``nn.Linear``; ``load_state_dict`` keeps the layout. It takes a
    ``reshape`` where contiguous weights would take a ``view``.
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        super().__init__(in_features, out_features, bias)
        self.weight = nn.Parameter(self.weight.detach().t().contiguous().t())
