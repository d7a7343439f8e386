"""PyGCL's parts as an encoder: contrast model, loss, mode and augmentors by name (Zhu et al., NeurIPS 2021)."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from harness import Batch, Encoder, Features, PackedGraphs, Register, UserError, did_you_mean, hookimpl, hparam
from harness.graphs import keep_nodes
from harness.nn import pool, propagate
from plugins.encoders._common import GIN, train

_ALL_PAIRS = 4096  # most nodes of a batch whose pairs are all compared
_MODES = ["G2G", "G2L", "L2L"]
_CONTRASTS = {
    "SingleBranchContrast": (["G2L"], ["InfoNCE", "JSD", "TripletMarginSP"], "a graph with its own nodes, in one view"),
    "DualBranchContrast": (_MODES, ["InfoNCE", "JSD", "TripletMarginSP"], "two views, against negatives"),
    "WithinEmbedContrast": (["G2G", "L2L"], ["BarlowTwins", "VICReg"], "two views, dimension by dimension"),
    "BootstrapContrast": (_MODES, ["BootstrapLatent"], "a prediction with a slowly moving copy of the network"),
}
"""The modes and losses of each contrast model, and what it compares."""
_LOSSES = list(dict.fromkeys(loss for _, losses, _ in _CONTRASTS.values() for loss in losses))
_AUGMENTORS = {
    "Identity": (),
    "EdgeRemoving": ("pe",),
    "NodeDropping": ("pn",),
    "RWSampling": ("num_seeds", "walk_length"),
    "FeatureMasking": ("pf",),
    "FeatureDropout": ("pf",),
}
"""The arguments of each augmentor: those that start with p are probabilities, the others whole numbers."""
_REFUSED = {
    "EdgeAdding": "it joins nodes of different graphs; the encoder 'graphcl' has edge-perturb",
    "EdgeAttrMasking": "the encoder's GIN reads no edge features",
    "NodeShuffling": "it moves features from one graph to another; the encoder 'dgi' shuffles within graphs",
    "PPRDiffusion": "it inverts all graphs of a batch as one matrix; the encoder 'mvgrl' diffuses each graph",
    "MarkovDiffusion": "it takes all graphs of a batch as one matrix; the encoder 'mvgrl' diffuses each graph",
    "Compose": "a list applies its augmentors one after the other",
    "RandomChoice": "the hyperparameter 'num_choices' draws from a list",
}


class PyGCL(Encoder):
    """Two augmented views of a batch go through one GIN, and a contrast model of PyGCL compares what comes out.

    Y. Zhu, Y. Xu, Q. Liu and S. Wu, *An Empirical Study of Graph Contrastive Learning*, NeurIPS 2021 Datasets and
    Benchmarks, take methods apart into augmentors, mode, contrast model and loss; the names here are their library's.
    ``mode`` says what is compared: G2G graphs with graphs, G2L graphs with nodes, L2L nodes with nodes, where the
    nodes of all graphs in the batch are negatives. Augmentors are written as calls, ``EdgeRemoving(pe=0.2)``; a list
    applies them in order. The graph's vector is the sum of its nodes'; the embedding is that sum before the projector.

    Losses and augmentors are PyGCL's own code, but for what ``pygcl.deviations.yaml`` lists. A graph of which two views
    would have no node in common keeps all. Augmentors that mix graphs or invert the whole batch are refused.
    """

    name = "pygcl"
    contrast: str = hparam("DualBranchContrast", choices=list(_CONTRASTS), help="PyGCL's contrast model")
    mode: str = hparam("G2G", choices=_MODES, help="graphs with graphs, graphs with nodes, nodes with nodes")
    loss: str = hparam("InfoNCE", choices=_LOSSES, help="PyGCL's loss")
    augmentors1: list[str] = hparam(["EdgeRemoving(pe=0.2)", "FeatureMasking(pf=0.2)"], help="of the first view")
    augmentors2: list[str] = hparam(
        ["EdgeRemoving(pe=0.2)", "FeatureMasking(pf=0.2)"],
        active={"contrast": [name for name in _CONTRASTS if name != "SingleBranchContrast"]},
        help="of the second view",
    )
    num_choices: int = hparam(
        0, low=0, help="apply so many of each list, drawn for each batch, as RandomChoice does; 0 applies all"
    )
    tau: float = hparam(0.2, low=0.02, active={"loss": ["InfoNCE"]}, help="temperature; lower ones overflow in PyGCL")
    intraview_negs: bool = hparam(
        False,
        active={"contrast": ["DualBranchContrast"], "mode": ["G2G", "L2L"]},
        help="count the others of the same view as negatives too",
    )
    margin: float = hparam(1.0, low=0.0, active={"loss": ["TripletMarginSP"]}, help="of the triplets")
    lambda_: float | None = hparam(
        None, low=0.0, active={"loss": ["BarlowTwins"]}, help="weight of the off-diagonal; none: 1 / hidden"
    )
    sim_weight: float = hparam(25.0, low=0.0, active={"loss": ["VICReg"]}, help="weight of the invariance")
    var_weight: float = hparam(25.0, low=0.0, active={"loss": ["VICReg"]}, help="weight of the variance")
    cov_weight: float = hparam(1.0, low=0.0, active={"loss": ["VICReg"]}, help="weight of the covariance")
    momentum: float = hparam(
        0.99, low=0.0, high=1.0, active={"loss": ["BootstrapLatent"]}, help="share of itself that the copy keeps"
    )
    projector: int = hparam(2, low=0, help="linear maps before the contrast, with ReLU between; 0 for none")
    norm: bool = hparam(False, help="BatchNorm before each ReLU of the projector, and of BootstrapContrast's predictor")
    dropout: float = hparam(0.0, low=0.0, high=1.0, help="dropout probability after each layer")
    probes = {
        "margin": {"loss": "TripletMarginSP", "margin": 3.0},
        "lambda_": {"contrast": "WithinEmbedContrast", "loss": "BarlowTwins", "lambda_": 0.5},
        **{
            name: {"contrast": "WithinEmbedContrast", "loss": "VICReg", name: 2.0}
            for name in ("sim_weight", "var_weight", "cov_weight")
        },
        "momentum": {"contrast": "BootstrapContrast", "loss": "BootstrapLatent", "momentum": 0.5},
    }

    def fit(self, graphs: PackedGraphs) -> Iterator[tuple[int, nn.Module]]:
        self._check()
        module = Contrasted(self)
        yield from train(self, module, partial(self.compare, module, self.contrast_model(), self.views()), graphs)

    def _check(self) -> None:
        """Refuse parts that do not go together."""
        modes, losses, compares = _CONTRASTS[self.contrast]
        where = f"encoder 'pygcl': {self.contrast} compares {compares}"
        if self.mode not in modes:
            raise UserError(f"{where}; its 'mode' is {' or '.join(modes)}, found {self.mode}")
        if self.loss not in losses:
            home = next(name for name, (_, of_it, _) in _CONTRASTS.items() if self.loss in of_it)
            raise UserError(f"{where}; its 'loss' is {' or '.join(losses)}; {self.loss} goes with {home}")

    def contrast_model(self) -> Callable[..., Tensor]:
        """PyGCL's contrast model with its loss."""
        from GCL import losses, models

        arguments: dict[str, dict[str, Any]] = {
            "InfoNCE": {"tau": self.tau},
            "TripletMarginSP": {"margin": self.margin},
            "BarlowTwins": {"lambda_": self.lambda_},
            "VICReg": {name: getattr(self, name) for name in ("sim_weight", "var_weight", "cov_weight")},
        }
        loss = getattr(losses, self.loss)(**arguments.get(self.loss, {}))
        if self.contrast == "WithinEmbedContrast":
            return models.WithinEmbedContrast(loss)
        if self.contrast == "BootstrapContrast":
            model = models.BootstrapContrast(partial(_agreement, loss), self.mode)
        else:
            model = getattr(models, self.contrast)(loss, self.mode, intraview_negs=self.intraview_negs)
            # PyGCL replaces the sampler's negatives by all that is not positive unless it gets a mask of its own.
            model.forward = partial(model.forward, extra_neg_mask=torch.ones(()))
        if self.mode == "G2L":
            model.sampler = _own_nodes
        return model

    def views(self) -> list[list[tuple[str, Any]]]:
        """The augmentors of each view, by name."""
        given = {"augmentors1": self.augmentors1, "augmentors2": self.augmentors2}
        if self.contrast == "SingleBranchContrast":
            del given["augmentors2"]
        return [[_augmentor(text, name) for text in texts] for name, texts in given.items()]

    def compare(
        self, module: Contrasted, contrast: Callable[..., Tensor], augmentors: list[list[tuple[str, Any]]], batch: Batch
    ) -> Tensor:
        """The loss of a batch: a live scalar."""
        views, shared = self.augmented(replace(batch, x=module.gin.front(batch.x)), augmentors)
        owner = batch.batch[shared]
        if self.mode == "L2L" and self.contrast != "WithinEmbedContrast" and len(owner) > _ALL_PAIRS:
            raise UserError(
                f"encoder 'pygcl': mode L2L compares all pairs of a batch's nodes, at most {_ALL_PAIRS} nodes, found "
                f"{len(owner)}; lower 'batch_size' or set 'max_batch_nodes'"
            )
        rows = [shared[view.nodes] for view in views]
        if self.contrast == "BootstrapContrast":
            return contrast(**module.predictions(views, rows, self.mode, self.momentum), batch=owner)
        vectors = [module.vectors(view, own) for view, own in zip(views, rows, strict=True)]
        if self.contrast == "WithinEmbedContrast":
            return contrast(*(graphs if self.mode == "G2G" else nodes for nodes, graphs in vectors))
        if self.contrast == "SingleBranchContrast":
            return contrast(h=vectors[0][0], g=vectors[0][1], batch=owner)
        (h1, g1), (h2, g2) = vectors
        return contrast(h1=h1, h2=h2, g1=g1, g2=g2, batch=owner)

    def augmented(self, batch: Batch, augmentors: list[list[tuple[str, Any]]]) -> tuple[list[View], Tensor]:
        """The views of a batch, and (N,) bool: True for the nodes that all of them have, at least one of each graph."""
        found = [self._changed(batch, of_view) for of_view in augmentors]
        shared = torch.stack([nodes for _, _, nodes in found]).all(0)
        count = torch.zeros_like(batch.index).index_add_(0, batch.batch, shared.long())
        lost = (count == 0)[batch.batch]
        views = []
        for x, edges, nodes in found:
            kept = nodes | lost
            cut = replace(batch, x=x).keep_edges(edges | lost[batch.edge_index[1]])
            views.append(View(keep_nodes(cut, kept), kept))
        return views, shared | lost

    def _changed(self, batch: Batch, augmentors: list[tuple[str, Any]]) -> tuple[Tensor, Tensor, Tensor]:
        """(N, F) features, and the edges (E,) and nodes (N,) that are left."""
        if self.num_choices:
            order = torch.randperm(len(augmentors), generator=self.rng)[: self.num_choices]
            augmentors = [augmentors[i] for i in order.tolist()]
        x, device = batch.x, batch.x.device
        edges = torch.ones(batch.num_edges, dtype=torch.bool, device=device)
        nodes = torch.ones(batch.num_nodes, dtype=torch.bool, device=device)
        for name, augment in augmentors:
            if name.startswith("Feature"):
                x = augment(x, batch.edge_index)[0]
            elif name != "Identity":
                edges, touched = _left(augment, batch, edges, loops=name == "NodeDropping")
                nodes = nodes if name == "EdgeRemoving" else nodes & touched
        return x, edges, nodes


class View(NamedTuple):
    """A changed batch, and (N,) bool: which of the original nodes it has."""

    batch: Batch
    nodes: Tensor


class Contrasted(nn.Module):
    """A GIN with sum readout and what only training uses; maps a batch to (B, hidden) graph embeddings.

    Where a prediction is compared with a copy of the network, nodes are projected and then summed, as in PyGCL's
    example; elsewhere nodes and their sums are projected, each by maps of their own.
    """

    def __init__(self, settings: PyGCL) -> None:
        super().__init__()
        width, make = settings.hidden, partial(_perceptron, settings.hidden, norm=settings.norm)
        features: Features = settings.node_features
        self.gin = GIN(features, width, settings.layers, settings.dropout)
        bootstrap = settings.contrast == "BootstrapContrast"
        self.node_projector = make(settings.projector if bootstrap or settings.mode != "G2G" else 0)
        self.graph_projector = make(settings.projector if not bootstrap and settings.mode != "L2L" else 0)
        if bootstrap:
            self.predictor = make(2)
            self.target: Any = copy.deepcopy(nn.ModuleList([self.gin, self.node_projector])).requires_grad_(False)

    def forward(self, batch: Batch) -> Tensor:
        return pool(self.gin(self.gin.front(batch.x), partial(propagate, batch=batch)), batch)

    def vectors(self, view: View, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Projected vectors of some of the nodes, those where ``rows`` is true, and (B, hidden) of the graphs."""
        nodes = self.gin(view.batch.x, partial(propagate, batch=view.batch))
        return self.node_projector(nodes[rows]), self.graph_projector(pool(nodes, view.batch))

    def predictions(self, views: list[View], rows: list[Tensor], mode: str, momentum: float) -> dict[str, Tensor]:
        """Vectors by PyGCL's names, after the copy has moved towards the network as the last step left it."""
        gin, projector = self.target
        online = [*self.gin.parameters(), *self.node_projector.parameters()]
        with torch.no_grad():
            for old, new in zip(self.target.parameters(), online, strict=True):
                old.lerp_(new, 1 - momentum)
        found: dict[str, Tensor] = {}
        for i, ((batch, _), own) in enumerate(zip(views, rows, strict=True), 1):
            aggregate = partial(propagate, batch=batch)
            nodes = self.node_projector(self.gin(batch.x, aggregate))
            with torch.no_grad():
                target = projector(gin(batch.x, aggregate))
            found |= {f"g{i}_pred": pool(nodes, batch)} if mode == "G2G" else {f"h{i}_pred": nodes[own]}
            found |= {f"h{i}_target": target[own]} if mode == "L2L" else {f"g{i}_target": pool(target, batch)}
        return {name: self.predictor(value) if "pred" in name else value for name, value in found.items()}


def _perceptron(width: int, layers: int, *, norm: bool) -> nn.Sequential:
    parts: list[nn.Module] = []
    for _ in range(layers):
        parts += [nn.Linear(width, width), *([nn.BatchNorm1d(width)] if norm else []), nn.ReLU()]
    return nn.Sequential(*(parts if not parts else parts[: -2 if norm else -1]))


def _agreement(loss: Callable[..., Tensor], anchor: Tensor, sample: Tensor, pos_mask: Tensor) -> Tensor:
    """Minus the mean cosine of what belongs together."""
    return -loss(anchor, sample, pos_mask / pos_mask.sum(1, keepdim=True))


def _own_nodes(anchor: Tensor, sample: Tensor, batch: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """PyGCL's sampler of G2L with a (B, N) mask made without an (N, N) one."""
    positive = F.one_hot(batch, len(anchor)).T.to(sample.dtype)
    return anchor, sample, positive, 1 - positive


def _left(augment: Any, batch: Batch, edges: Tensor, *, loops: bool) -> tuple[Tensor, Tensor]:
    """The edges (E,) that an augmentor leaves of these, and the nodes (N,) that one of them touches.

    The numbers of the edges stand where PyGCL has weights, and come back with those that are left.

    Args:
        loops: add a loop to each node, which a node takes with it when it is dropped.
    """
    nodes = torch.arange(batch.num_nodes, device=edges.device)
    present = torch.cat([edges, edges.new_full(nodes.shape, loops)])
    number = present.nonzero().squeeze(1)
    left, touched = torch.zeros_like(present), torch.zeros_like(nodes, dtype=torch.bool)
    if len(number):
        index = torch.cat([batch.edge_index, nodes.expand(2, -1)], 1)
        _, found, kept = augment(batch.x, index[:, number], number)
        left[kept], touched[found.flatten()] = True, True
    return left[: len(edges)], touched


def _augmentor(text: str, hyperparameter: str) -> tuple[str, Any]:
    """Read ``EdgeRemoving(pe=0.2)``; return PyGCL's augmentor by its name.

    Raises:
        UserError: it is no such call, or PyGCL's augmentor does not fit batches of graphs.
    """
    from GCL import augmentors

    where = f"encoder 'pygcl', hyperparameter '{hyperparameter}': {text!r}"
    try:
        call: Any = ast.parse(text, mode="eval").body
        name = ast.unparse(getattr(call, "func", call))
        values = {str(word.arg): ast.literal_eval(word.value) for word in getattr(call, "keywords", ())}
    except (SyntaxError, ValueError):
        raise UserError(f"{where}: expected a call such as EdgeRemoving(pe=0.2); quote one that has a comma") from None
    if name in _REFUSED:
        raise UserError(f"{where}: PyGCL's {name} is not used here: {_REFUSED[name]}")
    if name not in _AUGMENTORS:
        hint = did_you_mean(name, _AUGMENTORS) or f"; there are {', '.join(_AUGMENTORS)}"
        raise UserError(f"{where}: PyGCL has no augmentor {name!r}{hint}")
    wanted = _AUGMENTORS[name]
    if {*values} != {*wanted} or getattr(call, "args", None) or not all(_fits(*item) for item in values.items()):
        kinds = [f"{one}={'SHARE' if one.startswith('p') else 'NUMBER'}" for one in wanted]
        raise UserError(f"{where}: expected {name}({', '.join(kinds)}), a share from 0 to 1, a number above 0")
    if name == "FeatureDropout":  # what PyGCL hands to dropout is the share that it should keep
        values["pf"] = 1 - values["pf"]
    return name, getattr(augmentors, name)(**values)


def _fits(argument: str, value: Any) -> bool:
    if argument.startswith("p"):
        return type(value) in (int, float) and 0 <= value <= 1
    return type(value) is int and value > 0


@hookimpl
def bench_register(register: Register) -> None:
    register(PyGCL)
