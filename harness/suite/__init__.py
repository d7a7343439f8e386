"""The suite language: from YAML to :class:`harness.suite.spec.Suite`. Imports neither torch nor any plugin."""

from __future__ import annotations

from harness.suite.files import find_suite, installed_suites, peek_plugins, suites_folder
from harness.suite.load import load_suite
from harness.suite.overrides import Overrides
from harness.suite.schema import json_schema

__all__ = [
    "Overrides",
    "find_suite",
    "installed_suites",
    "json_schema",
    "load_suite",
    "peek_plugins",
    "suites_folder",
]
