"""Base classes of the components that hold or train networks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor, nn

from harness.component import Component
from harness.hparams import hparam
from harness.nn.losses import check_terms, label_share, per_sample_loss, weighted_sum
from harness.randomness import generator, seeded
from harness.training.networks import MODULE_NAMES, Backbone, LearnerInfo, ModelSpec, NetworkMaker
from harness.training.spurious import Encoder, Fitted, Quantifier

if TYPE_CHECKING:
    from harness.graphs import Batch, PackedGraphs

__all__ = [
    "Backbone",
    "Baseline",
    "Decorrelator",
    "Encoder",
    "Environment",
    "Fitted",
    "Learner",
    "LearnerInfo",
    "ModelSpec",
    "Quantifier",
]


class Learner(NetworkMaker, Component, nn.Module):
    """A method that trains a final classifier. Override the least you need.

    The engine calls, in this order: the constructor, :meth:`setup` (which calls :meth:`build` under the
    initialisation seeds), :meth:`on_fit_start`, and per epoch :meth:`on_epoch_start`, :meth:`training_order`,
    :meth:`training_step` for each batch, :meth:`on_epoch_end`.
    """

    reserved: ClassVar[frozenset[str]] = MODULE_NAMES
    needs: ClassVar[frozenset[str]] = frozenset()
    """Needs of the training: ``environments`` (``batch.env``), and names that an environment ``provides``."""
    default_environment: ClassVar[str] = ""
    """The environment component, as a suite writes it, of a method whose suite names none."""
    compares_environments: ClassVar[bool | Mapping[str, Sequence[Any]]] = False
    """True if a term is empty for a single environment: always, or under these values of hyperparameters.

    Then a training, and a batch of the suite's ``groups_per_batch``, must have two environments or more.
    """
    compares_over_batches: ClassVar[bool | Mapping[str, Sequence[Any]]] = False
    """True, or values likewise, if that term compares environments over batches, so that a batch may hold one."""
    reads_parts: ClassVar[bool] = False
    """True if batches shall carry the graphs' parts (``batch.parts``), where the dataset has them."""
    tasks: ClassVar[frozenset[str]] = frozenset({"binary", "multiclass", "multitask"})
    reads_validation_score: ClassVar[bool] = False
    """True if the class overrides :meth:`on_epoch_end`, so that tables say what shapes it; set by the harness.

    The score is handed to no other: a method set on an instance is not called.
    """
    equals_erm: ClassVar[Mapping[str, Any]] = {}
    """Hyperparameter values with which training is bit for bit ERM's; empty where there are none. For the kit."""
    foreign_statistics: ClassVar[Mapping[str, Sequence[Any]] | None] = None
    """Settings, as in ``active``, in which BatchNorm's running statistics follow other passes beside the prediction's.

    ``{}`` is all settings; why is in the deviations or the docstring. For the kit.
    """
    selectable_from: int = 0
    """First epoch (from 0) whose checkpoint may be chosen; the last epoch of a shorter training always may.

    Epochs before it do not count for the suite's ``patience`` either.
    """

    info: LearnerInfo
    rng: torch.Generator
    """Generator for the method's own draws."""
    upstream_outputs: Mapping[str, Any]
    """Results of the stages named in ``upstream``, by role, from before :meth:`on_fit_start` on."""
    annotations: Mapping[str, Tensor]
    """Values that the environment ``provides``: name -> one row per training graph; look up by ``batch.index``."""
    epoch: int = 0
    step: int = 0
    epoch_step: int = 0
    """Position of a batch in its epoch, from 0, and with it ``epoch_steps``, the number of batches of that epoch."""
    epoch_steps: int = 1

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.reads_validation_score = cls.on_epoch_end is not Learner.on_epoch_end

    def __init__(self, **values: Any) -> None:
        nn.Module.__init__(self)
        Component.__init__(self, **values)

    @property
    def total_steps(self) -> int:
        """Optimizer steps of the whole training, for schedules.

        Where :meth:`training_order` repeats graphs, those without repeats. Where batches are bounded by nodes
        (``max_batch_nodes``), their number varies from epoch to epoch and this is an estimate, which ``step`` may pass.
        """
        return self.info.total_steps

    def setup(self, info: LearnerInfo, model: ModelSpec, *, seed: int, **optimizer: Any) -> None:
        """Bind the learner to its data and build its modules under the seeds of their roles; see :meth:`bind`."""
        self.bind(info, model, seed=seed, **optimizer)
        self.rng = generator(seed, "method")
        self.upstream_outputs, self.annotations = {}, {}
        with seeded(seed, "initialisation"):
            self.build()

    def build(self) -> None:
        """Create ``self.backbone`` and ``self.head``; extra modules go here too."""
        self.backbone = self.make_backbone()
        self.head = self.make_head()

    def embed(self, batch: Batch) -> Tensor:
        """Return (B, d) graph embeddings."""
        return self.pool(self.backbone(batch), batch)

    def forward(self, batch: Batch) -> Tensor:
        """Return (B, C) logits, or (B, T) for multi-task. Must work on batches without labels and environments."""
        return self.head(self.embed(batch))  # type: ignore[no-any-return]

    def risk(self, logits: Tensor, batch: Batch) -> Tensor:
        """Return (B,) losses whose mean is the batch's: cross-entropies, or binary ones over the labelled tasks.

        Of a multi-task set each label counts once, or by the suite's ``average_over`` each graph that has one; a graph
        without any label counts nothing.
        """
        return self.losses(logits, batch.y)

    def losses(self, logits: Tensor, y: Tensor) -> Tensor:
        """Return (B,) losses as in :meth:`risk`, against other labels than a batch's own."""
        loss, share = per_sample_loss(logits, y, self.info.task), self.label_share(y)
        return loss if share is None else loss * share

    def label_share(self, y: Tensor) -> Tensor | None:
        """Return each graph's weight in the mean of :meth:`risk`: see :func:`harness.nn.losses.label_share`."""
        return label_share(y, self.info.task, self.info.average_over)

    def loss(self, batch: Batch) -> dict[str, Tensor]:
        """Return the loss terms, raw: each a live scalar. The engine multiplies those that a hyperparameter weighs."""
        return {"erm": self.risk(self(batch), batch).mean()}

    def weight(self, term: str) -> float:
        """Return the factor of a loss term now; override for schedules."""
        for name, declared in self.hparams.items():
            if declared.weight_of == term:
                return float(getattr(self, name))
        return 1.0

    def total(self, terms: Mapping[str, Tensor]) -> Tensor:
        """Return the weighted sum of the terms. A term of weight 0 is left out: weight 0 is exactly absence."""
        check_terms(self, terms)
        return weighted_sum(self, terms, {name: self.weight(name) for name in terms})

    def optimizers(self) -> list[torch.optim.Optimizer]:
        """Return the suite's optimizer over all trainable parameters. Called once, after :meth:`setup`.

        Of several, the suite's drop of the learning rate applies to each.
        """
        return [self.make_optimizer(self.parameters())]

    def training_step(self, batch: Batch, optimizers: list[torch.optim.Optimizer]) -> dict[str, Tensor]:
        """Make one update over the weighted sum of :meth:`loss`.

        Returns:
            the raw terms, detached, and ``loss`` (the weighted sum).
        """
        terms = self.loss(batch)
        total = self.total(terms)
        for optimizer in optimizers:
            optimizer.zero_grad(set_to_none=True)
        total.backward()
        for optimizer in optimizers:
            optimizer.step()
        return {**{name: term.detach() for name, term in terms.items()}, "loss": total.detach()}

    def on_fit_start(self, train: PackedGraphs) -> None:
        """Called once before the first epoch with the training graphs."""

    def on_epoch_start(self, train: PackedGraphs) -> None:
        """Called before each epoch; ``self.epoch`` counts from 0."""

    def training_order(self, order: Tensor) -> Tensor:
        """Return the order of an epoch's training graphs; override to take some several times or not at all.

        Called after :meth:`on_epoch_start`, unless the suite draws environments per batch (``groups_per_batch``).

        Args:
            order: (n,) a random order of all training graphs.

        Returns:
            positions of training graphs, at least two.
        """
        return order

    def on_epoch_end(self, validation_score: float | None) -> None:
        """Called after each epoch with the score on the validation split (None where undefined).

        Validation labels shape what depends on it: the row of a learner that overrides this method is marked.
        :meth:`on_epoch_start` is for what needs no score.
        """


class Baseline(Learner):
    """Base class of methods that train in one go."""

    kind: ClassVar[str] = "baseline"


class Decorrelator(Learner):
    """Base class of EQuAD's third step: a learner whose training batches carry ``batch.spurious`` (B, K, C).

    ``batch.spurious[i, k]`` are the class probabilities that the k-th kept quantifier gives to graph i, and
    ``self.spurious`` (n, K, C) those of all training graphs, from before :meth:`on_fit_start` on;
    ``self.model_scores`` (K,) are those quantifiers' validation scores, as fractions, and
    ``self.model_weights`` (K,) sums to one.
    """

    kind: ClassVar[str] = "decorrelator"
    tasks: ClassVar[frozenset[str]] = frozenset({"binary", "multiclass"})
    keep: int = hparam(
        5,
        low=1,
        active={"weighting": ["weighted", "average"]},
        help="M: how many quantifiers to keep, those with the lowest validation score",
    )
    tau: float = hparam(
        0.1,
        low=0.0,
        search=[1.0, 0.5, 0.25, 0.1, 0.01],
        active={"weighting": ["weighted"], "keep": "> 1"},
        help="temperature of the softmax over minus the validation scores",
    )
    weighting: str = hparam(
        "weighted",
        choices=["weighted", "average", "single"],
        active={"keep": "> 1"},
        help="softmax weights, equal weights, or only the quantifier with the lowest score",
    )

    spurious: Tensor
    model_scores: Tensor
    model_weights: Tensor


class Environment(NetworkMaker, Component):
    """Base class of what gives each training graph an environment id.

    Override :meth:`assign` for ids that are fixed before training, or set ``per_batch`` and override
    :meth:`assign_batch` for ids drawn anew for every batch.
    """

    kind: ClassVar[str] = "environment"
    reserved: ClassVar[frozenset[str]] = frozenset(
        {"backbone", "batch_size", "flags", "groups", "info", "readout", "rng"}
    )
    positional: ClassVar[str | None] = None
    """The hyperparameter that ``name(value)`` sets in a suite, e.g. ``k`` in ``random(2)``."""
    counted_by: ClassVar[str] = ""
    """The hyperparameter that is the largest number of environments, where one is."""
    per_batch: ClassVar[bool] = False
    requires: ClassVar[str] = ""
    """``env`` for a component that reads the dataset's own environments, or the name of one of its ``groups``."""
    provides: ClassVar[frozenset[str]] = frozenset()
    """Names of what :meth:`assign` returns beside the ids; a learner may name them in its ``needs``."""
    trains_networks: ClassVar[bool] = False
    """True if :meth:`assign` trains networks of the suite's architecture, with ``make_backbone`` and so on.

    Then :meth:`setup` comes first, and the suite's model and training settings enter the key of the ids.
    """
    rng: torch.Generator
    batch_size: int = 32
    """Graphs per training batch, as the suite has it; set by :meth:`setup`."""
    _roles = "environment/"

    def __init__(self, **values: Any) -> None:
        super().__init__(**values)
        self.flags: list[str] = []
        """Notes on the ids for a reader, e.g. that a split was degenerate; :meth:`assign` may add to it."""
        self.groups: Mapping[str, Tensor] = {}
        """The grouping named by ``requires``: name -> (n,) int64 ids, -1 for none; set before :meth:`assign`."""

    def setup(self, info: LearnerInfo, model: ModelSpec, *, seed: int, batch_size: int = 32, **optimizer: Any) -> None:
        """Bind a component with ``trains_networks`` to its data and to the suite's settings; see :meth:`bind`."""
        self.bind(info, model, seed=seed, **optimizer)
        self.batch_size = batch_size

    def assign(
        self, train: PackedGraphs, oracle: Mapping[str, Tensor], upstream: Mapping[str, Any]
    ) -> Tensor | tuple[Tensor, Mapping[str, Tensor]]:
        """Return (n,) int64 ids 0..K-1 of the training graphs; with ``provides``, also name -> (n, …) tensors.

        Args:
            train: training graphs with ``y`` and the dataset's ``env``.
            oracle: the oracle fields named in ``self.oracle``, one value per training graph.
            upstream: results of the stages named in ``self.upstream``.
        """
        raise NotImplementedError

    def num_environments(self) -> int:
        """Return the number of ids that :meth:`assign_batch` draws from."""
        raise NotImplementedError

    def assign_batch(self, batch: Batch) -> Tensor:
        """Return (B,) ids for one batch, from ``self.rng``."""
        raise NotImplementedError
