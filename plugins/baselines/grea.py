"""GREA: rationales recombined with the other graphs' environments (Liu et al., KDD 2022)."""

import torch
from torch import Tensor, nn

from harness import Baseline, Batch, Register, UserError, hookimpl, hparam
from harness.nn import BatchNorm, pool
from plugins.baselines._statistics import MIXED, second_pass, statistics_switch


class GREA(Baseline):
    """A gate splits each graph in latent space; its rationale must predict y beside every environment of the batch.

    A separator of its own network gives each node a gate m_v in (0, 1). With node embeddings H, r_i = readout(m H)
    is a graph's rationale and e_i = readout((1 - m) H) its environment. With f the head and n_i the number of nodes,

        L = mean_i l(y_i, f(r_i)) + augmented * mean_ij l(y_i, f(r_i + e_j)) + size * mean_i |sum_v m_v / n_i - gamma|.

    The first ``separator_epochs`` of every ``cycle`` epochs update the separator, the others network and head, which
    the last term does not reach. Liu et al., *Graph Rationalization with Environment-based Augmentations*, KDD 2022.
    """

    name = "grea"
    foreign_statistics = MIXED
    probes = {"cycle": {"cycle": 2}}
    gamma: float = hparam(
        0.4,
        low=0.0,
        high=1.0,
        search=[0.1, 0.2, 0.4, 0.55, 0.8],
        active={"size": "> 0"},
        help="mean gate that each graph should have",
    )
    augmented: float = hparam(
        1.0, low=0.0, weight_of="augmented", help="weight of the loss with the environments of all graphs"
    )
    size: float = hparam(1.0, low=0.0, weight_of="size", help="weight of the mean gate's distance from gamma")
    separator_epochs: int = hparam(1, low=1, help="epochs of each cycle that train the separator; they come first")
    cycle: int = hparam(4, low=2, help="epochs of a cycle; those after the separator's train network and head")
    predictor: str = hparam(
        "suite", choices=["suite", "batchnorm"], help="the suite's head, or the authors' with BatchNorm and dropout"
    )
    statistics: str = statistics_switch({"predictor": ["batchnorm"]})

    def build(self) -> None:
        if self.separator_epochs >= self.cycle:
            raise UserError(
                f"grea: separator_epochs ({self.separator_epochs}) must be below cycle ({self.cycle}), "
                "or network and head are never trained"
            )
        self.backbone = self.make_backbone()
        self.head = self.make_predictor()
        self.separator = self.make_backbone(layers=2)
        d = self.separator.out_dim
        self.gate = mlp(d, 1)

    def make_predictor(self) -> nn.Module:
        """From (B, d) rationales, or rationales plus environments, to logits."""
        if self.predictor == "suite":
            return self.make_head()
        return mlp(self.backbone.out_dim, self.info.task.outputs)

    def gates(self, batch: Batch) -> Tensor:
        """(N, 1) gates m_v in (0, 1)."""
        return self.gate(self.separator(batch)).sigmoid()

    def split(self, batch: Batch, gates: Tensor) -> tuple[Tensor, Tensor]:
        """(B, d) rationales and (B, d) environments."""
        h = self.backbone(batch)
        return self.pool(gates * h, batch), self.pool((1 - gates) * h, batch)

    def embed(self, batch: Batch) -> Tensor:
        return self.pool(self.gates(batch) * self.backbone(batch), batch)

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        gates = self.gates(batch)
        rationale, environment = self.split(batch, gates)
        risk = self.risk(self.head(rationale), batch)
        with second_pass(self, self.head):
            pairs = self.head(recombine(rationale, environment))
        labels = batch.y.repeat_interleave(batch.num_graphs, 0)
        return {
            "erm": risk.mean(),
            "augmented": self.losses(pairs, labels).mean(),
            "size": (pool(gates, batch, "mean") - self.gamma).abs().mean(),
        }

    def optimizers(self) -> list[torch.optim.Optimizer]:
        """The separator's, and that of network and head."""
        modules = [self.separator, self.gate], [self.backbone, self.head]
        return [self.make_optimizer(p for module in part for p in module.parameters()) for part in modules]

    def training_step(self, batch: Batch, optimizers: list[torch.optim.Optimizer]) -> dict[str, Tensor]:
        optimizer = optimizers[0 if self.epoch % self.cycle < self.separator_epochs else 1]
        terms = self.loss(batch)
        total = self.total(terms)
        optimizer.zero_grad(set_to_none=True)
        total.backward(inputs=[p for group in optimizer.param_groups for p in group["params"]])
        optimizer.step()
        return {**{name: term.detach() for name, term in terms.items()}, "loss": total.detach()}


def mlp(width: int, outputs: int) -> nn.Sequential:
    """The authors' MLP: one hidden layer with BatchNorm and dropout."""
    hidden = 2 * width
    return nn.Sequential(
        nn.Linear(width, hidden), BatchNorm(hidden), nn.ReLU(), nn.Dropout(), nn.Linear(hidden, outputs)
    )


def recombine(rationale: Tensor, environment: Tensor) -> Tensor:
    """(B * B, d) sums of each rationale with each environment, both (B, d): row i * B + j holds r_i + e_j."""
    return (rationale.unsqueeze(1) + environment.unsqueeze(0)).flatten(0, 1)


@hookimpl
def bench_register(register: Register) -> None:
    register(GREA)
