"""Engines: walk a graph of stages, hand the ready ones to workers, and keep every finished stage whatever happens.

Nothing here imports torch, and worker processes start only when there is something to run.
"""

from harness.engine.choice import ENGINES, EngineOptions
from harness.engine.contract import Engine, Event, Job, Observer, StageOutcomes, StageReport
from harness.engine.process_state import Terminated
from harness.engine.scheduler import run
from harness.engine.worker import Meter

__all__ = [
    "ENGINES",
    "Engine",
    "EngineOptions",
    "Event",
    "Job",
    "Meter",
    "Observer",
    "StageOutcomes",
    "StageReport",
    "Terminated",
    "run",
]
