"""What ``bench doctor`` says of devices that cannot be looked at."""

from __future__ import annotations

import pytest

from harness.cli.components import _devices


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ImportError("no torch"), "torch cannot be imported: no torch"),
        (RuntimeError("driver too old"), "torch cannot look at its devices: driver too old"),
    ],
)
def test_doctor_tells_a_missing_torch_from_a_device_that_fails(
    error: Exception, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> list[str]:
        raise error

    monkeypatch.setattr("harness.engine.devices.survey_devices", fail)
    assert _devices() == [told]
