"""Which trainings validation labels shape follows from what their stages read, for any component."""

from __future__ import annotations

import pytest
from plan_kit import CATALOG, Facts, baseline, pipeline, plan_of
from plugin_kit import entry

from harness import upstream
from harness.plan.build import shaped_by_validation
from harness.registry.catalog import Catalog
from harness.suite.spec import ComponentSpec, Configuration, DatasetSpec, Row, SelectSettings

MORE = Catalog(
    [
        *CATALOG,
        entry("baseline", "pupil", upstream={"student": upstream("baseline", "student", checkpoint="last")}),
        entry("baseline", "calm", upstream={"assistant": upstream("baseline", "erm", checkpoint="last")}),
        entry("baseline", "listener", reads_validation_score=True),
        entry(
            "environment",
            "sorted",
            upstream={"reference": upstream("baseline", "erm", train={"epochs": 10}, checkpoint="last")},
        ),
        entry("environment", "nested", upstream={"other": upstream("environment", "inferred")}),
        entry("environment", "plain", upstream={"other": upstream("environment", "fixed")}),
    ]
)


def envs(name: str, **train: int) -> Configuration:
    return baseline("irm", ComponentSpec("environment", name), train)


@pytest.mark.parametrize(
    ("configuration", "shaped"),
    [
        (baseline("erm"), False),
        (baseline("erm", train={"patience": 5}), True),
        (baseline("erm", train={"patience": 5, "warmup": 44}), True),
        (baseline("erm", train={"patience": 5, "warmup": 45}), False),
        (baseline("listener"), True),
        (baseline("student"), True),
        (baseline("student", rule="last"), False),
        (baseline("student", train={"patience": 5}, rule="last"), True),
        (baseline("pupil"), True),
        (baseline("calm"), False),
        (envs("fixed"), False),
        (envs("drawn"), False),
        (envs("inferred"), True),
        (envs("sorted"), False),
        (envs("sorted", patience=5, warmup=45), False),
        (envs("sorted", patience=5), True),
        (envs("nested"), True),
        (envs("plain"), False),
        (pipeline(0.5), True),
    ],
)
def test_a_training_is_shaped_by_what_it_reads(configuration: Configuration, shaped: bool) -> None:
    rows = [Row("M", "D", (configuration,), SelectSettings())]
    plan = plan_of((DatasetSpec("D", ComponentSpec("dataset", "data")),), rows, (1,), Facts(), MORE)
    (cell,) = plan.cells
    assert (cell.train in shaped_by_validation(plan, MORE)) is shaped
