"""Two-piece graphs: motif and base both agree with the label, each with a strength of its own (GALA, NeurIPS 2023)."""

from __future__ import annotations

from harness import Register, hookimpl, hparam
from plugins.datasets import _recipe as recipes
from plugins.datasets._splits import SPLITS

TEST_AGREEMENT = 0.33


class TwoPiece(recipes.BaseMotif):
    """Two-piece graphs: a three-class data set in which neither piece fixes the label (PIIF).

    Chen et al., "Does Invariant Graph Learning via Environment Augmentation Learn Invariance?" (GALA), NeurIPS 2023;
    three of its settings are used by EQuAD (Yao et al., ICML 2024). A graph of class y is a base with a motif joined
    to it by one edge. The base is the one that goes with y with probability B: ``spurious`` in train,
    ``max(spurious - 0.2, 1/3)`` in validation, 0.33 in test. The motif is the one that goes with y, except that with
    probability ``1 - invariant`` it is drawn anew from all three, alike in every split. The papers' name
    "(0.8, 0.9)" is ``invariant: 0.8, spurious: 0.9``.

    Bases have the same sizes in all splits; 5 % perturbation; K(2,3) crane; features constant, as published.
    """

    name = "two-piece"

    invariant: float = hparam(0.8, low=0, high=1, help="1 - label noise: share of graphs whose motif is not redrawn")
    spurious: float = hparam(0.9, low=0, high=1, help="share of training graphs whose base goes with the label")
    node_features: str = hparam("ones", choices=("ones", "uniform"), help="constant (published) or uniform random")
    num_per_class: list[int] = hparam([3000, 1000, 1000], low=1, help="graphs per class in train, validation and test")

    @property
    def label_noise(self) -> float:
        """Probability that the motif is drawn anew."""
        return round(1 - self.invariant, 12)

    @property
    def val_agreement(self) -> float:
        """Share of validation graphs whose base goes with the label."""
        return max(round(self.spurious - 0.2, 12), recipes.UNBIASED)

    def caption(self) -> tuple[str, list[str]]:
        """Return the variant, and the notes that are of this set alone."""
        notes = [
            f"The motif goes with the label in {self._motif_agreement:.4f} of the graphs of every split (1 - 2/3 x the "
            f"label noise {self.label_noise:g}, as a redrawn motif may be the same), not in {self.invariant:g}; this "
            "is the accuracy of a motif-only rule on the test split.",
            f"The base goes with the label in {self.spurious:g} of the training, {self.val_agreement:.3g} of the "
            f"validation and {TEST_AGREEMENT:g} of the test graphs.",
            "The definition in the papers has two classes and flip probabilities; the data have three classes, and the "
            "numbers in their names are agreements.",
        ]
        if self.val_agreement > recipes.UNBIASED:
            notes.append(
                f"Validation is biased: its base goes with the label in {self.val_agreement:.3g} of the graphs, which "
                "the papers do not say."
            )
        return "published", notes

    @property
    def _motif_agreement(self) -> float:
        return 1 - 2 * self.label_noise / 3

    def recipe(self) -> recipes.Recipe:
        """Return how the graphs are drawn."""
        counts = recipes.three_counts(self.num_per_class, self.name)
        agreements = (self.spurious, self.val_agreement, TEST_AGREEMENT)
        heights = (recipes.TALL,) * recipes.CLASSES
        return recipes.Recipe(
            name=self.name,
            seed=self.seed,
            splits={
                name: recipes.Split(count, agreement, heights, label_noise=self.label_noise)
                for name, count, agreement in zip(SPLITS, counts, agreements, strict=True)
            },
            undirected=self.undirected,
            features=self.node_features,
        )


@hookimpl
def bench_register(register: Register) -> None:
    register(TwoPiece)
