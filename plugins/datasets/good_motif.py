"""GOOD-Motif: covariate and concept shift of base type or graph size (GOOD, NeurIPS 2022)."""

from __future__ import annotations

from pathlib import Path

from harness import Dataset, Declaration, Features, RawDataset, Register, Task, hookimpl, hparam
from plugins.datasets import _good_pools as pools
from plugins.datasets._splits import LARGEST_SEED

VALIDATION = {"covariate": "OOD", "concept": "OOD", "no_shift": "in-distribution"}


class GOODMotif(Dataset):
    """GOOD-Motif: three classes, five parts, shift in the base type (``basis``) or in the graph size (``size``).

    Gui et al., "GOOD: A Graph Out-of-Distribution Benchmark", NeurIPS 2022 (Datasets and Benchmarks). A graph is a
    base (wheel, tree, ladder, star, path) with a motif joined to it by one edge, both directions of each edge, one
    constant feature, 5 % perturbation. The label is the motif in GOOD's order, which is not SPMotif's: house 0,
    cycle 1, crane 2; with probability ``label_noise`` it is drawn anew from all three, in every part.

    ``covariate``: bases (or sizes) of validation and of test do not occur in training. ``concept``: bases (or sizes)
    are the same throughout, and go with the motif in 99, 97 and 95 % of the three training environments, in 30 % of
    ``ood_val`` and in none of ``ood_test``; where they are not made to, one of the three is drawn. ``no_shift``: train,
    val and test are drawn alike. Training environments are the bases (sizes) under covariate shift, the three
    strengths under concept shift; under covariate shift every part tells its environment, under concept shift train
    alone.

    An extra edge of the perturbation has an end at the hub of a star, at an inner node of a path, or at any node of
    another base; a pair that has none is drawn in vain, so that a star hardly gains edges.

    Ours, where GOOD leaves it to chance: motifs and environments are balanced exactly. Under ``no_shift``, where both
    domains are drawn alike (all five bases, sizes about 10), GOOD numbers three random thirds of train as
    environments; here it has none (``envs: random(3)`` gives such). The random streams are our own, so graphs match
    the published ones in distribution, not one by one.
    """

    name = "good-motif"
    family = "synthetic"
    probes = {"*": {"graphs": 300}, "graphs": {"graphs": 200}}

    domain: str = hparam("basis", choices=pools.DOMAINS, help="what shifts: the type of the base, or its size")
    shift: str = hparam("covariate", choices=pools.SHIFTS, help="how it shifts")
    graphs: int = hparam(30000, low=100, help="graphs in all parts together")
    label_noise: float = hparam(0.1, low=0, high=1, help="share of graphs whose label is drawn anew")
    seed: int = hparam(0, low=0, high=LARGEST_SEED, help="seed of the generator")

    def declare(self, data_dir: Path | None) -> Declaration:
        """Known in full from the hyperparameters."""
        del data_dir
        shifted = self.shift != "no_shift"
        return Declaration(
            task=Task("multiclass", pools.CLASSES, metric="accuracy"),
            node_features=Features("numeric", (1,)),
            splits=pools.ROLES if shifted else {"train": "train", "val": "val", "test": "test"},
            default_val="ood_val" if shifted else "val",
            validation=VALIDATION[self.shift],
            environments=pools.ENVIRONMENTS if shifted else 0,
            oracle=("base", "motif", "node_gt", "edge_gt"),
            variant=f"{self.domain}, {self.shift.replace('_', ' ')}, undirected, constant features",
            notes=self._notes(),
        )

    def build(self, data_dir: Path | None) -> RawDataset:
        """Draw the graphs."""
        from plugins.datasets._good_graphs import generate

        del data_dir
        stream = f"{self.name}/{self.domain}/{self.shift}"
        return generate(stream, self.seed, self._pools(), self.label_noise)

    def _pools(self) -> tuple[pools.Pool, ...]:
        return pools.plan(self.domain, self.shift, self.graphs)

    def _notes(self) -> tuple[str, ...]:
        counts: dict[str, int] = {}
        for pool in self._pools():
            counts[pool.part] = counts.get(pool.part, 0) + pool.graphs
        agreement = 1 - 2 * self.label_noise / 3
        return (
            f"Graphs: {', '.join(f'{part} {count}' for part, count in counts.items())}.",
            f"The motif goes with the label in {agreement:.4f} of the graphs of every part (label noise "
            f"{self.label_noise:g}); this is the ceiling of accuracy where nothing else goes with it.",
            "Labels are in GOOD's order (house, cycle, crane), not in SPMotif's.",
            "Node features are one constant and carry no signal.",
        )


@hookimpl
def bench_register(register: Register) -> None:
    register(GOODMotif)
