"""Importing this module registers every command."""

from harness.cli import (
    analyse,
    cache,
    check,
    compare,
    data,
    doctor,
    export,
    listing,
    new,
    plan,
    report,
    reproduce,
    run,
    runs,
    schema,
    validate,
)

__all__ = [
    "analyse",
    "cache",
    "check",
    "compare",
    "data",
    "doctor",
    "export",
    "listing",
    "new",
    "plan",
    "report",
    "reproduce",
    "run",
    "runs",
    "schema",
    "validate",
]
