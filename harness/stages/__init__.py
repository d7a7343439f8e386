"""The bodies of the stages: each reads its inputs from the store, works, and writes one artifact."""

from harness.stages.context import run_stage

__all__ = ["run_stage"]
