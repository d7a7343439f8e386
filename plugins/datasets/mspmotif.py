"""mSPMotif: SPMotif whose node features go with the label too, in training (CIGA, NeurIPS 2022)."""

from __future__ import annotations

from dataclasses import replace

from harness import Register, hookimpl, hparam
from plugins.datasets import _recipe as recipes


class MSPMotif(recipes.BaseMotif):
    """mSPMotif, "SPMotif-Mixed": base, node features and, in test, graph size shift together.

    Chen et al., "Learning Causally Invariant Representations for Out-of-Distribution Generalization on Graphs" (CIGA),
    NeurIPS 2022. The graphs are drawn as SPMotif's (Wu et al., ICLR 2022). All entries of a graph's node features are
    one number of 0, 1, 2: in training the label with probability ``feature_bias``, else one of the other two; in
    validation and test 0, 1 or 2 with probabilities .33, .33, .34. CIGA's loader takes both biases from one folder
    name, so that they are equal; that is the default here.

    Variants: ``published`` has the tree heights of CIGA, GALA and EQuAD, with their slip, ``clean`` heights 0 to 2 for
    every class in train and validation. GALA's and EQuAD's own files of this set cannot be read by their loaders.

    The random streams are our own, so graphs match the published ones in distribution, not one by one.
    """

    name = "mspmotif"

    bias: float = hparam(0.6, low=0, high=1, help="share of training graphs whose base goes with the label")
    feature_bias: float | None = hparam(
        None, low=0, high=1, help="share of training graphs whose feature is the label; none: as bias"
    )
    variant: str = hparam("published", choices=("published", "clean"), help="tree heights as published, or one rule")
    num_per_class: list[int] = hparam([3000, 1000, 1000], low=1, help="graphs per class in train, validation and test")

    def caption(self) -> tuple[str, list[str]]:
        """Return the variant, and the notes that are of this set alone."""
        notes = [
            "The motif decides the label in every split; in validation and test base and feature say nothing of it.",
            f"A training graph's feature is its label in {self._feature_agreement:g} of the graphs.",
            "Test graphs are about four times as large as training graphs.",
        ]
        if self.variant == "published":
            notes.append(recipes.SLIP)
        return self.variant, notes

    @property
    def _feature_agreement(self) -> float:
        return self.bias if self.feature_bias is None else self.feature_bias

    def recipe(self) -> recipes.Recipe:
        """Return how the graphs are drawn."""
        counts = recipes.three_counts(self.num_per_class, self.name)
        splits = recipes.spmotif_splits(counts, self.bias, slip=self.variant == "published")
        splits["train"] = replace(splits["train"], feature_agreement=self._feature_agreement)
        return recipes.Recipe(self.name, self.seed, splits, undirected=self.undirected, features="label")


@hookimpl
def bench_register(register: Register) -> None:
    register(MSPMotif)
