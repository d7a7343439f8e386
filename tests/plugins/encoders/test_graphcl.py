"""GraphCL: its views, its loss, and the data that breaks other implementations."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch
from encoder_kit import fitted, small

from harness import Features, PackedGraphs, RawGraph
from harness.errors import DivergedError, UserError
from harness.nn import pool
from harness.randomness import seeded
from plugins.encoders import graphcl
from plugins.encoders.graphcl import Contrast, GraphCL

ALL = ["node-drop", "edge-perturb", "mask", "subgraph"]


def make_graphs(sizes, seed=0):
    rng = np.random.default_rng(seed)
    graphs = []
    for nodes in sizes:
        edges = np.stack([np.arange(nodes - 1), np.arange(1, nodes)]).astype(np.int64)
        graphs.append(RawGraph(rng.normal(size=(nodes, 3)).astype(np.float32), edges, 0))
    return PackedGraphs.pack(graphs)


def test_two_augmentations_of_a_batch_differ_and_all_occur():
    encoder = small(GraphCL)
    drawn = [tuple(encoder._draw()) for _ in range(200)]
    assert all(first != second for first, second in drawn)
    assert {name for pair in drawn for name in pair} == set(ALL)
    assert len(set(drawn)) == 12
    assert small(GraphCL, augmentations=["mask"])._draw() == ["mask", "mask"]


def test_both_views_are_changed(monkeypatch):
    encoder = small(GraphCL, augmentations=["node-drop", "subgraph"])
    module = Contrast(encoder.node_features, 8, 2, 0.0)
    batch = make_graphs([20, 30]).batch(torch.arange(2))
    sizes = []
    real = GraphCL._changed
    monkeypatch.setattr(
        GraphCL, "_changed", lambda *given: sizes.append(view.ptr.diff().tolist()) if (view := real(*given)) else 0
    )
    monkeypatch.setattr(Contrast, "readout", lambda *_: torch.eye(2, 8))
    encoder._loss(module, batch)
    assert sorted(sizes) == [[4, 6], [18, 27]]


def test_a_dropped_node_is_not_in_the_readout():
    encoder = small(GraphCL, ratio=0.5)
    batch = make_graphs([10, 10]).batch(torch.arange(2))
    view = encoder._changed(batch, "node-drop")
    assert pool(torch.ones(view.num_nodes, 1), view).flatten().tolist() == [5, 5]


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("exclude", [False, True])
def test_tiny_graphs_strong_changes_and_a_low_temperature_stay_finite(name, exclude):
    graphs = make_graphs([1, 2, 1, 2, 1])
    encoder = small(
        GraphCL,
        augmentations=[name],
        ratio=0.9,
        subgraph_ratio=0.1,
        temperature=0.01,
        exclude_positive=exclude,
        snapshots=[5],
    )
    ((_, module),) = fitted(encoder, graphs)
    assert encoder.embed(module, graphs).isfinite().all()


def test_the_embedding_lies_before_the_projection_and_outside_the_batch():
    graphs = make_graphs([3, 9, 5])
    module = Contrast(Features("numeric", (3,)), 8, 2, 0.0).eval()
    batch = graphs.batch(torch.arange(3))
    together = module(batch)
    torch.testing.assert_close(together, module.readout(batch))
    alone = torch.cat([module(graphs.batch(torch.tensor([i]))) for i in range(3)])
    torch.testing.assert_close(together, alone, rtol=1e-5, atol=1e-6)


def test_the_loss_reaches_every_parameter_also_the_embedding_of_codes():
    encoder = small(GraphCL, features=Features("categorical", (4, 5)))
    graphs = make_graphs([6] * 8)
    graphs.x = torch.randint(0, 4, (48, 2), generator=torch.Generator().manual_seed(0))
    module = Contrast(encoder.node_features, 8, 2, 0.0)
    encoder._loss(module, graphs.batch(torch.arange(8))).backward()
    still = [name for name, parameter in module.named_parameters() if not parameter.grad.abs().sum() > 0]
    assert [name for name in still if not name.endswith("mlp.0.bias")] == []


def test_masking_codes_does_not_turn_them_into_category_zero():
    encoder = small(GraphCL, features=Features("categorical", (2,)), augmentations=["mask"], ratio=1.0)
    graphs = make_graphs([4, 4])
    graphs.x = torch.zeros(8, 1, dtype=torch.int64)
    module = Contrast(encoder.node_features, 8, 1, 0.0)
    seen = []
    module.gin.register_forward_pre_hook(lambda _, given: seen.append(given[0].detach()))
    encoder._loss(module, graphs.batch(torch.arange(2)))
    assert all(not x.any() for x in seen)
    assert module.gin.front(graphs.x).any()


def test_training_lowers_the_loss():
    graphs = make_graphs(list(range(5, 37)))
    encoder = small(GraphCL, snapshots=[1, 25], batch_size=32, lr=5e-3)
    losses = []
    with seeded(0, "encoder"):
        for _, module in encoder.fit(graphs):
            probe = small(GraphCL)
            batch = graphs.batch(torch.arange(32))
            losses.append(np.mean([probe._loss(module, batch).item() for _ in range(10)]))
    assert losses[1] < losses[0]


@pytest.mark.parametrize("count", [2, 9, 65])
def test_a_last_batch_of_one_graph_is_left_out(count):
    graphs = make_graphs([4] * count)
    encoder = small(GraphCL, batch_size=64 if count == 65 else 8)
    ((_, module),) = fitted(encoder, graphs)
    assert len(encoder.embed(module, graphs)) == count


def test_a_loss_that_is_not_finite_is_a_diverged_training():
    graphs = make_graphs([4] * 8)
    graphs.x[:] = float("nan")
    with pytest.raises(DivergedError):
        fitted(small(GraphCL), graphs)


def test_unknown_augmentations_are_refused():
    with pytest.raises(UserError, match="node-drop"):
        GraphCL(augmentations=["drop"])
    with pytest.raises(UserError, match="augmentations"):
        fitted(small(GraphCL, augmentations=[]), make_graphs([3, 3]))


def test_the_encoders_need_neither_pyg_nor_pygcl():
    program = (
        "import sys, plugins.encoders.mvgrl, plugins.encoders.graphcl\n"
        "print(sorted({'torch_geometric', 'GCL'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    assert set(graphcl._AUGMENTATIONS) == set(ALL)
