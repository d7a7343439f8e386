"""The definition of a base-motif data set, before any graph is drawn: sizes, shares and options.

Imports nothing heavy: a plan reads this. The numbers are those of DIR (Wu et al., "Discovering Invariant Rationales for
Graph Neural Networks", ICLR 2022) and of the generators of CIGA (Chen et al., NeurIPS 2022), GALA (Chen et al., NeurIPS
2023) and EQuAD (Yao et al., ICML 2024).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness import DataError, Dataset, Declaration, Features, RawDataset, Task, hparam
from plugins.datasets._splits import LARGEST_SEED

Edges = tuple[tuple[int, int], ...]

TREE, LADDER, WHEEL = range(3)
"""Label, motif and the base that goes with it share one number: cycle-tree, house-ladder, crane-wheel."""
CLASSES = 3
WIDTH = 4
MOTIF_NODES = 5

CYCLE_EDGES: Edges = ((0, 1), (1, 2), (2, 3), (3, 4), (0, 4))
HOUSE_EDGES: Edges = ((0, 1), (0, 4), (1, 2), (1, 4), (2, 3), (3, 4))
CRANE_EDGES: Edges = ((0, 1), (0, 3), (1, 2), (1, 4), (2, 3), (3, 4))
"""K(2,3): no triangle, and the degrees of the house."""
DIR_CRANE_EDGES: Edges = (*CYCLE_EDGES, (0, 2), (0, 3))
"""The crane of the DIR notebook: a five-cycle with two chords, seven edges."""

PUBLISHED_MOTIFS = (CYCLE_EDGES, HOUSE_EDGES, CRANE_EDGES)
DIR_MOTIFS = (CYCLE_EDGES, HOUSE_EDGES, DIR_CRANE_EDGES)

FEATURES = {
    "ones": "constant features",
    "uniform": "uniform random features",
    "label": "features tied to the label in train",
}

FEATURE_NOTES = {
    "ones": "Node features are four constant ones and carry no signal.",
    "uniform": "Node features are four numbers drawn from [0, 1), independent of everything else.",
    "label": "Node features are four equal numbers, one of 0, 1, 2 for all nodes of a graph.",
}

ONE_DIRECTION = (
    "Edges run from the lower to the higher node id only, as in the published data: messages flow from the base to the "
    "motif and never back."
)

UNBIASED = 1 / 3
SAME = "test-same-size"
"""The test split whose graphs are as large as those of validation."""
SHORT, TALL, LARGE = (0, 1, 2), (3,), (3, 4, 5)
"""Heights of trees: ``TALL`` in train under a cycle and in validation is the published slip."""
SLIP = (
    "Published slip: in train a tree under a cycle (class 0) has height 3 and any other tree height 0 to 2, so the "
    "size of the base alone gives class 0 away; in validation every tree has height 3. Variant 'clean' mends this."
)
SMALL_LADDERS, SMALL_WHEELS = range(8, 12), range(15, 20)
LARGE_LADDERS, LARGE_WHEELS = range(30, 50), range(60, 80)


@dataclass(frozen=True)
class Split:
    """The rule by which the graphs of one split are drawn.

    Attributes:
        per_class: number of graphs of each class.
        agreement: probability that the base is the one that goes with the label; the others share the rest.
        tree_heights: for each class, the heights a tree base is drawn from; the branching is 2 or 3.
        ladders, wheels: the widths and sizes that ladder and wheel bases are drawn from.
        label_noise: probability that the motif is drawn anew from all three, whatever the label.
        feature_agreement: for features ``label``, the probability that a graph's value is its label; none: the value
            says nothing of the label.
    """

    per_class: int
    agreement: float
    tree_heights: tuple[tuple[int, ...], ...]
    ladders: Sequence[int] = SMALL_LADDERS
    wheels: Sequence[int] = SMALL_WHEELS
    label_noise: float = 0.0
    feature_agreement: float | None = None


@dataclass(frozen=True)
class Recipe:
    """The rule by which a data set is drawn.

    Attributes:
        name: the data set's name; it is part of each random stream's name.
        seed: 0 to 2³²-1.
        splits: split name -> how to draw it.
        motifs: edges of each motif on local nodes 0..4.
        perturbation: share of a graph's edges that is tried as extra edges.
        undirected: both directions of each edge, not only the one from the lower to the higher id.
        features: ``ones``, ``uniform`` (in [0, 1)) or ``label`` (one of 0, 1, 2 for a whole graph), four columns.
        motif_copies: how many copies of its motif a graph has.
    """

    name: str
    seed: int
    splits: Mapping[str, Split]
    motifs: tuple[Edges, ...] = PUBLISHED_MOTIFS
    perturbation: float = 0.05
    undirected: bool = False
    features: str = "ones"
    motif_copies: int = 1


class BaseMotif(Dataset):
    """A three-class set of base-motif graphs. A subclass gives its recipe, and the variant and notes of a table."""

    family = "synthetic"
    probes = {"*": {"num_per_class": [20, 6, 6]}, "num_per_class": {"num_per_class": [15, 6, 6]}}

    undirected: bool = hparam(False, help="both directions of each edge; the published data have one")
    seed: int = hparam(0, low=0, high=LARGEST_SEED, help="seed of the generator")

    def recipe(self) -> Recipe:
        """Return how the graphs are drawn."""
        raise NotImplementedError

    def caption(self) -> tuple[str, list[str]]:
        """Return the variant, and the notes that are of this set alone."""
        raise NotImplementedError

    def declare(self, data_dir: Path | None) -> Declaration:
        """Return what follows from the hyperparameters alone."""
        del data_dir
        recipe, (variant, notes), departures = self.recipe(), self.caption(), self._departures()
        direction = "undirected" if recipe.undirected else "one-direction edges"
        edge_notes = [] if recipe.undirected else [ONE_DIRECTION]
        return Declaration(
            task=Task("multiclass", CLASSES, metric="accuracy"),
            node_features=Features("numeric", (WIDTH,)),
            validation="biased" if recipe.splits["val"].agreement > UNBIASED else "unbiased",
            oracle=("base", "motif", "node_gt", "edge_gt"),
            variant=f"{variant}{' generator' if departures else ''}, {direction}, {FEATURES[recipe.features]}",
            departures=departures,
            notes=(_counts(recipe), *notes, FEATURE_NOTES[recipe.features], *edge_notes),
        )

    def _departures(self) -> tuple[str, ...]:
        """Return how the set differs from the published one of its variant."""
        made = self.recipe()
        usual = type(self)(**{name: value for name, value in self.values.items() if name == "variant"}).recipe()
        found = []
        counts, full = ([recipe.splits[name].per_class for name in usual.splits] for recipe in (made, usual))
        if counts != full:
            change = "reduced" if sum(counts) < sum(full) else "enlarged"
            found.append(f"{change}: {'/'.join(map(str, counts))} of {'/'.join(map(str, full))} graphs per class")
        if made.splits["test"].ladders != usual.splits["test"].ladders:
            found.append("test graphs of validation's size (published: large)")
        if made.undirected:
            found.append("undirected (published: one-direction edges)")
        if made.features != usual.features:
            found.append(f"{FEATURES[made.features]} (published: {FEATURES[usual.features]})")
        return tuple(found)

    def build(self, data_dir: Path | None) -> RawDataset:
        """Draw the graphs."""
        from plugins.datasets._shapes import generate

        del data_dir
        return generate(self.recipe())


def _counts(recipe: Recipe) -> str:
    counts = ", ".join(f"{name} {CLASSES * s.per_class} ({s.per_class} per class)" for name, s in recipe.splits.items())
    bias = ", ".join(f"{name} {s.agreement:.3g}" for name, s in recipe.splits.items())
    return f"Graphs: {counts}; share of graphs whose base goes with the label: {bias}."


def spmotif_splits(
    per_class: tuple[int, int, int], bias: float, test_size: str = "published", *, slip: bool
) -> dict[str, Split]:
    """The splits of SPMotif: unbiased validation and test, tree heights with or without the slip, test graphs by size.

    ``test_size`` is ``published`` (large), ``same`` (as in validation), or ``both``: split ``test-same-size`` as well.
    """
    train, val, test = per_class
    small = (TALL if slip else SHORT,) * CLASSES
    splits = {
        "train": Split(train, bias, (TALL if slip else SHORT, SHORT, SHORT)),
        "val": Split(val, UNBIASED, small),
        "test": Split(test, UNBIASED, (LARGE,) * CLASSES, LARGE_LADDERS, LARGE_WHEELS),
    }
    same = Split(test, UNBIASED, small)
    if test_size == "both":
        return {**splits, SAME: same}
    return {**splits, "test": same} if test_size == "same" else splits


def three_counts(counts: Sequence[int], component: str) -> tuple[int, int, int]:
    """The three counts of ``num_per_class``."""
    if len(counts) != 3:
        raise DataError(
            f"dataset '{component}', hyperparameter 'num_per_class': expected three counts (train, validation, test), "
            f"found {len(counts)}"
        )
    return counts[0], counts[1], counts[2]
