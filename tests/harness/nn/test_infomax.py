"""Contrastive objectives: closed values, parity with PyGCL, and what breaks other implementations."""

from __future__ import annotations

import math

import pytest
import torch

from harness.nn import info_nce, local_global_jsd

OWNER = torch.tensor([0, 0, 1, 1, 1, 2])


def similarities(matrix):
    """Graph and node vectors whose products are the given (B, N) matrix."""
    return torch.eye(len(matrix)), torch.as_tensor(matrix).T.contiguous()


def own(value, other):
    same = torch.arange(3).unsqueeze(1) == OWNER
    return torch.where(same, torch.tensor(value), torch.tensor(other))


@pytest.mark.parametrize(
    ("positive", "negative", "expected"),
    [
        (0.0, 0.0, 0.0),
        (2.0, 2.0, 0.8676),
        (50.0, -50.0, -2 * math.log(2)),
        (-20.0, 20.0, 40 - 2 * math.log(2)),
    ],
)
def test_local_global_values(positive, negative, expected):
    graphs, nodes = similarities(own(positive, negative))
    assert local_global_jsd(graphs, nodes, OWNER).item() == pytest.approx(expected, abs=1e-4)


def random_pair(seed=0, dtype=torch.float32):
    rng = torch.Generator().manual_seed(seed)
    graphs, nodes = (torch.randn(n, 4, generator=rng, dtype=dtype, requires_grad=True) for n in (3, 6))
    return graphs, nodes


def test_local_global_equals_pygcl_with_its_gradient():
    import GCL

    (g1, h1), (g2, h2) = random_pair(0), random_pair(1)
    contrast = GCL.models.DualBranchContrast(GCL.losses.JSD(), mode="G2L")
    theirs = contrast(h1=h1, h2=h2, g1=g1, g2=g2, batch=OWNER)
    ours = 0.5 * (local_global_jsd(g1, h2, OWNER) + local_global_jsd(g2, h1, OWNER))
    torch.testing.assert_close(ours, theirs)
    inputs = (g1, h1, g2, h2)
    for a, b in zip(torch.autograd.grad(ours, inputs), torch.autograd.grad(theirs, inputs), strict=True):
        torch.testing.assert_close(a, b)


def test_local_global_gradient():
    graphs, nodes = random_pair(dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda g, h: local_global_jsd(g, h, OWNER), (graphs, nodes))


def test_local_global_does_not_depend_on_the_order_of_graphs():
    graphs, nodes = random_pair()
    order = torch.tensor([2, 0, 1])
    nodes_order = torch.tensor([5, 0, 1, 2, 3, 4])
    other = local_global_jsd(graphs[order], nodes[nodes_order], torch.tensor([0, 1, 1, 2, 2, 2]))
    torch.testing.assert_close(local_global_jsd(graphs, nodes, OWNER), other)


def test_one_graph_has_no_negatives():
    with pytest.raises(ValueError, match="two graphs"):
        local_global_jsd(torch.ones(1, 2), torch.ones(4, 2), torch.zeros(4, dtype=torch.int64))
    with pytest.raises(ValueError, match="two graphs"):
        info_nce(torch.ones(1, 2), torch.ones(1, 2))


@pytest.mark.parametrize(
    ("vectors", "exclude", "expected"),
    [
        (torch.eye(4), False, math.log(math.exp(5) + 3) - 5),
        (torch.eye(4), True, math.log(3) - 5),
        (torch.ones(4, 3), False, math.log(4)),
        (torch.ones(4, 3), True, math.log(3)),
    ],
)
def test_info_nce_values(vectors, exclude, expected):
    found = info_nce(vectors, vectors, 0.2, exclude_positive=exclude)
    assert found.item() == pytest.approx(expected, abs=1e-5)


def test_one_direction_without_the_positive_is_the_ratio_of_similarities_in_each_row():
    first, second = (torch.randn(5, 3, generator=torch.Generator().manual_seed(s), dtype=torch.float64) for s in (0, 1))
    expected = []
    for i in range(5):
        similar = [math.exp(float(torch.cosine_similarity(first[i], other, 0)) / 0.2) for other in second]
        expected.append(-math.log(similar[i] / (sum(similar) - similar[i])))
    found = info_nce(first, second, 0.2, exclude_positive=True, one_direction=True)
    assert found.item() == pytest.approx(sum(expected) / 5, rel=1e-9)
    back = info_nce(second, first, 0.2, exclude_positive=True, one_direction=True)
    assert info_nce(first, second, 0.2, exclude_positive=True).item() == pytest.approx((found + back).item() / 2)
    assert found.item() != pytest.approx(back.item(), abs=1e-3)


def test_info_nce_equals_pygcl_with_its_gradient():
    import GCL

    first, second = (torch.randn(7, 5, generator=torch.Generator().manual_seed(s), requires_grad=True) for s in (0, 1))
    theirs = GCL.models.DualBranchContrast(GCL.losses.InfoNCE(tau=0.2), mode="G2G")(g1=first, g2=second)
    ours = info_nce(first, second, 0.2)
    torch.testing.assert_close(ours, theirs)
    for a, b in zip(
        torch.autograd.grad(ours, (first, second)), torch.autograd.grad(theirs, (first, second)), strict=True
    ):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("exclude", [False, True])
def test_info_nce_is_finite_at_a_low_temperature_where_pygcl_is_not(exclude):
    import GCL

    vectors = torch.eye(3).requires_grad_()
    loss = info_nce(vectors, vectors, 0.01, exclude_positive=exclude)
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(vectors.grad).all()
    theirs = GCL.models.DualBranchContrast(GCL.losses.InfoNCE(tau=0.01), mode="G2G")
    assert not torch.isfinite(theirs(g1=torch.eye(3), g2=torch.eye(3)))


def test_info_nce_of_zero_vectors_is_finite():
    zeros = torch.zeros(3, 4, requires_grad=True)
    info_nce(zeros, zeros).backward()
    assert torch.isfinite(zeros.grad).all()
