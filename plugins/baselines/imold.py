"""iMoLD: invariant and spurious parts of quantised node embeddings (Zhuang et al., NeurIPS 2023)."""

import torch
from torch import Tensor, nn

from harness import Backbone, Baseline, Batch, Register, hookimpl, hparam
from harness.nn import BatchNorm, Codebook, evaluating, pool


class IMoLD(Baseline):
    """A separator scores every coordinate of every node embedding; the classifier reads the invariant share.

    With H the encoder's node embeddings, Q(H) their nearest codes (gradient straight through), H' = H + Q(H) and S in
    (0, 1) the separator's scores, z_c and z_s are the means over a graph's nodes of H' S and H' (1 - S), and

        L = mean_i l_i(z_c) + commitment * mean (sg Q(H) - H)^2 + invariance * L_inv + regularity * L_reg
        L_inv = -mean_i cos(sg z_c,i, mix([z_c,i ; z_s,pi(i)])),    L_reg = mean_i |mean S of graph i - gamma|

    for a random permutation pi of the batch. One epoch trains the separator, the next ``encoder_epochs`` all the rest;
    each has an optimizer of its own, so that what waits keeps its weights bit for bit. Citation: Zhuang et al.,
    *Learning Invariant Molecular Representation in Latent Discrete Space*, NeurIPS 2023.
    """

    name = "imold"
    codes: int = hparam(4000, low=1, search=[100, 500, 1000, 4000], help="size of the codebook; cost grows with it")
    gamma: float = hparam(
        0.9,
        low=0.0,
        high=1.0,
        search=[0.3, 0.5, 0.7, 0.9],
        active={"regularity": "> 0"},
        help="aim of the mean score of a graph",
    )
    invariance: float = hparam(
        0.01, low=0.0, search=[0.001, 0.01, 0.1], weight_of="invariance", help="lambda_1: weight of L_inv"
    )
    regularity: float = hparam(
        0.5, low=0.0, search=[0.1, 0.5, 1.0], weight_of="regularity", help="lambda_2: weight of L_reg"
    )
    commitment: float = hparam(0.1, low=0.0, weight_of="commitment", help="weight of the pull towards the codes")
    encoder_epochs: int = hparam(
        3, low=0, help="epochs of the encoder after one of the separator; 0 trains both always"
    )
    frozen: str = hparam(
        "weights",
        choices=["weights", "all"],
        active={"encoder_epochs": "> 0"},
        help="what waits keeps its weights only, or runs in evaluation mode: statistics and codes stay too",
    )
    clip: float = hparam(5.0, low=0.0, help="largest norm of the gradient; 0 for any")
    pooling: str = hparam("mean", choices=["mean", "suite"], help="readout: the method's, or the suite's")
    probes = {"clip": {"clip": 0.05}}

    def build(self) -> None:
        super().build()
        d = self.backbone.out_dim
        self.separator = Separator(self.make_backbone())
        self.codebook = Codebook(self.codes, d)
        self.mix = nn.Sequential(
            nn.Linear(2 * d, d), BatchNorm(d), nn.ReLU(inplace=True), nn.Dropout(0.5), nn.Linear(d, d)
        )

    def quantise(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """H' (N, d) and the commitment loss."""
        h = self.backbone(batch)
        codes, commitment = self.codebook(h)
        return h + codes, commitment

    def read(self, nodes: Tensor, batch: Batch) -> Tensor:
        """(B, d) graph embeddings from (N, d)."""
        return pool(nodes, batch, "mean" if self.pooling == "mean" else self.readout)

    def embed(self, batch: Batch) -> Tensor:
        return self.read(self.quantise(batch)[0] * self.separator(batch), batch)

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        share = self.separator(batch)
        nodes, commitment = self.quantise(batch)
        z_c, z_s = self.read(nodes * share, batch), self.read(nodes * (1 - share), batch)
        return {
            "erm": self.risk(self.head(z_c), batch).mean(),
            "commitment": commitment,
            "invariance": self.invariance_loss(z_c, z_s),
            "regularity": (pool(share, batch, "mean").mean(1) - self.gamma).abs().mean(),
        }

    def invariance_loss(self, z_c: Tensor, z_s: Tensor) -> Tensor:
        """L_inv, in [-1, 1], from (B, d) each; no gradient through the target."""
        other = torch.randperm(len(z_s), generator=self.rng).to(z_s.device)
        mixed = self.mix(torch.cat([z_c, z_s[other]], 1))
        return -nn.functional.cosine_similarity(z_c.detach(), mixed, dim=1).mean()

    def optimizers(self) -> list[torch.optim.Optimizer]:
        """The encoder's (with codes, classifier and projector), and the separator's."""
        encoder = [p for name, p in self.named_parameters() if not name.startswith("separator.")]
        return [self.make_optimizer(encoder), self.make_optimizer(self.separator.parameters())]

    def training_step(self, batch: Batch, optimizers: list[torch.optim.Optimizer]) -> dict[str, Tensor]:
        encoder, separator = optimizers
        turn = separator if self.epoch % (self.encoder_epochs + 1) == 0 else encoder
        active = [turn] if self.encoder_epochs else optimizers
        rest = [self.backbone, self.codebook, self.head, self.mix] if turn is separator else [self.separator]
        with evaluating(*(rest if self.encoder_epochs and self.frozen == "all" else [])):
            terms = self.loss(batch)
        total = self.total(terms)
        trained = [p for optimizer in active for group in optimizer.param_groups for p in group["params"]]
        for optimizer in optimizers:
            optimizer.zero_grad(set_to_none=True)
        total.backward(inputs=trained)
        if self.clip:
            nn.utils.clip_grad_norm_(trained, self.clip)
        for optimizer in active:
            optimizer.step()
        return {**{name: term.detach() for name, term in terms.items()}, "loss": total.detach()}


class Separator(nn.Module):
    """Scores in (0, 1) of every coordinate of every node: a network of its own, a hidden layer, a sigmoid."""

    def __init__(self, network: Backbone) -> None:
        super().__init__()
        d = network.out_dim
        self.network = network
        self.scores = nn.Sequential(
            nn.Linear(d, 2 * d), BatchNorm(2 * d), nn.ReLU(inplace=True), nn.Linear(2 * d, d), nn.Sigmoid()
        )

    def forward(self, batch: Batch) -> Tensor:
        """(N, d)."""
        return self.scores(self.network(batch))


@hookimpl
def bench_register(register: Register) -> None:
    register(IMoLD)
