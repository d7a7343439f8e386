"""A trained cell as an analysis sees it in a worker: data, network, encoders and quantifiers, but no test labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from harness.randomness import derive
from harness.stages.context import Context
from harness.stages.learners import embedded, restore
from harness.stages.payloads import AnalysePayload
from harness.stages.reading import read_graphs, read_labels, read_oracle
from harness.stages.reading_numpy import read_arrays
from harness.suite.settings import LAST, best_rule

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from harness.data import Array, Task
    from harness.graphs import PackedGraphs
    from harness.training.bases import Learner


@dataclass(frozen=True)
class EncodedGraphs:
    """The output of one self-supervised encoder of a cell.

    Attributes:
        title: which encoder, for people.
        epochs: its snapshots.
    """

    title: str
    epochs: tuple[int, ...]
    _arrays: Mapping[str, Array]

    def embeddings(self, split: str, epoch: int | None = None) -> NDArray[np.float32]:
        """Return (n, d) embeddings of a split's graphs after an epoch, by default the last snapshot."""
        chosen: NDArray[np.float32] = self._arrays[f"{self.epochs[-1] if epoch is None else epoch}/{split}"]
        return chosen


class TrainedCell:
    """One cell after training.

    Attributes:
        task: what is predicted.
        splits: split names; ``train_split`` and ``validation_splits`` are among them, the others are test splits.
        oracle_fields: the declared oracle fields that the dataset has.
        monitor: the validation split that chose the checkpoint.
        seed: a number for NumPy and scikit-learn, which follows from the cell's training seed.
    """

    def __init__(self, context: Context, payload: AnalysePayload, fields: Sequence[str]) -> None:
        self._context, self._payload = context, payload
        trained = self._trained = payload.train
        self.task: Task = trained.task
        self.splits: tuple[str, ...] = tuple(trained.splits)
        self.train_split: str = trained.train
        self.validation_splits: tuple[str, ...] = tuple(trained.validation)
        self.monitor: str = trained.monitor
        self.oracle_fields: tuple[str, ...] = tuple(fields)
        self.seed: int = derive(trained.seed, "analysis") % 2**31

    @property
    def rule(self) -> str:
        """The checkpoint that the method's row reports."""
        return LAST if self._payload.checkpoint == LAST else best_rule(self.monitor)

    def graphs(self, split: str) -> PackedGraphs:
        """Return a split's graphs, without labels and domains."""
        return self._read(split)

    def _read(self, split: str, *, parts: bool = False) -> PackedGraphs:
        """Return a split's graphs, in batches as bounded as those that the network was trained on."""
        bound = self._trained.networks.settings.max_batch_nodes
        return read_graphs(self._context.store, self._trained.data, split, parts=parts, max_batch_nodes=bound)

    def labels(self, split: str) -> Array:
        """Return (n,) or (n, T) labels of a training or validation split.

        Raises:
            PermissionError: of a test split, whose labels only ``present`` may read.
        """
        self._not_sealed(split)
        return read_labels(self._context.store, self._trained.data, split).numpy()

    def oracle(self, name: str, split: str) -> Array:
        """Return a declared oracle field of a training or validation split, one value per graph (or node, or edge).

        Raises:
            PermissionError: the analysis does not declare the field or the dataset lacks it, or it is a test split.
        """
        self._not_sealed(split)
        if name not in self.oracle_fields:
            raise PermissionError(f"the oracle field '{name}' is not declared by this analysis, or not in this dataset")
        return read_oracle(self._context.store, self._payload.oracle, split, [name])[name].numpy()

    def _not_sealed(self, split: str) -> None:
        if split != self.train_split and split not in self.validation_splits:
            raise PermissionError(f"'{split}' is a test split: what is sealed is not read while measuring")

    @cached_property
    def learner(self) -> Learner:
        """The trained network of the reported checkpoint, in evaluation mode."""
        return restore(self._context, self._trained, self._payload.trained, self._payload.checkpoint)[0]

    def embeddings(self, split: str) -> NDArray[np.float32]:
        """Return (n, d) graph embeddings of the trained network."""
        pack = self._read(split, parts=type(self.learner).reads_parts)
        with torch.no_grad():
            size = self._trained.networks.settings.eval_batch_size
            found = [embedded(self.learner, batch) for batch in pack.batches(size)]
        joined: NDArray[np.float32] = torch.cat(found).float().numpy()
        return joined

    @property
    def encoders(self) -> list[EncodedGraphs]:
        """The self-supervised encoders that the method builds on; empty for a method without."""
        found = []
        for item in self._payload.encoders:
            artifact = self._context.store.open(item.key)
            epochs = tuple(artifact.read_json("snapshots")["epochs"])
            found.append(EncodedGraphs(item.title, epochs, read_arrays(artifact.path("embeddings"))))
        return found

    @property
    def candidates(self) -> list[dict[str, Any]]:
        """Every quantifier fitted for the method: ``epoch``, ``setting``, ``train_score``, ``scores``, and ``kept``."""
        store = self._context.store
        rows = [row for key in self._trained.quantify for row in store.open(key).read_json("candidates")]
        kept = set(self._info.get("kept", ()))
        return [{**row, "kept": place in kept} for place, row in enumerate(rows)]

    @property
    def spurious(self) -> NDArray[np.float32]:
        """(n, K, C) class probabilities of the training graphs from the K kept quantifiers; K is 0 without any."""
        store, kept = self._context.store, list(self._info.get("kept", ()))
        if not kept:
            return np.zeros((len(self.labels(self.train_split)), 0, self.task.num_classes), np.float32)
        tables = [read_arrays(store.open(key).path("probabilities"))["probabilities"] for key in self._trained.quantify]
        stacked: NDArray[np.float32] = np.concatenate(tables)[kept].transpose(1, 0, 2)
        return stacked

    @cached_property
    def _info(self) -> dict[str, Any]:
        found: dict[str, Any] = self._context.store.open(self._payload.trained).read_json("info")
        return found
