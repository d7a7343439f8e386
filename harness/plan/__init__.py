"""From a suite to the graph of stages it needs, each with its key."""

from harness.plan.build import Cell, Plan, build_plan

__all__ = ["Cell", "Plan", "build_plan"]
