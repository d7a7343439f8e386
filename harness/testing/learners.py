"""Checks of a learner: its training, its predictions, and data that are odd but occur."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from harness.errors import BenchError
from harness.graphs import Batch
from harness.hparams import holds
from harness.testing.hyperparameters import pairs
from harness.testing.learner_rig import BATCH, EPOCHS, LearnerRig, LearnerTrial, Prepared, logits
from harness.testing.report import CheckFunction, Skip
from harness.testing.rig import (
    OTHER_SEED,
    SEED,
    another_device,
    depends_on_companions,
    differences,
    global_state,
    hyperparameters_matter,
    same_seed,
    settings_text,
)
from harness.testing.toys import PlainERM, Toy, one_node, toy, without_edges
from harness.training.bases import Learner


def trains(rig: LearnerRig) -> Iterator[str]:
    """An ordinary training runs; loss terms and gradients are finite, and predictions have a column per class."""
    trial, data = rig.outcome(), rig.toy()
    yield from _not_finite(trial)
    shape, expected = trial.outputs["predictions of training graphs"].shape, (len(data.train), data.task.outputs)
    if shape != expected:
        yield f"predictions have shape {tuple(shape)}, expected {expected}"


def _not_finite(trial: LearnerTrial) -> Iterator[str]:
    after = {**trial.state, **trial.outputs}
    names = [name for name, value in after.items() if not bool(torch.isfinite(value).all())]
    yield from (f"{what} is not finite" for what in sorted(trial.watch.not_finite))
    yield from (f"'{name}' is not finite after training" for name in names)


def _each_choice(rig: LearnerRig) -> Iterator[tuple[LearnerTrial, str]]:
    """Yield a training with the usual settings and with each choice of a text that the learner does not refuse."""
    rig.outcome()
    for values, given in rig.choices(flags=False):  # a flag may be there to cut a gradient
        try:
            trial = rig.outcome(values)
        except BenchError:
            continue  # refused, which is allowed, or diverged, which `hyperparameters_matter` reports
        yield trial, given


def live_terms(rig: LearnerRig) -> Iterator[str]:
    """Each loss term requires gradient and has one that is not zero at some step, with each choice of a text."""
    for trial, given in _each_choice(rig):
        watch = trial.watch
        for name in sorted(watch.not_live):
            yield f"{given}the term '{name}' does not require gradient: detached, or computed without the network"
        for name in sorted(watch.terms - watch.not_live - watch.live):
            if trial.learner.weight(name):
                yield f"{given}the term '{name}' has a gradient of exactly zero in all steps"


def weights_matter(rig: LearnerRig) -> Iterator[str]:
    """A term with a weight has a gradient where the weight is not zero, and changing the weight changes training."""
    weighted = {name: declared.weight_of for name, declared in rig.cls.hparams.items() if declared.weight_of}
    if not weighted:
        raise Skip("no hyperparameter is the weight of a loss term")
    rig.outcome()
    for name, term in weighted.items():
        compared = pairs(rig.cls, name, rig.base)
        heavy = next((values for pair in compared for values in pair if values[name]), None)
        if heavy is None:
            yield f"'{name}' has no value other than zero to try; give one in `probes`"
        elif term not in rig.outcome(heavy).watch.live:
            yield f"the term '{term}', which '{name}' weighs, is missing or has no gradient with {settings_text(heavy)}"
        if not any(rig.differ(one, two) for one, two in compared):
            yield f"training is the same for all values of '{name}' that were tried: the weight has no effect"


def every_module_learns(rig: LearnerRig) -> Iterator[str]:
    """Each module whose parameters require gradient gets one within three epochs, with each choice of a text."""
    for trial, given in _each_choice(rig):
        for name, module in trial.learner.named_modules():
            own = [f"{name}.{n}" if name else n for n, p in module.named_parameters(recurse=False) if p.requires_grad]
            if own and not trial.watch.reached & set(own):
                yield f"{given}no parameter of '{name or 'the learner'}' ({', '.join(own)}) got a gradient"


def equals_erm(rig: LearnerRig) -> Iterator[str]:
    """With the values of ``equals_erm``, backbone, head and predictions are bit for bit those of plain ERM."""
    values = rig.cls.equals_erm
    if not values:
        raise Skip("declares no values with which it is ERM")
    rig.outcome()
    trial, erm = rig.outcome(values), LearnerRig(PlainERM).train_on(rig.toy())
    yield from (f"has no '{name}', which ERM has" for name in erm.state if name not in trial.state)
    if changed := differences(erm, trial):
        yield f"with {settings_text(values)}, {len(changed)} tensors differ from ERM's, such as '{changed[0]}'"


def other_seed(rig: LearnerRig) -> Iterator[str]:
    """Another seed starts from other weights."""
    rig.outcome()
    one, two = (rig.prepare(rig.toy(), seed=seed).learner for seed in (SEED, OTHER_SEED))
    for (name, left), right in zip(one.named_parameters(), two.parameters(), strict=True):
        if left.dim() > 1 and torch.equal(left, right) and not bool((left == left.flatten()[0]).all()):
            yield f"'{name}' starts from the same random weights whatever the seed"


def companions(rig: LearnerRig) -> Iterator[str]:
    """A graph's prediction and embedding do not depend on the other graphs of its batch."""
    learner, graphs = rig.outcome().learner.eval(), rig.toy().train.without_labels()
    yield from depends_on_companions(learner, graphs, "predictions")
    yield from depends_on_companions(learner.embed, graphs, "embeddings")


def reads_no_labels(rig: LearnerRig) -> Iterator[str]:
    """Predictions and embeddings are the same with labels, environments and votes as without."""
    prepared, trial = rig.prepare(rig.toy()), rig.outcome()
    learner, graphs = trial.learner.eval(), rig.toy().train
    batch = graphs.batch(torch.arange(len(graphs)))
    batch.spurious = prepared.data.spurious
    bare = graphs.without_labels().batch(torch.arange(len(graphs)))
    with torch.no_grad():
        for what, function in (("forward", learner), ("embed", learner.embed)):
            if not torch.equal(function(bare), function(batch)):
                yield f"{what}: results differ when labels are present"


def state_round_trip(rig: LearnerRig) -> Iterator[str]:
    """A fresh learner with the trained one's state predicts the same."""
    trial = rig.outcome()
    fresh = rig.prepare(rig.toy()).learner
    fresh.load_state_dict(dict(trial.state))
    if not torch.equal(logits(fresh, rig.toy().validation), trial.outputs["predictions of validation graphs"]):
        yield "predictions differ after load_state_dict: something that they need is neither a parameter nor a buffer"


def statistics_follow_prediction(rig: LearnerRig) -> Iterator[str]:
    """A norm's running statistics after a training step are those that the prediction's pass alone leaves.

    Otherwise evaluation normalises by a mixture that it never sees; ``foreign_statistics`` names the settings in which
    that is meant, ``keeping_statistics`` keeps another pass from moving them.
    """
    rig.outcome()
    for values, given in rig.choices():
        try:
            prepared = rig.prepare(rig.toy(), values, epochs=1 if values else EPOCHS)
            declared = prepared.learner.foreign_statistics
            meant = declared is not None and holds(declared, prepared.learner.values)
            foreign = [] if meant else _foreign_statistics(prepared)
        except BenchError:
            continue  # as above
        if foreign:
            more = f" and of {len(foreign) - 1} more" if len(foreign) > 1 else ""
            yield f"{given}the running statistics of '{foreign[0]}'{more} follow another pass beside the prediction's"
            return


def _foreign_statistics(prepared: Prepared) -> list[str]:
    """Train; return the norms whose statistics a step leaves elsewhere than a prediction of its batch would.

    Until a step's end nothing but the prediction may move them, so a hook's pass between two steps shows as well. A
    step may leave them as they are: a part of the learner may wait.
    """
    learner, step = prepared.learner, prepared.learner.training_step
    norms = {name: m for name, m in learner.named_modules() if isinstance(getattr(m, "running_mean", None), Tensor)}
    before, foreign = _means(norms), dict[str, None]()

    def compared(batch: Batch, optimizers: list[torch.optim.Optimizer]) -> Mapping[str, Any]:
        nonlocal before
        expected = _after_prediction(learner, norms, before, batch)
        row = step(batch, optimizers)
        after = _means(norms)
        for name, wanted in expected.items():
            moved = not torch.equal(after[name], before[name])
            if moved and not torch.allclose(after[name], wanted, rtol=1e-4, atol=1e-6):
                foreign[name] = None
        before = after
        return row

    object.__setattr__(learner, "training_step", compared)
    prepared.fit()
    return list(foreign)


def _after_prediction(
    learner: Learner, norms: Mapping[str, Any], before: Mapping[str, Tensor], batch: Batch
) -> dict[str, Tensor]:
    """Return the statistics after a prediction alone, of the norms that it passes; the learner stays as it is."""
    state = {name: value.clone() for name, value in learner.state_dict().items()}
    drawn = learner.rng.get_state()
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        for name, norm in norms.items():
            norm.running_mean.copy_(before[name])
        learner(batch)
    after = _means(norms)
    learner.load_state_dict(state)
    learner.rng.set_state(drawn)
    return {name: value for name, value in after.items() if not torch.equal(value, before[name])}


def _means(norms: Mapping[str, Any]) -> dict[str, Tensor]:
    return {name: norm.running_mean.clone() for name, norm in norms.items()}


def odd_data(rig: LearnerRig) -> Iterator[str]:
    """Values stay finite with small or one-sided batches, odd graphs, missing labels, and each of ``tasks``."""
    rig.outcome()
    for what, data, batch_size in _odd_data(rig):
        try:
            trial = rig.train_on(data, epochs=1, batch_size=batch_size)
        except Exception as error:
            error.add_note(what)
            raise
        yield from (f"{what}: {problem}" for problem in _not_finite(trial))


def _odd_data(rig: LearnerRig) -> Iterator[tuple[str, Toy, int]]:
    """Yield name, data and batch size."""
    data, y, env = rig.toy(), rig.toy().train.y, rig.toy().train.env
    assert y is not None
    assert env is not None
    yield "batches of two graphs", data, 2
    if rig.cls.needs == {"environments"}:  # else ids come with what its environment provides
        gapped = torch.where(torch.arange(len(env)) % 5 == 0, -1, env * 2)
        yield "one environment in each batch", replace(data, train=replace(data.train, env=env * 0)), BATCH
        absent = replace(data, train=replace(data.train, env=gapped), environments=3)
        yield "an environment without graphs, and graphs without one", absent, BATCH
    same = torch.where(torch.isnan(y), y, torch.ones_like(y))
    yield "one class in each batch", replace(data, train=replace(data.train, y=same)), BATCH
    yield "some graphs without edges", data.changed(without_edges), BATCH
    yield "all graphs without edges", data.changed(without_edges, 1), BATCH
    yield "graphs of one node", data.changed(one_node), BATCH
    if rig.cls.reads_parts:
        yield "graphs without parts", toy(rig.task), BATCH
    for kind in sorted(rig.cls.tasks):
        yield f"the task {kind}", rig.toy(kind), BATCH  # type: ignore[arg-type]


CHECKS: tuple[CheckFunction, ...] = (
    trains,
    live_terms,
    weights_matter,
    every_module_learns,
    equals_erm,
    same_seed,
    other_seed,
    global_state,
    companions,
    reads_no_labels,
    state_round_trip,
    statistics_follow_prediction,
    odd_data,
    hyperparameters_matter,
    another_device,
)
