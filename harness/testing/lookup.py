"""Finds the components that a component under test names, such as a learner's default environment."""

from __future__ import annotations

from typing import Any

import yaml

from harness.registry.discovery import load_one
from harness.registry.index import load_catalog
from harness.training.bases import Environment, Learner


def environment_of(learner: Learner) -> Environment | None:
    """The learner's default environment where it needs what only an environment provides, else None.

    Raises:
        UserError: the default environment is not registered.
    """
    if not (learner.needs - {"environments"}) or not learner.default_environment:
        return None
    name, _, argument = learner.default_environment.partition("(")
    entry = load_catalog().get("environment", name.strip())
    cls: type[Environment] = load_one(entry)
    values: dict[str, Any] = {}
    if argument and cls.positional:
        values[cls.positional] = yaml.safe_load(argument.rstrip(") "))
    return cls(**values)
