"""Real GPUs: the same training as on the CPU, the same bits twice, several stages at a time, memory told."""

from __future__ import annotations

import pytest
import torch
from integration_kit import Workshop

from harness.component import BUILT_IN
from harness.engine import EngineOptions
from harness.engine.devices import DETERMINISTIC, choose_devices, on_device
from harness.engine.failures import failure_of
from harness.graphs import Batch
from harness.nn.propagate import neighbour_sum
from harness.registry.discovery import load_one
from harness.registry.index import load_catalog
from harness.store import Store
from harness.testing import encoders
from harness.testing.learner_rig import LearnerRig

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU: torch.cuda.is_available() is false"),
]
GPU = "cuda:0"
ENTRIES = [entry for entry in load_catalog() if entry.plugin == BUILT_IN]
LEARNERS = [entry for entry in ENTRIES if entry.kind in ("baseline", "decorrelator")]
ENCODERS = [entry for entry in ENTRIES if entry.kind == "encoder"]
SLACK = {"rtol": 2e-2, "atol": 2e-3}
"""Of weights after a few steps: sums are in another order, and Adam divides small numbers by each other."""


def trained(cls: type, device: str) -> tuple[dict[str, torch.Tensor], dict[str, object]]:
    """The state of a learner after one step on all toy graphs, and what is recorded of the device."""
    rig = LearnerRig(cls)
    prepared = rig.prepare(rig.toy(), epochs=1, batch_size=64).to(device)
    with on_device(device) as facts:
        prepared.fit()
    return {name: value.cpu() for name, value in prepared.learner.state_dict().items()}, facts


@pytest.mark.parametrize("entry", LEARNERS, ids=lambda entry: entry.name)
def test_a_learner_repeats_and_agrees_with_the_cpu(entry) -> None:
    cls = load_one(entry)
    here, _ = trained(cls, "cpu")
    (one, facts), (two, _) = trained(cls, GPU), trained(cls, GPU)
    assert all(torch.equal(one[name], two[name]) for name in one), "not the same bits twice"
    assert "not deterministic" not in str(facts["determinism"])
    assert int(str(facts["peak_device"])) > 0
    if entry.name not in ("gil", "dir", "disc-gala", "ciga"):  # a tie in a hard choice of edges may fall either way
        for name in here:
            torch.testing.assert_close(one[name], here[name], **SLACK, msg=lambda text, name=name: f"{name}: {text}")


@pytest.mark.parametrize("entry", ENCODERS, ids=lambda entry: entry.name)
def test_an_encoder_repeats_and_agrees_with_the_cpu(entry) -> None:
    rig = encoders.EncoderRig(load_one(entry))
    values = {"snapshots": [1], "batch_size": 64, **rig.cls.probes.get("*", {})}
    here = rig.fit(encoders.graphs(), values).outputs["1"]
    found = []
    for _ in range(2):
        with on_device(GPU) as facts:
            found.append(rig.fit(encoders.graphs().to(GPU), values).outputs["1"].cpu())
    assert torch.equal(*found)
    assert "not deterministic" not in facts["determinism"]
    torch.testing.assert_close(found[0], here, **SLACK)


def test_sums_over_neighbours_and_their_gradients_are_those_of_the_cpu() -> None:
    graphs = encoders.graphs()

    def sums(batch: Batch) -> list[torch.Tensor]:
        x = batch.x.double().requires_grad_()
        weight = torch.linspace(0.1, 1.0, batch.num_edges, dtype=torch.float64, device=x.device).requires_grad_()
        out = neighbour_sum(x, batch, weight)
        out.square().sum().backward()
        return [out.detach().cpu(), x.grad.cpu(), weight.grad.cpu()]

    for there, here in zip(
        sums(graphs.to(GPU).batch(torch.arange(8))), sums(graphs.batch(torch.arange(8))), strict=True
    ):
        torch.testing.assert_close(there, here)


def test_a_full_gpu_is_status_memory() -> None:
    with pytest.raises(torch.OutOfMemoryError) as caught, on_device(GPU):
        torch.empty(2**50, dtype=torch.uint8, device=GPU)
    failure = failure_of(caught.value)
    assert (failure.status, failure.kept) == ("memory", False)
    assert "out of memory" in failure.reason


def test_a_suite_on_every_gpu(workshop: Workshop) -> None:
    """Two trainings at a time on each GPU; the same numbers again from nothing; device and memory beside them."""
    first = workshop.run(engine=EngineOptions(device="cuda", jobs_per_device=2))
    assert first.exit_code == 0
    assert {row.device for row in first.results.rows} == {torch.cuda.get_device_name(0)}
    assert all(row.peak_device_memory for row in first.results.rows)
    cell, store = first.record.cells[0], Store(workshop.store)
    assert store.record(cell.train)["provenance"]["determinism"] == DETERMINISTIC
    assert {store.record(key)["provenance"]["device"] for key in first.record.prepared.values()} == {"cpu"}
    for again in first.record.cells[::4]:
        assert "reproduced" in workshop.command("reproduce", again.id, "--device", GPU).stdout


def test_devices_are_those_that_torch_sees() -> None:
    assert choose_devices("cuda") == tuple(f"cuda:{index}" for index in range(torch.cuda.device_count()))
    assert choose_devices("auto") == choose_devices("cuda")
