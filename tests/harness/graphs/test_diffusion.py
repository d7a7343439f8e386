"""Per-graph diffusion against published values, a dense NumPy reference, PyGCL and PyG's GDC."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch
from scipy.linalg import expm

from harness import PackedGraphs, RawGraph
from harness.graphs import DiffusedGraphs, Diffusion, batch_blocks, by_size


def make(nodes, edges, undirected=True):
    pairs = [pair for a, b in edges for pair in ([(a, b), (b, a)] if undirected else [(a, b)])]
    return RawGraph(np.ones((nodes, 1), np.float32), np.array(pairs, np.int64).reshape(-1, 2).T, 0)


def random_graph(nodes, rng, undirected):
    edges = [(int(rng.integers(0, i)), i) for i in range(1, nodes)]
    edges += [tuple(sorted(rng.choice(nodes, 2, replace=False).tolist())) for _ in range(nodes // 3)]
    return make(nodes, sorted(set(edges)), undirected)


def diffused(graphs, recipe, ids=None, **options):
    packed = PackedGraphs.pack(graphs)
    ids = torch.arange(len(packed)) if ids is None else torch.tensor(ids)
    return DiffusedGraphs(packed, recipe, **options).blocks(ids).transpose(1, 2).numpy()


def reference(graph, recipe):
    """The same steps for one graph, in NumPy, entry (source, target)."""
    nodes = len(graph.x)
    adjacency = np.eye(nodes)
    np.add.at(adjacency, tuple(graph.edge_index), 1.0)
    scale = adjacency.sum(0) ** -0.5
    transition = scale[:, None] * adjacency * scale
    if recipe.kind == "ppr":
        spread = recipe.alpha * np.linalg.inv(np.eye(nodes) - (1 - recipe.alpha) * transition)
    else:
        spread = expm(recipe.t * (transition - np.eye(nodes)))
    spread[spread < recipe.eps] = 0
    total = spread.sum(0)
    scale = np.divide(1, np.sqrt(total), out=np.zeros(nodes), where=total > 0)
    return scale[:, None] * spread * scale


RAW_PPR = Diffusion("ppr", eps=0.0, normalise=False)
PATH = make(3, [(0, 1), (1, 2)])
CYCLE = make(5, [(i, (i + 1) % 5) for i in range(5)])
ISOLATED = {
    "first": make(4, [(1, 2), (2, 3)], undirected=False),
    "middle": make(4, [(0, 1), (1, 3)], undirected=False),
    "last": make(4, [(0, 1), (1, 2)], undirected=False),
    "all": make(3, []),
    "one node": make(1, []),
}


@pytest.mark.parametrize(
    ("graph", "expected"),
    [
        (make(2, [(0, 1)]), [[0.6, 0.4], [0.4, 0.6]]),
        (PATH, [[0.4902, 0.2882, 0.1569], [0.2882, 0.5294, 0.2882], [0.1569, 0.2882, 0.4902]]),
        (make(2, [(0, 1)], undirected=False), [[1, 0.9428], [0, 0.3333]]),
    ],
)
def test_ppr_before_thresholding(graph, expected):
    np.testing.assert_allclose(diffused([graph], RAW_PPR)[0], expected, atol=6e-5)


def test_ppr_of_a_regular_graph_has_unit_rows():
    (found,) = diffused([CYCLE], RAW_PPR)
    np.testing.assert_allclose(found[0], [0.4094, 0.1879, 0.1074, 0.1074, 0.1879], atol=6e-5)
    np.testing.assert_allclose(found.sum(1), 1, atol=1e-6)


def test_ppr_is_non_negative_with_largest_eigenvalue_one():
    (found,) = diffused([random_graph(12, np.random.default_rng(0), undirected=True)], RAW_PPR)
    assert found.min() >= 0
    assert np.linalg.eigvalsh(found).max() == pytest.approx(1, abs=1e-5)


def test_ppr_is_normalised_again():
    expected = [[0.5241, 0.2834, 0.1677], [0.2834, 0.4788, 0.2834], [0.1677, 0.2834, 0.5241]]
    np.testing.assert_allclose(diffused([PATH], Diffusion("ppr"))[0], expected, atol=6e-5)


@pytest.mark.parametrize(
    ("transition", "expected"),
    [
        ("symmetric", [[0.3274, 0.3489, 0.2453], [0.3489, 0.4302, 0.3489], [0.2453, 0.3489, 0.3274]]),
        ("column", [[0.3274, 0.2849, 0.2453], [0.4273, 0.4302, 0.4273], [0.2453, 0.2849, 0.3274]]),
    ],
)
def test_heat_is_the_exponential_of_the_matrix(transition, expected):
    (found,) = diffused([PATH], Diffusion("heat", eps=0.0, normalise=False, transition=transition))
    np.testing.assert_allclose(found, expected, atol=6e-5)
    if transition == "column":
        np.testing.assert_allclose(found.sum(0), 1, atol=1e-6)


@pytest.mark.parametrize("kind", ["ppr", "heat"])
@pytest.mark.parametrize("where", ISOLATED)
def test_isolated_nodes_keep_a_diffusion_to_themselves(kind, where):
    graph = ISOLATED[where]
    neighbours = [CYCLE, graph, PATH]
    found = diffused(neighbours, Diffusion(kind), ids=[1, 0, 2])[0, : len(graph.x), : len(graph.x)]
    np.testing.assert_allclose(found, reference(graph, Diffusion(kind)), atol=1e-6)
    lonely = sorted(set(range(len(graph.x))) - set(graph.edge_index.ravel().tolist()))
    np.testing.assert_allclose(found[lonely, lonely], 1.0 if kind == "ppr" else found[lonely, lonely])
    assert np.isfinite(found).all()


def test_an_isolated_node_has_ppr_one_with_itself():
    assert diffused([ISOLATED["last"]], RAW_PPR)[0][3, 3] == pytest.approx(1.0)


@pytest.mark.parametrize("undirected", [True, False])
@pytest.mark.parametrize("kind", ["ppr", "heat"])
def test_equals_a_dense_reference_graph_by_graph(kind, undirected):
    rng = np.random.default_rng(1)
    graphs = [random_graph(int(size), rng, undirected) for size in rng.integers(2, 40, 30)]
    recipe = Diffusion(kind)
    for graph, found in zip(graphs, diffused(graphs, recipe), strict=True):
        nodes = len(graph.x)
        np.testing.assert_allclose(found[:nodes, :nodes], reference(graph, recipe), atol=1e-6)
        assert not found[nodes:].any()
        assert not found[:, nodes:].any()


def test_an_existing_self_loop_gets_weight_two():
    looped = make(2, [(0, 0), (0, 1), (1, 0)], undirected=False)
    np.testing.assert_allclose(diffused([looped], Diffusion("ppr"))[0], reference(looped, Diffusion("ppr")), atol=1e-6)
    doubled = make(2, [(0, 0), (0, 0), (0, 1), (1, 0)], undirected=False)
    assert not np.allclose(diffused([looped], Diffusion("ppr")), diffused([doubled], Diffusion("ppr")))


def test_the_direction_of_edges_counts_and_blocks_hold_targets_in_rows():
    packed = PackedGraphs.pack([make(2, [(0, 1)], undirected=False)])
    (block,) = DiffusedGraphs(packed, RAW_PPR).blocks(torch.tensor([0]))
    assert block[1, 0] == pytest.approx(0.9428, abs=1e-4)  # into node 1, from node 0
    assert block[0, 1] == 0


@pytest.mark.parametrize(
    ("graph", "pairs"),
    [
        (make(31, [((i - 1) // 2, i) for i in range(1, 31)]), 961),
        (make(40, [(i, i + 20) for i in range(20)] + [(i, i + 1) for i in range(39) if i != 19]), 1072),
    ],
    ids=["tree", "ladder"],
)
def test_the_pattern_of_a_small_graph_is_nearly_complete(graph, pairs):
    (found,) = diffused([graph], Diffusion("ppr", weighted=False))
    assert set(np.unique(found)) <= {0.0, 1.0}
    assert found.sum() == pairs


def test_an_entry_equal_to_the_threshold_is_kept():
    adjacency = np.array([[0.6, 0.4], [0.4, 0.6]])
    (raw,) = diffused([make(2, [(0, 1)])], Diffusion("ppr", eps=0.0, weighted=False))
    assert raw.sum() == adjacency.size
    assert diffused([make(2, [(0, 1)])], Diffusion("ppr", eps=0.5, weighted=False))[0].tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize("kind", ["ppr", "heat"])
def test_kept_recomputed_and_batch_results_are_the_same_bits(kind):
    rng = np.random.default_rng(2)
    packed = PackedGraphs.pack([random_graph(int(size), rng, undirected=False) for size in rng.integers(2, 50, 20)])
    ids = torch.tensor([7, 3, 19, 3, 0])
    kept = DiffusedGraphs(packed, Diffusion(kind)).blocks(ids)
    assert torch.equal(DiffusedGraphs(packed, Diffusion(kind), budget=0).blocks(ids), kept)
    assert torch.equal(batch_blocks(packed.batch(ids), Diffusion(kind)), kept)


def test_by_size_visits_each_graph_once_within_the_limit():
    sizes = torch.randint(1, 60, (200,), generator=torch.Generator().manual_seed(0))
    parts = list(by_size(sizes, 4096))
    assert torch.equal(torch.cat(parts).sort().values, torch.arange(200))
    widths = [-(-int(sizes[part].max()) // 8) * 8 for part in parts]
    assert all(len(part) == 1 or len(part) * width**2 <= 4096 for part, width in zip(parts, widths, strict=True))
    assert all(int(sizes[part].max()) - int(sizes[part].min()) < 8 for part in parts)


@pytest.mark.parametrize("undirected", [True, False])
def test_parity_with_pygcl_where_it_is_right(undirected):
    """No isolated last node: PyGCL's whole-batch inverse gives the same edges and weights."""
    import GCL

    rng = np.random.default_rng(3)
    packed = PackedGraphs.pack([random_graph(int(size), rng, undirected) for size in rng.integers(4, 20, 6)])
    batch = packed.batch(torch.arange(6))
    compute_ppr = GCL.augmentors.functional.compute_ppr
    edges, weights = compute_ppr(batch.edge_index, alpha=0.2, eps=1e-4)
    theirs = torch.zeros(batch.num_nodes, batch.num_nodes)
    theirs[edges[0], edges[1]] = weights
    spread = DiffusedGraphs(packed, Diffusion("ppr")).blocks(torch.arange(6)).transpose(1, 2)
    ours = torch.block_diag(*(block[:n, :n] for block, n in zip(spread, batch.ptr.diff(), strict=True)))
    assert torch.equal(ours > 0, theirs > 0)
    torch.testing.assert_close(ours, theirs, atol=1e-6, rtol=0)


@pytest.mark.parametrize("undirected", [True, False])
def test_parity_with_gdc_for_heat(undirected):
    from torch_geometric.data import Data
    from torch_geometric.transforms import GDC

    graph = random_graph(15, np.random.default_rng(4), undirected)
    gdc = GDC(
        normalization_in="sym",
        normalization_out="sym",
        diffusion_kwargs={"method": "heat", "t": 5.0},
        sparsification_kwargs={"method": "threshold", "eps": 1e-4},
    )
    data = gdc(Data(edge_index=torch.from_numpy(graph.edge_index), num_nodes=15))
    theirs = np.zeros((15, 15), np.float32)
    theirs[tuple(data.edge_index.numpy())] = data.edge_attr.numpy()
    np.testing.assert_allclose(diffused([graph], Diffusion("heat"))[0], theirs, atol=2e-6)


def test_a_large_batch_stays_below_two_gigabytes():
    """256 graphs of 100 nodes: as one dense matrix these would take 2.6 GB for each copy."""
    program = """
import resource, numpy as np, torch
from harness import PackedGraphs, RawGraph
from harness.graphs import DiffusedGraphs, Diffusion
torch.set_num_threads(1)
edges = np.stack([np.arange(99), np.arange(1, 100)])
packed = PackedGraphs.pack([RawGraph(np.ones((100, 1), np.float32), edges, 0) for _ in range(256)])
blocks = DiffusedGraphs(packed, Diffusion("ppr")).blocks(torch.arange(256))
one = DiffusedGraphs(packed, Diffusion("ppr"), budget=0).blocks(torch.tensor([5]))
assert torch.equal(blocks[200], one[0])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 2048
