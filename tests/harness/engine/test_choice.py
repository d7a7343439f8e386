"""The options of an engine: what none can do is refused in words."""

from __future__ import annotations

from typing import Any

import pytest

from harness.engine import EngineOptions, devices
from harness.engine.cluster import Profile
from harness.errors import UserError


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"engine": "process"}, "unknown engine 'process' .did you mean 'processes'"),
        ({"engine": "inlin"}, "unknown engine 'inlin' .did you mean 'inline'"),
        ({"jobs": 0}, "--jobs must be positive, not 0"),
        ({"timeout": -1}, "--timeout must be positive, not -1"),
        ({"memory": 0}, "--memory must be positive, not 0"),
        ({"jobs_per_device": 0, "device": "cuda:0"}, "--jobs-per-device must be positive"),
        ({"jobs_per_device": 2}, "--jobs-per-device goes with"),
        ({"engine": "inline", "timeout": 5}, "--engine processes"),
        ({"engine": "inline", "memory": 10**9}, "--engine processes"),
        ({"engine": "inline", "jobs": 4}, "need worker processes"),
        ({"engine": "inline", "device": "cuda"}, "several devices need worker processes"),
        ({"cluster": Profile()}, "--cluster is for --engine dask, not for --engine processes"),
    ],
)
def test_what_an_engine_cannot_do_is_refused(
    options: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(devices, "device_count", lambda: 2)
    with pytest.raises(UserError, match=message):
        EngineOptions(**options).make()


def test_inline_runs_one_stage_at_a_time() -> None:
    assert EngineOptions("inline", jobs=1).make().in_process
