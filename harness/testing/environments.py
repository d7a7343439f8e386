"""Checks of environment components."""

from __future__ import annotations

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
    another_device,
    global_state,
    hyperparameters_matter,
    noting_draws,
    same_seed,
    works,
)
from harness.testing.toys import Toy, toy
from harness.training.bases import Environment


class EnvironmentRig(Rig[Environment, Trial]):
    """An environment component under test; its outputs are the ids and the tensors that it provides."""

    def trial(self, values: Mapping[str, Any], seed: int) -> Trial:
        """Assign ids to the toy graphs.

        Raises:
            Skip: the component refuses the toy graphs with its ordinary settings, which it may.
        """
        try:
            return self.assigned(toy(), values, seed)
        except UserError as error:
            if values:
                raise
            raise Skip(f"refuses the toy graphs: {error}") from None

    def assigned(self, data: Toy, values: Mapping[str, Any], seed: int) -> Trial:
        """Return ids and the provided tensors by name; for ids drawn per batch those of three batches."""
        environment, draws = self.make(values), list[str]()
        if environment.per_batch:
            environment.rng = generator(seed, "environment")
            with noting_draws("assign_batch()", draws):
                ids = torch.cat([environment.assign_batch(batch) for batch in data.train.batches(10)])
            check_ids(ids, len(data.train), environment.num_environments())
            return Trial({"ids": ids}, draws=draws)
        ids, extra = assign(environment, data, seed, draws)
        check_ids(ids, len(data.train))
        return Trial({"ids": ids, **extra}, draws=draws)

    def on_device(self, values: Mapping[str, Any]) -> Mapping[str, Tensor]:
        """Assign ids on the other device."""
        data = toy()
        outputs = self.assigned(replace(data, train=data.train.to(ELSEWHERE)), values, SEED).outputs
        return {name: value.cpu() for name, value in outputs.items()}


def provides_what_it_says(rig: EnvironmentRig) -> Iterator[str]:
    """Each name in ``provides`` comes with one row per training graph, and nothing else does."""
    extra = {name: value for name, value in rig.outcome().outputs.items() if name != "ids"}
    if set(extra) != set(rig.cls.provides) or any(len(value) != len(toy().train) for value in extra.values()):
        yield f"provides {sorted(extra)}, declared {sorted(rig.cls.provides)}, one row per training graph of each"


CHECKS: tuple[CheckFunction, ...] = (
    works,
    provides_what_it_says,
    same_seed,
    global_state,
    hyperparameters_matter,
    another_device,
)
