"""The conformance kit: what every component must do, tried on a small fixed toy set.

``bench check`` runs it on the command line, ``pytest --bench-check`` and :func:`conformance` under pytest.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.testing.cases import conformance as conformance
    from harness.testing.report import Outcome as Outcome
    from harness.testing.report import Report as Report
    from harness.testing.run import check_component as check_component

__all__ = ["Outcome", "Report", "check_component", "conformance"]


def __getattr__(name: str) -> Any:
    home = {"conformance": "cases", "check_component": "run", "Outcome": "report", "Report": "report"}
    if name not in home:
        raise AttributeError(f"module 'harness.testing' has no attribute '{name}'")
    return getattr(import_module(f"harness.testing.{home[name]}"), name)
