"""The authors' API, with ``harness.nn`` and ``harness.graphs``. Names load on first use (PEP 562)."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from harness.registry import core_files as _core_files  # noqa: F401 - first: before the core is loaded
from harness.registry.pygcl import PyGCLFinder

__version__ = "0.1.0"

if TYPE_CHECKING:
    from harness.analysis import Analysis as Analysis
    from harness.analysis import Cost as Cost
    from harness.analysis import Findings as Findings
    from harness.analysis import MeasuredCell as MeasuredCell
    from harness.analysis import Study as Study
    from harness.component import upstream as upstream
    from harness.data import Dataset as Dataset
    from harness.data import Declaration as Declaration
    from harness.data import Download as Download
    from harness.data import Features as Features
    from harness.data import RawDataset as RawDataset
    from harness.data import RawGraph as RawGraph
    from harness.data import Role as Role
    from harness.data import Task as Task
    from harness.errors import BenchError as BenchError
    from harness.errors import DataError as DataError
    from harness.errors import DivergedError as DivergedError
    from harness.errors import UserError as UserError
    from harness.errors import did_you_mean as did_you_mean
    from harness.graphs import Batch as Batch
    from harness.graphs import PackedGraphs as PackedGraphs
    from harness.hooks import Register as Register
    from harness.hooks import hookimpl as hookimpl
    from harness.hparams import hparam as hparam
    from harness.stages.cell import TrainedCell as TrainedCell
    from harness.store.folders import cache_root as cache_root
    from harness.store.keys import file_digest as file_digest
    from harness.tracker import TrackedCell as TrackedCell
    from harness.tracker import TrackedRun as TrackedRun
    from harness.tracker import TrackedStage as TrackedStage
    from harness.tracker import Tracker as Tracker
    from harness.training.bases import Backbone as Backbone
    from harness.training.bases import Baseline as Baseline
    from harness.training.bases import Decorrelator as Decorrelator
    from harness.training.bases import Encoder as Encoder
    from harness.training.bases import Environment as Environment
    from harness.training.bases import Fitted as Fitted
    from harness.training.bases import Learner as Learner
    from harness.training.bases import Quantifier as Quantifier
    from harness.training.optim import Adam as Adam

_HOME = {
    "harness.analysis": ("Analysis", "Cost", "Findings", "MeasuredCell", "Study"),
    "harness.component": ("upstream",),
    "harness.data": ("Dataset", "Declaration", "Download", "Features", "RawDataset", "RawGraph", "Role", "Task"),
    "harness.errors": ("BenchError", "DataError", "DivergedError", "UserError", "did_you_mean"),
    "harness.store.folders": ("cache_root",),
    "harness.graphs": ("Batch", "PackedGraphs"),
    "harness.hooks": ("Register", "hookimpl"),
    "harness.hparams": ("hparam",),
    "harness.store.keys": ("file_digest",),
    "harness.stages.cell": ("TrainedCell",),
    "harness.tracker": ("TrackedCell", "TrackedRun", "TrackedStage", "Tracker"),
    "harness.training.bases": (
        "Backbone",
        "Baseline",
        "Decorrelator",
        "Encoder",
        "Environment",
        "Fitted",
        "Learner",
        "Quantifier",
    ),
    "harness.training.optim": ("Adam",),
}
sys.meta_path.insert(0, PyGCLFinder)
_WHERE = {name: module for module, names in _HOME.items() for name in names}

__all__ = ["__version__", *sorted(_WHERE)]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'harness' has no attribute '{name}'")
    value = getattr(import_module(_WHERE[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
