"""The W&B tracker with a stand-in for the library: how runs end."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from harness import TrackedCell, TrackedRun
from harness.registry.discovery import load_one
from harness.registry.index import load_catalog


class Library(SimpleNamespace):
    """What the tracker uses of ``wandb``, noting how runs end; ``run`` is one of the user's own."""

    def __init__(self, run=None, fails=False):
        super().__init__(run=run, ended=[], torn_down=False, Settings=dict)
        self.fails = fails

    def init(self, **_):
        return SimpleNamespace(log=self._log, summary={}, finish=self._finish)

    def _finish(self, exit_code):
        self.ended.append(exit_code)

    def _log(self, *_, **__):
        if self.fails:
            raise ConnectionError("gone")

    def teardown(self):
        self.torn_down = True


@pytest.fixture
def tracked(monkeypatch, tmp_path):
    """Start the tracker with a stand-in."""

    def start(library):
        monkeypatch.setitem(sys.modules, "wandb", library)
        tracker = load_one(load_catalog().get("tracker", "wandb"))(mode="offline")
        tracker.start(TrackedRun("run-1", "tiny", "equad", (1,), tmp_path))
        return tracker

    return start


CELL = TrackedCell("Toy", "ERM", "-", 1, id="c1", history=[{"epoch": 0, "loss": 1.0}])


def test_a_run_is_closed_although_logging_fails(tracked):
    library = Library(fails=True)
    with pytest.raises(ConnectionError):
        tracked(library).cell(CELL)
    assert library.ended == [1]


@pytest.mark.parametrize("own", [None, "the user's"])
def test_a_run_of_the_user_s_own_goes_on(tracked, own):
    library = Library(run=own)
    tracker = tracked(library)
    tracker.cell(CELL)
    tracker.finish([], "finished")
    assert library.ended == [0]
    assert library.torn_down == (own is None)
