"""A stopwatch for the parts of a training step, and the places in torch where it is pressed."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar
from unittest.mock import patch

import torch
from torch.autograd.profiler import record_function
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from harness.devices import CPU

Result = TypeVar("Result")
FORWARD, LOSS, BACKWARD, OPTIMIZER, OTHER = "forward", "loss", "backward", "optimizer", "other"
STEP_SECTIONS: Final = (FORWARD, LOSS, BACKWARD, OPTIMIZER, OTHER)
MARK: Final = "bench: "
"""Put before a section's name in a trace."""


class Sections:
    """Processor time by section. A section that begins within another stops the other's clock until it ends.

    On the one thread that a training has, it is wall time without what other processes take away. What runs on a GPU is
    waited for at each section's end, so that it counts where it was asked for; a step takes longer for that.
    """

    def __init__(self, device: str = CPU) -> None:
        self._on_gpu = device != CPU
        self.seconds: dict[str, float] = defaultdict(float)
        self._open: list[tuple[str, record_function]] = []
        self._since = 0.0

    def enter(self, name: str) -> None:
        """Begin a section."""
        self._charge()
        mark = record_function(MARK + name)
        mark.__enter__()  # type: ignore[no-untyped-call]
        self._open.append((name, mark))
        self._since = time.process_time()

    def leave(self) -> None:
        """End the section that began last."""
        self._charge()
        self._open.pop()[1].__exit__(None, None, None)
        self._since = time.process_time()

    def _charge(self) -> None:
        self.wait()
        if self._open:
            self.seconds[self._open[-1][0]] += time.process_time() - self._since

    def wait(self) -> None:
        """Let a GPU end what it has been given."""
        if self._on_gpu:
            torch.cuda.synchronize()

    @contextmanager
    def section(self, name: str) -> Iterator[None]:
        """A section as a block."""
        self.enter(name)
        try:
            yield
        finally:
            self.leave()

    def timed(self, name: str, function: Callable[..., Result]) -> Callable[..., Result]:
        """The function, as a section."""

        def call(*args: Any, **kwargs: Any) -> Result:
            with self.section(name):
                return function(*args, **kwargs)

        return call

    def taken(self) -> dict[str, float]:
        """The seconds so far, from which on all begin at zero again."""
        seconds, self.seconds = dict(self.seconds), defaultdict(float)
        return seconds


@contextmanager
def watching(sections: Sections) -> Iterator[None]:
    """Tell forward passes (outermost modules), gradients and optimizer steps apart, whoever asks for them.

    A gradient that a loss asks for itself (``torch.autograd.grad``, as of a gradient penalty) is ``backward`` too.
    """
    depth = 0

    def before(*_: Any) -> None:
        nonlocal depth
        depth += 1
        if depth == 1:
            sections.enter(FORWARD)

    def after(*_: Any) -> None:
        nonlocal depth
        depth -= 1
        if depth == 0:
            sections.leave()

    hooks = [
        register_module_forward_pre_hook(before),
        register_module_forward_hook(after, always_call=True),
        register_optimizer_step_pre_hook(lambda *_: sections.enter(OPTIMIZER)),
        register_optimizer_step_post_hook(lambda *_: sections.leave()),
    ]
    try:
        with (
            patch.object(torch.autograd, "backward", sections.timed(BACKWARD, torch.autograd.backward)),
            patch.object(torch.autograd, "grad", sections.timed(BACKWARD, torch.autograd.grad)),
        ):
            yield
    finally:
        for hook in hooks:
            hook.remove()
