"""An analysis for benchmarks/recorded/spmotif-hub.yaml: what two traits of SPMotif's large test graphs cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from harness import Analysis, Findings, Register, Study, hookimpl
from plugins.datasets._recipe import MOTIF_NODES
from plugins.datasets._shapes import ladder, tree, wheel

if TYPE_CHECKING:
    from collections.abc import Iterable

    from torch import Tensor

    from harness import MeasuredCell, TrainedCell
    from harness.graphs import Batch


class SizeShifts(Analysis):
    """Accuracy by base on graphs as they are and with fewer edges; nothing is trained again.

    Degrees as in training: no node takes in more edges than any node of the training graphs, which the hub of a large
    wheel does. Random edges as in training: no graph has more random edges (the generator adds 5 % of a graph's edges)
    than any training graph of its base.
    """

    name = "size-shifts"
    tasks = frozenset({"multiclass"})
    opens_test = True
    oracle_where_there = frozenset({"base"})

    def measure(self, cell: TrainedCell) -> dict[str, Any]:
        most, noise = 0, [0, 0, 0]
        for batch in cell.graphs(cell.train_split).batches(256):
            most = max(most, int(batch.indptr.diff().max()))
            for base, _, pairs in random_pairs(batch):
                noise[base] = max(noise[base], len(pairs))
        tests = (split for split in cell.splits if split not in (cell.train_split, *cell.validation_splits))
        answers = {split: _answers(cell, split, most, noise) for split in tests}
        return {"most": most, "noise": noise, **answers}

    def present(self, study: Study) -> Findings:
        rows, notes = [], {}
        for (dataset, method), cells in study.groups().items():
            caps = cells[0].values
            notes[dataset] = (
                f"Largest in training on {dataset}: {caps['most']} edges into a node; "
                f"{caps['noise'][0]}, {caps['noise'][1]} and {caps['noise'][2]} random edges on bases 0, 1 and 2."
            )
            for split in cells[0].test_splits:
                for base in ("all", *range(cells[0].task.num_classes)):
                    per_seed = 100 * np.array([_accuracies(cell, split, base) for cell in cells])
                    spreads = per_seed.std(0, ddof=1) if len(cells) > 1 else [None] * per_seed.shape[1]
                    numbers = (number for pair in zip(per_seed.mean(0), spreads, strict=True) for number in pair)
                    rows.append((dataset, method, split, base, *numbers, len(cells)))
        kinds = ("accuracy", "degrees as in training", "random edges as in training", "both as in training")
        columns = (column for kind in kinds for column in (f"{kind}, %", "s.d., %"))
        return Findings(("dataset", "method", "split", "base", *columns, "seeds"), tuple(rows), tuple(notes.values()))


def _answers(cell: TrainedCell, split: str, most: int, noise: list[int]) -> np.ndarray[Any, Any]:
    """(3, n) predicted classes of a split's graphs by capped degrees, by fewer random edges, and by both."""
    found: list[list[Tensor]] = [[], [], []]
    with torch.no_grad():
        for batch in cell.graphs(split).batches(256):
            calm = without_noise(batch, noise)
            for answers, graphs in zip(found, (capped(batch, most), calm, capped(calm, most)), strict=True):
                answers.append(cell.learner(graphs).argmax(1))
    return torch.stack([torch.cat(answers) for answers in found]).numpy()


def capped(batch: Batch, most: int) -> Batch:
    """Return the same nodes, each with its first incoming edges, ``most`` of them or fewer."""
    place = torch.arange(batch.num_edges) - batch.indptr[batch.edge_index[1]]
    return batch.keep_edges(place < most)


def without_noise(batch: Batch, noise: list[int]) -> Batch:
    """Return the same nodes without the random edges beyond the first ``noise[base]`` of each graph."""
    keep = torch.ones(batch.num_edges, dtype=torch.bool)
    for base, edges, pairs in random_pairs(batch):
        for pair in pairs[noise[base] :]:
            keep[edges[pair]] = False
    return batch.keep_edges(keep)


def random_pairs(batch: Batch) -> Iterable[tuple[int, dict[tuple[int, int], list[int]], list[tuple[int, int]]]]:
    """Yield each graph's base, its edges by pair of nodes, and the pairs that are the generator's random edges.

    Read from the graph alone: the base's nodes come first and the motif's last, both in the generator's order, and one
    edge joins the motif's first node to the base. The pairs are in a random order that is the same in every run.
    """
    owner = batch.batch[batch.edge_index[1]]
    ends = (batch.edge_index - batch.ptr[owner]).T.tolist()
    graphs: list[dict[tuple[int, int], list[int]]] = [{} for _ in range(batch.num_graphs)]
    for place, (graph, (source, target)) in enumerate(zip(owner.tolist(), ends, strict=True)):
        graphs[graph].setdefault((min(source, target), max(source, target)), []).append(place)
    for edges, nodes in zip(graphs, batch.ptr.diff().tolist(), strict=True):
        first = nodes - MOTIF_NODES
        base, pairs = next((kind, pairs) for kind, pairs in _bases(first) if pairs <= edges.keys())
        others = sorted(pair for pair in edges.keys() - pairs if pair[0] < first)
        others.remove(next(pair for pair in others if pair[1] == first))
        order = np.random.default_rng(nodes).permutation(len(others))
        yield base, edges, [others[place] for place in order]


def _bases(nodes: int) -> Iterable[tuple[int, frozenset[tuple[int, int]]]]:
    """Yield the bases with so many nodes: the number and the pairs of each."""
    for branching in (2, 3):
        for height in range(7):
            if (piece := tree(branching, height)).nodes == nodes:
                yield 0, piece.pairs
    if nodes % 2 == 0:
        yield 1, ladder(nodes // 2).pairs
    yield 2, wheel(nodes).pairs


def _accuracies(cell: MeasuredCell, split: str, base: int | str) -> list[float]:
    """Accuracy on the graphs of a base (0, 1, 2, or all), as they are and with fewer edges."""
    labels = cell.labels(split)
    chosen = np.ones(len(labels), bool) if base == "all" else cell.oracle("base", split) == base
    answers = (cell.logits(split).argmax(1), *cell.arrays[split])
    return [float((one == labels)[chosen].mean()) for one in answers]


@hookimpl
def bench_register(register: Register) -> None:
    """Register the analysis."""
    register(SizeShifts)
