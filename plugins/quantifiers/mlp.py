"""A small, regularised network with temperature scaling as quantifier; the EQuAD paper names an MLP as an option."""

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from harness import Fitted, Quantifier, Register, hookimpl, hparam
from plugins.quantifiers._folds import Array, Split, all_columns, check, folds


class MLP(Quantifier):
    """Linear, ReLU, Linear on standardised embeddings; probabilities are a temperature-scaled softmax.

    As for ``svm``, five members are each fitted on four fifths of the rows and calibrated on the rest, here by one
    temperature (Guo et al., *On Calibration of Modern Neural Networks*, ICML 2017); probabilities are their average.
    The paper gives no details, so these are ours. Regularisation matters: a network that fits every row gives each
    graph's label probability one, and the decorrelator then has no weight left to learn from.
    """

    name = "mlp"
    probes = {"*": {"epochs": 20, "lr": 0.01}}
    hidden: int = hparam(64, low=1, help="width of the hidden layer")
    epochs: int = hparam(100, low=1, help="passes over each member's rows")
    lr: float = hparam(1e-3, low=0.0, help="learning rate of Adam")
    weight_decay: float = hparam(1e-4, low=0.0, help="L2 penalty in Adam")
    batch_size: int = hparam(256, low=1, help="rows per step")

    def fit(self, embeddings: Array, labels: Array, num_classes: int, **setting: Any) -> Fitted:
        del setting
        x, y = check(embeddings, labels, num_classes)
        flags: list[str] = []
        classes, y = np.unique(y, return_inverse=True)
        mean, scale = x.mean(0), x.std(0)
        scale[scale == 0] = 1.0

        def tensor(rows: Array) -> Tensor:
            return torch.from_numpy((np.asarray(rows, np.float64) - mean) / scale).float()

        splits = folds(y, flags) or [(np.arange(len(y)), np.arange(0))]
        rng = torch.Generator().manual_seed(self.seed)
        members = self._train(tensor(x), torch.from_numpy(y), splits, len(classes), rng)
        temperatures = _temperatures(members, tensor(x), torch.from_numpy(y), splits)

        def predict(rows: Array) -> Array:
            scaled = _logits(members, tensor(rows)) / temperatures
            return all_columns(scaled.softmax(-1).mean(0).double().numpy(), classes, num_classes)

        return Fitted(predict=predict, flags=flags)

    def _train(self, x: Tensor, y: Tensor, splits: list[Split], num_classes: int, rng: torch.Generator) -> list[Tensor]:
        """Train all members at once: their parameters are stacked, and no gradient crosses between them."""
        rows = [torch.from_numpy(fit_rows) for fit_rows, _ in splits]
        length = min(len(r) for r in rows)  # stratified folds differ by a few rows; each epoch leaves out others
        first, second = (len(rows), x.shape[1], self.hidden), (len(rows), self.hidden, num_classes)
        members = [*_layer(*first, rng), *_layer(*second, rng)]
        optimizer = torch.optim.Adam(members, lr=self.lr, weight_decay=self.weight_decay, fused=True)
        for _ in range(self.epochs):
            order = torch.stack([r[torch.randperm(len(r), generator=rng)[:length]] for r in rows])
            for ids in order.split(self.batch_size, dim=1):
                logits = _forward(members, x[ids])
                loss = F.cross_entropy(logits.flatten(0, 1), y[ids].flatten()) * len(rows)
                optimizer.zero_grad(set_to_none=True)
                loss.backward()
                optimizer.step()
        return [parameter.detach() for parameter in members]


def _layer(members: int, fan_in: int, fan_out: int, rng: torch.Generator) -> tuple[Tensor, Tensor]:
    """Weights (members, in, out) and biases (members, 1, out), uniform within 1/sqrt(in) as in ``nn.Linear``."""
    bound = fan_in**-0.5
    weight = (torch.rand(members, fan_in, fan_out, generator=rng) * 2 - 1) * bound
    bias = (torch.rand(members, 1, fan_out, generator=rng) * 2 - 1) * bound
    return weight.requires_grad_(), bias.requires_grad_()


def _forward(members: list[Tensor], x: Tensor) -> Tensor:
    """(members, m, C) logits of (members, m, d) rows."""
    w1, b1, w2, b2 = members
    return torch.baddbmm(b2, torch.baddbmm(b1, x, w1).relu(), w2)


def _logits(members: list[Tensor], x: Tensor) -> Tensor:
    return _forward(members, x.expand(len(members[0]), -1, -1))


def _temperatures(members: list[Tensor], x: Tensor, y: Tensor, splits: list[Split]) -> Tensor:
    """(members, 1, 1) temperatures that minimise the cross-entropy of each member's held-out rows.

    The loss is convex in 1/T, so its slope, mean of (sum_j p_j z_j - z_y), is bisected on a log scale within
    1/20 and 20. A member without held-out rows keeps T = 1.
    """
    result = torch.ones(len(splits), 1, 1)
    logits = _logits(members, x)
    for member, (_, held_out) in enumerate(splits):
        if len(held_out) == 0:
            continue
        z, target = logits[member, held_out].double(), y[held_out].unsqueeze(1)
        low, high = -np.log(20.0), np.log(20.0)
        for _ in range(40):
            middle = (low + high) / 2
            slope = (((z * np.exp(middle)).softmax(1) * z).sum(1) - z.gather(1, target).squeeze(1)).mean()
            low, high = (low, middle) if slope > 0 else (middle, high)
        result[member] = float(np.exp(-(low + high) / 2))
    return result


@hookimpl
def bench_register(register: Register) -> None:
    register(MLP)
