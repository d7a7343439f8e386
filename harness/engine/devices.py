"""Devices other than the CPU: which ones a run uses, and torch's state while a stage runs on one.

Torch is imported when a device is asked for, not before.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final

from harness.errors import BenchError, UserError, did_you_mean

CPU: Final = "cpu"
CUDA: Final = "cuda"
DETERMINISTIC: Final = "same key, same bits on this device and these versions"
_WORKSPACE: Final = "CUBLAS_WORKSPACE_CONFIG"
_FIXED_WORKSPACES: Final = (":4096:8", ":16:8")
"""Values with which cuBLAS repeats its results (NVIDIA, *cuBLAS Library*, section "Results Reproducibility")."""
_NO_KERNEL: Final = " does not have a deterministic implementation"


class DeviceError(BenchError):
    """A device cannot be used: driver, memory of another program, hardware. Nothing that a stage is to blame for."""


def choose_devices(text: str) -> tuple[str, ...]:
    """Return the devices that ``--device`` names, e.g. ``("cuda:0", "cuda:1")``; none for the CPU.

    Args:
        text: ``cpu``; ``auto`` (every GPU that torch sees, else the CPU); ``cuda`` (every GPU); or ``cuda:0,cuda:2``.

    Raises:
        UserError: another word, or a device that torch does not see.
    """
    if text == CPU:
        return ()
    words = list(dict.fromkeys(word.strip() for word in text.split(",")))
    for word in words if text not in ("auto", CUDA) else ():
        if re.fullmatch(f"{CUDA}:[0-9]+", word) is None:
            hint = did_you_mean(word, ("auto", CPU, CUDA))
            raise UserError(f"--device {text}: '{word}' is no device{hint}; write auto, cpu, cuda, or cuda:0,cuda:1")
    present = [f"{CUDA}:{index}" for index in range(device_count())]
    if text != "auto" and not present:
        raise UserError(f"--device {text}: torch sees no GPU here; `bench doctor` lists what it sees")
    if text in ("auto", CUDA):
        return tuple(present)
    for word in words:
        if word not in present:
            raise UserError(f"--device {text}: there is no {word}; torch sees {', '.join(present)}")
    return tuple(words)


def device_count() -> int:
    """Return the number of GPUs that torch sees; starts none of them."""
    import torch

    return torch.cuda.device_count()


def survey_devices() -> list[str]:
    """Return a line for each device that torch sees, the CPU first."""
    import torch

    lines = [CPU]
    for index in range(torch.cuda.device_count()):
        facts = torch.cuda.get_device_properties(index)
        lines.append(f"{CUDA}:{index} {facts.name} ({facts.total_memory / 1e9:.1f} GB)")
    return lines


@contextmanager
def on_device(device: str) -> Iterator[dict[str, Any]]:
    """Run a block on a device: chosen, started, with deterministic algorithms; afterwards torch is as it was before.

    The device starts here, before anything is seeded, so that its generator is one of those that are saved and put
    back. Where torch has no deterministic kernel for an operation, the stage goes on and the facts name the operation.

    Args:
        device: ``cpu`` (nothing is done), ``cuda`` (the current one) or ``cuda:INDEX``.

    Raises:
        DeviceError: the device cannot be started.

    Yields:
        facts to record beside the artifact, complete when the block has ended: ``device`` and ``determinism``; none on
        the CPU. ``peak_device`` is the most memory in bytes that tensors held on it.
    """
    facts: dict[str, Any] = {}
    if device == CPU:
        yield facts
        return
    import torch

    if os.environ.get(_WORKSPACE) not in _FIXED_WORKSPACES:  # cuBLAS reads it when it starts
        os.environ[_WORKSPACE] = _FIXED_WORKSPACES[0]
    chosen = torch.device(device)
    with ExitStack() as stack:
        try:
            torch.cuda.init()
            stack.enter_context(torch.cuda.device(chosen))
            torch.cuda.reset_peak_memory_stats()
        except (RuntimeError, AssertionError) as error:  # the second: a torch without CUDA
            raise DeviceError(f"cannot use {device}: {str(error).partition(chr(10))[0]}") from error
        lacking = stack.enter_context(_deterministic())
        try:
            yield facts
        finally:
            facts["device"] = torch.cuda.get_device_name()
            operations = ", ".join(lacking)
            facts["determinism"] = f"not deterministic on this device: {operations}" if lacking else DETERMINISTIC
            facts["peak_device"] = torch.cuda.max_memory_allocated()
            torch.cuda.empty_cache()  # what an idle worker holds back, its neighbours on the device lack


@contextmanager
def _deterministic() -> Iterator[list[str]]:
    """Deterministic algorithms inside the block; the list holds the operations of which torch warns that it has none.

    Other warnings are shown as before.
    """
    import torch

    before = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    lacking: list[str] = []
    with warnings.catch_warnings():
        shown = warnings.showwarning

        def show(message: Warning | str, *rest: Any, **more: Any) -> None:
            operation, found, _ = str(message).partition(_NO_KERNEL)
            if not found:
                shown(message, *rest, **more)
            elif operation not in lacking:
                lacking.append(operation)

        warnings.showwarning = show
        warnings.filterwarnings("always", message=f".*{_NO_KERNEL}")
        torch.use_deterministic_algorithms(True, warn_only=True)
        try:
            yield lacking
        finally:
            torch.use_deterministic_algorithms(before[0], warn_only=before[1])
