"""Base classes of what finds spurious features before a final classifier is trained: encoders and quantifiers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor, nn

from harness.component import Component
from harness.data import Features
from harness.hparams import hparam

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from harness.graphs import PackedGraphs


class Encoder(Component):
    """Base class of self-supervised encoders. They never see a label.

    ``fit`` is a generator of snapshots ``(epoch, module)``: ``module(batch)`` returns (B, d) graph embeddings.
    The harness saves each snapshot's weights, so a module may go on being trained after it was yielded.
    """

    kind: ClassVar[str] = "encoder"
    reserved: ClassVar[frozenset[str]] = frozenset({"edge_features", "flags", "node_features", "rng", "seed"})
    layers: int = hparam(3, low=1, help="number of message-passing layers")
    hidden: int = hparam(32, low=1, help="width of the embedding")
    snapshots: list[int] = hparam(
        [50, 100, 150], low=1, help="epochs after which embeddings are taken; the last one ends training"
    )
    batch_size: int = hparam(32, low=2, help="graphs per batch")
    max_batch_nodes: int = hparam(
        0, low=0, help="most nodes per batch, in training and when embedding; 0 for any; the harness sees to it"
    )
    lr: float = hparam(1e-3, low=0.0, help="learning rate of Adam")

    node_features: Features
    """Declaration of the node features; set by the harness before :meth:`fit`, as are the next three."""
    edge_features: Features
    """Declaration of the edge features."""
    seed: int = 0
    """The cell's seed for this stage, for libraries that want an integer."""
    rng: torch.Generator
    """Generator for augmentations and every other draw of the encoder."""

    def __init__(self, **values: Any) -> None:
        super().__init__(**values)
        self.flags: list[str] = []
        """Notes on the training for a reader, e.g. that a contrast was replaced; :meth:`fit` may add to it."""

    def fit(self, graphs: PackedGraphs) -> Iterator[tuple[int, nn.Module]]:
        """Train on graphs without labels.

        Called under the engine's seed, with ``self.rng`` set.
        """
        raise NotImplementedError

    def embed(self, module: nn.Module, graphs: PackedGraphs) -> Tensor:
        """Return (n, d) embeddings of all graphs in order, in evaluation mode, without gradient."""
        module.eval()
        with torch.no_grad():
            return torch.cat([module(batch) for batch in graphs.batches(256)])


class Quantifier(Component):
    """Base class of EQuAD's second step: embeddings and training labels to class probabilities.

    One that declares ``oracle`` fields, each of one number per graph, is handed these on every split in place of
    embeddings: a column for each, in the order of their names.
    """

    kind: ClassVar[str] = "quantifier"
    seed: int = 0
    """The cell's seed for this stage; pass it on as ``random_state``."""

    def settings(self) -> list[dict[str, Any]]:
        """Return the settings to fit on each embedding matrix, each a candidate of its own (e.g. one per ``C``)."""
        return [{}]

    def fit(
        self, embeddings: NDArray[np.float64], labels: NDArray[np.int64], num_classes: int, **setting: Any
    ) -> Fitted:
        """Fit on (n, d) embeddings, or columns of ``oracle`` fields, and (n,) labels in 0..C-1."""
        raise NotImplementedError


@dataclass
class Fitted:
    """A fitted quantifier.

    Attributes:
        predict: (m, d) embeddings -> (m, C) probabilities, columns in ascending class order, rows sum to one.
        training: (n, C) probabilities of the training rows where they differ from ``predict`` (out of fold).
        flags: what a reader should know, e.g. ``folds reduced to 3``.
    """

    predict: Any
    training: NDArray[np.float64] | None = None
    flags: list[str] = field(default_factory=list)
