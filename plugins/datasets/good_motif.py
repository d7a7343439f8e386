"""GOOD-Motif: covariate and concept shift of base type or graph size (GOOD, NeurIPS 2022)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from harness import Dataset, Declaration, Features, RawDataset, Register, Task, hookimpl, hparam
from plugins.datasets._good_split import ROLES
from plugins.datasets._splits import LARGEST_SEED

DOMAINS = ("basis", "size")
SHIFTS = ("covariate", "concept", "no_shift")

WHEEL, TREE, LADDER, STAR, PATH = range(5)
BASES = (WHEEL, TREE, LADDER, STAR, PATH)
"""GOOD's numbers of the bases, which are also the environments of a shift of bases."""
CLASSES = 3
ENVIRONMENTS = 3
PLAIN_SIZE, SIZES, TIED_SIZES = 10, (6, 10, 15, 30, 70), (10, 40, 70)
STRENGTHS, VAL_STRENGTH = (0.99, 0.97, 0.95), 0.3
PERCENT = {
    "covariate": {"train": 60, "id_val": 10, "id_test": 10, "ood_val": 10, "ood_test": 10},
    "concept": {"train": 42, "id_val": 9, "id_test": 9, "ood_val": 20, "ood_test": 20},
    "no_shift": {"train": 60, "val": 20, "test": 20},
}
VALIDATION = {"covariate": "OOD", "concept": "OOD", "no_shift": "in-distribution"}


@dataclass(frozen=True)
class Pool:
    """Graphs of one part that are drawn alike.

    Attributes:
        part: the split.
        graphs: how many.
        bases: kinds of base that occur.
        sizes: middles of the widths that occur; a width is within 5 of one.
        env: environment id, -1 for none.
        tied: ``bases`` or ``sizes``: which of them goes with the motif, its three items in the motifs' order.
        strength: probability with which it does; else any of the three.
    """

    part: str
    graphs: int
    bases: tuple[int, ...]
    sizes: tuple[int, ...]
    env: int = -1
    tied: str = ""
    strength: float = 0.0


class GOODMotif(Dataset):
    """GOOD-Motif: three classes, five parts, shift in the base type (``basis``) or in the graph size (``size``).

    Gui et al., "GOOD: A Graph Out-of-Distribution Benchmark", NeurIPS 2022 (Datasets and Benchmarks). A graph is a
    base (wheel, tree, ladder, star, path) with a motif joined to it by one edge, both directions of each edge, one
    constant feature, 5 % perturbation. The label is the motif in GOOD's order, which is not SPMotif's: house 0,
    cycle 1, crane 2; with probability ``label_noise`` it is drawn anew from all three, in every part.

    ``covariate``: bases (or sizes) of validation and of test do not occur in training. ``concept``: they are the same
    throughout, and go with the motif with probability .99, .97 and .95 in the three training environments, .3 in
    ``ood_val`` and 0 in ``ood_test``; else they are drawn from all three. ``no_shift``: train, val and test are drawn
    alike, without environments.

    Ours, where GOOD leaves it to chance: motifs and environments are balanced exactly. The random streams are our own,
    so graphs match the published ones in distribution, not one by one.
    """

    name = "good-motif"
    family = "synthetic"
    probes = {"*": {"graphs": 300}, "graphs": {"graphs": 200}}

    domain: str = hparam("basis", choices=DOMAINS, help="what shifts: the type of the base, or its size")
    shift: str = hparam("covariate", choices=SHIFTS, help="how it shifts")
    graphs: int = hparam(30000, low=100, help="graphs in all parts together")
    label_noise: float = hparam(0.1, low=0, high=1, help="share of graphs whose label is drawn anew")
    seed: int = hparam(0, low=0, high=LARGEST_SEED, help="seed of the generator")

    def declare(self, data_dir: Path | None) -> Declaration:
        """Known in full from the hyperparameters."""
        del data_dir
        shifted = self.shift != "no_shift"
        return Declaration(
            task=Task("multiclass", CLASSES, metric="accuracy"),
            node_features=Features("numeric", (1,)),
            splits=ROLES if shifted else {"train": "train", "val": "val", "test": "test"},
            default_val="ood_val" if shifted else "val",
            validation=VALIDATION[self.shift],
            environments=ENVIRONMENTS if shifted else 0,
            oracle=("base", "motif", "node_gt", "edge_gt"),
            variant=f"{self.domain}, {self.shift.replace('_', ' ')}, undirected, constant features",
            departures=self._departures(),
            notes=self._notes(),
        )

    def build(self, data_dir: Path | None) -> RawDataset:
        """Draw the graphs."""
        from plugins.datasets._good_graphs import generate

        del data_dir
        stream = f"{self.name}/{self.domain}/{self.shift}"
        return generate(stream, self.seed, self._pools(), self.label_noise)

    def _pools(self) -> tuple[Pool, ...]:
        return plan(self.domain, self.shift, self.graphs)

    def _departures(self) -> tuple[str, ...]:
        """Return how the set differs from the published one."""
        usual = {name: declared.default for name, declared in self.hparams.items()}
        found = []
        if self.graphs != usual["graphs"]:
            change = "reduced" if self.graphs < usual["graphs"] else "enlarged"
            found.append(f"{change}: {self.graphs} of {usual['graphs']} graphs")
        if self.label_noise != usual["label_noise"]:
            found.append(f"label noise {self.label_noise:g} (published: {usual['label_noise']:g})")
        return tuple(found)

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


def plan(domain: str, shift: str, graphs: int) -> tuple[Pool, ...]:
    """The pools of all parts, in the parts' order; ``graphs`` is the number of all graphs together."""
    counts = {part: graphs * percent // 100 for part, percent in PERCENT[shift].items()}
    makers = {"covariate": _covariate, "concept": _concept, "no_shift": _plain}
    return tuple(pool for part, count in counts.items() for pool in makers[shift](domain, part, count))


def _covariate(domain: str, part: str, count: int) -> list[Pool]:
    envs = {"ood_val": (3,), "ood_test": (4,)}.get(part, range(ENVIRONMENTS))

    def pool(env: int, graphs: int) -> Pool:
        bases, sizes = ((BASES[env],), (PLAIN_SIZE,)) if domain == "basis" else (BASES, (SIZES[env],))
        return Pool(part, graphs, bases, sizes, env)

    return [pool(env, graphs) for env, graphs in zip(envs, _shared(count, len(envs)), strict=True)]


def _concept(domain: str, part: str, count: int) -> list[Pool]:
    strengths = {"ood_val": (VAL_STRENGTH,), "ood_test": (0.0,)}.get(part, STRENGTHS)
    tied = "bases" if domain == "basis" else "sizes"
    bases, sizes = ((WHEEL, TREE, LADDER), (PLAIN_SIZE,)) if domain == "basis" else (BASES, TIED_SIZES)
    return [
        Pool(part, graphs, bases, sizes, env if part == "train" else -1, tied, strength)
        for env, (graphs, strength) in enumerate(zip(_shared(count, len(strengths)), strengths, strict=True))
    ]


def _plain(domain: str, part: str, count: int) -> list[Pool]:
    del domain  # GOOD draws both domains alike
    return [Pool(part, count, BASES, (PLAIN_SIZE,))]


def _shared(count: int, parts: int) -> list[int]:
    """``count`` as a sum of ``parts`` numbers that differ by one at most."""
    return [count // parts + (i < count % parts) for i in range(parts)]


@hookimpl
def bench_register(register: Register) -> None:
    register(GOODMotif)
