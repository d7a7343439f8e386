"""What EQuAD's losses ask for on two-piece graphs, computed: the best answer of any network that sees motif and base.

Votes are P(class | base), as a quantifier that knows the base alone gives them. Each loss is least, for graphs with
motif m and base b, at probabilities of the classes in proportion to

    cross-entropy      P(y | m, b)
    with Eqn. 7        P(y | m, b) + lambda / K * sum_c P(c | m, b) * omega(s_bc) * s_by
    by Eqn. 19         P(y | m, b) * omega(s_by)

Prints, for each column of table 1, the probability of the base's class where the motif names another one, in percent,
and the test accuracy of the most probable class.
"""

from __future__ import annotations

import torch
from torch import Tensor

from plugins.decorrelators._targets import omega

COLUMNS = ((0.8, 0.7), (0.8, 0.9), (0.7, 0.9))
GAMMA = 0.5
STRENGTHS = (0.03, 0.1, 1.0, 10.0)
"""Lambda / K; the paper searches up to 0.1 / 5, the recorded rows have 0.1 / 3."""


def joint(motif: float, base: float) -> Tensor:
    """(3, 3, 3) probabilities of label, motif and base, which agree with the label in these shares."""
    agree = [torch.eye(3) * (share - (1 - share) / 2) + (1 - share) / 2 for share in (motif, base)]
    return torch.einsum("ym,yb->ymb", *agree) / 3


def optima(motif: float, base: float) -> dict[str, Tensor]:
    """(3, 3, 3) probabilities of the classes for each motif and base, by loss."""
    p = joint(motif, base)
    votes = p.sum(1) / p.sum((0, 1))
    weight = omega(votes, GAMMA)
    pull = torch.einsum("cmb,cb,yb->ymb", p, weight, votes)
    found = {"cross-entropy": p, **{f"with Eqn. 7, λ/K {one:g}": p + one * pull for one in STRENGTHS}}
    found["by Eqn. 19"] = p * weight.unsqueeze(1)
    return {name: target / target.sum(0) for name, target in found.items()}


def line(answers: Tensor, motif: float) -> tuple[float, float]:
    """Probability of the base's class where the motif names another, and test accuracy, in percent."""
    chosen = torch.nn.functional.one_hot(answers.argmax(0), 3).permute(2, 0, 1)
    return 100 * float(answers[1, 0, 1]), 100 * float((joint(motif, 1 / 3) * chosen).sum())


def main() -> None:
    """Print a Markdown table."""
    print("|", " | ".join(["minimised", *(f"{column}: base's class | test" for column in COLUMNS)]), "|")
    print("|---|" + "---:|---:|" * len(COLUMNS))
    for name in optima(0.9, 0.9):
        cells = []
        for invariant, base in COLUMNS:
            motif = invariant + (1 - invariant) / 3
            cells += [f"{number:.1f}" for number in line(optima(motif, base)[name], motif)]
        print("|", " | ".join([name, *cells]), "|")


if __name__ == "__main__":
    main()
