"""The hook specifications of the harness. One glance shows all that a plugin can do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import pluggy

if TYPE_CHECKING:
    from harness.component import Component

PROJECT = "bench"
hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)
"""The decorator that marks a function of a plugin as the implementation of the hook of its name."""


class Register(Protocol):
    """The callback handed to :func:`bench_register`."""

    def __call__(self, component: type[Component], /) -> None:
        """Add one component; its base class says its kind, ``name`` its name."""


@hookspec
def bench_register(register: Register) -> None:
    """Register this plugin's components: call ``register(Class)`` once for each."""
