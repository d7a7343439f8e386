"""SPMotif: which motif is attached, when the base it is attached to is a shortcut (Wu et al., ICLR 2022)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from harness import Declaration, Register, hookimpl, hparam
from plugins.datasets import _recipe as recipes
from plugins.datasets._recipe import SAME

VARIANTS = ("published", "dir", "clean")

_SIZES = {
    "published": "Test graphs are about four times as large as training graphs.",
    "same": "Test graphs are of the size of validation graphs (published: about four times as large).",
    "both": f"Graphs of split test are about four times as large as training graphs, those of {SAME} are not.",
}


class SPMotif(recipes.BaseMotif):
    """SPMotif: a three-class data set with a spurious base (FIIF: the label depends on the motif alone).

    A graph is a base (tree, ladder, wheel) with a motif (cycle, house, crane) joined to it by one edge. The label is
    the motif. In training the base that goes with the label (cycle-tree, house-ladder, crane-wheel) appears with
    probability ``bias``; in validation and test all bases are equally likely, and test bases are about four times as
    large.

    Variants:

    - ``published``: the generator shared by CIGA, GALA and EQuAD: 3000/1000/1000 graphs per class, the crane is
      K(2,3), 5 % perturbation, constant features, and a slip in the tree heights (see the notes of the data set).
    - ``dir``: the notebook of DIR: 1000/1000/2000 graphs per class, a seven-edge crane, no perturbation, uniform
      random features, tree heights 0 to 2 in train and validation.
    - ``clean``: ``published`` with tree heights 0 to 2 for every class in train and validation.

    ``test_size`` takes the shift in size out of the test: ``same`` draws bases as small as those of validation, and
    ``both`` has that split, ``test-same-size``, beside the published one.

    The random streams are our own, so graphs match the published ones in distribution, not one by one.
    """

    name = "spmotif"
    probes = {**recipes.BaseMotif.probes, "node_features": {"node_features": "uniform"}}

    bias: float = hparam(0.6, low=0, high=1, help="share of training graphs whose base goes with the label")
    variant: str = hparam("published", choices=VARIANTS, help="whose generator to follow")
    node_features: str | None = hparam(
        None, choices=("ones", "uniform"), help="constant or uniform random; none: as the variant has them"
    )
    test_size: str = hparam(
        "published",
        choices=("published", "same", "both"),
        help="bases of test graphs: large, as in validation, or a split of each",
    )
    num_per_class: list[int] | None = hparam(
        None, low=1, help="graphs per class in train, validation and test; none: as the variant has them"
    )

    def declare(self, data_dir: Path | None) -> Declaration:
        """Return what follows from the hyperparameters alone."""
        declared = super().declare(data_dir)
        return replace(declared, splits={**declared.splits, SAME: "test"}) if self.test_size == "both" else declared

    def caption(self) -> tuple[str, list[str]]:
        """Return the variant, and the notes that are of this set alone."""
        notes = ["The motif decides the label in every split; validation is unbiased (bases equally likely)."]
        notes.append(_SIZES[self.test_size])
        if self.variant == "published":
            notes.append(recipes.SLIP)
        if self.variant == "dir":
            notes.append("The crane has seven edges here, unlike the K(2,3) of CIGA, GALA and EQuAD; no extra edges.")
        return self.variant, notes

    def recipe(self) -> recipes.Recipe:
        """Return how the graphs are drawn."""
        as_dir = self.variant == "dir"
        default = [1000, 1000, 2000] if as_dir else [3000, 1000, 1000]
        counts = recipes.three_counts(default if self.num_per_class is None else self.num_per_class, self.name)
        return recipes.Recipe(
            name=self.name,
            seed=self.seed,
            splits=recipes.spmotif_splits(
                counts, self.bias, slip=self.variant == "published", test_size=self.test_size
            ),
            motifs=recipes.DIR_MOTIFS if as_dir else recipes.PUBLISHED_MOTIFS,
            perturbation=0.0 if as_dir else 0.05,
            undirected=self.undirected,
            features=self.node_features or ("uniform" if as_dir else "ones"),
        )


@hookimpl
def bench_register(register: Register) -> None:
    register(SPMotif)
