"""Checks of a learner's predictions: independent of batch companions, blind to labels, kept by a state's round trip."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NoReturn

import torch

from harness.graphs import Batch
from harness.testing.batch_independence import depends_on_companions
from harness.testing.learner_case import LearnerSubject
from harness.testing.report import CheckFunction
from harness.testing.rig import logits, prepare
from harness.training.bases import Learner


class Poison:
    """Stands where labels must not be read: any use of it raises."""

    def __init__(self, name: str) -> None:
        self._name = name

    def _raise(self, *_: Any, **__: Any) -> NoReturn:
        raise PoisonError(f"batch.{self._name} was read")

    __getattr__ = __getitem__ = __len__ = __iter__ = __bool__ = __eq__ = __ne__ = __lt__ = __gt__ = _raise
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __index__ = __float__ = __array__ = _raise
    __le__ = __ge__ = __int__ = __contains__ = __truediv__ = __rtruediv__ = __invert__ = __neg__ = _raise
    __hash__ = None  # type: ignore[assignment]

    @classmethod
    def __torch_function__(cls, *_: Any, **__: Any) -> NoReturn:
        raise PoisonError("batch.y, batch.env or batch.spurious was read")


class PoisonError(RuntimeError):
    """Something was read that must not be."""


def poisoned(batch: Batch) -> Batch:
    """The same batch whose labels, environments and votes raise when they are used."""
    return replace(batch, y=Poison("y"), env=Poison("env"), spurious=Poison("spurious"), cache={})


def companions(subject: LearnerSubject) -> Iterator[str]:
    """A graph's prediction and embedding do not depend on the other graphs of its batch.

    Cause: statistics over the whole batch in `forward` or `embed`: a mean over graphs, a softmax over all nodes, a
    normalisation that uses the batch also in evaluation.

    Look at: forward, embed, build
    """
    learner = trained(subject)
    graphs = subject.toy().train.without_labels()
    yield from depends_on_companions(learner, graphs, "predictions")
    yield from depends_on_companions(learner.embed, graphs, "embeddings")


def reads_no_labels(subject: LearnerSubject) -> Iterator[str]:
    """Predictions and embeddings need no labels, environments or votes, and do not read them.

    Cause: `forward` or `embed` uses `batch.y`, `batch.env` or `batch.spurious`; only `loss` may.

    Look at: forward, embed
    """
    learner = trained(subject)
    graphs = subject.toy().train
    with torch.no_grad():
        for what, function in (("forward", learner), ("embed", learner.embed)):
            bare = function(graphs.without_labels().batch(torch.arange(len(graphs))))
            try:
                blind = function(poisoned(graphs.batch(torch.arange(len(graphs)))))
            except PoisonError as error:
                yield f"{what}: {error} in evaluation"
                continue
            if not torch.equal(bare, blind):
                yield f"{what}: results differ when labels are present"


def evaluation_is_pure(subject: LearnerSubject) -> Iterator[str]:
    """Predicting twice gives the same, and leaves weights, buffers and the mode's flag as they were.

    Cause: noise or dropout that ignores `self.training`, or a counter or moving average that is updated in
    `forward`.

    Look at: forward, embed
    """
    learner = trained(subject)
    before = {name: value.clone() for name, value in learner.state_dict().items()}
    first, second = (logits(learner, subject.toy().validation) for _ in range(2))
    if not torch.equal(first, second):
        yield "predicting twice gives different logits: something draws at random in evaluation"
    yield from (
        f"'{name}' changes when predicting"
        for name, value in learner.state_dict().items()
        if not torch.equal(value, before[name])
    )


def state_round_trip(subject: LearnerSubject) -> Iterator[str]:
    """A fresh learner with the trained one's state predicts the same.

    Cause: a tensor kept as a plain attribute (use `self.register_buffer`), or a module that is made after `build`.

    Look at: build, on_fit_start, on_epoch_end
    """
    _, _, found = subject.watched()
    fresh = prepare(subject.cls, subject.base, subject.toy()).learner
    try:
        fresh.load_state_dict(dict(found.state))
    except RuntimeError as error:
        yield f"the state does not fit a learner that was just set up: {error}"
        return
    if not torch.equal(logits(fresh, subject.toy().validation), found.validation):
        yield "predictions differ after load_state_dict: something that they need is neither a parameter nor a buffer"


def trained(subject: LearnerSubject) -> Learner:
    """A trained learner in evaluation mode."""
    learner = subject.watched()[0].learner
    return learner.eval()


CHECKS: tuple[CheckFunction, ...] = (companions, reads_no_labels, evaluation_is_pure, state_round_trip)
