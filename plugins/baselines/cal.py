"""CAL: attention parts a graph into a causal and a shortcut branch, recombined across graphs (Sui et al., KDD 2022)."""

import math

import torch
from torch import Tensor, nn

from harness import Baseline, Batch, Register, hookimpl, hparam
from harness.nn import BatchNorm, GCNConv, edge_ends


class CAL(Baseline):
    """Soft node and edge attention: the object branch predicts y, the context branch nothing, both together y again.

    From node embeddings h, edges have (beta_c, beta_o) = softmax(W_e [h_s; h_t]) and nodes (a_c, a_o) = softmax(W_n h).
    Branch b is BatchNorm(a_b h), one graph convolution with edge weights beta_b, ReLU and the readout: x_b. With u the
    uniform distribution and pi a random permutation of the batch (in evaluation the identity),

        L = c KL(u || p_c(x_c)) + o CE(y, p_o(x_o)) + co CE(y, p_co(x_c[pi] + x_o)).

    Prediction is by p_o. Sui et al., *Causal Attention for Interpretable and Generalizable Graph Classification*, KDD
    2022.
    """

    name = "cal"
    tasks = frozenset({"binary", "multiclass"})
    c: float = hparam(
        0.5,
        low=0.0,
        search=[0.1, 0.3, 0.5, 0.7, 0.9],
        weight_of="context",
        help="weight of the context branch's distance from uniform",
    )
    o: float = hparam(1.0, low=0.0, weight_of="object", help="weight of the object branch's loss")
    co: float = hparam(
        0.5,
        low=0.0,
        search=[0.1, 0.3, 0.5, 0.7, 0.9],
        weight_of="joint",
        help="weight of the loss with another graph's context",
    )
    combine: str = hparam("add", choices=["add", "concat"], help="how object and context are put together")
    heads: str = hparam(
        "suite", choices=["suite", "batchnorm"], help="the suite's heads, or the authors' with BatchNorm"
    )

    def build(self) -> None:
        self.backbone = self.make_backbone()
        d = self.backbone.out_dim
        self.edge_attention, self.node_attention = nn.Linear(2 * d, 2), nn.Linear(d, 2)
        self.norms = nn.ModuleList(BatchNorm(d) for _ in range(2))
        self.convs = nn.ModuleList(GCNConv(d, d, degrees="out") for _ in range(2))
        self.head = self.make_readout(d)
        self.context_head = self.make_readout(d)
        self.joint_head = self.make_readout(2 * d if self.combine == "concat" else d)

    def make_readout(self, width: int) -> nn.Module:
        """From (B, width) to logits."""
        if self.heads == "suite":
            return self.make_head(in_dim=width)
        d, outputs = self.backbone.out_dim, self.info.task.outputs
        return nn.Sequential(
            BatchNorm(width), nn.Linear(width, d), nn.ReLU(inplace=True), BatchNorm(d), nn.Linear(d, outputs)
        )

    def attention(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        """Node embeddings (N, d), and softmax over (context, object) of nodes (N, 2) and edges (E, 2)."""
        h = self.backbone(batch)
        return h, self.node_attention(h).softmax(1), self.edge_attention(edge_ends(h, batch)).softmax(1)

    def branch(self, which: int, h: Tensor, nodes: Tensor, edges: Tensor, batch: Batch) -> Tensor:
        """(B, d) embedding of the context (0) or the object (1)."""
        x = self.norms[which](h * nodes[:, which : which + 1])
        return self.pool(self.convs[which](x, batch, edges[:, which]).relu(), batch)

    def embed(self, batch: Batch) -> Tensor:
        return self.branch(1, *self.attention(batch), batch)

    def pairing(self, count: int) -> Tensor:
        """(B,) whose context each graph gets: a random permutation in training, its own in evaluation."""
        return torch.randperm(count, generator=self.rng) if self.training else torch.arange(count)

    def predictions(self, batch: Batch) -> dict[str, Tensor]:
        """(B, C) logits from the context, from the object, and from both together."""
        parts = self.attention(batch)
        context, obj = (self.branch(which, *parts, batch) for which in range(2))
        other = context[self.pairing(len(context)).to(context.device)]
        both = torch.cat([other, obj], 1) if self.combine == "concat" else other + obj
        return {"context": self.context_head(context), "object": self.head(obj), "joint": self.joint_head(both)}

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        logits = self.predictions(batch)
        return {
            "object": self.risk(logits["object"], batch).mean(),
            "context": from_uniform(logits["context"]).mean(),
            "joint": self.risk(logits["joint"], batch).mean(),
        }


def from_uniform(logits: Tensor) -> Tensor:
    """(B,) KL(u || softmax) from the uniform distribution u over C classes to each row's prediction, 0 at best."""
    return -math.log(logits.size(1)) - logits.log_softmax(1).mean(1)


@hookimpl
def bench_register(register: Register) -> None:
    register(CAL)
