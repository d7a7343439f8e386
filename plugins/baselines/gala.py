"""GALA: contrast by what an assistant mistakes for the class (Chen et al., NeurIPS 2023)."""

import torch
from torch import Tensor

from harness import Batch, PackedGraphs, Register, hookimpl, hparam, upstream
from harness.nn import environment_contrastive, kmeans
from plugins.baselines._subgraphs import SubgraphLearner


class GALA(SubgraphLearner):
    """An assistant that leans on spurious parts sorts the graphs; the classifier's G_c must not sort them likewise.

        L = mean_i CE(y_i, f(G_c)) + contrast * L_gala

    L_gala pulls graphs of one class together that the assistant treats differently, and pushes graphs of different
    classes apart that it treats alike; a batch without such positives has the supervised contrastive loss instead. It
    starts after ``warmup_epochs``. The assistant is trained before, as a stage of its own, and stays as it is: ERM
    (``assistant: erm``) or this network without any contrast (``subgraph``). It treats two graphs alike if it predicts
    the same class, or if k-means puts its unit-length embeddings into one cluster. Edges are weighted by sigmoid(score)
    and all kept, unless ``split: hard``.

    ``resample`` takes graphs of the smaller of two groups, those that the assistant gets right and those that it gets
    wrong, ``repeats`` more times per epoch. Citation: Chen, Bian, Zhou, Xie, Han and Cheng, *Does Invariant Graph
    Learning via Environment Augmentation Learn Invariance?*, NeurIPS 2023.
    """

    name = "gala"
    upstream = {
        "erm": upstream(
            "baseline",
            "erm",
            when={"assistant": ["erm"]},
            train={"epochs": "$assistant_epochs"},
            checkpoint="$assistant_checkpoint",
        ),
        "subgraph": upstream(
            "baseline",
            "ciga",
            when={"assistant": ["subgraph"]},
            train={"epochs": "$assistant_epochs"},
            checkpoint="$assistant_checkpoint",
            contrast=0.0,
            split="$split",
            ratio="$ratio",
            scorer="$scorer",
            c_in="$c_in",
            featurizer_layers="$featurizer_layers",
        ),
    }
    contrast: float = hparam(
        1.0,
        low=0.0,
        search=[0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0],
        weight_of="contrast",
        help="weight of the contrastive term",
    )
    split: str = hparam(
        "soft", choices=["hard", "soft"], help="G_c holds the top share of the edges, or all edges, only weighted"
    )
    scorer: str = hparam(
        "normalised",
        choices=["mlp", "normalised"],
        help="edge scorer: one hidden layer, or GSAT's two, standardised by graph",
    )
    assistant: str = hparam("erm", choices=["erm", "subgraph"], help="ERM, or this network without contrast")
    assistant_epochs: int | None = hparam(None, low=1, help="epochs of the assistant; none: the suite's")
    assistant_checkpoint: str = hparam("best-val", choices=["best-val", "last"], help="which weights of the assistant")
    environment: str = hparam(
        "kmeans", choices=["kmeans", "prediction"], help="clusters of the assistant's embeddings, or its predictions"
    )
    clusters: int = hparam(3, low=1, search=[2, 3, 5], active={"environment": ["kmeans"]}, help="number of clusters")
    warmup_epochs: int = hparam(10, low=0, help="epochs before the contrast starts")
    resample: bool = hparam(True, help="repeat graphs of the smaller group: the assistant is right, or wrong")
    repeats: int | None = hparam(
        None,
        low=0,
        active={"resample": [True]},
        help="how often; none: once if the other group is at least twice as large",
    )
    probes = {
        "*": {"warmup_epochs": 1},
        "warmup_epochs": {"warmup_epochs": 2},
        "repeats": {"repeats": 3, "warmup_epochs": 1},
    }

    def on_fit_start(self, train: PackedGraphs) -> None:
        found = self.upstream_outputs[self.assistant]
        predicted = found.logits.argmax(1)
        self.env = predicted if self.environment == "prediction" else self.cluster(found.embeddings)
        self.right = predicted == train.y.reshape(-1)

    def cluster(self, embeddings: Tensor) -> Tensor:
        """(n,) clusters of (n, d) embeddings by cosine distance."""
        return kmeans(torch.nn.functional.normalize(embeddings, dim=1), self.clusters, generator=self.rng).ids

    def training_order(self, order: Tensor) -> Tensor:
        if not self.resample:
            return order
        few, more = sorted((self.right, ~self.right), key=lambda group: int(group.sum()))
        times = int(more.sum() >= 2 * few.sum()) if self.repeats is None else self.repeats
        repeated = order[few[order]].repeat(times)
        if len(repeated) == 0:
            return order
        order = torch.cat([order, repeated])
        return order[torch.randperm(len(order), generator=self.rng).to(order.device)]

    def weight(self, term: str) -> float:
        return 0.0 if term == "contrast" and self.epoch < self.warmup_epochs else super().weight(term)

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        h, _, part, embedding = self.read(batch)
        contrast = environment_contrastive(self.contrasted(part, embedding, h), batch.y, self.env[batch.index])
        return {"erm": self.risk(self.head(embedding), batch).mean(), "contrast": contrast}


@hookimpl
def bench_register(register: Register) -> None:
    register(GALA)
