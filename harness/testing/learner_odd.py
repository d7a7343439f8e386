"""Checks of a learner on data that are odd but happen: tiny batches, missing environments, graphs without edges."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import torch

from harness.data import TaskKind
from harness.testing.learner_case import LearnerSubject, watch
from harness.testing.report import CheckFunction, Skip
from harness.testing.toys import TASKS, Toy, one_node, raw_graphs, toy, with_graphs, without_edges


def batch_of_two(subject: LearnerSubject) -> Iterator[str]:
    """Batches of two graphs.

    Cause: a variance over n - 1 of a single graph (`unbiased=False`), or a contrast that is left without a partner.

    Look at: loss, training_step
    """
    yield from _finite(subject, subject.toy(), batch_size=2)


def one_environment(subject: LearnerSubject) -> Iterator[str]:
    """Batches with graphs of one environment only.

    Cause: a variance over n - 1 of one environment (`unbiased=False`), or a pair of environments that is not there.

    Look at: loss, training_step
    """
    _needs_environments(subject)
    data = subject.toy()
    yield from _finite(subject, _with_env(data, torch.zeros_like, 2))


def absent_environment(subject: LearnerSubject) -> Iterator[str]:
    """An environment between two others has no graph in the batch, and some graphs have no environment.

    Cause: a loop over all environments that takes the mean of none; `environment_mean` takes those that are there.
    Graphs of environment -1 belong to none.

    Look at: loss, training_step, on_fit_start
    """
    _needs_environments(subject)
    data = subject.toy()
    yield from _finite(subject, _with_env(data, _with_gap, 3))


def one_class(subject: LearnerSubject) -> Iterator[str]:
    """Batches with graphs of one class only.

    Cause: a mean over a class, or a pair of classes, that is not in the batch.

    Look at: loss, training_step
    """
    data = subject.toy()
    y = data.train.y
    assert y is not None
    same = torch.where(torch.isnan(y), y, torch.ones_like(y)) if y.is_floating_point() else torch.ones_like(y)
    yield from _finite(subject, replace(data, train=replace(data.train, y=same)))


def graphs_without_edges(subject: LearnerSubject) -> Iterator[str]:
    """Some graphs have no edges, and batches in which none has.

    Cause: a `max`, mean or softmax over no edges, or an index into an empty `edge_index`.

    Look at: loss, forward, build
    """
    data = subject.toy()
    graphs = raw_graphs(data.train)
    some = [without_edges(graph) if i % 3 == 0 else graph for i, graph in enumerate(graphs)]
    for given, chosen in (("some graphs", some), ("all graphs", [without_edges(graph) for graph in graphs])):
        found = _finite(subject, replace(data, train=with_graphs(data.train, chosen)))
        yield from (f"{given} without edges: {problem}" for problem in found)


def graphs_of_one_node(subject: LearnerSubject) -> Iterator[str]:
    """Some graphs are a single node.

    Cause: a share or a top-k that rounds to no node, a division by n - 1, or a normalisation over one row.

    Look at: loss, forward, build
    """
    data = subject.toy()
    chosen = [one_node(graph) if i % 3 == 0 else graph for i, graph in enumerate(raw_graphs(data.train))]
    yield from _finite(subject, replace(data, train=with_graphs(data.train, chosen)))


def graphs_without_parts(subject: LearnerSubject) -> Iterator[str]:
    """A learner that reads parts also trains on graphs that have none.

    Cause: `batch.parts` is None where the dataset has no parts.

    Look at: loss, forward
    """
    if not subject.cls.reads_parts:
        raise Skip("reads no parts")
    yield from _finite(subject, toy(subject.task))


def each_task(subject: LearnerSubject) -> Iterator[str]:
    """Each declared task trains, multi-task ones with missing labels and a graph without any.

    Cause: a cross-entropy by hand, where multi-task labels have NaN: `self.risk` takes all tasks. Where a task
    makes no sense, leave it out of `tasks`.

    Look at: loss, forward
    """
    for kind in sorted(subject.cls.tasks):
        if kind not in TASKS:
            yield f"'{kind}' in `tasks` is none of {', '.join(TASKS)}"
            continue
        yield from (f"{kind}: {problem}" for problem in _finite(subject, subject.toy(_kind(kind))))


def _kind(name: str) -> TaskKind:
    return TASKS[name].kind


def _finite(subject: LearnerSubject, data: Toy, batch_size: int = 8) -> Iterator[str]:
    """Train for an epoch; terms, gradients, weights and predictions must be finite."""
    subject.watched()
    _, seen, found = watch(subject.cls, subject.base, data, epochs=1, batch_size=batch_size, by_term=False)
    yield from (f"{what} is not finite" for what in seen.not_finite)
    yield from (
        f"'{name}' is not finite after training"
        for name, value in found.state.items()
        if value.is_floating_point() and not bool(torch.isfinite(value).all())
    )
    if not bool(torch.isfinite(found.train).all()):
        yield "predictions are not finite"


def _needs_environments(subject: LearnerSubject) -> None:
    if "environments" not in subject.cls.needs:
        raise Skip("needs no environments")
    if subject.cls.needs - {"environments"}:
        raise Skip("its ids come with what its environment provides")


def _with_env(data: Toy, change: Callable[[torch.Tensor], torch.Tensor], count: int) -> Toy:
    env = data.train.env
    assert env is not None
    return replace(data, train=replace(data.train, env=change(env)), environments=count)


def _with_gap(env: torch.Tensor) -> torch.Tensor:
    """0 stays, 1 becomes 2, and every fifth graph has none."""
    gapped = env * 2
    gapped[::5] = -1
    return gapped


CHECKS: tuple[CheckFunction, ...] = (
    batch_of_two,
    one_environment,
    absent_environment,
    one_class,
    graphs_without_edges,
    graphs_of_one_node,
    graphs_without_parts,
    each_task,
)
