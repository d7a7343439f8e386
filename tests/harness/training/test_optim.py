"""Our Adam against torch's."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor

from harness import Adam


def parameters() -> list[Tensor]:
    draw = torch.Generator().manual_seed(0)
    return [torch.randn(shape, generator=draw).requires_grad_() for shape in ((3, 4), (5,), (1,))]


def gradients(step: int) -> list[Tensor | None]:
    """The second parameter has no gradient in every third step, and starts late."""
    draw = torch.Generator().manual_seed(step)
    found: list[Tensor | None] = [torch.randn(p.shape, generator=draw) for p in parameters()]
    return [found[0], None if step % 3 == 0 else found[1], found[2]]


def walk(optimizer: torch.optim.Optimizer, steps: range) -> None:
    for step in steps:
        for parameter, gradient in zip(optimizer.param_groups[0]["params"], gradients(step), strict=True):
            parameter.grad = gradient
        optimizer.step()


@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_bit_for_bit_torch_fused_adam(weight_decay: float) -> None:
    ours, theirs = parameters(), parameters()
    walk(Adam(ours, lr=0.01, weight_decay=weight_decay), range(10))
    walk(torch.optim.Adam(theirs, lr=0.01, weight_decay=weight_decay, fused=True), range(10))
    assert all(torch.equal(one, other) for one, other in zip(ours, theirs, strict=True))


@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_bit_for_bit_torch_fused_adamw(weight_decay: float) -> None:
    ours, theirs, plain = parameters(), parameters(), parameters()
    walk(Adam(ours, lr=0.01, weight_decay=weight_decay, decoupled=True), range(10))
    walk(torch.optim.AdamW(theirs, lr=0.01, weight_decay=weight_decay, fused=True), range(10))
    walk(Adam(plain, lr=0.01, weight_decay=weight_decay), range(10))
    assert all(torch.equal(one, other) for one, other in zip(ours, theirs, strict=True))
    assert all(torch.equal(one, other) == (weight_decay == 0) for one, other in zip(ours, plain, strict=True))


def test_decoupled_decay_shrinks_by_the_rate_times_the_decay() -> None:
    """With a gradient of zero the step is zero, and a weight of 2 becomes 2 (1 - 0.1 * 0.5)."""
    weight = torch.full((1,), 2.0, requires_grad=True)
    weight.grad = torch.zeros(1)
    Adam([weight], lr=0.1, weight_decay=0.5, decoupled=True).step()  # type: ignore[list-item]
    assert weight.item() == pytest.approx(1.9)


def test_state_can_be_saved_and_loaded() -> None:
    whole, parts = parameters(), parameters()
    walk(Adam(whole), range(8))
    first = Adam(parts)
    walk(first, range(4))
    second = Adam(parts)
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    walk(second, range(4, 8))
    assert all(torch.equal(one, other) for one, other in zip(whole, parts, strict=True))


def test_groups_have_their_own_settings() -> None:
    still, moving = parameters()[:2]
    optimizer = Adam([{"params": [still], "lr": 0.0}, {"params": [moving]}], lr=0.1)  # type: ignore[list-item]
    before = still.detach().clone(), moving.detach().clone()
    for parameter in (still, moving):
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    assert torch.equal(still, before[0])
    assert not torch.equal(moving, before[1])


def test_zero_grad_drops_gradients_and_a_step_without_any_does_nothing() -> None:
    own = parameters()
    optimizer = Adam(own)
    own[0].grad = torch.ones_like(own[0])
    optimizer.zero_grad()
    assert all(parameter.grad is None for parameter in own)
    optimizer.step()
    assert all(torch.equal(one, other) for one, other in zip(own, parameters(), strict=True))


def test_closure_is_refused() -> None:
    with pytest.raises(ValueError, match="closure"):
        Adam(parameters()).step(lambda: None)


@pytest.mark.parametrize("across", [True, False])
def test_a_gradient_in_another_layout_than_its_parameter_is_not_scrambled(across: bool) -> None:
    """The fused kernel walks through memory and would add the gradient to the wrong weights."""
    gradient = torch.arange(12.0).reshape(3, 4) - 5
    ours = torch.zeros(3, 4).requires_grad_() if across else torch.zeros(4, 3).t().requires_grad_()
    theirs = torch.zeros(3, 4).requires_grad_()
    ours.grad = gradient.t().contiguous().t() if across else gradient.clone()
    theirs.grad = gradient.clone()
    Adam([ours], weight_decay=0.1).step()  # type: ignore[list-item]
    torch.optim.Adam([theirs], weight_decay=0.1, fused=False, foreach=False).step()
    torch.testing.assert_close(ours, theirs)
