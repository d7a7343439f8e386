"""Checks of environment components."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from harness.errors import UserError
from harness.nn.environments import check_ids
from harness.randomness import generator
from harness.testing.fake_device import ELSEWHERE
from harness.testing.learner_rig import assign
from harness.testing.report import CheckFunction, Skip
from harness.testing.rig import (
    SEED,
    Rig,
    Trial,
    all_states,
    another_device,
    different_tensors,
    global_state,
    hyperparameters_matter,
    same_seed,
)
from harness.testing.toys import Toy, toy
from harness.training.bases import Environment

IDS = "ids"


class EnvironmentRig(Rig[Environment, Trial]):
    """An environment component under test; its outputs are the ids and the tensors that it provides."""

    def trial(self, values: Mapping[str, Any], seed: int) -> Trial:
        """Assign ids to the toy graphs.

        Raises:
            Skip: the component refuses the toy graphs with its ordinary settings, which it may.
        """
        trial = Trial({})
        try:
            trial.outputs = self.run(toy(), values, seed, trial.draws)
        except UserError as error:
            if values:
                raise
            raise Skip(f"refuses the toy graphs: {error}") from None
        return trial

    def run(self, data: Toy, values: Mapping[str, Any], seed: int = SEED, draws: list[str] | None = None) -> Any:
        """Return ids and the provided tensors by name; for ids drawn per batch those of three batches."""
        environment = self.make(values)
        _watch(environment, [] if draws is None else draws)
        if environment.per_batch:
            environment.rng = generator(seed, "environment")
            return {IDS: torch.cat([environment.assign_batch(batch) for batch in data.train.batches(10)])}
        ids, extra = assign(environment, data, seed)
        return {IDS: ids, **extra}

    def on_device(self, values: Mapping[str, Any]) -> Mapping[str, Tensor]:
        """Assign ids on the other device."""
        data = toy()
        outputs = self.run(replace(data, train=data.train.to(ELSEWHERE)), values)
        return {name: value.cpu() for name, value in outputs.items()}


def _watch(environment: Environment, draws: list[str]) -> None:
    """Note where the component's own method changes global random state."""
    name = "assign_batch" if environment.per_batch else "assign"
    original = getattr(environment, name)

    def watched(*arguments: Any) -> Any:
        before = all_states()
        returned = original(*arguments)
        if all_states() != before and not draws:
            draws.append(f"{name}() changes the state of torch's, NumPy's or Python's global generator")
        return returned

    setattr(environment, name, watched)


def one_id_each(rig: EnvironmentRig) -> Iterator[str]:
    """One int64 id per training graph, counted from 0 without gaps, -1 for none."""
    ids = rig.outcome().outputs[IDS]
    try:
        check_ids(ids, len(toy().train), sys.maxsize if rig.cls.per_batch else None)
    except ValueError as error:
        yield str(error)


def ids_within_number(rig: EnvironmentRig) -> Iterator[str]:
    """Ids drawn per batch are below the number that the component names."""
    if not rig.cls.per_batch:
        raise Skip("ids are fixed before training")
    ids, number = rig.outcome().outputs[IDS], rig.make().num_environments()
    if int(ids.max()) >= number:
        yield f"an id of {int(ids.max())}, but num_environments() is {number}"


def provides_what_it_says(rig: EnvironmentRig) -> Iterator[str]:
    """Each name in ``provides`` comes with one row per training graph, and nothing else does."""
    extra = {name: value for name, value in rig.outcome().outputs.items() if name != IDS}
    count = len(toy().train)
    if set(extra) != set(rig.cls.provides):
        yield f"provides {sorted(extra)}, declared {sorted(rig.cls.provides)}"
    for name, value in extra.items():
        if not isinstance(value, Tensor) or len(value) != count:
            yield f"'{name}' has no tensor with a row for each of {count} training graphs"


def leaves_inputs(rig: EnvironmentRig) -> Iterator[str]:
    """The training graphs stay as they were."""
    rig.outcome()
    data = toy()
    rig.run(data, {})
    changed = different_tensors(toy().train.tensors(), data.train.tensors())
    yield from (f"it changes the training graphs' '{name}' in place" for name in changed)


CHECKS: tuple[CheckFunction, ...] = (
    one_id_each,
    ids_within_number,
    provides_what_it_says,
    same_seed,
    leaves_inputs,
    global_state,
    hyperparameters_matter,
    another_device,
)
