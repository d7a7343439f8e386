"""The conformance kit: the contract of every kind of component, tested on small fixed toy data.

``bench check`` runs it on the command line, :func:`conformance` under pytest.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.testing.checks import check_component as check_component
    from harness.testing.pytest_plugin import conformance as conformance
    from harness.testing.report import Outcome as Outcome
    from harness.testing.report import Report as Report

_HOMES = {"conformance": "pytest_plugin", "check_component": "checks", "Outcome": "report", "Report": "report"}
__all__ = ["Outcome", "Report", "check_component", "conformance"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'harness.testing' has no attribute '{name}'")
    return getattr(import_module(f"harness.testing.{_HOMES[name]}"), name)
