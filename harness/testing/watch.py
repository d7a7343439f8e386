"""Watch a learner while it is built and trained: loss terms, gradients, random state."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import torch
import torch.nn.functional as F
from torch import Tensor

from harness.graphs import Batch
from harness.nn.losses import check_terms
from harness.testing.rig import noting_draws
from harness.training.bases import Learner


@dataclass
class Watch:
    """Notes of one training.

    Attributes:
        terms: names of the loss terms.
        live: terms that had a gradient other than zero at some step.
        not_live: terms that required no gradient at some step.
        reached: names of parameters that got a gradient other than zero.
        not_finite: where a value was not finite, in words.
        draws: uses of global random state, in words.
    """

    terms: set[str] = field(default_factory=set)
    live: set[str] = field(default_factory=set)
    not_live: set[str] = field(default_factory=set)
    reached: set[str] = field(default_factory=set)
    not_finite: set[str] = field(default_factory=set)
    draws: list[str] = field(default_factory=list)
    _dropped: bool = False

    def building(self, learner: Learner) -> None:
        """Watch ``build``; to be called before ``setup``."""
        build = learner.build

        def watched() -> None:
            with noting_draws("build()", self.draws, torch_may_draw=True):
                build()

        object.__setattr__(learner, "build", watched)

    @contextmanager
    def training(self, learner: Learner) -> Iterator[None]:
        """Watch a learner that is set up, for the time of the block."""
        hooks = [
            parameter.register_post_accumulate_grad_hook(self._gradient(name))
            for name, parameter in learner.named_parameters()
            if parameter.requires_grad
        ]
        methods = {"loss": self._loss(learner)}
        for name in ("on_fit_start", "on_epoch_start", "on_epoch_end", "training_step"):
            methods[name] = self._guarded(name, getattr(learner, name))
        for name, method in methods.items():
            object.__setattr__(learner, name, method)
        try:
            with patch.object(F, "dropout", self._dropout(F.dropout)):
                yield
        finally:
            for hook in hooks:
                hook.remove()
            for name in methods:
                delattr(learner, name)

    def _gradient(self, name: str) -> Callable[[Tensor], None]:
        def note(parameter: Tensor) -> None:
            size = 0.0 if parameter.grad is None else float(parameter.grad.abs().sum())
            if not math.isfinite(size):
                self.not_finite.add(f"the gradient of '{name}'")
            elif size:
                self.reached.add(name)

        return note

    def _loss(self, learner: Learner) -> Any:
        loss = learner.loss

        def watched(batch: Batch) -> dict[str, Tensor]:
            terms = loss(batch)
            check_terms(learner, terms)  # as training says it: below, torch would speak of shapes alone
            self.terms.update(terms)
            for name, term in terms.items():
                if not bool(torch.isfinite(term.detach()).all()):
                    self.not_finite.add(f"the loss term '{name}'")
                if not term.requires_grad:
                    self.not_live.add(name)
                elif name not in self.live and _has_gradient(learner, term):
                    self.live.add(name)
            return terms

        return watched

    def _guarded(self, where: str, function: Callable[..., Any]) -> Any:
        """Note where a method touches global random state other than by dropout."""

        def watched(*arguments: Any) -> Any:
            self._dropped = False
            strictly, at_most = list[str](), list[str]()
            with noting_draws(where, strictly), noting_draws(where, at_most, torch_may_draw=True):
                returned = function(*arguments)
            noted = at_most if self._dropped else strictly
            self.draws += [text for text in noted if text not in self.draws]
            return returned

        return watched

    def _dropout(self, dropout: Callable[..., Tensor]) -> Any:
        def watched(values: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
            self._dropped = self._dropped or (training and p > 0)
            return dropout(values, p, training, inplace)

        return watched


def _has_gradient(learner: Learner, term: Tensor) -> bool:
    """Return True if a parameter's gradient of the term is not zero."""
    parameters = [parameter for parameter in learner.parameters() if parameter.requires_grad]
    gradients = torch.autograd.grad(term.reshape(()), parameters, retain_graph=True, allow_unused=True)
    return any(gradient is not None and bool((gradient != 0).any()) for gradient in gradients)
