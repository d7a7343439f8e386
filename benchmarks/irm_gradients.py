"""IRM's penalty on random environments: mean and noise of its gradient beside those of the risk, while ERM trains.

    python benchmarks/irm_gradients.py [--weight 10] [--batches 60] [--epochs 9]

Two-piece graphs (0.8, 0.7), two random halves as environments, GIN 3x32, batches of 32, as in the suite of all methods.
Before some epochs of an ERM training the gradient of the weighted penalty, in each of its forms, and that of the risk
are taken on as many random batches: the norm of their mean (free of noise: from the product of two halves' means) and
the mean norm of what is left. A penalty whose mean gradient exceeds that of the risk changes what is learnt; one whose
noise does drowns it.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))

from harness import Features, PackedGraphs, Task
from harness.training.bases import LearnerInfo, ModelSpec
from plugins.backbones.gin import GIN
from plugins.baselines.irm import IRM
from plugins.datasets.two_piece import TwoPiece


def gradients(learner: IRM, graphs: PackedGraphs, order: torch.Tensor, term: str) -> tuple[float, float]:
    """Norm of the mean gradient of a loss term over batches, and mean norm of the rest."""
    rows = []
    for batch in graphs.batches(32, order):
        learner.zero_grad()
        learner.loss(batch)[term].backward()
        rows.append(torch.cat([p.grad.flatten() for p in learner.parameters() if p.grad is not None]))
    found = torch.stack(rows)
    signal = (found[::2].mean(0) @ found[1::2].mean(0)).clamp(min=0).sqrt()
    return float(signal), float((found - found.mean(0)).norm(dim=1).mean())


def main() -> None:
    """Train and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weight", type=float, default=10.0)
    parser.add_argument("--batches", type=int, default=60)
    parser.add_argument("--epochs", type=int, default=9)
    given = parser.parse_args()
    torch.set_num_threads(1)
    draws = torch.Generator().manual_seed(0)
    raw = TwoPiece(invariant=0.8, spurious=0.7).build(None).splits["train"]
    graphs = PackedGraphs.pack(raw)
    graphs.y, graphs.env = torch.tensor([g.y for g in raw]), torch.randint(2, (len(raw),), generator=draws)
    learner = IRM(penalty=0.0)
    info = LearnerInfo(Task("multiclass", 3), Features("numeric", (graphs.x.size(1),)), Features("none"), 2)
    learner.setup(info, ModelSpec(GIN, {"layers": 3, "hidden": 32}), seed=1)
    learner.train()
    optimizers = learner.optimizers()
    print(f"{'epoch':>5}  {'gradient of':<22}{'mean':>8}{'noise':>8}")
    for epoch in range(given.epochs):
        order = torch.randperm(len(graphs), generator=draws)
        if epoch in (0, 1, 4, 8):
            some = order[: 32 * given.batches]
            print(f"{epoch:>5}  {'risk':<22}" + "".join(f"{v:>8.2f}" for v in gradients(learner, graphs, some, "erm")))
            for learner.form in ("squared", "split", "cross2"):
                found = [given.weight * value for value in gradients(learner, graphs, some, "invariance")]
                print(
                    f"{'':>5}  {f'{given.weight:g} x {learner.form}':<22}"
                    + "".join(f"{value:>8.2f}" for value in found)
                )
            learner.form = "squared"
        for batch in graphs.batches(32, order):
            learner.training_step(batch, optimizers)


if __name__ == "__main__":
    main()
