"""The suite language: from YAML to :class:`harness.suite.spec.Suite`. Names load when they are first used; no torch."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.suite.files import find_suite, installed_suites, peek_plugins, suites_folder
    from harness.suite.load import load_suite
    from harness.suite.models import json_schema
    from harness.suite.overrides import Overrides

__all__ = [
    "Overrides",
    "find_suite",
    "installed_suites",
    "json_schema",
    "load_suite",
    "peek_plugins",
    "suites_folder",
]
_HOME = {"Overrides": "overrides", "json_schema": "models", "load_suite": "load"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'harness.suite' has no attribute '{name}'")
    value = getattr(import_module(f"harness.suite.{_HOME.get(name, 'files')}"), name)
    globals()[name] = value
    return value
