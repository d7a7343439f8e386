"""GIN, GCN and LEConv: parity with PyG, edge weights that reach the messages, and graphs that are easy to get wrong."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch
import torch_geometric.nn as pyg
from torch import Tensor, nn

from harness import Backbone, Batch, Features, PackedGraphs, RawGraph, Task
from harness.nn import LEConv, pool
from harness.training.bases import LearnerInfo, ModelSpec
from plugins.backbones.gcn import GCN
from plugins.backbones.gin import GIN
from plugins.backbones.leconv import LEConvStack
from plugins.baselines.erm import ERM

NUMERIC = Features("numeric", (4,))
CODES = Features("categorical", (6, 3))
EDGE_NUMBERS = Features("numeric", (2,))
EDGE_CODES = Features("categorical", (5, 2))
NONE = Features("none")
ALL = pytest.mark.parametrize("backbone", [GIN, GCN, LEConvStack])
FLAVOURS = pytest.mark.parametrize("flavour", ["equad", "ogb"])


def values_of(features: Features, rows: int, rng: np.random.Generator) -> np.ndarray[Any, Any] | None:
    if features.kind == "none":
        return None
    if features.kind == "numeric":
        return rng.random((rows, features.sizes[0]), dtype=np.float32) - 0.3
    return np.stack([rng.integers(0, size, rows) for size in features.sizes], axis=1)


def raw_graphs(nodes: Features = NUMERIC, edges: Features = NONE, count: int = 8) -> list[RawGraph]:
    """Simple directed graphs (no repeated edge, no self loop) with isolated nodes; one is a single node."""
    rng = np.random.default_rng(1)
    graphs = []
    for number in range(count):
        n = 1 if number == 2 else int(rng.integers(3, 9))
        pairs = np.array([(i, j) for i in range(n - 1) for j in range(n) if i != j and rng.random() < 0.3])
        ends = pairs.reshape(-1, 2).T.astype(np.int64).copy()
        x = values_of(nodes, n, rng)
        graphs.append(
            RawGraph(
                x if x is not None else np.zeros((n, 0), np.float32), ends, 0, values_of(edges, ends.shape[1], rng)
            )
        )
    return graphs


def make_batch(nodes: Features = NUMERIC, edges: Features = NONE) -> Batch:
    return PackedGraphs.pack(raw_graphs(nodes, edges), nodes, edges).batch(torch.arange(8))


def build(backbone: type[Backbone], nodes: Features = NUMERIC, edges: Features = NONE, **values: Any) -> Backbone:
    torch.manual_seed(0)
    network = backbone(**{"hidden": 8, "layers": 3, **values})
    network.build(nodes, edges)
    return network


def equip(network: nn.Module) -> nn.Module:
    """Every eps, bias and norm away from its start, so that parity covers them."""
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(torch.rand_like(parameter) * 0.2)
    return network


def pyg_gin(network: GIN, batch: Batch) -> Tensor:
    """The same network by PyG's convolutions, sharing the weights."""
    x = network.front(batch.x)
    for layer, conv in enumerate(network.convs):
        other = (pyg.GINConv if conv.edge_front is None else pyg.GINEConv)(copy.deepcopy(conv.mlp), train_eps=True)
        other.nn, other.eps = conv.mlp, conv.eps  # afterwards, because PyG draws its modules anew
        if conv.edge_front is None:
            x = other((x.relu(), x), batch.edge_index)
        else:
            x = other(x, batch.edge_index, conv.edge_front(batch.edge_attr))
        if network.flavour == "ogb":
            x = network.norms[layer](x)
            x = x.relu() if layer < len(network.convs) - 1 else x
    return x


@FLAVOURS
@pytest.mark.parametrize(
    ("nodes", "edges"), [(NUMERIC, NONE), (CODES, NONE), (NUMERIC, EDGE_NUMBERS), (CODES, EDGE_CODES)]
)
def test_gin_is_pyg_gin(flavour: str, nodes: Features, edges: Features) -> None:
    batch = make_batch(nodes, edges)
    network = equip(build(GIN, nodes, edges, flavour=flavour, edge_features=True)).eval()
    torch.testing.assert_close(network(batch), pyg_gin(network, batch), rtol=1e-5, atol=1e-5)


def test_gin_gradients_are_those_of_pyg() -> None:
    batch = make_batch()
    network = equip(build(GIN, flavour="ogb"))
    network(batch).square().sum().backward()
    found = [parameter.grad for parameter in network.parameters()]
    network.zero_grad()
    pyg_gin(network, batch).square().sum().backward()
    for one, other in zip(found, network.parameters(), strict=True):
        torch.testing.assert_close(one, other.grad, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loops", [False, True])
def test_gcn_convolution_is_pyg_gcn(weighted: bool, loops: bool) -> None:
    graphs = raw_graphs()
    if loops:
        graphs[0].edge_index = np.concatenate([graphs[0].edge_index, [[1], [1]]], axis=1)
    batch = PackedGraphs.pack(graphs).batch(torch.arange(8))
    weight = torch.rand(batch.num_edges) + 0.1 if weighted else None
    conv = equip(build(GCN)).convs[0]
    other = pyg.GCNConv(4, 8)
    other.load_state_dict({"lin.weight": conv.lin.weight, "bias": conv.bias})
    torch.testing.assert_close(conv(batch.x, batch, weight), other(batch.x, batch.edge_index, weight))


def pyg_leconv(conv: LEConv) -> pyg.LEConv:
    """PyG's convolution with the same weights; its message has the opposite sign."""
    other = pyg.LEConv(conv.own.in_features, conv.own.out_features)
    weights = {"lin3.weight": conv.own.weight, "lin3.bias": conv.own.bias, "lin2.weight": -conv.centre.weight}
    neighbour = {"lin1.weight": -conv.neighbour.weight, "lin1.bias": -conv.neighbour.bias}
    other.load_state_dict({**weights, **neighbour})
    return other


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loops", [False, True])
def test_leconv_convolution_is_pyg_leconv(weighted: bool, loops: bool) -> None:
    graphs = raw_graphs()
    if loops:
        graphs[0].edge_index = np.concatenate([graphs[0].edge_index, [[1], [1]]], axis=1)
    batch = PackedGraphs.pack(graphs).batch(torch.arange(8))
    weight = torch.rand(batch.num_edges) + 0.1 if weighted else None
    conv = equip(build(LEConvStack)).convs[0]
    found, theirs = conv(batch.x, batch, weight), pyg_leconv(conv)(batch.x, batch.edge_index, weight)
    torch.testing.assert_close(found, theirs, rtol=1e-5, atol=1e-5)


def test_leconv_compares_a_node_with_each_neighbour() -> None:
    batch = make_batch(edges=EDGE_NUMBERS)
    weight = torch.rand(batch.num_edges) + 0.1
    conv = equip(build(LEConvStack, edges=EDGE_NUMBERS, edge_features=True)).convs[0]
    expected, extra = conv.own(batch.x), conv.edge_front(batch.edge_attr)
    for edge, (source, target) in enumerate(batch.edge_index.t().tolist()):
        compared = conv.centre(batch.x[target]) - conv.neighbour(batch.x[source]) - extra[edge]
        expected = expected.index_add(0, torch.tensor([target]), (weight[edge] * compared).unsqueeze(0))
    torch.testing.assert_close(conv(batch.x, batch, weight), expected, rtol=1e-5, atol=1e-5)


@FLAVOURS
def test_leconv_is_a_stack_of_pyg_leconv(flavour: str) -> None:
    batch, network = make_batch(), equip(build(LEConvStack, flavour=flavour)).eval()
    x = network.front(batch.x)
    for layer, conv in enumerate(network.convs):
        x = pyg_leconv(conv)(x, batch.edge_index)
        x = network.norms[layer](x) if flavour == "ogb" else x
        x = x.relu() if layer < 2 else x
    torch.testing.assert_close(network(batch), x, rtol=1e-4, atol=1e-5)


def test_gcn_is_a_stack_of_pyg_gcn() -> None:
    batch, network = make_batch(), equip(build(GCN)).eval()
    x = network.front(batch.x)
    for layer, conv in enumerate(network.convs):
        other = pyg.GCNConv(conv.lin.in_features, 8)
        other.load_state_dict({"lin.weight": conv.lin.weight, "bias": conv.bias})
        x = other(x, batch.edge_index)
        x = x.relu() if layer < 2 else x
    torch.testing.assert_close(network(batch), x, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("edges", [NONE, EDGE_NUMBERS])
def test_ogb_gcn_has_relu_on_messages_a_root_vector_and_source_degrees(edges: Features, weighted: bool) -> None:
    batch = make_batch(edges=edges)
    network = equip(build(GCN, edges=edges, flavour="ogb", edge_features=True)).eval().double()
    batch.x, batch.edge_attr = batch.x.double(), None if batch.edge_attr is None else batch.edge_attr.double()
    weight = torch.rand(batch.num_edges, dtype=torch.float64) + 0.1 if weighted else None
    w = torch.ones(batch.num_edges, dtype=torch.float64) if weight is None else weight
    h = network.front(batch.x)
    for layer, conv in enumerate(network.convs):
        h = ogb_convolution(conv, h, batch, w)
        h = network.norms[layer](h)
        h = h.relu() if layer < 2 else h
    torch.testing.assert_close(network(batch, edge_weight=weight), h)


def ogb_convolution(conv: nn.Module, x: Tensor, batch: Batch, weight: Tensor) -> Tensor:
    """Node by node and edge by edge."""
    sent = conv.lin(x)
    degree = [1.0] * batch.num_nodes
    for edge, source in enumerate(batch.edge_index[0].tolist()):
        degree[source] += float(weight[edge])
    out = [(sent[node] + conv.root).relu() / degree[node] for node in range(batch.num_nodes)]
    for edge, (source, target) in enumerate(batch.edge_index.t().tolist()):
        message = sent[source] + (0 if conv.edge_front is None else conv.edge_front(batch.edge_attr)[edge])
        out[target] = out[target] + weight[edge] * message.relu() / (degree[source] * degree[target]) ** 0.5
    return torch.stack(out)


def test_gcn_edge_features_join_the_message() -> None:
    batch = make_batch(edges=EDGE_NUMBERS)
    weight = torch.rand(batch.num_edges) + 0.1
    conv = equip(build(GCN, edges=EDGE_NUMBERS, edge_features=True)).convs[0]
    sent, extra = conv.lin(batch.x), conv.edge_front(batch.edge_attr)
    degree = torch.ones(batch.num_nodes).index_add(0, batch.edge_index[1], weight)
    expected = sent / degree.unsqueeze(1)
    for edge, (source, target) in enumerate(batch.edge_index.t().tolist()):
        factor = weight[edge] / (degree[source] * degree[target]).sqrt()
        expected = expected.index_add(0, torch.tensor([target]), (factor * (sent[source] + extra[edge])).unsqueeze(0))
    torch.testing.assert_close(conv(batch.x, batch, weight), expected + conv.bias, rtol=1e-5, atol=1e-5)


@ALL
@FLAVOURS
@pytest.mark.parametrize("edges", [NONE, EDGE_CODES])
def test_edge_weight_zero_is_no_edge_and_one_is_unweighted(
    backbone: type[Backbone], flavour: str, edges: Features
) -> None:
    batch = make_batch(edges=edges)
    network = build(backbone, edges=edges, flavour=flavour, edge_features=True)
    ones, zeros = torch.ones(batch.num_edges), torch.zeros(batch.num_edges)
    torch.testing.assert_close(network(batch, edge_weight=ones), network(batch))
    bare = batch.keep_edges(torch.zeros(batch.num_edges, dtype=torch.bool))
    torch.testing.assert_close(network(batch, edge_weight=zeros), network(bare))
    keep = torch.arange(batch.num_edges) % 2 == 0
    torch.testing.assert_close(network(batch, edge_weight=keep.float()), network(batch.keep_edges(keep)))


@ALL
@FLAVOURS
def test_edge_weight_has_the_right_gradient(backbone: type[Backbone], flavour: str) -> None:
    batch = make_batch()
    batch.x = batch.x.double()
    network = build(backbone, flavour=flavour).double().eval()
    weight = (torch.rand(batch.num_edges, dtype=torch.float64) + 0.2).requires_grad_()
    assert torch.autograd.gradcheck(lambda w: pool(network(batch, edge_weight=w), batch), (weight,))
    (gradient,) = torch.autograd.grad(network(batch, edge_weight=weight).square().sum(), weight)
    assert (gradient != 0).any()


@ALL
@FLAVOURS
@pytest.mark.parametrize("edges", [NONE, EDGE_NUMBERS])
def test_a_batch_without_any_edge_is_finite_and_repeats(
    backbone: type[Backbone], flavour: str, edges: Features
) -> None:
    width = {"none": None, "numeric": 2}[edges.kind]
    empty = None if width is None else np.zeros((0, width), dtype=np.float32)
    raw = [RawGraph(np.ones((n, 4), np.float32), np.zeros((2, 0), np.int64), 0, empty) for n in (1, 3, 1, 1)]
    graphs = PackedGraphs.pack(raw)
    network = build(backbone, edges=edges, flavour=flavour, edge_features=True)
    for batch in [*graphs.batches(4), *graphs.batches(1)]:  # training mode, single one-node graphs too
        out = network(batch)
        assert torch.isfinite(out).all()
        out.sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in network.parameters() if p.grad is not None)
    network.eval()
    (batch,) = graphs.batches(4)
    assert torch.equal(network(batch), network(batch))


@ALL
def test_edge_features_change_nothing_unless_switched_on_and_present(backbone: type[Backbone]) -> None:
    rich = make_batch(edges=EDGE_NUMBERS)
    off, absent = build(backbone, edges=EDGE_NUMBERS), build(backbone, edges=NONE, edge_features=True)
    on = build(backbone, edges=EDGE_NUMBERS, edge_features=True)
    assert torch.equal(off(rich), absent(rich))
    assert not torch.allclose(on(rich), off(rich))


@ALL
@FLAVOURS
def test_shapes_of_the_flavours(backbone: type[Backbone], flavour: str) -> None:
    network = build(backbone, flavour=flavour)
    assert len(network.norms) == (3 if flavour == "ogb" else 0)
    assert isinstance(network.front, nn.Linear if flavour == "ogb" else nn.Identity)
    assert network(make_batch()).shape == (make_batch().num_nodes, network.out_dim)
    assert not isinstance(build(backbone, CODES, flavour=flavour).front, nn.Identity)
    featureless = make_batch(NONE)
    assert build(backbone, NONE, flavour=flavour)(featureless).shape == (featureless.num_nodes, 8)


def test_equad_gin_is_linear_between_convolutions_and_eps_starts_at_zero() -> None:
    network = build(GIN)
    assert all(conv.eps.item() == 0 for conv in network.convs)
    assert network.convs[0].mlp[0].weight.shape == (16, 4)
    assert (network(make_batch()) < 0).any()
    assert not network.activates


@ALL
def test_dropout_is_live_in_training_only(backbone: type[Backbone]) -> None:
    batch, network = make_batch(), build(backbone, dropout=0.5)
    assert (network(batch) == 0).any()
    network.eval()
    assert torch.equal(network(batch), network(batch))
    assert not (network(batch) == 0).all(1).any()


def test_erm_logits_are_those_of_the_pyg_model() -> None:
    batch = make_batch()
    learner = ERM()
    info = LearnerInfo(Task("multiclass", 3), NUMERIC, NONE)
    learner.setup(info, ModelSpec(GIN, {"hidden": 32, "layers": 3}), seed=0)
    equip(learner)
    nodes = pyg_gin(learner.backbone, batch)
    theirs = learner.head(pyg.global_add_pool(nodes, batch.batch, size=batch.num_graphs))
    torch.testing.assert_close(learner(batch), theirs, rtol=1e-5, atol=1e-5)
