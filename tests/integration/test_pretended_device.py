"""A suite trained on a device that is not there: every stage must put its tensors where they belong."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import pytest
from integration_kit import TOY, Workshop

from harness.engine import EngineOptions
from harness.report import make_report
from harness.run.execute import RunOutcome
from harness.store import Store
from harness.store.maintenance import listing
from harness.testing.fake_device import ELSEWHERE, elsewhere

NAME = "Pretended GPU"
SUITE = (
    TOY.replace("seeds: [1, 2]", "seeds: [1]")
    + """\
  Latent: {baseline: moleood}
  Split: {baseline: irm, envs: eiil}
  Grouped: {baseline: vrex, envs: random(3), train: {groups_per_batch: 2}}
  Bounded: {baseline: erm, train: {max_batch_nodes: 60}}
analyses: {Costs: runtime}
"""
)


@contextmanager
def pretended(device: str) -> Iterator[dict[str, Any]]:
    """In place of ``on_device``."""
    facts: dict[str, Any] = {}
    yield facts
    if device == ELSEWHERE:
        facts |= {"device": NAME, "determinism": "put_ is not deterministic", "peak_device": 5_000_000}


@pytest.fixture
def away(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> tuple[Workshop, RunOutcome]:
    """The suite, run with ``--device`` on the pretended one."""
    workshop.write(SUITE)
    with monkeypatch.context() as patch, elsewhere():
        patch.setattr(import_module("harness.stages.context"), "on_device", pretended)
        patch.setattr("harness.engine.choice.choose_devices", lambda _: (ELSEWHERE,))
        return workshop, workshop.run(engine=EngineOptions("inline", device="cuda"))


def artifacts(workshop: Workshop) -> dict[tuple[str, str], str]:
    """Checksums of all tensors that the store holds."""
    store = Store(workshop.store)
    metas = [meta for info in listing(store) if (meta := store.meta(info.key)) is not None]
    return {
        (meta.key, name): item["sha256"]
        for meta in metas
        for name, item in meta.files.items()
        if name.endswith(".safetensors")
    }


def test_all_of_it_is_what_the_cpu_gives_and_says_where_it_was_made(
    away: tuple[Workshop, RunOutcome], tmp_path_factory: pytest.TempPathFactory
) -> None:
    workshop, outcome = away
    assert outcome.exit_code == 0, outcome.record.failures
    there = artifacts(workshop)
    here = Workshop.toy(tmp_path_factory.mktemp("here"), SUITE)
    here.run()
    assert artifacts(here) == there

    store = Store(workshop.store)
    assert {row.device for row in outcome.results.rows} == {NAME}
    assert {row.peak_device_memory for row in outcome.results.rows} == {5_000_000}
    made = {stage.kind: store.record(stage.key)["provenance"] for stage in workshop.open().plan.stages.values()}
    assert {kind: facts["device"] for kind, facts in made.items()} == {
        **dict.fromkeys(("prepare", "quantify", "score"), "cpu"),
        **dict.fromkeys(("encode", "train"), NAME),
        "annotate": made["annotate"]["device"],
    }
    assert made["train"]["determinism"] == "put_ is not deterministic"
    assert f"Trained on {NAME}." in make_report(outcome.results).sections[0].main.notes
    (runtime,) = outcome.findings
    place = runtime.columns.index("peak on GPU, MB")
    assert {row[place] for row in runtime.rows} == {5.0}

    planned = workshop.command("plan", "suite.yaml").stdout
    trained = sum(stage.trains for stage in workshop.open().plan.stages.values())
    assert f"note: {trained} cached stages were made on {NAME} (now the CPU)" in planned
    again = workshop.command("run", "suite.yaml")
    assert f"note: {trained} cached stages were made on {NAME} (now the CPU)" in again.stderr
    assert "0 stages run" in again.stderr


@pytest.mark.parametrize("command", [("run", "suite.yaml"), ("debug", "suite.yaml"), ("profile", "suite.yaml")])
def test_a_device_that_is_not_there_is_refused_before_anything_runs(
    workshop: Workshop, command: tuple[str, str]
) -> None:
    ended = workshop.command(*command, "--device", "cuda:77", check=False)
    assert ended.returncode == 2
    assert "error: --device cuda:77: " in ended.stderr
    assert not (workshop.store / "runs").exists()


def test_doctor_lists_the_devices(workshop: Workshop) -> None:
    assert "devices: [cpu]" in workshop.command("doctor").stdout
