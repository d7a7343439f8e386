"""Looks over a learner's shoulder while it trains: terms, gradients, modes, random state, widths of the logits."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from harness.graphs import Batch
from harness.testing.rng import python_states
from harness.training.bases import Learner


class Watch:
    """What was seen of one training.

    Args:
        by_term: take each term's gradient by itself, which costs a backward pass each.

    Attributes:
        not_finite: where a value was not finite, in words.
        not_live: loss terms that at some step required no gradient.
        term_gradient: term -> parameter -> largest absolute gradient over all steps.
        reached: names of parameters that got a gradient other than zero.
        left_in_eval: modules that were in evaluation mode after a step although they are trained.
        widths: cross-entropies of the wrong width, in words.
        seeding: what the learner did to global random state, in words.
        steps: number of training steps.
    """

    def __init__(self, *, by_term: bool = True) -> None:
        self._by_term = by_term
        self.not_finite: dict[str, None] = {}
        self.not_live: set[str] = set()
        self.term_gradient: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
        self.reached: set[str] = set()
        self.left_in_eval: set[str] = set()
        self.widths: dict[str, None] = {}
        self.seeding: dict[str, None] = {}
        self.steps = 0
        self._labels: Tensor | None = None
        self._outputs = 0
        self._dropped = False

    def building(self, learner: Learner) -> None:
        """Watch ``build``; to be called before ``setup``."""
        build = learner.build

        def watched() -> None:
            before = torch.initial_seed(), python_states()
            build()
            if torch.initial_seed() != before[0]:
                self.seeding["build() seeds torch's global generator"] = None
            if python_states() != before[1]:
                self.seeding["build() seeds or draws from NumPy's or Python's global generator"] = None

        _set(learner, "build", watched)

    @contextmanager
    def training(self, learner: Learner) -> Iterator[None]:
        """Watch a learner that is set up, for the time of the block."""
        hooks = [
            parameter.register_post_accumulate_grad_hook(self._note(name))
            for name, parameter in learner.named_parameters()
            if parameter.requires_grad
        ]
        self._outputs = learner.info.task.outputs
        _set(learner, "risk", self._risk(learner.risk))
        _set(learner, "loss", self._loss(learner, learner.loss))
        _set(learner, "training_step", self._step(learner, learner.training_step))
        for name in ("on_fit_start", "on_epoch_start", "on_epoch_end"):
            _set(learner, name, self._guarded(name, getattr(learner, name)))
        originals = F.cross_entropy, F.nll_loss, F.dropout
        F.cross_entropy, F.nll_loss = (self._entropy(original) for original in originals[:2])
        F.dropout = self._dropout(originals[2])
        try:
            yield
        finally:
            F.cross_entropy, F.nll_loss, F.dropout = originals
            for hook in hooks:
                hook.remove()
            for name in ("risk", "loss", "training_step", "on_fit_start", "on_epoch_start", "on_epoch_end"):
                delattr(learner, name)

    def _note(self, name: str) -> Callable[[Tensor], None]:
        def note(parameter: Tensor) -> None:
            if parameter.grad is None:
                return
            if not bool(torch.isfinite(parameter.grad).all()):
                self.not_finite[f"the gradient of '{name}'"] = None
            elif bool((parameter.grad != 0).any()):
                self.reached.add(name)

        return note

    def _loss(self, learner: Learner, loss: Callable[[Batch], dict[str, Tensor]]) -> Any:
        def watched(batch: Batch) -> dict[str, Tensor]:
            terms = loss(batch)
            for name, term in terms.items():
                if not math.isfinite(float(term.detach())):
                    self.not_finite[f"the loss term '{name}'"] = None
                if not term.requires_grad:
                    self.not_live.add(name)
                elif self._by_term:
                    self._differentiate(learner, name, term)
            return terms

        return watched

    def _differentiate(self, learner: Learner, name: str, term: Tensor) -> None:
        named = [(n, p) for n, p in learner.named_parameters() if p.requires_grad]
        gradients = torch.autograd.grad(
            term.reshape(()), [parameter for _, parameter in named], retain_graph=True, allow_unused=True
        )
        known = self.term_gradient[name]
        for (parameter, _), gradient in zip(named, gradients, strict=True):
            if gradient is not None:
                known[parameter] = max(known[parameter], float(gradient.abs().max()))

    def _step(self, learner: Learner, step: Callable[..., Mapping[str, Tensor]]) -> Any:
        guarded = self._guarded("training_step", step)

        def watched(batch: Batch, optimizers: list[torch.optim.Optimizer]) -> Mapping[str, Tensor]:
            self.steps += 1
            self._labels = batch.y
            row: Mapping[str, Tensor] = guarded(batch, optimizers)
            self._labels = None
            for name, value in row.items():
                if not math.isfinite(float(value)):
                    self.not_finite[f"'{name}' of the step's result"] = None
            for name, module in learner.named_modules():
                trained = any(parameter.requires_grad for parameter in module.parameters())
                if trained and not module.training:
                    self.left_in_eval.add(name or "the learner itself")
            return row

        return watched

    def _guarded(self, where: str, function: Callable[..., Any]) -> Any:
        """The function, with a note where it touches global random state other than by dropout."""

        def watched(*arguments: Any) -> Any:
            self._dropped = False
            seed, states, torch_state = torch.initial_seed(), python_states(), torch.get_rng_state()
            returned = function(*arguments)
            if torch.initial_seed() != seed:
                self.seeding[f"{where} seeds torch's global generator"] = None
            elif not self._dropped and not torch.equal(torch_state, torch.get_rng_state()):
                self.seeding[f"{where} draws from torch's global generator (use self.rng)"] = None
            if python_states() != states:
                self.seeding[f"{where} seeds or draws from NumPy's or Python's global generator"] = None
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
        """A cross-entropy, with a note where it compares something other than logits with the batch's labels."""

        def watched(values: Tensor, target: Tensor, *arguments: Any, **named: Any) -> Tensor:
            labels = self._labels
            if labels is not None and target.dtype == labels.dtype and torch.equal(target, labels):
                self._check_width("a cross-entropy with the labels", values)
            return entropy(values, target, *arguments, **named)

        return watched

    def _check_width(self, what: str, values: Tensor) -> None:
        if values.dim() != 2 or values.size(1) != self._outputs:
            self.widths[f"{what} got values of shape {tuple(values.shape)}"] = None


def _set(learner: nn.Module, name: str, function: Any) -> None:
    """Shadow a method on one instance."""
    object.__setattr__(learner, name, function)
