"""The suite language: from YAML files to a resolved :class:`harness.spec.Suite`. No torch."""

from harness.suite.files import find_suite, installed_suites, peek_plugins, suites_folder
from harness.suite.load import load_suite
from harness.suite.overrides import Overrides

__all__ = ["Overrides", "find_suite", "installed_suites", "load_suite", "peek_plugins", "suites_folder"]
