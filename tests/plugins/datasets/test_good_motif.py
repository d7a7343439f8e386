"""GOOD-Motif: parts and their sizes, what shifts and what goes with the motif, closed forms, environments."""

from __future__ import annotations

import hashlib

import networkx as nx
import numpy as np
import pytest
from base_motif_kit import check_mean, check_share

from plugins.datasets._good_graphs import make_base
from plugins.datasets.good_motif import GOODMotif

WHEEL, TREE, LADDER, STAR, PATH = range(5)
PARTS = ["train", "id_val", "id_test", "ood_val", "ood_test"]
MOTIF_GRAPHS = (nx.house_graph(), nx.cycle_graph(5), nx.complete_bipartite_graph(2, 3))
SETTINGS = [(domain, shift) for domain in ("basis", "size") for shift in ("covariate", "concept", "no_shift")]


@pytest.fixture(scope="module")
def sets():
    """Every setting at a tenth of the published size."""
    return {key: GOODMotif(domain=key[0], shift=key[1], graphs=3000).build(None).splits for key in SETTINGS}


def nodes_of(kind: int, width: int) -> int:
    """Nodes of a base, from its definition."""
    height = max(1, int(np.log2(width)) - 1)
    return {WHEEL: width, TREE: 2 ** (height + 1) - 1, LADDER: 2 * width, STAR: width + 1, PATH: width}[kind]


def expected_nodes(kinds, middles) -> float:
    return 5 + np.mean([nodes_of(k, m + d) for k in kinds for m in middles for d in range(-5, 6)])


def base_nodes(graph) -> int:
    return len(graph.x) - 5


def field(graphs, name):
    return np.array([{"y": g.y, "env": g.env}[name] if name in ("y", "env") else g.oracle[name] for g in graphs])


def digest(splits) -> str:
    total = hashlib.sha256()
    for name, graphs in splits.items():
        total.update(name.encode())
        for graph in graphs:
            total.update(graph.edge_index.astype("<i8").tobytes())
            total.update(
                f"{len(graph.x)},{graph.y},{graph.env},{graph.oracle['base']},{graph.oracle['motif']};".encode()
            )
    return total.hexdigest()


@pytest.mark.parametrize(
    ("shift", "sizes"),
    [
        ("covariate", dict(zip(PARTS, (18000, 3000, 3000, 3000, 3000), strict=True))),
        ("concept", dict(zip(PARTS, (12600, 2700, 2700, 6000, 6000), strict=True))),
        ("no_shift", {"train": 18000, "val": 6000, "test": 6000}),
    ],
)
@pytest.mark.parametrize("domain", ["basis", "size"])
def test_published_sizes_of_all_parts(domain, shift, sizes):
    dataset = GOODMotif(domain=domain, shift=shift)
    found: dict[str, int] = {}
    for pool in dataset._pools():
        found[pool.part] = found.get(pool.part, 0) + pool.graphs
    assert found == sizes
    assert ", ".join(f"{part} {count}" for part, count in sizes.items()) in dataset.declare(None).notes[0]


@pytest.mark.parametrize("graphs", [100, 101, 997])
def test_odd_sizes_give_every_part_its_share(graphs):
    for shift, part in (("covariate", "train"), ("concept", "ood_test")):
        splits = GOODMotif(shift=shift, graphs=graphs).build(None).splits
        assert len(splits[part]) == graphs * {"covariate": 60, "concept": 20}[shift] // 100
        assert all(splits.values())


@pytest.mark.parametrize("key", SETTINGS)
def test_structure(sets, key):
    for graphs in sets[key].values():
        for graph in graphs[:: len(graphs) // 50]:
            base, (source, target) = base_nodes(graph), graph.edge_index
            half = len(source) // 2
            assert (graph.x == 1).all()
            assert graph.x.shape == (base + 5, 1)
            assert graph.x.dtype == np.float32
            assert (source[:half] < target[:half]).all()
            assert np.array_equal(graph.edge_index[:, half:], graph.edge_index[::-1, :half])
            whole = nx.Graph(graph.edge_index.T.tolist())
            assert whole.number_of_edges() == half
            assert whole.number_of_nodes() == base + 5
            assert nx.is_connected(whole)
            assert graph.oracle["node_gt"].tolist() == [False] * base + [True] * 5
            assert graph.oracle["edge_gt"].tolist() == ((source >= base) & (target >= base)).tolist()
            assert nx.is_isomorphic(whole.subgraph(range(base, base + 5)), MOTIF_GRAPHS[graph.oracle["motif"]])


@pytest.mark.parametrize("kind", range(5))
@pytest.mark.parametrize("width", [1, 2, 3, 4, 7, 8, 16, 75])
def test_bases_are_the_named_graphs(kind, width):
    piece = make_base(kind, width)
    graph = nx.empty_graph(piece.nodes)
    graph.add_edges_from(piece.edges.T.tolist())
    makers = {
        WHEEL: nx.wheel_graph,
        TREE: lambda w: nx.balanced_tree(2, max(1, int(np.log2(w)) - 1)),
        LADDER: nx.ladder_graph,
        STAR: nx.star_graph,
        PATH: nx.path_graph,
    }
    assert nx.utils.graphs_equal(graph, makers[kind](width))
    assert (piece.edges[0] < piece.edges[1]).all()
    assert len(piece.pairs) == piece.edges.shape[1]


@pytest.mark.parametrize("key", SETTINGS)
def test_label_noise_and_balance_are_the_same_in_every_part(sets, key):
    for graphs in sets[key].values():
        y, motif = field(graphs, "y"), field(graphs, "motif")
        check_share(y == motif, 1 - 0.1 * 2 / 3)
        assert np.ptp(np.bincount(motif)) <= 3
        for m in range(3):
            for other in {0, 1, 2} - {m}:
                check_share(y[motif == m] == other, 0.1 / 3)


def test_labels_are_in_goods_order():
    splits = GOODMotif(label_noise=0.0, graphs=300).build(None).splits
    assert all(graph.y == graph.oracle["motif"] for graphs in splits.values() for graph in graphs)
    assert "house, cycle, crane" in " ".join(GOODMotif().declare(None).notes)


def test_basis_covariate_bases_are_the_environments(sets):
    splits = sets["basis", "covariate"]
    for part in ("train", "id_val", "id_test"):
        assert np.ptp(np.bincount(field(splits[part], "base"), minlength=3)) <= 1
    for part, kinds in {"train": [WHEEL, TREE, LADDER], "ood_val": [STAR], "ood_test": [PATH]}.items():
        assert set(field(splits[part], "base").tolist()) == set(kinds)
        check_mean([len(graph.x) for graph in splits[part]], expected_nodes(kinds, [10]))
    for graphs in splits.values():
        assert field(graphs, "env").tolist() == field(graphs, "base").tolist()


def test_size_covariate_sizes_are_the_environments(sets):
    splits = sets["size", "covariate"]
    for part, middles in {"train": [6, 10, 15], "ood_val": [30], "ood_test": [70]}.items():
        check_mean([len(graph.x) for graph in splits[part]], expected_nodes(range(5), middles))
        for kind in range(5):
            check_share(field(splits[part], "base") == kind, 0.2)
    for part in ("train", "id_val", "id_test"):
        for env, middle in enumerate((6, 10, 15)):
            wheels = [base_nodes(g) for g in splits[part] if g.env == env and g.oracle["base"] == WHEEL]
            assert set(wheels) <= set(range(middle - 5, middle + 6))
    assert set(field(splits["ood_val"], "env")) == {3}
    assert set(field(splits["ood_test"], "env")) == {4}


def tied_share(strength: float) -> float:
    """One that is not made to go with the motif does so by chance in a third."""
    return strength + (1 - strength) / 3


@pytest.mark.parametrize("domain", ["basis", "size"])
def test_concept_strengths(sets, domain):
    splits = sets[domain, "concept"]

    def tied(graphs):
        paths = graphs if domain == "basis" else [g for g in graphs if g.oracle["base"] in (WHEEL, PATH)]
        item = field(paths, "base") if domain == "basis" else np.digitize([base_nodes(g) for g in paths], [25, 55])
        return item == field(paths, "motif")

    for env, strength in enumerate((0.99, 0.97, 0.95)):
        check_share(tied([graph for graph in splits["train"] if graph.env == env]), tied_share(strength))
    for part in ("id_val", "id_test"):
        check_share(tied(splits[part]), np.mean([tied_share(s) for s in (0.99, 0.97, 0.95)]))
        assert set(field(splits[part], "env")) == {-1}
    check_share(tied(splits["ood_val"]), tied_share(0.3))
    check_share(tied(splits["ood_test"]), 1 / 3)


def test_declaration_without_a_shift():
    declared = GOODMotif(shift="no_shift").declare(None)
    assert declared.environments == 0
    assert declared.validation == "in-distribution"
    assert declared.default_val == "val"


def test_declaration_of_the_shifted_sets():
    declared = GOODMotif(domain="size", shift="concept").declare(None)
    assert list(declared.splits) == PARTS
    assert [declared.splits[part] for part in PARTS] == ["train", "val", "test", "val", "test"]
    assert (declared.default_val, declared.validation, declared.environments) == ("ood_val", "OOD", 3)
    assert declared.node_features.sizes == (1,)
    assert declared.variant == "size, concept, undirected, constant features"
    assert "0.9333" in " ".join(declared.notes)


def test_the_place_of_a_graph_says_nothing_of_it(sets):
    graphs = sets["basis", "covariate"]["train"]
    for name in ("env", "motif"):
        values = field(graphs, name)
        check_share(values[1:] == values[:-1], 1 / 3)
        check_share(values[: len(values) // 3] == 0, 1 / 3)


def test_parts_have_streams_of_their_own():
    splits = GOODMotif(shift="concept", graphs=300).build(None).splits
    one, other = splits["id_val"], splits["id_test"]
    assert [len(graph.x) for graph in one] != [len(graph.x) for graph in other]


def test_more_graphs_leave_the_others_as_they_are():
    few, many = (GOODMotif(graphs=count).build(None).splits["ood_val"] for count in (300, 400))
    rest = iter([graph.edge_index.tolist() for graph in many])
    assert all(graph.edge_index.tolist() in rest for graph in few)


def test_graphs_stay_the_same_for_ever():
    """A change here changes every result on GOOD-Motif: bump the protocol version and say so."""
    assert {
        key: digest(GOODMotif(domain=key[0], shift=key[1], graphs=200).build(None).splits) for key in SETTINGS
    } == GOLDEN


GOLDEN = {
    ("basis", "covariate"): "024df9fb8b805c4108cf05a12e573d46b91c5d4f23c3ee5e1cdb0b0154b15cfb",
    ("basis", "concept"): "fa0d37a06c62725627ff66eb42f0628a48787c4891bbf230c8fc9649d6a9978b",
    ("basis", "no_shift"): "bc9223842a697fea77c062e865b08451fba519dd29b995dfcb6336b9a86eb193",
    ("size", "covariate"): "65683fe826d38c6062d28343d92f1023fdad84d431b481f461f2d5458164a640",
    ("size", "concept"): "0683a4ab8a550b80ec1cd3aff3d1fc61607972d62ca6f0aa6c512094a6cb569e",
    ("size", "no_shift"): "3ba4c5ade9c11e831905c007f03c5f0e81cdedf413747b8cadaf0e82d9c45318",
}
