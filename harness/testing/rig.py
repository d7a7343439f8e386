"""One rig for all kinds of component: it makes a component with some settings, lets it work, and compares trials.

A kind derives its own rig from :class:`Rig` and says what a trial is; the checks below hold for every kind.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
import rich.style  # noqa: F401  # it draws from Python's generator when loaded, as sklearn does late
import torch
from torch import Tensor

from harness.component import Component
from harness.errors import BenchError
from harness.graphs import Batch, PackedGraphs
from harness.randomness import seeded
from harness.testing.fake_device import elsewhere
from harness.testing.hyperparameters import EVERYWHERE, each_choice, effects_as_declared
from harness.testing.report import Skip

SEED, OTHER_SEED = 3, 4
SLACK = 1e-4
"""Tolerance, relative to the largest absolute value: sums of float32 in another order."""

C = TypeVar("C", bound=Component)


@dataclass
class Trial:
    """The results of one use of a component.

    Attributes:
        outputs: results by name.
        state: weights by name; compared where both sides have a tensor of one name and shape.
        draws: uses of global random state, in words.
    """

    outputs: Mapping[str, Any]
    state: Mapping[str, Tensor] = field(default_factory=dict)
    draws: list[str] = field(default_factory=list)


T = TypeVar("T", bound=Trial)


@dataclass
class Rig(Generic[C, T]):
    """A component under test, with the trials made so far.

    Attributes:
        cls: the component's class.
        data_dir: the folder of data files, for datasets that read some.
    """

    cls: type[C]
    data_dir: Path | None = None
    small: ClassVar[Mapping[str, Any]] = {}
    """Settings of all trials, such as small networks."""
    _trials: dict[str, T] = field(default_factory=dict, repr=False)
    _broken: bool = False

    @property
    def base(self) -> dict[str, Any]:
        """Return the settings of all trials, those of ``probes["*"]`` among them."""
        return {**self.small, **self.cls.probes.get(EVERYWHERE, {})}

    def make(self, values: Mapping[str, Any] | None = None) -> C:
        """Return a component with these settings on top of the base's."""
        return self.cls(**{**self.base, **(values or {})})

    def trial(self, values: Mapping[str, Any], seed: int) -> T:
        """Use a fresh component once with these settings on top of the base's."""
        raise NotImplementedError

    def on_device(self, values: Mapping[str, Any]) -> Mapping[str, Tensor]:
        """Use a component on the fake device; return results that must equal those of the CPU."""
        raise NotImplementedError

    def outcome(self, values: Mapping[str, Any] | None = None, seed: int = SEED) -> T:
        """Return the trial with these settings, made on the first call.

        Raises:
            Skip: the ordinary trial raised before: one check reports it, not all.
        """
        if self._broken:
            raise Skip("its ordinary use fails")
        try:
            key = json.dumps([self.make(values).values, seed], sort_keys=True)  # a default, said or not, is one trial
            if key not in self._trials:
                self._trials[key] = self.trial(values or {}, seed)
            return self._trials[key]
        except Skip:
            raise
        except BaseException as error:
            self._broken = not values and seed == SEED
            if values:
                error.add_note(f"with {settings_text(values)}")
            raise

    def choices(self, *, flags: bool = True) -> Iterator[tuple[dict[str, Any], str]]:
        """Yield the usual settings, then those with each other choice of a hyperparameter, and both as a prefix."""
        for values in each_choice(self.cls, self.base, flags=flags):
            yield values, f"with {settings_text(values)}: " if values else ""

    def differ(self, one: Mapping[str, Any], two: Mapping[str, Any]) -> bool:
        """Return True if trials with two settings end differently."""
        return bool(differences(self.outcome(one), self.outcome(two)))


def settings_text(values: Mapping[str, Any]) -> str:
    """Return settings as ``name=value, ...``."""
    return ", ".join(f"{name}={value}" for name, value in values.items())


def differences(left: Trial, right: Trial) -> list[str]:
    """Return the names of what differs between two trials."""
    state = [name for name, value in left.state.items() if name in right.state]
    state = [name for name in state if left.state[name].shape == right.state[name].shape]
    changed = [name for name in state if not torch.equal(left.state[name], right.state[name])]
    names = dict.fromkeys([*left.outputs, *right.outputs])
    return [*changed, *(name for name in names if not equal(left.outputs.get(name), right.outputs.get(name)))]


def equal(left: Any, right: Any) -> bool:
    """Return True if two results are the same, bit for bit."""
    if isinstance(left, Tensor) and isinstance(right, Tensor):
        return left.dtype == right.dtype and torch.equal(left, right)
    if isinstance(left, np.ndarray) or isinstance(right, np.ndarray):
        return np.array_equal(left, right, equal_nan=np.asarray(left).dtype.kind == "f")
    return bool(left == right)


@contextmanager
def scrambled(name: str) -> Iterator[None]:
    """Run a block from unusual global states, others for each name, and restore them.

    A component that depends on global state, or sets it to a value of its own, then shows.
    """
    with seeded(0, f"conformance/{name}"):
        torch.rand(7)
        np.random.rand(7)
        random.random()
        yield


@contextmanager
def noting_draws(where: str, draws: list[str], *, torch_may_draw: bool = False) -> Iterator[None]:
    """Note a use of a global generator in the block; with ``torch_may_draw`` torch's may be drawn from, not seeded."""
    before = _states(torch_may_draw)
    yield
    text = f"{where} seeds or draws from torch's, NumPy's or Python's global generator (use self.rng)"
    if _states(torch_may_draw) != before and text not in draws:
        draws.append(text)


def _states(torch_may_draw: bool) -> tuple[Any, ...]:
    kind, keys, *rest = np.random.get_state()
    torch_state = None if torch_may_draw else torch.get_rng_state().numpy().tobytes()
    return torch.initial_seed(), torch_state, str(kind), np.asarray(keys).tobytes(), *rest, random.getstate()


def depends_on_companions(function: Callable[[Batch], Tensor], graphs: PackedGraphs, what: str) -> Iterator[str]:
    """Compare one batch of all graphs with single graphs and shuffled batches; yield a text per difference.

    Args:
        function: from a batch to one row per graph, in evaluation mode.
        graphs: graphs without labels.
        what: the rows' name, for the text.
    """
    everything = torch.arange(len(graphs))
    shuffled = torch.randperm(len(graphs), generator=torch.Generator().manual_seed(5))
    with torch.no_grad():
        together = function(graphs.batch(everything))
        if len(together) != len(graphs):
            yield f"{what} have {len(together)} rows for {len(graphs)} graphs"
            return
        for way, order, size in (("alone", everything, 1), ("in shuffled batches", shuffled, 7)):
            rows = torch.cat([function(graphs.batch(ids)) for ids in torch.split(order, size)])
            yield from gap(rows, together[order], f"{what} of graphs {way} and of all graphs together")


def gap(one: Tensor, two: Tensor, what: str) -> Iterator[str]:
    """Yield a text if two results differ by more than rounding does."""
    difference = float(((one - two).abs().max() / two.abs().max().clamp(min=1.0)).detach())
    if not difference <= SLACK:
        yield f"{what} differ by {difference:.2g}, relative"


def works(rig: Rig[Any, Any]) -> Iterator[str]:
    """Its ordinary use on toy data raises nothing, and its results are of the declared types and shapes."""
    rig.outcome()
    yield from ()


def same_seed(rig: Rig[Any, Any]) -> Iterator[str]:
    """Two uses with one seed give the same, bit for bit."""
    if changed := differences(rig.outcome(), rig.trial({}, SEED)):
        yield f"a second use with the same seed gives something else, at '{changed[0]}'"


def other_seed(rig: Rig[Any, Any]) -> Iterator[str]:
    """Another seed gives another result."""
    if not differences(rig.outcome(), rig.outcome(seed=OTHER_SEED)):
        yield "another seed gives the same, bit for bit: something fixes the seed"


def global_state(rig: Rig[Any, Any]) -> Iterator[str]:
    """Global generators are neither seeded nor drawn from, but for layers' initialisation and dropout."""
    yield from rig.outcome().draws


def hyperparameters_matter(rig: Rig[Any, Any]) -> Iterator[str]:
    """Changing a hyperparameter changes the outcome where it is declared active, and nothing where it is not."""
    rig.outcome()
    weights = [name for name, declared in rig.cls.hparams.items() if declared.weight_of]
    yield from effects_as_declared(rig.cls, rig.base, rig.differ, weights)


def another_device(rig: Rig[Any, Any]) -> Iterator[str]:
    """It works where its data are, such as on a GPU, with each choice, and gives what it gives on the CPU."""
    rig.outcome()
    for values, given in rig.choices():
        try:
            with elsewhere():
                results = rig.on_device(values)
        except BenchError:
            continue  # refused, which is allowed, or diverged, which `hyperparameters_matter` reports
        except Exception as error:
            error.add_note(f"{given}on another device")
            raise
        expected = rig.outcome(values if results else {})
        known = {**expected.state, **expected.outputs}
        changed = [name for name, value in results.items() if not equal(value, known.get(name))]
        if changed:
            yield f"{given}'{changed[0]}' differs from the CPU's"
