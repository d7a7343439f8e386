"""The device that is not there: tensors on it keep a GPU's rules, and what would make the CPU wait is counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten

from harness.registry.discovery import load_one
from harness.registry.index import load_catalog
from harness.testing.fake_device import ELSEWHERE, elsewhere
from harness.testing.learner_rig import LearnerRig


class Waits(TorchDispatchMode):
    """Counts what would make the CPU wait for a GPU: what it then knows of a result, and copies to the CPU."""

    READS = ("_local_scalar_dense", "nonzero", "_unique2", "unique_dim", "unique_consecutive", "equal", "bincount")

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[str] = Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name, named = func.overloadpacket.__name__, kwargs or {}
        tensors = [value for value in tree_flatten((args, named))[0] if isinstance(value, torch.Tensor)]
        there = [tensor.device.type == ELSEWHERE for tensor in tensors]
        leaves = name == "_to_copy" and any(there) and str(named.get("device", ELSEWHERE)) != ELSEWHERE
        leaves = leaves or (name == "copy_" and there == [False, True])
        masks = name in ("index", "index_put", "index_put_") and any(
            index is not None and index.dtype == torch.bool for index in args[1]
        )
        if leaves or (any(there) and (name in self.READS or masks)):
            self.counts[name] += 1
        return func(*args, **named)


@pytest.fixture
def waits() -> Iterator[Counter[str]]:
    with elsewhere(), Waits() as counted:
        yield counted.counts


def test_numbers_are_those_of_the_cpu(waits: Counter[str]) -> None:
    x = torch.arange(6.0).reshape(2, 3)
    there = x.to(ELSEWHERE)
    assert there.device.type == ELSEWHERE
    assert torch.equal((there @ there.T).cpu(), x @ x.T)
    assert torch.tensor([3, 1], device=ELSEWHERE).tolist() == [3, 1]
    network = nn.Linear(3, 2).to(ELSEWHERE)
    network(there).sum().backward()
    assert network.weight.grad.device.type == ELSEWHERE
    assert torch.equal(network.weight.grad.cpu(), x.sum(0).expand(2, 3))


@pytest.mark.parametrize(
    "mixed",
    [
        lambda x: x + torch.ones(3),
        lambda x: x.index_add(0, torch.arange(3), x),
        lambda x: torch.cat([x, torch.ones(3)]),
        lambda x: torch.stack([x.sum(), torch.tensor(0.0)]),
        lambda x: x.uniform_(generator=torch.Generator()),
        lambda x: torch.rand(3, device=ELSEWHERE, generator=torch.Generator()),
        lambda x: x.numpy(),
        nn.Linear(3, 1),
    ],
)
def test_a_mixture_of_devices_is_refused(mixed, waits: Counter[str]) -> None:
    with pytest.raises(RuntimeError):
        mixed(torch.zeros(3, device=ELSEWHERE))


def test_a_number_and_an_index_of_the_cpu_are_allowed(waits: Counter[str]) -> None:
    x = torch.ones(3, device=ELSEWHERE)
    assert (x * torch.tensor(2.0))[torch.tensor([0, 2])].tolist() == [2.0, 2.0]


def test_what_makes_the_cpu_wait_is_counted(waits: Counter[str]) -> None:
    x = torch.tensor([1.0, 0.0, 2.0], device=ELSEWHERE)
    before = sum(waits.values())
    float(x.sum()), x[x > 0], x.nonzero(), x.cpu(), torch.unique(x)
    assert sum(waits.values()) - before == 5
    x.add_(1).exp().sum()
    assert sum(waits.values()) - before == 5


@pytest.mark.parametrize("name", ["erm", "mixup", "eqn7", "reweighted-erm"])
def test_a_step_of_training_never_waits(name: str) -> None:
    """Twice as many steps in as many epochs, as many waits: what there are belong to epochs."""
    (entry,) = [entry for entry in load_catalog() if entry.name == name]
    rig = LearnerRig(load_one(entry))
    counts = []
    for size in (12, 6):
        prepared = rig.prepare(rig.toy(), epochs=2, batch_size=size)
        prepared.data.score = lambda *_: 0.5  # one checkpoint, whatever the number of steps
        with elsewhere(), Waits() as waits:
            prepared.to(ELSEWHERE)
            waits.counts.clear()
            prepared.fit()
            counts.append(waits.counts)
    assert counts[0] == counts[1]
