"""Each bug planted in an analysis or a tracker is found by the checks that are there for it, and by no other."""

from __future__ import annotations

import gc
import subprocess
import sys
import warnings
from types import SimpleNamespace

import planted_analyses as analyses
import planted_trackers as trackers
import psutil
import pytest

from harness.testing import check_component
from harness.testing import trackers as tracker_checks
from harness.testing.imports import loaded_at_import

ANALYSES = [
    (analyses.SoundAnalysis, ""),
    (analyses.SoundFigure, ""),
    (analyses.DrawsGlobally, "global_state"),
    (analyses.DrawsWhilePresenting, "global_state"),
    (analyses.ReseedsItself, "same_twice"),
    (analyses.CentresInPlace, "leaves_inputs"),
    (analyses.LeavesTraining, "leaves_inputs"),
    (analyses.SortsWhilePresenting, "leaves_inputs"),
    (analyses.SilentNaN, "gives_a_table one_seed datasets_that_differ one_method one_class without_environments"),
    (analyses.SpreadOfOne, "one_seed a_failed_cell hyperparameters_matter"),
    (analyses.UnlabelledAxes, "figure_reads_well"),
    (analyses.WarnsWhileDrawing, "figure_reads_well same_twice"),
    (analyses.UsesPyplot, "figure_reads_well"),
    (analyses.NeedsBothSeeds, "one_seed a_failed_cell hyperparameters_matter"),
    (analyses.NeedsTwoClasses, "one_class"),
    (analyses.NeedsEnvironments, "without_environments datasets_that_differ"),
    (analyses.NeedsEncoder, "gives_a_table one_method"),
    (analyses.HidesPeeking, "sealed"),
    (analyses.PeeksWhileMeasuring, "sealed"),
    (analyses.TorchWhilePresenting, "imports_what_it_uses"),
    (analyses.DeadHyperparameter, "hyperparameters_matter"),
    (analyses.EmptyTable, "gives_a_table one_seed"),
]
TRACKERS = [
    (trackers.SoundTracker, ""),
    (trackers.LeavesFileOpen, "closes_what_it_opened"),
    (trackers.KeepsThread, "closes_what_it_opened"),
    (trackers.KeepsProcess, "closes_what_it_opened"),
    (trackers.NeedsScores, "follows_a_run"),
    (trackers.NeedsFiniteNumbers, "follows_a_run"),
    (trackers.OpensLate, "follows_an_interrupted_run"),
    (trackers.AddsToConfiguration, "leaves_inputs"),
    (trackers.DrawsName, "global_state"),
    (trackers.NoHint, "tells_what_is_missing"),
    (trackers.LongHint, "tells_what_is_missing"),
]


# What planted bugs leave open is told when it is collected.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """What is left is left; and no process or thread of a planted bug outlives its test."""
    monkeypatch.setattr("harness.testing.trackers._PATIENCE", 0.2)
    trackers.RELEASE.clear()
    before = psutil.Process().children()
    yield
    trackers.RELEASE.set()
    for child in psutil.Process().children():
        if child not in before and child.name().startswith("python"):
            child.kill()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()  # here, and not in a test that comes later


@pytest.mark.parametrize(("component", "expected"), ANALYSES + TRACKERS, ids=lambda value: getattr(value, "name", ""))
def test_planted(component, expected):
    pytest.importorskip("matplotlib")
    report = check_component(component)
    assert {outcome.check for outcome in report.with_status("failed")} >= set(expected.split()), report.text()
    if len(expected.split()) < 2:
        assert {outcome.check for outcome in report.with_status("failed")} == set(expected.split()), report.text()


def test_a_process_that_ends_while_it_is_looked_at_is_none(monkeypatch):
    """A tracker's helper may end between the listing of children and the look at each."""
    with subprocess.Popen([sys.executable, "-S", "-c", ""]) as helper:
        ended = psutil.Process(helper.pid)
    with monkeypatch.context() as patch:
        patch.setattr(psutil.Process, "children", lambda *_, **__: [ended])
        assert tracker_checks.Held.now().processes == frozenset()


def test_ctrl_c_is_no_fault_of_a_tracker():
    def interrupt(*_):
        raise KeyboardInterrupt

    rig = tracker_checks.TrackerRig(trackers.LongHint)
    rig.make = lambda: SimpleNamespace(start=interrupt)
    with pytest.raises(KeyboardInterrupt):
        list(tracker_checks.tells_what_is_missing(rig))


def test_an_eager_import_is_found(tmp_path, monkeypatch):
    (tmp_path / "eager_tracker.py").write_text(
        "import xml.dom.minidom\nfrom harness import Tracker\n\n\nclass Eager(Tracker):\n    name = 'eager'\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(tmp_path)
    import eager_tracker

    assert loaded_at_import(eager_tracker.Eager, ["xml", "torch"]) == ["xml"]
    del sys.modules["eager_tracker"]
