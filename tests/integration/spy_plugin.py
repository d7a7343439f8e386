"""Spies of every kind: each searches everything it is handed and notes every array it can reach."""

import json
import types
from pathlib import Path

import numpy as np
import torch
from torch import nn

from harness import (
    Backbone,
    Baseline,
    Decorrelator,
    Encoder,
    Environment,
    Fitted,
    Quantifier,
    hookimpl,
    hparam,
)


def reachable(*roots):
    """Every array that can be reached through attributes, containers, closures, defaults and bound methods."""
    seen, waiting, found = set(), list(roots), []
    while waiting:
        item = waiting.pop()
        if id(item) in seen or isinstance(item, (types.ModuleType, type, str, bytes, int, float)):
            continue
        seen.add(id(item))
        if isinstance(item, torch.Tensor):
            found.append(item.detach().cpu().numpy())
            waiting += [value for value in (item.grad, item.grad_fn) if value is not None]
        elif isinstance(item, np.ndarray):
            found.append(item)
        elif isinstance(item, dict):
            waiting += [*item.keys(), *item.values()]
        elif isinstance(item, (list, tuple, set, frozenset)):
            waiting += list(item)
        elif isinstance(item, types.MethodType):
            waiting += [item.__self__, item.__func__]
        elif isinstance(item, types.FunctionType):
            waiting += [cell.cell_contents for cell in item.__closure__ or () if cell.cell_contents is not item]
            waiting += [item.__defaults__, item.__kwdefaults__]
        elif isinstance(item, types.GeneratorType) and item.gi_frame is not None:
            waiting.append(item.gi_frame.f_locals)
        waiting += [value for value in (getattr(item, "__dict__", None),) if value is not None]
        waiting += [getattr(item, slot, None) for slot in getattr(type(item), "__slots__", ())]
    return found


def report(log, who, *roots):
    """Append what was found, as flat lists."""
    if log is None:
        return
    rows = [np.asarray(array, dtype=float).reshape(-1).tolist() for array in reachable(*roots) if array.size]
    with Path(log).open("a", encoding="utf-8") as stream:
        stream.write(json.dumps([who, rows]) + "\n")


class SpyBackbone(Backbone):
    """Mean of the node features' linear map."""

    name = "spy-backbone"
    log: str | None = hparam(None, help="file")

    def build(self, node_features, edge_features):
        self.linear = nn.Linear(node_features.sizes[0], self.hidden)
        report(self.log, "backbone", self, node_features, edge_features)

    def forward(self, batch, x=None, edge_weight=None):  # noqa: ARG002
        report(self.log, "backbone" if batch.y is None else "backbone, training", self, batch)
        return self.linear(batch.x if x is None else x)


class SpyEnvironment(Environment):
    """One environment."""

    name = "spy-environment"
    log: str | None = hparam(None, help="file")

    def assign(self, train, oracle, upstream):
        report(self.log, "environment", self, train, oracle, upstream)
        return torch.arange(len(train)) % 2


class SpyEncoder(Encoder):
    """Sum of a linear map."""

    name = "spy-encoder"
    log: str | None = hparam(None, help="file")

    def fit(self, graphs):
        report(self.log, "encoder", self, graphs, *graphs.batches(7))
        module = Summed()
        for epoch in self.snapshots:
            yield epoch, module

    def embed(self, module, graphs):
        report(self.log, "encoder", self, module, graphs)
        return super().embed(module, graphs)


class Summed(nn.Module):
    """(B, 2) sums of features."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 2)

    def forward(self, batch):
        return torch.zeros(batch.num_graphs, 2).index_add(0, batch.batch, self.linear(batch.x))


class SpyQuantifier(Quantifier):
    """Class frequencies."""

    name = "spy-quantifier"
    log: str | None = hparam(None, help="file")

    def fit(self, embeddings, labels, num_classes, **setting):
        report(self.log, "quantifier", self, embeddings, labels, num_classes, setting)
        prior = np.bincount(labels, minlength=num_classes) / len(labels)
        return Fitted(lambda rows: self._predict(rows, prior))

    def _predict(self, rows, prior):
        report(self.log, "quantifier", self, rows)
        return np.tile(prior, (len(rows), 1))


class _SpyLearner:
    def build(self):
        report(self.log, "learner", self)
        super().build()

    def on_fit_start(self, train):
        report(self.log, "learner", self, train)

    def on_epoch_start(self, train):
        report(self.log, "learner", self, train)

    def on_epoch_end(self, validation_score):
        report(self.log, "learner", self, validation_score)

    def forward(self, batch):
        report(self.log, "learner", self, batch)
        if not self.training:
            assert batch.y is None
            assert batch.env is None
            assert batch.spurious is None
        return super().forward(batch)

    def training_step(self, batch, optimizers):
        report(self.log, "learner", self, batch, optimizers)
        return super().training_step(batch, optimizers)


class SpyBaseline(_SpyLearner, Baseline):
    """ERM that looks around."""

    name = "spy-baseline"
    needs = frozenset({"environments"})
    log: str | None = hparam(None, help="file")


class SpyDecorrelator(_SpyLearner, Decorrelator):
    """ERM that looks around."""

    name = "spy-decorrelator"
    log: str | None = hparam(None, help="file")


@hookimpl
def bench_register(register):
    for component in (
        SpyBackbone,
        SpyEnvironment,
        SpyEncoder,
        SpyQuantifier,
        SpyBaseline,
        SpyDecorrelator,
    ):
        register(component)
