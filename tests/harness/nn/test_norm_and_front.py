"""The norm layer's rule for single rows, and the fronts on raw features."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from harness import Features
from harness.nn import BatchNorm, make_front


def test_norm_is_torch_batch_norm() -> None:
    ours, theirs = BatchNorm(4), nn.BatchNorm1d(4)
    theirs.load_state_dict(ours.state_dict())
    for step in range(3):
        rows = torch.randn(2 + step, 4) * 3 + 1
        torch.testing.assert_close(ours(rows), theirs(rows))
    torch.testing.assert_close(ours.running_var, theirs.running_var)
    ours.eval()
    theirs.eval()
    torch.testing.assert_close(ours(rows), theirs(rows))


def test_one_row_is_normalised_with_the_running_statistics() -> None:
    norm = BatchNorm(4)
    norm(torch.randn(50, 4) * 2 + 3)
    before = {name: value.clone() for name, value in norm.state_dict().items()}
    row = torch.randn(1, 4, requires_grad=True)
    out = norm(row)
    assert all(torch.equal(value, before[name]) for name, value in norm.state_dict().items())
    out.sum().backward()
    assert torch.isfinite(row.grad).all()
    norm.eval()
    torch.testing.assert_close(out, norm(row))
    assert BatchNorm(4)(torch.zeros(0, 4)).shape == (0, 4)


@pytest.mark.parametrize("sizes", [(5, 3, 2), (600, 3)])
def test_categorical_front_is_a_sum_of_embeddings(sizes: tuple[int, ...]) -> None:
    front = make_front(Features("categorical", sizes), 6)
    tables = [table.clone().requires_grad_() for table in torch.split(front.weight.detach(), list(sizes))]
    codes = torch.stack([torch.randint(size, (40,)) for size in sizes], 1)
    expected = sum(table[codes[:, column]] for column, table in enumerate(tables))
    target = torch.randn(40, 6)
    torch.testing.assert_close(front(codes), expected)
    (front(codes) * target).sum().backward()
    (expected * target).sum().backward()
    torch.testing.assert_close(front.weight.grad, torch.cat([table.grad for table in tables]))


def test_each_table_is_initialised_by_its_own_size() -> None:
    front = make_front(Features("categorical", (400, 2)), 4)
    large, small = torch.split(front.weight.detach(), [400, 2])
    assert large.abs().max() <= (6 / 404) ** 0.5
    assert small.abs().max() > (6 / 404) ** 0.5


def test_categorical_front_refuses_numbers() -> None:
    with pytest.raises(TypeError, match="integer codes"):
        make_front(Features("categorical", (5,)), 2)(torch.rand(3, 1))


def test_numeric_and_missing_features() -> None:
    assert isinstance(make_front(Features("numeric", (7,)), 5), nn.Linear)
    assert make_front(Features("numeric", (7,)), 5)(torch.rand(3, 7)).shape == (3, 5)
    rows = make_front(Features("none"), 5)(torch.rand(3, 0))
    assert rows.shape == (3, 5)
    assert torch.equal(rows[0], rows[2])
