"""Watch a learner while it is built and trained: terms, gradients, modes, random state, widths of the logits."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch
import torch.nn.functional as F
from torch import Tensor

from harness.graphs import Batch
from harness.testing.rig import noting_draws
from harness.training.bases import Learner

_HOOKS = ("on_fit_start", "on_epoch_start", "on_epoch_end")


class Watch:
    """Notes of one training.

    Attributes:
        steps: number of training steps.
        terms: names of the loss terms.
        live: terms that had a gradient other than zero at some step.
        not_live: terms that required no gradient at some step.
        reached: names of parameters that got a gradient other than zero.
        not_finite: where a value was not finite, in words.
        left_in_eval: trained modules that were in evaluation mode after a step.
        widths: cross-entropies of the wrong width, in words.
        draws: uses of global random state, in words.
    """

    def __init__(self) -> None:
        self.steps = 0
        self.terms: set[str] = set()
        self.live: set[str] = set()
        self.not_live: set[str] = set()
        self.reached: set[str] = set()
        self.not_finite: dict[str, None] = {}
        self.left_in_eval: dict[str, None] = {}
        self.widths: dict[str, None] = {}
        self.draws: list[str] = []
        self._labels: Tensor | None = None
        self._outputs = 0
        self._dropped = False

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
        self._outputs = learner.info.task.outputs
        hooks = [
            parameter.register_post_accumulate_grad_hook(self._gradient(name))
            for name, parameter in learner.named_parameters()
            if parameter.requires_grad
        ]
        methods = {
            "risk": self._risk(learner.risk),
            "loss": self._loss(learner),
            "training_step": self._step(learner),
            **{name: self._guarded(name, getattr(learner, name)) for name in _HOOKS},
        }
        for name, method in methods.items():
            object.__setattr__(learner, name, method)
        functions = {
            "cross_entropy": self._entropy(F.cross_entropy),
            "nll_loss": self._entropy(F.nll_loss),
            "dropout": self._dropout(F.dropout),
        }
        try:
            with patch.multiple(F, **functions):
                yield
        finally:
            for hook in hooks:
                hook.remove()
            for name in methods:
                delattr(learner, name)

    def _gradient(self, name: str) -> Callable[[Tensor], None]:
        def note(parameter: Tensor) -> None:
            if parameter.grad is None:
                return
            if not bool(torch.isfinite(parameter.grad).all()):
                self.not_finite[f"the gradient of '{name}'"] = None
            elif bool((parameter.grad != 0).any()):
                self.reached.add(name)

        return note

    def _loss(self, learner: Learner) -> Any:
        loss = learner.loss

        def watched(batch: Batch) -> dict[str, Tensor]:
            terms = loss(batch)
            self.terms.update(terms)
            for name, term in terms.items():
                if not math.isfinite(float(term.detach())):
                    self.not_finite[f"the loss term '{name}'"] = None
                if not term.requires_grad:
                    self.not_live.add(name)
                elif name not in self.live and _has_gradient(learner, term):
                    self.live.add(name)
            return terms

        return watched

    def _step(self, learner: Learner) -> Any:
        step = self._guarded("training_step", learner.training_step)

        def watched(batch: Batch, optimizers: list[torch.optim.Optimizer]) -> Mapping[str, Tensor]:
            self.steps += 1
            self._labels = batch.y
            row: Mapping[str, Tensor] = step(batch, optimizers)
            self._labels = None
            for name, value in row.items():
                if not math.isfinite(float(value)):
                    self.not_finite[f"'{name}' of the step's result"] = None
            for name, module in learner.named_modules():
                trained = any(parameter.requires_grad for parameter in module.parameters())
                if trained and not module.training:
                    self.left_in_eval[name or "the learner itself"] = None
            return row

        return watched

    def _guarded(self, where: str, function: Callable[..., Any]) -> Any:
        """Note where a method touches global random state other than by dropout."""

        def watched(*arguments: Any) -> Any:
            self._dropped = False
            noted: list[str] = []
            with noting_draws(where, noted):
                returned = function(*arguments)
            drawn = f"{where} draws from torch's global generator"
            noted = [text for text in noted if not (self._dropped and text.startswith(drawn))]
            self.draws += [text for text in noted if text not in self.draws]
            return returned

        return watched

    def _dropout(self, dropout: Callable[..., Tensor]) -> Any:
        def watched(values: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
            self._dropped = self._dropped or (training and p > 0)
            return dropout(values, p, training, inplace)

        return watched

    def _risk(self, risk: Callable[[Tensor, Batch], Tensor]) -> Any:
        def watched(logits: Tensor, batch: Batch) -> Tensor:
            self._check_width("risk()", logits)
            return risk(logits, batch)

        return watched

    def _entropy(self, entropy: Callable[..., Tensor]) -> Any:
        """Note where a cross-entropy compares something other than logits with the batch's labels."""

        def watched(values: Tensor, target: Tensor, *arguments: Any, **named: Any) -> Tensor:
            labels = self._labels
            if labels is not None and target.dtype == labels.dtype and torch.equal(target, labels):
                self._check_width("a cross-entropy with the labels", values)
            return entropy(values, target, *arguments, **named)

        return watched

    def _check_width(self, what: str, values: Tensor) -> None:
        if values.dim() != 2 or values.size(1) != self._outputs:
            self.widths[f"{what} got values of shape {tuple(values.shape)}"] = None


def _has_gradient(learner: Learner, term: Tensor) -> bool:
    """Return True if a parameter's gradient of the term is not zero."""
    parameters = [parameter for parameter in learner.parameters() if parameter.requires_grad]
    gradients = torch.autograd.grad(term.reshape(()), parameters, retain_graph=True, allow_unused=True)
    return any(gradient is not None and bool((gradient != 0).any()) for gradient in gradients)
