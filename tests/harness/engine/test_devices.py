"""Choosing devices, and torch's state around a stage on one; the GPU is a stand-in here (see ``gpu`` for real ones)."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch

from harness.engine import devices
from harness.engine.devices import DETERMINISTIC, DeviceError, choose_devices, on_device
from harness.engine.failures import failure_of, spoils_device
from harness.errors import UserError
from harness.randomness import seeded


@pytest.mark.parametrize(
    ("text", "count", "found"),
    [
        ("cpu", 2, ()),
        ("auto", 2, ("cuda:0", "cuda:1")),
        ("auto", 0, ()),
        ("cuda", 2, ("cuda:0", "cuda:1")),
        ("cuda:1", 2, ("cuda:1",)),
        ("cuda:1, cuda:0", 2, ("cuda:1", "cuda:0")),
        ("cuda:0,cuda:0", 2, ("cuda:0",)),
    ],
)
def test_devices_by_name(text: str, count: int, found: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "device_count", lambda: count)
    assert choose_devices(text) == found


@pytest.mark.parametrize(
    ("text", "count", "message"),
    [
        ("gpu", 2, "'gpu' is no device"),
        ("cudo", 2, "did you mean 'cuda'"),
        ("cuda:x", 2, "write auto, cpu, cuda, or cuda:0,cuda:1"),
        ("cuda:2", 2, "there is no cuda:2; torch sees cuda:0, cuda:1"),
        ("cuda", 0, "torch sees no GPU here"),
        ("cuda:0", 0, "`bench doctor` lists what it sees"),
    ],
)
def test_what_cannot_be_used_is_refused(text: str, count: int, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "device_count", lambda: count)
    with pytest.raises(UserError, match=message):
        choose_devices(text)


class FakeCuda:
    """Of ``torch.cuda`` what a stage's frame asks, with a log."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.log: list[str] = []
        self.workspace: str | None = None
        for name in ("init", "reset_peak_memory_stats", "empty_cache"):
            monkeypatch.setattr(torch.cuda, name, lambda name=name: self._note(name))
        monkeypatch.setattr(torch.cuda, "device", self._chosen)
        monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "A GPU")
        monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda: 4096)

    def _note(self, name: str) -> None:
        self.log.append(name)
        if name == "init":
            self.workspace = os.environ.get("CUBLAS_WORKSPACE_CONFIG")

    @contextmanager
    def _chosen(self, device: torch.device) -> Iterator[None]:
        self.log.append(str(device))
        try:
            yield
        finally:
            self.log.append("back")


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> FakeCuda:
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":0:0")
    return FakeCuda(monkeypatch)


def test_a_stage_on_a_device_is_deterministic_and_measured(cuda: FakeCuda) -> None:
    with on_device("cuda:1") as facts:
        assert torch.are_deterministic_algorithms_enabled()
        assert facts == {}
    assert not torch.are_deterministic_algorithms_enabled()
    assert facts == {"device": "A GPU", "determinism": DETERMINISTIC, "peak_device": 4096}
    assert cuda.log == ["init", "cuda:1", "reset_peak_memory_stats", "empty_cache", "back"]
    assert cuda.workspace == ":4096:8", "it was not set before CUDA starts"


def test_torch_is_put_back_when_a_stage_fails(cuda: FakeCuda) -> None:
    with pytest.raises(KeyError), on_device("cuda:0"):
        raise KeyError
    assert not torch.are_deterministic_algorithms_enabled()
    assert cuda.log[-2:] == ["empty_cache", "back"]


@pytest.mark.usefixtures("cuda")
def test_operations_without_a_deterministic_kernel_are_named() -> None:
    with on_device("cuda:0") as facts:
        for _ in range(2):
            warnings.warn("put_ does not have a deterministic implementation, but you set", UserWarning, stacklevel=1)
    assert facts["determinism"] == "not deterministic on this device: put_"


@pytest.mark.usefixtures("cuda")
def test_other_warnings_are_shown_as_ever() -> None:
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        with on_device("cuda:0"):
            warnings.warn("of another kind", UserWarning, stacklevel=1)
    assert [str(item.message) for item in shown] == ["of another kind"]


def test_on_the_cpu_nothing_is_done(cuda: FakeCuda) -> None:
    with on_device("cpu") as facts:
        assert not torch.are_deterministic_algorithms_enabled()
    assert (facts, cuda.log) == ({}, [])


@pytest.mark.usefixtures("cuda")
def test_a_device_that_does_not_start_is_no_fault_of_the_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise RuntimeError("No CUDA GPUs are available\nand more")

    monkeypatch.setattr(torch.cuda, "init", broken)
    with (
        pytest.raises(DeviceError, match=r"cannot use cuda:0: No CUDA GPUs are available$") as caught,
        on_device("cuda:0"),
    ):
        pass
    failure = failure_of(caught.value)
    assert (failure.status, failure.kept) == ("device", False)
    assert spoils_device(caught.value)


def test_a_full_device_is_status_memory_with_a_way_out() -> None:
    error = torch.OutOfMemoryError(
        "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79 GiB."
    )
    failure = failure_of(error)
    assert (failure.status, failure.kept) == ("memory", False)
    assert failure.reason.startswith(
        "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79 GiB; "
    )
    assert "--jobs-per-device" in failure.reason
    assert not spoils_device(error)
    assert failure_of(RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling")).status == "memory"


def test_an_error_that_ends_the_context_spoils_the_process() -> None:
    error = torch.AcceleratorError("CUDA error: an illegal memory access was encountered")
    assert spoils_device(error)
    assert failure_of(error).status == "device"


def test_seeding_starts_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    def started(*_: object) -> None:
        raise AssertionError("the GPU was started")

    for name in ("_lazy_init", "get_rng_state", "get_rng_state_all", "is_available"):
        monkeypatch.setattr(torch.cuda, name, started)
    with seeded(1, "role"):
        torch.rand(1)


def test_the_state_of_a_gpu_that_runs_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    states = ["before"]
    monkeypatch.setattr(torch.backends.cuda, "is_built", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_rng_state", lambda: states[-1])
    monkeypatch.setattr(torch.cuda, "set_rng_state", states.append)
    monkeypatch.setattr(torch.cuda, "manual_seed_all", lambda _: states.append("seeded"))
    with seeded(1, "role"):
        assert states == ["before", "seeded"]
    assert states[-1] == "before"
