"""The linear map: torch's values in another order of memory."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from harness.nn import GINConv
from harness.nn.layers import Linear

SHAPES = [(4, 64), (32, 64), (64, 32), (1, 8), (8, 1), (1, 1)]


def both(shape: tuple[int, int], bias: bool = True) -> tuple[Linear, nn.Linear]:
    torch.manual_seed(0)
    ours = Linear(*shape, bias=bias)
    torch.manual_seed(0)
    return ours, nn.Linear(*shape, bias=bias)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("bias", [True, False])
def test_start_output_and_gradients_are_those_of_torch(shape: tuple[int, int], bias: bool) -> None:
    ours, theirs = both(shape, bias)
    assert torch.equal(ours.weight, theirs.weight)
    rows = torch.randn(50, shape[0])
    inputs = [rows.clone().requires_grad_() for _ in range(2)]
    for module, x in zip((ours, theirs), inputs, strict=True):
        module(x).square().sum().backward()
    torch.testing.assert_close(ours(rows), theirs(rows))
    torch.testing.assert_close(inputs[0].grad, inputs[1].grad)
    for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad, rtol=1e-4, atol=1e-4)


def test_weights_lie_column_by_column_and_stay_so() -> None:
    ours, theirs = both((4, 64))
    assert ours.weight.stride() == (1, 64)
    assert copy.deepcopy(ours).weight.stride() == (1, 64)
    assert ours.double().weight.stride() == (1, 64)
    ours.load_state_dict(theirs.state_dict())
    assert ours.weight.stride() == (1, 64)
    theirs.load_state_dict(ours.state_dict())
    assert theirs.weight.is_contiguous()
    assert torch.equal(ours.weight.float(), theirs.weight)


def test_gradients_take_the_layout_also_where_they_are_summed_or_differentiated_twice() -> None:
    """Then the optimizer has nothing to copy."""
    layer = Linear(4, 64)
    rows = torch.randn(20, 4)
    (layer(rows).square().mean() + layer(-rows).relu().mean()).backward()
    assert layer.weight.grad is not None
    assert layer.weight.grad.stride() == (1, 64)
    layer.weight.grad = None
    (slope,) = torch.autograd.grad(layer(rows).square().mean(), layer.weight, create_graph=True)
    slope.square().sum().backward()
    assert layer.weight.grad is not None
    assert layer.weight.grad.stride() == (1, 64)


def test_convolutions_use_it() -> None:
    conv = GINConv(4, 32)
    assert [part.weight.stride() for part in conv.mlp if isinstance(part, nn.Linear)] == [(1, 64), (1, 32)]
