"""SPMotif with many copies of the motif on a small base: the invariant part is the larger one (EQuAD, ICML 2024)."""

from __future__ import annotations

from harness import Register, hookimpl, hparam
from plugins.datasets import _recipe as recipes
from plugins.datasets._splits import SPLITS

TREE_HEIGHTS, LADDERS, WHEELS = (2,), range(5, 8), range(10, 15)


class LargeInvariant(recipes.BaseMotif):
    """SPMotif with |Gc| > |Gs|: ten motifs of 5 nodes against a base of about 12.

    Yao et al., "Empowering Graph Invariance Learning with Deep Spurious Infomax" (EQuAD), ICML 2024, whose appendix
    gives the ten motifs and a base of 12 nodes on average. The released code has no such base sizes, and one motif in
    test graphs, so the following is ours: a graph has ``motifs`` copies of its motif in all three splits, each joined
    by one edge to a base node of its own drawing; the base is a tree of height 2 (7 or 13 nodes), a ladder of width 5
    to 7 or a wheel of 10 to 14 nodes, in all splits alike. The rest is SPMotif's (Wu et al., ICLR 2022): the label is
    the motif, the base goes with it in ``bias`` of the training graphs and in a third of the validation and test
    graphs, and 5 % of the edges are tried as extra ones.
    """

    name = "spmotif-large-invariant"

    motifs: int = hparam(10, low=1, high=100, help="copies of the motif in each graph")
    bias: float = hparam(0.6, low=0, high=1, help="share of training graphs whose base goes with the label")
    node_features: str = hparam("ones", choices=("ones", "uniform"), help="constant (as SPMotif's) or uniform random")
    num_per_class: list[int] = hparam([3000, 1000, 1000], low=1, help="graphs per class in train, validation and test")

    def caption(self) -> tuple[str, list[str]]:
        """Return the variant, and the notes that are of this set alone."""
        notes = [
            "The motif decides the label in every split; validation is unbiased (bases equally likely).",
            f"Each graph has {self.motifs} copies of its motif, {recipes.MOTIF_NODES * self.motifs} nodes, on a base "
            "of 7 to 14 nodes, in all splits: sizes do not shift.",
            "Base sizes, and several motifs in test graphs too, are our choice: the paper gives averages, its code "
            "neither.",
        ]
        variant = f"ours, {self.motifs} motif{'s' if self.motifs > 1 else ''}"
        return variant, notes

    def recipe(self) -> recipes.Recipe:
        """Return how the graphs are drawn."""
        counts = recipes.three_counts(self.num_per_class, self.name)
        agreements = (self.bias, recipes.UNBIASED, recipes.UNBIASED)
        heights = (TREE_HEIGHTS,) * recipes.CLASSES
        return recipes.Recipe(
            name=self.name,
            seed=self.seed,
            splits={
                name: recipes.Split(count, agreement, heights, LADDERS, WHEELS)
                for name, count, agreement in zip(SPLITS, counts, agreements, strict=True)
            },
            undirected=self.undirected,
            features=self.node_features,
            motif_copies=self.motifs,
        )


@hookimpl
def bench_register(register: Register) -> None:
    register(LargeInvariant)
