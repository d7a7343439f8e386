"""The command line. Commands import what they need when they run, so that ``bench --help`` is quick."""

from harness.cli.main import app, main

__all__ = ["app", "main"]
