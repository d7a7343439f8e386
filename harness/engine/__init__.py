"""Engines: walk a graph of stages, hand the ready ones to workers, and keep every finished stage whatever happens.

Nothing here imports torch, and worker processes start only when there is something to run.
"""

from harness.engine.choice import EngineOptions
from harness.engine.contract import Engine, Event, Job, StageOutcomes
from harness.engine.process_state import Terminated
from harness.engine.scheduler import run

__all__ = [
    "Engine",
    "EngineOptions",
    "Event",
    "Job",
    "StageOutcomes",
    "Terminated",
    "run",
]
