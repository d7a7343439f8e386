"""SPMotif: which motif is attached, when the base it is attached to is a shortcut (Wu et al., ICLR 2022)."""

from __future__ import annotations

from harness import Register, hookimpl, hparam
from plugins.datasets import _recipe as recipes

VARIANTS = ("published", "dir", "clean")


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

    The random streams are our own, so graphs match the published ones in distribution, not one by one.
    """

    name = "spmotif"
    probes = {**recipes.BaseMotif.probes, "node_features": {"node_features": "uniform"}}

    bias: float = hparam(0.6, low=0, high=1, help="share of training graphs whose base goes with the label")
    variant: str = hparam("published", choices=VARIANTS, help="whose generator to follow")
    node_features: str | None = hparam(
        None, choices=("ones", "uniform"), help="constant or uniform random; none: as the variant has them"
    )
    num_per_class: list[int] | None = hparam(
        None, low=1, help="graphs per class in train, validation and test; none: as the variant has them"
    )

    def caption(self) -> tuple[str, list[str]]:
        """Return the variant, and the notes that are of this set alone."""
        notes = ["The motif decides the label in every split; validation is unbiased (bases equally likely)."]
        notes.append("Test graphs are about four times as large as training graphs.")
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
            splits=recipes.spmotif_splits(counts, self.bias, slip=self.variant == "published"),
            motifs=recipes.DIR_MOTIFS if as_dir else recipes.PUBLISHED_MOTIFS,
            perturbation=0.0 if as_dir else 0.05,
            undirected=self.undirected,
            features=self.node_features or ("uniform" if as_dir else "ones"),
        )


@hookimpl
def bench_register(register: Register) -> None:
    register(SPMotif)
