"""PyGCL as an encoder: parity with its example loops, the faults of PyGCL that are mended, and its words explained."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml

import harness
from harness import Features, PackedGraphs, RawGraph
from harness.errors import UserError
from harness.nn import pool
from harness.randomness import generator, seeded
from plugins.encoders.pygcl import Contrasted, PyGCL

NUMERIC = Features("numeric", (3,))
EDGES, MASKS = "EdgeRemoving(pe=0.3)", "FeatureMasking(pf=0.3)"
BOOTSTRAP = {"contrast": "BootstrapContrast", "loss": "BootstrapLatent"}
WITHIN = {"contrast": "WithinEmbedContrast", "loss": "BarlowTwins"}
BUNDLES = Path(harness.__file__).parent / "bundles/encoder"


@pytest.fixture(autouse=True)
def _same_draws():
    with seeded(0, "test"):
        yield


def make_graphs(sizes, edges=True):
    rng = np.random.default_rng(0)
    graphs = []
    for nodes in sizes:
        path = np.stack([np.arange(nodes - 1), np.arange(1, nodes)]).astype(np.int64)
        both = np.concatenate([path, path[::-1]], axis=1)[:, : None if edges else 0]
        graphs.append(RawGraph(rng.normal(size=(nodes, 3)).astype(np.float32), both, 0))
    return PackedGraphs.pack(graphs)


def make_encoder(features=NUMERIC, **values):
    encoder = PyGCL(**{"snapshots": [1], "hidden": 8, "layers": 2, "batch_size": 8, **values})
    encoder.node_features = features
    encoder.rng = generator(0, "method")
    return encoder


def whole(graphs):
    return graphs.batch(torch.arange(len(graphs)))


def loss_of(encoder, module, batch):
    torch.manual_seed(5)
    return encoder.compare(module, encoder.contrast_model(), encoder.views(), batch)


def refusal(**values):
    with pytest.raises(UserError) as found:
        list(make_encoder(**values).fit(make_graphs([4, 5, 6])))
    return str(found.value)


class Examples:
    """The loops of PyGCL's examples on the same weights and, by the same draws, the same views."""

    def __init__(self, module, batch, augmentors):
        from GCL import augmentors as library

        torch.manual_seed(5)
        self.module, self.batch = module, batch
        self.views = []
        for texts in augmentors:
            compose = library.Compose([eval(f"library.{text}", {"library": library}) for text in texts])
            self.views.append(compose(batch.x, batch.edge_index)[:2])

    def nodes(self, view, convs=None):
        """A GIN message by message."""
        x, (source, target) = view
        for conv in convs or self.module.gin.convs:
            received = torch.zeros_like(x).index_add(0, target, x.relu()[source])
            x = conv.mlp((1 + conv.eps) * x + received)
        return x

    def both(self):
        """Node vectors and their sums, for each view."""
        return [(h, pool(h, self.batch)) for h in map(self.nodes, self.views)]

    def graphcl(self, contrast):
        (_, g1), (_, g2) = self.both()
        return contrast(g1=self.module.graph_projector(g1), g2=self.module.graph_projector(g2), batch=self.batch.batch)

    def grace(self, contrast):
        (h1, _), (h2, _) = self.both()
        return contrast(self.module.node_projector(h1), self.module.node_projector(h2))

    def infograph(self, contrast):
        ((h, g),) = self.both()
        return contrast(h=self.module.node_projector(h), g=self.module.graph_projector(g), batch=self.batch.batch)

    def mvgrl(self, contrast):
        (h1, g1), (h2, g2) = self.both()
        h1, h2 = self.module.node_projector(h1), self.module.node_projector(h2)
        g1, g2 = self.module.graph_projector(g1), self.module.graph_projector(g2)
        return contrast(h1=h1, h2=h2, g1=g1, g2=g2, batch=self.batch.batch)

    def bgrl(self, contrast):
        gin, projector = self.module.target
        online = [self.module.node_projector(self.nodes(view)) for view in self.views]
        targets = [projector(self.nodes(view, gin.convs)).detach() for view in self.views]
        h1, h2 = map(self.module.predictor, online)
        if contrast.mode == "L2L":
            return contrast(h1_pred=h1, h2_pred=h2, h1_target=targets[0], h2_target=targets[1])
        g1, g2 = (pool(target, self.batch) for target in targets)
        return contrast(h1_pred=h1, h2_pred=h2, g1_target=g1, g2_target=g2, batch=self.batch.batch)


CASES = {
    "GraphCL": ("graphcl", {"mode": "G2G"}),
    "GraphCL, Triplet": ("graphcl", {"mode": "G2G", "loss": "TripletMarginSP"}),
    "GRACE": ("grace", {"mode": "L2L"}),
    "MVGRL": ("mvgrl", {"mode": "G2L", "loss": "JSD"}),
    "MVGRL, InfoNCE": ("mvgrl", {"mode": "G2L"}),
    "InfoGraph": ("infograph", {"contrast": "SingleBranchContrast", "mode": "G2L", "loss": "JSD"}),
    "GBT": ("grace", {**WITHIN, "mode": "L2L", "projector": 0}),
    "VICReg": ("grace", {**WITHIN, "mode": "L2L", "loss": "VICReg", "projector": 3, "norm": True}),
    "BGRL": ("bgrl", {**BOOTSTRAP, "mode": "L2L"}),
    "BGRL, G2L": ("bgrl", {**BOOTSTRAP, "mode": "G2L"}),
}


@pytest.mark.parametrize("case", CASES)
def test_losses_are_those_of_pygcls_example_loops(case):
    from GCL import losses, models

    example, values = CASES[case]
    encoder = make_encoder(augmentors1=[EDGES, MASKS], augmentors2=[MASKS, EDGES], dropout=0.0, **values)
    module, batch = Contrasted(encoder), whole(make_graphs([6] * 7))
    lists = [encoder.augmentors1, encoder.augmentors2][: len(encoder.views())]
    loss = getattr(losses, encoder.loss)(**({"tau": 0.2} if encoder.loss == "InfoNCE" else {}))
    if encoder.contrast == "WithinEmbedContrast":
        contrast = models.WithinEmbedContrast(loss)
    else:
        contrast = getattr(models, encoder.contrast)(loss, mode=encoder.mode)
    theirs = getattr(Examples(module, batch, lists), example)(contrast)
    if encoder.contrast == "BootstrapContrast":  # PyGCL's grows with the agreement, and with the graph
        theirs = -theirs / (6 if encoder.mode == "G2L" else 1)
    torch.testing.assert_close(loss_of(encoder, module, batch), theirs, rtol=1e-4, atol=1e-5)


def test_an_anchor_is_not_its_own_negative():
    encoder = make_encoder(intraview_negs=True, augmentors1=["Identity"], augmentors2=[MASKS], projector=0, tau=0.5)
    module, batch = Contrasted(encoder), whole(make_graphs([5, 6, 7]))
    torch.manual_seed(5)
    views, _ = encoder.augmented(batch, encoder.views())
    first, second = (torch.nn.functional.normalize(module.vectors(view, view.nodes[view.nodes])[1]) for view in views)

    def one_way(anchor, sample):
        across, within = anchor @ sample.T / 0.5, anchor @ anchor.T / 0.5
        within = within.masked_fill(torch.eye(3, dtype=torch.bool), -torch.inf)
        return (torch.cat([across, within], 1).logsumexp(1) - across.diagonal()).mean()

    expected = (one_way(first, second) + one_way(second, first)) / 2
    torch.testing.assert_close(loss_of(encoder, module, batch), expected)


def changed(batch, *texts, **values):
    encoder = make_encoder(augmentors1=list(texts), contrast="SingleBranchContrast", mode="G2L", **values)
    (view,), _ = encoder.augmented(batch, encoder.views())
    return view


def test_dropped_nodes_leave_the_readout_also_isolated_ones_at_the_end():
    """PyGCL takes the highest number in an edge for the last node."""
    batch = whole(make_graphs([50, 1]))
    alone = [changed(batch, "NodeDropping(pn=0.5)") for _ in range(40)]
    sizes = torch.stack([view.batch.ptr.diff() for view in alone])
    assert 20 < sizes[:, 0].float().mean() < 30
    assert (sizes[:, 1] == 1).all(), "a graph never loses its last node"
    view = changed(whole(make_graphs([50, 50], edges=False)), "NodeDropping(pn=0.5)")
    assert 20 < view.batch.num_nodes < 80


@pytest.mark.parametrize("text", [EDGES, MASKS, "NodeDropping(pn=0.3)", "RWSampling(num_seeds=3, walk_length=2)"])
def test_graphs_without_edges(text):
    view = changed(whole(make_graphs([1, 3, 4], edges=False)), text)
    assert view.batch.num_graphs == 3
    assert (view.batch.ptr.diff() > 0).all()


def test_augmentors_change_what_their_names_say():
    batch = whole(make_graphs([30, 30]))
    assert 20 < changed(batch, "EdgeRemoving(pe=0.7)").batch.num_edges < 55
    assert not changed(batch, "FeatureMasking(pf=1.0)").batch.x.any()
    kept = (changed(batch, "FeatureDropout(pf=0.9)").batch.x != 0).float().mean()
    assert kept < 0.25, "PyGCL's drops a tenth where nine tenths are asked for"
    walked = changed(batch, "RWSampling(num_seeds=4, walk_length=3)").batch
    assert walked.num_nodes < 60
    assert walked.num_edges >= walked.num_nodes - 8
    encoder = make_encoder(augmentors1=[EDGES, MASKS], num_choices=1)
    drawn = {encoder._changed(batch, encoder.views()[0])[1].all().item() for _ in range(20)}
    assert drawn == {True, False}, "one of the two at a time"


def test_edge_attributes_stay_with_their_edges():
    batch = whole(make_graphs([9, 9]))
    batch = replace(batch, edge_attr=batch.edge_index[0].unsqueeze(1).float())
    view = changed(batch, "EdgeRemoving(pe=0.5)").batch
    assert torch.equal(view.edge_attr.flatten().long(), view.edge_index[0])


def test_two_views_of_a_graph_have_a_node_in_common():
    encoder = make_encoder(mode="G2L", augmentors1=["NodeDropping(pn=0.9)"], augmentors2=["NodeDropping(pn=0.9)"])
    batch = whole(make_graphs([2, 3, 4, 2]))
    for _ in range(20):
        views, shared = encoder.augmented(batch, encoder.views())
        assert pool(shared.unsqueeze(1).float(), batch).min() >= 1
        assert all((view.nodes | ~shared).all() for view in views)
        assert loss_of(encoder, Contrasted(encoder), batch).isfinite()


def test_the_copy_follows_and_gets_no_gradient():
    encoder = make_encoder(**BOOTSTRAP, mode="G2L", momentum=0.9, lr=0.1, batch_size=16, snapshots=[1, 2])
    graphs = make_graphs([5, 6, 7, 8])
    with seeded(0, "encoder"):
        states = [{k: v.clone() for k, v in module.state_dict().items()} for _, module in encoder.fit(graphs)]
    name = "convs.0.mlp.0.weight"
    before, first, second = (states[0][f"target.0.{name}"], states[0][f"gin.{name}"], states[1][f"target.0.{name}"])
    torch.testing.assert_close(second, 0.9 * before + 0.1 * first)


def test_the_loss_reaches_every_trainable_parameter_of_categorical_features():
    graphs = make_graphs([6] * 8)
    graphs.x = torch.randint(0, 4, (48, 2), generator=torch.Generator().manual_seed(0))
    for values in ({"mode": "G2L"}, {**WITHIN, "projector": 1}, {**BOOTSTRAP, "mode": "G2G"}):
        encoder = make_encoder(features=Features("categorical", (4, 5)), **values)
        module = Contrasted(encoder)
        loss_of(encoder, module, whole(graphs)).backward()
        trained = [(name, p.grad) for name, p in module.named_parameters() if p.requires_grad]
        still = [name for name, grad in trained if grad is None or not grad.abs().sum() > 0]
        assert [name for name in still if not name.endswith("bias")] == [], values


@pytest.mark.parametrize("bundle", sorted(path.stem for path in BUNDLES.glob("*.yaml")))
def test_bundles_train(bundle):
    values = yaml.safe_load((BUNDLES / f"{bundle}.yaml").read_text(encoding="utf-8"))["encoder"]
    assert values.pop("use") == "pygcl"
    values["lr"] = float(values["lr"])
    encoder, graphs = make_encoder(**values), make_graphs([5, 9, 7, 8, 6, 4])
    with seeded(0, "encoder"):
        ((_, module),) = encoder.fit(graphs)
    assert encoder.embed(module, graphs).isfinite().all()


def test_bundles_are_the_four_named():
    assert {path.stem for path in BUNDLES.glob("*.yaml")} == {"grace-g2g", "bgrl-g2l", "gbt", "vicreg"}


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"contrast": "SingleBranchContrast"}, ["its own nodes", "'mode' is G2L, found G2G"]),
        ({"loss": "BarlowTwins"}, ["'loss' is InfoNCE or JSD", "BarlowTwins goes with WithinEmbedContrast"]),
        ({"augmentors1": ["EdgeRemoving"]}, ["'augmentors1'", "expected EdgeRemoving(pe=SHARE)"]),
        ({"augmentors2": ["EdgeRemoving(pe=2)"]}, ["'augmentors2'", "a share from 0 to 1"]),
        ({"augmentors1": ["EdgeRemoval(pe=0.1)"]}, ["did you mean 'EdgeRemoving'?"]),
        ({"augmentors1": ["RWSampling(num_seeds=5"]}, ["quote one that has a comma"]),
        ({"augmentors1": ["EdgeAdding(pe=0.1)"]}, ["joins nodes of different graphs", "graphcl"]),
        ({"augmentors1": ["PPRDiffusion()"]}, ["as one matrix", "mvgrl"]),
    ],
)
def test_what_does_not_fit_is_explained(values, words):
    told = refusal(**values)
    assert all(word in told for word in words), told


def test_too_many_pairs_of_nodes_are_refused(monkeypatch):
    monkeypatch.setattr("plugins.encoders.pygcl._ALL_PAIRS", 10)
    assert "at most 10 nodes, found 15; lower 'batch_size' or set 'max_batch_nodes'" in refusal(mode="L2L")
    list(make_encoder(**WITHIN, mode="L2L").fit(make_graphs([4, 5, 6])))
