"""Importing this module registers every command."""

from harness.cli import cache, check, data, doctor, export, listing, plan, report, run, runs, schema, validate

__all__ = [
    "cache",
    "check",
    "data",
    "doctor",
    "export",
    "listing",
    "plan",
    "report",
    "run",
    "runs",
    "schema",
    "validate",
]
