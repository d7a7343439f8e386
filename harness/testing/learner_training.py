"""Checks of a learner's training: terms, gradients, modes, weights, and what it does to random state."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import nn

from harness.errors import BenchError
from harness.testing.learner_case import LearnerSubject
from harness.testing.report import CheckFunction, Skip
from harness.testing.rig import OTHER_SEED, SEED, PlainERM, different_tensors, differs, prepare, train
from harness.testing.settings import pairs
from harness.testing.watch import Watch
from harness.training.bases import Learner


def trains(subject: LearnerSubject) -> Iterator[str]:
    """An ordinary training runs; loss terms, the result of each step and all gradients are finite.

    Cause: a division by a count that can be zero, a logarithm or square root at zero, an `exp` that overflows; or
    the code raises, at the line that is named.

    Look at: loss, training_step, build
    """
    _, seen, _ = subject.watched()
    yield from (f"{what} is not finite" for what in seen.not_finite)


def live_terms(subject: LearnerSubject) -> Iterator[str]:
    """Each loss term requires gradient and has one that is not zero at some step.

    Cause: `.detach()`, `.item()`, `float(…)` or `torch.no_grad()` between the network and the term; a comparison or
    `argmax`, which have no gradient; or a term that follows from labels alone.

    Look at: loss
    """
    prepared, seen, _ = subject.watched()
    yield from _dead_terms(prepared.learner, seen)


def _dead_terms(learner: Learner, seen: Watch) -> Iterator[str]:
    for name in sorted(seen.not_live):
        yield f"the term '{name}' does not require gradient: it is detached, or computed without the network"
    for name, gradients in seen.term_gradient.items():
        if name not in seen.not_live and learner.weight(name) and not any(gradients.values()):
            yield f"the term '{name}' has a gradient of exactly zero in all {seen.steps} steps"


def weights_matter(subject: LearnerSubject) -> Iterator[str]:
    """A term with a weight has a gradient where the weight is not zero, and changing the weight changes training.

    Cause: `loss` does not return the term under the name that `weight_of` gives; the term has no gradient; or an
    overridden `weight` or `training_step` does not read the hyperparameter.

    Look at: loss, weight, training_step
    """
    weighted = {name: h.weight_of for name, h in subject.cls.hparams.items() if h.weight_of}
    if not weighted:
        raise Skip("no hyperparameter is the weight of a loss term")
    subject.watched()
    for name, term in weighted.items():
        compared = pairs(subject.cls, name, subject.base)
        heavy = next((values for pair in compared for values in pair if values[name]), None)
        if heavy is None:
            yield f"'{name}' has no value other than zero to try; give one in `probes`"
            continue
        _, seen, _ = subject.watched(heavy)
        if term not in seen.term_gradient and term not in seen.not_live:
            yield f"loss() has no term '{term}', which '{name}' weighs, with {_brief(heavy)}"
        elif not any(seen.term_gradient[term].values()):
            yield f"the term '{term}' has no gradient in {seen.steps} steps with {_brief(heavy)}"
        if not any(differs(subject.result(one), subject.result(two)) for one, two in compared):
            tried = ", ".join(str(two[name]) for _, two in compared)
            yield f"training is the same for {name}={compared[0][0][name]} and {tried}: the weight has no effect"


def every_module_learns(subject: LearnerSubject) -> Iterator[str]:
    """Each trainable module gets a gradient within three epochs, unless ``untrained`` names it.

    Cause: a module made in `build` that no loss term uses, or a hard choice (top-k, `argmax`, `> 0.5`) between it
    and the loss. Where it is meant to stay as it is, name it in `untrained`.

    Look at: build, loss
    """
    prepared, seen, _ = subject.watched()
    yield from _unreached(subject, prepared.learner, seen)


def _unreached(subject: LearnerSubject, learner: Learner, seen: Watch) -> Iterator[str]:
    for name, module in learner.named_modules():
        own = [f"{name}.{n}" if name else n for n, p in module.named_parameters(recurse=False) if p.requires_grad]
        if own and not seen.reached & set(own) and not _exempt(subject, own[0]):
            yield f"no parameter of '{name or 'the learner'}' ({', '.join(own)}) got a gradient in {seen.steps} steps"


def each_mode_learns(subject: LearnerSubject) -> Iterator[str]:
    """Terms are live and modules get gradients also with each other choice of a text hyperparameter.

    Cause: the branch of `loss` for this choice leaves out a term or a module, or detaches it.

    Look at: loss, build
    """
    subject.watched()
    modes = [name for name, declared in subject.cls.hparams.items() if declared.type == "str" and declared.choices]
    if not modes:
        raise Skip("no hyperparameter is a choice between texts")
    for name in modes:
        for _, values in pairs(subject.cls, name, subject.base):
            try:
                prepared, seen, _ = subject.watched(values)
            except BenchError:
                continue  # refused, which is allowed, or diverged, which `hyperparameters_matter` tells
            for found in (_dead_terms(prepared.learner, seen), _unreached(subject, prepared.learner, seen)):
                yield from (f"with {_brief(values)}: {problem}" for problem in found)


def frozen_stays(subject: LearnerSubject) -> Iterator[str]:
    """Parameters that require no gradient, and modules in ``untrained``, stay bit for bit what they were.

    Cause: it is in an optimizer, or is written in place (a moving average). Where it is meant to change, take it
    out of `untrained`.

    Look at: optimizers, training_step, build
    """
    subject.watched()
    start = prepare(subject.cls, subject.base, subject.toy()).learner
    frozen = {n: p.detach() for n, p in start.named_parameters() if not p.requires_grad or _exempt(subject, n)}
    if not frozen:
        raise Skip("nothing is frozen")
    end = subject.result().state
    yield from (f"'{name}' changed in training" for name in different_tensors(frozen, end))


def training_mode(subject: LearnerSubject) -> Iterator[str]:
    """After each step every trained module is in training mode.

    Cause: `.eval()` without `.train()` after it; `with evaluating(module):` puts the mode back.

    Look at: training_step, loss, on_epoch_start
    """
    _, seen, _ = subject.watched()
    yield from (f"'{name}' is in evaluation mode after a training step" for name in sorted(seen.left_in_eval))


def risk_on_logits(subject: LearnerSubject) -> Iterator[str]:
    """Labels are compared with logits of the head's width, and the head gets a gradient from some term.

    Cause: `self.risk` is given embeddings or probabilities instead of logits, or the loss goes around `self.head`.

    Look at: loss, forward, build
    """
    prepared, seen, found = subject.watched()
    outputs = subject.toy().task.outputs
    yield from (f"{what}, expected {outputs} columns" for what in seen.widths)
    if found.train.shape != (len(subject.toy().train), outputs):
        yield f"predictions have shape {tuple(found.train.shape)}, expected {(len(subject.toy().train), outputs)}"
    head = getattr(prepared.learner, "head", None)
    if isinstance(head, nn.Module) and not any(name.startswith("head.") for name in seen.reached):
        yield "no loss term depends on the classifier's head: its gradient is zero in every step"


def equals_erm(subject: LearnerSubject) -> Iterator[str]:
    """With the values of ``equals_erm``, backbone, head and predictions are bit for bit those of plain ERM.

    Cause: a module that is made before backbone and head, another forward pass that moves normalisation statistics,
    a term that is not exactly zero, or draws that change the order of the data; or `equals_erm` holds other values.

    Look at: loss, build, training_step
    """
    if not subject.cls.equals_erm:
        raise Skip("declares no values with which it is ERM")
    subject.watched()
    found = subject.result(subject.cls.equals_erm)
    erm = train(prepare(PlainERM, {}, subject.toy()))
    missing = [n for n in erm.state if n not in found.state]
    if missing:
        yield f"has no '{missing[0]}', which ERM has"
    changed = different_tensors(erm.state, found.state)
    if changed:
        yield f"with {_brief(subject.cls.equals_erm)}, {len(changed)} tensors differ from ERM's, such as '{changed[0]}'"
    if not torch.equal(erm.validation, found.validation) or not torch.equal(erm.train, found.train):
        yield f"with {_brief(subject.cls.equals_erm)}, predictions differ from ERM's"


def same_seed(subject: LearnerSubject) -> Iterator[str]:
    """Two trainings with one seed end bit for bit alike.

    Cause: a draw that comes neither from `self.rng` nor from torch's layers: `random`, `np.random.default_rng()`,
    the order of a set, the time.

    Look at: loss, training_step, on_epoch_start
    """
    subject.watched()
    again = train(prepare(subject.cls, subject.base, subject.toy()))
    first = subject.result()
    changed = different_tensors(first.state, again.state)
    if changed or differs(first, again):
        yield f"a second training with the same seed differs, at {changed[0] if changed else 'its predictions'}"


def other_seed(subject: LearnerSubject) -> Iterator[str]:
    """Another seed starts from other weights and ends elsewhere.

    Cause: `torch.manual_seed(…)`, a generator with a fixed seed, or weights that are set to constants of their own;
    draw from `self.rng`.

    Look at: build, on_fit_start, loss
    """
    subject.watched()
    one, two = (prepare(subject.cls, subject.base, subject.toy(), seed=seed).learner for seed in (SEED, OTHER_SEED))
    alike = [
        name
        for (name, left), right in zip(one.named_parameters(), two.parameters(), strict=True)
        if left.dim() > 1 and torch.equal(left, right) and not bool((left == left.flatten()[0]).all())
    ]
    if alike:
        yield f"'{alike[0]}' starts from the same random weights whatever the seed"
    if not differs(subject.result(), subject.result(seed=OTHER_SEED)):
        yield "a training with another seed is bit for bit the same: something fixes the seed"


def global_state(subject: LearnerSubject) -> Iterator[str]:
    """Nothing seeds global generators or draws from them, but for layers' initialisation and dropout.

    Cause: `torch.rand…`, `torch.randperm` or `np.random…` without `generator=self.rng`, or a call that seeds.

    Look at: loss, training_step, on_fit_start, on_epoch_start, build
    """
    _, seen, _ = subject.watched()
    yield from seen.seeding


def _exempt(subject: LearnerSubject, parameter: str) -> bool:
    return any(parameter == name or parameter.startswith(f"{name}.") for name in subject.cls.untrained)


def _brief(values: object) -> str:
    return ", ".join(f"{n}={v}" for n, v in dict(values).items()) if values else "its defaults"  # type: ignore[call-overload]


CHECKS: tuple[CheckFunction, ...] = (
    trains,
    live_terms,
    weights_matter,
    every_module_learns,
    each_mode_learns,
    frozen_stays,
    training_mode,
    risk_on_logits,
    equals_erm,
    same_seed,
    other_seed,
    global_state,
)
