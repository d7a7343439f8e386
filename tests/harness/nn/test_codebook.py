"""The codebook: look-up against a loop, straight-through gradient, moving averages and start."""

import math

import pytest
import torch

from harness.nn import Codebook


def gen(seed=0):
    return torch.Generator().manual_seed(seed)


def book(size=6, dim=3, **values):
    torch.manual_seed(0)
    return Codebook(size, dim, **values)


def rows(n=40, dim=3, scale=1.0):
    return torch.randn(n, dim, generator=gen(1)) * scale


def test_each_row_gets_the_nearest_code(monkeypatch):
    codebook, x = book(), rows()
    expected = torch.cdist(x.double(), codebook.codes.double()).argmin(1)
    assert torch.equal(codebook.nearest(x), expected)
    assert torch.equal(codebook.eval()(x)[0], x + (codebook.codes[expected] - x))
    monkeypatch.setattr("harness.nn.codebook._CHUNK", 20)
    assert torch.equal(codebook.nearest(x), expected)


def test_equally_near_codes_give_the_first():
    codebook = book()
    codebook.codes.fill_(0.5)
    assert not codebook.nearest(rows()).any()


def test_gradient_goes_straight_through():
    x = rows().requires_grad_()
    codebook = book()
    (codebook(x)[0] * 3.0).sum().backward()
    assert torch.equal(x.grad, torch.full_like(x, 3.0))


def test_commitment_pulls_rows_to_codes_and_is_the_mean_square():
    codebook, x = book(), rows().requires_grad_()
    chosen = codebook.codes[codebook.nearest(x)].clone()
    _, commitment = codebook(x)
    assert torch.allclose(commitment, (x - chosen).square().mean())
    commitment.backward()
    assert torch.allclose(x.grad, 2 * (x - chosen).detach() / x.numel())


def test_one_code_is_its_moving_average_over_its_size():
    codebook, x = book(1), rows()
    start = codebook.codes[0].clone()
    quantised, _ = codebook(x)
    assert torch.allclose(quantised, start.expand_as(x), atol=1e-6)  # look up first, then update
    expected = (0.9 * start + 0.1 * x.sum(0)) / (0.1 * len(x))
    assert torch.allclose(codebook.codes[0], expected, rtol=1e-5)
    assert torch.allclose(codebook.sizes, torch.tensor([0.1 * len(x)]))


def test_two_steps_against_a_loop_in_float64():
    codebook, batches = book(4, decay=0.7), [rows(), rows(25, scale=2.0)]
    codes, sizes = codebook.codes.double().clone(), torch.zeros(4, dtype=torch.float64)
    totals = codes.clone()
    for x in batches:
        codebook(x)
        ids = torch.cdist(x.double(), codes).argmin(1)
        for k in range(4):
            chosen = x.double()[ids == k]
            sizes[k] = 0.7 * sizes[k] + 0.3 * len(chosen)
            totals[k] = 0.7 * totals[k] + 0.3 * chosen.sum(0)
        smooth = (sizes + 1e-5) / (sizes.sum() + 4e-5) * sizes.sum()
        codes = totals / smooth.unsqueeze(1)
        assert torch.allclose(codebook.codes.double(), codes, rtol=1e-4)


def test_codes_that_the_first_batch_leaves_out_are_flung_away_and_come_back_by_decay():
    codebook, x = book(2), rows(scale=0.01) + 1.0
    codebook.codes.copy_(torch.tensor([[1.0, 1.0, 1.0], [-3.0, 0.0, 4.0]]))
    codebook.totals.copy_(codebook.codes)
    norms = []
    for _ in range(3):
        codebook(x)
        norms.append(float(codebook.codes[1].norm()))
    assert norms[0] == pytest.approx(0.9 * 5.0 / 1e-5, rel=1e-3)
    assert norms[1] == pytest.approx(0.9 * norms[0], rel=1e-3)
    assert norms[2] == pytest.approx(0.81 * norms[0], rel=1e-3)


def test_unused_codes_do_not_linger_as_subnormal_numbers():
    """Decay alone leaves multiples of 1e-45 for ever, with which a processor takes tens of times as long."""
    book = Codebook(50, 4)
    rows = torch.ones(2, 4)
    for _ in range(1200):
        book(rows)
    for values in (book.sizes, book.totals, book.codes):
        assert not ((values != 0) & (values.abs() < torch.finfo(values.dtype).tiny)).any()


def test_uniform_start_has_the_library_bound():
    codes = book(50, 8).codes
    bound = math.sqrt(6 / (50 * 8))
    assert 0.95 * bound < float(codes.abs().max()) <= bound


def test_evaluation_changes_nothing_and_costs_nothing():
    codebook, x = book().eval(), rows().requires_grad_()
    before = {name: value.clone() for name, value in codebook.state_dict().items()}
    _, commitment = codebook(x)
    assert float(commitment.detach()) == 0.0
    assert commitment.requires_grad
    assert all(torch.equal(value, before[name]) for name, value in codebook.state_dict().items())


def test_no_rows():
    quantised, commitment = book()(torch.zeros(0, 3, requires_grad=True))
    assert quantised.shape == (0, 3)
    assert float(commitment.detach()) == 0.0


def test_state_round_trip():
    codebook = book()
    codebook(rows())
    fresh = book()
    fresh.load_state_dict(codebook.state_dict())
    assert torch.equal(fresh(rows())[0], codebook(rows())[0])
    assert torch.equal(fresh.codes, codebook.codes)
