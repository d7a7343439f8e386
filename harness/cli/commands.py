"""Importing this module registers every command."""

from harness.cli import cache, doctor, export, listing, plan, report, run, runs, validate

__all__ = ["cache", "doctor", "export", "listing", "plan", "report", "run", "runs", "validate"]
