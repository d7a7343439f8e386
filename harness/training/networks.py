"""The suite's networks: backbones, what is known of data and architecture, and how components make networks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor, nn

from harness.component import Component
from harness.data import Features, Task
from harness.hparams import hparam
from harness.nn.layers import MLPHead, pool
from harness.randomness import seeded
from harness.registry.returned import expect, expect_array
from harness.training.optim import Adam

if TYPE_CHECKING:
    from harness.graphs import Batch

MODULE_NAMES = frozenset(dir(nn.Module)) | {
    *("training", "info", "rng", "epoch", "step", "total_steps", "epoch_step", "epoch_steps")
}


class Backbone(Component, nn.Module):
    """Base class of graph networks that map a batch to node embeddings.

    Every backbone declares ``layers``, ``hidden`` and ``dropout``. The harness calls :meth:`build` once,
    under the seed of the role ``backbone``.
    """

    kind: ClassVar[str] = "backbone"
    reserved: ClassVar[frozenset[str]] = MODULE_NAMES
    layers: int = hparam(3, low=1, help="number of message-passing layers")
    hidden: int = hparam(32, low=1, help="width of the node embeddings")
    dropout: float = hparam(0.0, low=0.0, high=1.0, help="dropout probability after each layer")
    edge_features: bool = hparam(
        False, active={"dataset": ["edge features"]}, help="use the dataset's edge features in the messages"
    )

    def __init__(self, **values: Any) -> None:
        nn.Module.__init__(self)
        Component.__init__(self, **values)

    @property
    def out_dim(self) -> int:
        """Width of the node embeddings."""
        return self.hidden

    def build(self, node_features: Features, edge_features: Features) -> None:
        """Create the layers. ``Features("numeric", (d,))`` is also how a second network on embeddings is built."""
        raise NotImplementedError

    def forward(self, batch: Batch, x: Tensor | None = None, edge_weight: Tensor | None = None) -> Tensor:
        """Return the node embeddings.

        Args:
            batch: the graphs.
            x: (N, d) node features to use instead of ``batch.x``.
            edge_weight: (E,) factors of the messages, or None for one everywhere.

        Returns:
            (N, ``out_dim``).
        """
        raise NotImplementedError


@dataclass(frozen=True)
class ModelSpec:
    """The settings of the suite's network: the backbone's class and values, the readout and the head."""

    backbone: type[Backbone]
    backbone_values: Mapping[str, Any] = field(default_factory=dict)
    readout: str = "sum"
    head_layers: int = 2


@dataclass(frozen=True)
class LearnerInfo:
    """The facts that a learner may know of its data.

    Attributes:
        task: kind, number of classes or tasks, metric.
        node_features, edge_features: declarations of the inputs.
        num_environments: number of environments of the training graphs; 0 when the method asked for none.
        num_train: number of training graphs.
        total_steps: optimizer steps of the whole training, see :attr:`Learner.total_steps`.
        epochs: epochs of the whole training.
        has_parts: whether batches carry the graphs' parts.
        average_over: ``labels`` or ``graphs``: what the loss of a multi-task batch is averaged over.
    """

    task: Task
    node_features: Features
    edge_features: Features
    num_environments: int = 0
    num_train: int = 0
    total_steps: int = 0
    epochs: int = 0
    has_parts: bool = False
    average_over: str = "labels"


class NetworkMaker:
    """The maker of networks of the suite's architecture, for components that train them; see :meth:`bind`."""

    info: LearnerInfo
    backbone: Any
    _roles = ""
    """Put before each role, so that two components of a cell do not start from the same weights."""

    def bind(
        self,
        info: LearnerInfo,
        model: ModelSpec,
        *,
        seed: int,
        lr: float = 1e-3,
        weight_decay: float = 0.0,
        optimizer: str = "adam",
    ) -> None:
        """Say for which data, with which architecture, seed and optimizer settings networks are made."""
        self.info, self._model, self._seed = info, model, seed
        self._lr, self._weight_decay, self._decoupled = lr, weight_decay, optimizer == "adamw"
        self._made: dict[str, int] = {}

    def make_backbone(self, *, in_dim: int | None = None, **values: Any) -> Backbone:
        """Return a network of the suite's architecture; ``in_dim`` for one on embeddings, ``values`` to differ.

        Each call draws from a role of its own, so that extra modules do not move the first one's start.
        """
        features = self.info.node_features if in_dim is None else Features("numeric", (in_dim,))
        with seeded(self._seed, self._role("backbone")):
            network = self._model.backbone(**{**self._model.backbone_values, **values})
            network.build(features, self.info.edge_features)
        expect(isinstance(network.out_dim, int), network, "out_dim", network.out_dim, "a whole number")
        _check_first(network)
        return network

    def make_head(
        self, *, in_dim: int | None = None, out_dim: int | None = None, layers: int | None = None
    ) -> nn.Module:
        """Return a classifier head: ``layers`` hidden layers of the input's width, ReLU between, then logits."""
        width = in_dim if in_dim is not None else self.backbone.out_dim
        with seeded(self._seed, self._role("head")):
            return MLPHead(
                width,
                self.info.task.outputs if out_dim is None else out_dim,
                self._model.head_layers if layers is None else layers,
            )

    def _role(self, name: str) -> str:
        count = self._made.get(name, 0)
        self._made[name] = count + 1
        return self._roles + (name if count == 0 else f"{name}/{count}")

    @property
    def node_width(self) -> int:
        """Width of the node embeddings that the suite's architecture gives, known before a network is made."""
        return self._model.backbone(**self._model.backbone_values).out_dim

    @property
    def readout(self) -> str:
        """The suite's pooling: ``sum``, ``mean`` or ``max``."""
        return self._model.readout

    def pool(self, nodes: Tensor, batch: Batch) -> Tensor:
        """Return (B, d) graph embeddings from (N, d) node embeddings, by the suite's readout."""
        return pool(nodes, batch, self.readout)

    def make_optimizer(self, parameters: Any, *, lr: float | None = None) -> torch.optim.Optimizer:
        """Return the suite's optimizer with its settings: Adam, or AdamW."""
        trainable = [p for p in parameters if p.requires_grad]
        rate = self._lr if lr is None else lr
        return Adam(trainable, lr=rate, weight_decay=self._weight_decay, decoupled=self._decoupled)


def _check_first(network: Backbone) -> None:
    """Check the result of the network's first call; later ones cost nothing."""

    def check(module: nn.Module, given: tuple[Any, ...], named: dict[str, Any], found: Any) -> None:
        handle.remove()
        batch = given[0] if given else named["batch"]
        expect_array(module, "forward", found, (batch.num_nodes, network.out_dim))

    handle = network.register_forward_hook(check, with_kwargs=True)
