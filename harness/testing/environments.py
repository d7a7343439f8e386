"""Checks of environment components."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from harness.errors import UserError
from harness.nn.environments import check_ids
from harness.randomness import generator
from harness.testing.report import CheckFunction, Skip
from harness.testing.rig import SEED, assign
from harness.testing.rng import all_states
from harness.testing.settings import EVERYWHERE, effects_as_declared
from harness.testing.toys import Toy, toy
from harness.training.bases import Environment

Assigned = dict[str, Tensor]
IDS = "ids"


@dataclass
class EnvironmentSubject:
    """An environment's class, and the ids it gave so far."""

    cls: type[Environment]
    _assigned: dict[str, Assigned] = field(default_factory=dict, repr=False)

    @property
    def base(self) -> dict[str, Any]:
        """The settings of ``probes["*"]``."""
        return dict(self.cls.probes.get(EVERYWHERE, {}))

    @cached_property
    def toy(self) -> Toy:
        """The toy set, with environments of its own."""
        return toy()

    def assigned(self, values: Mapping[str, Any] | None = None) -> Assigned:
        """Ids and what is provided; for ids drawn per batch those of three batches.

        Raises:
            Skip: the component refuses the toy set with its ordinary settings, which it may.
        """
        settings = {**self.base, **(values or {})}
        key = json.dumps(settings, sort_keys=True)
        if key not in self._assigned:
            try:
                self._assigned[key] = run(self.cls(**settings), self.toy)
            except UserError as error:
                if values:
                    raise
                raise Skip(f"refuses the toy graphs: {error}") from None
        return self._assigned[key]


def run(environment: Environment, data: Toy) -> Assigned:
    """Everything that an environment gives, by name."""
    if environment.per_batch:
        environment.rng = generator(SEED, "environment")
        batches = data.train.batches(10)
        return {IDS: torch.cat([environment.assign_batch(batch) for batch in batches])}
    ids, extra = assign(environment, data, SEED)
    return {IDS: ids, **extra}


def one_id_each(subject: EnvironmentSubject) -> Iterator[str]:
    """One int64 id per training graph, counted from 0 without gaps, -1 for none.

    Cause: float ids, one id per node, ids that skip a number, or groups that stay empty.

    Look at: assign, assign_batch
    """
    ids, count = subject.assigned()[IDS], len(subject.toy.train)
    try:
        check_ids(ids, count, sys.maxsize if subject.cls.per_batch else None)
    except ValueError as error:
        yield str(error)


def ids_within_number(subject: EnvironmentSubject) -> Iterator[str]:
    """Ids drawn per batch are below the number that the component names.

    Cause: `num_environments()` and the draw in `assign_batch` disagree.

    Look at: num_environments, assign_batch
    """
    if not subject.cls.per_batch:
        raise Skip("ids are fixed before training")
    ids, number = subject.assigned()[IDS], subject.cls(**subject.base).num_environments()
    if int(ids.max()) >= number:
        yield f"an id of {int(ids.max())}, but num_environments() is {number}"


def provides_what_it_says(subject: EnvironmentSubject) -> Iterator[str]:
    """Each name in ``provides`` comes with one row per training graph, and nothing else does.

    Cause: `assign` returns ids alone, or a name that is not in `provides`.

    Look at: assign
    """
    extra = {name: value for name, value in subject.assigned().items() if name != IDS}
    if set(extra) != set(subject.cls.provides):
        yield f"provides {sorted(extra)}, declared {sorted(subject.cls.provides)}"
    for name, value in extra.items():
        if not isinstance(value, Tensor) or len(value) != len(subject.toy.train):
            yield f"'{name}' has no tensor with a row for each of {len(subject.toy.train)} training graphs"


def same_seed(subject: EnvironmentSubject) -> Iterator[str]:
    """Two calls with one seed give the same, and leave the graphs as they are.

    Cause: a draw that does not come from `self.rng`, or work in place on `train`.

    Look at: assign, assign_batch
    """
    first = subject.assigned()
    before = {name: value.clone() for name, value in subject.toy.train.tensors().items()}
    again = run(subject.cls(**subject.base), subject.toy)
    if not _equal(first, again):
        yield "a second call with the same seed gives other ids"
    changed = [name for name, value in subject.toy.train.tensors().items() if not torch.equal(value, before[name])]
    yield from (f"it changes the training graphs' '{name}' in place" for name in changed)


def global_state(subject: EnvironmentSubject) -> Iterator[str]:
    """Global generators are neither seeded nor drawn from.

    Cause: `torch.rand…`, `np.random…` or a scikit-learn estimator without a `random_state`; draw from `self.rng`.

    Look at: assign, assign_batch
    """
    subject.assigned()
    environment = subject.cls(**subject.base)
    seen: list[bool] = []
    name = "assign_batch" if environment.per_batch else "assign"
    original = getattr(environment, name)

    def watched(*arguments: Any) -> Any:
        before = all_states()
        returned = original(*arguments)
        seen.append(all_states() == before)
        return returned

    setattr(environment, name, watched)
    run(environment, subject.toy)
    if not all(seen):
        yield f"{name}() changes the state of torch's, NumPy's or Python's global generator"


def hyperparameters_matter(subject: EnvironmentSubject) -> Iterator[str]:
    """Changing a hyperparameter, where it is declared active, changes the ids or what is provided.

    Cause: nothing reads `self.NAME`; or it is read in one mode only (declare `active`), or the toy graphs do not
    show it (give settings in `probes`).

    Look at: assign, assign_batch
    """
    yield from effects_as_declared(
        subject.cls, subject.base, lambda one, two: not _equal(subject.assigned(one), subject.assigned(two))
    )


def _equal(left: Assigned, right: Assigned) -> bool:
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)


CHECKS: tuple[CheckFunction, ...] = (
    one_id_each,
    ids_within_number,
    provides_what_it_says,
    same_seed,
    global_state,
    hyperparameters_matter,
)
