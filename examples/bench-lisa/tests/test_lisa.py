"""LISA keeps the harness's contract, and does what its paper says."""

import pytest
import torch
from harness.testing import conformance

from bench_lisa.lisa import beta, partners

test_conformance = conformance("baseline/lisa")

Y = torch.tensor([0, 0, 0, 1, 1, 1, 2, 0])
ENV = torch.tensor([0, 1, 0, 0, 1, 1, 0, -1])


WITHIN_LABEL = {(0, 1), (1, 0), (1, 2), (2, 1), (3, 4), (3, 5), (4, 3), (5, 3)}
WITHIN_ENVIRONMENT = {
    *((0, 3), (0, 6), (2, 3), (2, 6), (3, 0), (3, 2), (3, 6), (6, 0), (6, 2), (6, 3)),
    *((1, 4), (1, 5), (4, 1), (5, 1)),
}


@pytest.mark.parametrize(("within_label", "expected"), [(True, WITHIN_LABEL), (False, WITHIN_ENVIRONMENT)])
def test_partners_differ_in_one_thing_alone(within_label: bool, expected: set[tuple[int, int]]) -> None:
    alike, apart = (Y, ENV) if within_label else (ENV, Y)
    met = set()
    for seed in range(50):
        rng = torch.Generator().manual_seed(seed)
        found = partners(Y, ENV, within_label=within_label, rng=rng)
        for i, j in enumerate(found.tolist()):
            if i != j:
                assert alike[i] == alike[j]
                assert apart[i] != apart[j]
                met.add((i, j))
    assert met == expected, "all that are allowed; graph 7, of no environment, is left as it is"


def test_the_middle_of_uniform_numbers_is_beta() -> None:
    for alpha in (1, 2, 5):
        drawn = beta(40_000, alpha, torch.Generator().manual_seed(1))
        assert drawn.mean() == pytest.approx(0.5, abs=0.01)
        assert drawn.var() == pytest.approx(1 / (4 * (2 * alpha + 1)), abs=0.003)
