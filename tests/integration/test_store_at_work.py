"""The store between people and beside running processes: shared baselines, collection, repair, early ends."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest
from integration_kit import TOY, Workshop, command_line

from harness.errors import DiskFullError
from harness.results.run_record import RunRecord
from harness.run.find import all_runs
from harness.store import Stage, Store, sweep
from harness.store.maintenance import choose, listing, remove


def test_a_team_trains_a_baseline_once(made: Workshop, tmp_path: Path, values) -> None:
    team = str(tmp_path / "team")
    told = made.command("cache", "push", team, "suite.yaml").stdout
    assert told.startswith("pushed 21 artifacts, ")
    mine = Workshop.toy(tmp_path)
    assert mine.command("cache", "pull", team, "suite.yaml").stdout.startswith("pulled 21 artifacts, ")
    assert "nothing to run" in mine.command("plan", "suite.yaml").stdout
    outcome = mine.run()
    assert mine.ran() == []
    assert values(outcome.results) == values(made.run_of("toy"))
    assert mine.command("cache", "verify").stdout == "21 artifacts are sound, 0 problems\n"
    assert mine.command("cache", "pull", team, "suite.yaml").stdout.startswith("pulled 0 artifacts, 0 B from")


def test_a_run_without_results_is_refused_alone(copied: Workshop) -> None:
    """Also behind a URL, where what is there is compared first."""
    run = all_runs(Store(copied.store))[-1].id
    (copied.store / "runs" / run / "results.json").unlink()
    told = copied.command("cache", "push", f"memory://{copied.folder.parent.name}", check=False)
    assert told.returncode == 1
    assert f"run {run}: refused: results.json is missing" in told.stdout
    assert "21 artifacts" in told.stdout


def test_a_run_can_be_shown_elsewhere(made: Workshop, tmp_path: Path) -> None:
    team, run = str(tmp_path / "team"), all_runs(Store(made.store))[-1].id
    assert "21 artifacts and 1 run" in made.command("cache", "push", team, run).stdout
    mine = Workshop.toy(tmp_path)
    assert "21 artifacts and 1 run" in mine.command("cache", "pull", team, run).stdout
    assert mine.command("report", run).stdout == made.command("report", run).stdout


def test_collecting_keeps_what_suite_and_runs_need(made: Workshop, tmp_path: Path) -> None:
    mine = Workshop.toy(tmp_path)
    mine.command("cache", "pull", str(made.store), "suite.yaml")
    mine.run(methods=["ERM"])
    mine.write(TOY.split("  IRM:")[0])
    assert (
        "would remove 0 artifacts"
        in mine.command("cache", "gc", "--unreachable-from", "suite.yaml", "--max-size", "1GB").stdout
    )
    told = mine.command("cache", "gc", "--unreachable-from", "suite.yaml", "--yes").stdout
    assert "removed 14 artifacts" in told
    mine.run()
    assert mine.ran() == []
    assert mine.command("cache", "verify").returncode == 0


def test_collecting_everything_beside_a_run_loses_nothing(made: Workshop, tmp_path: Path, values) -> None:
    """At each event of a run, all that may go goes."""
    mine = Workshop.toy(tmp_path)
    session = mine.open()
    gone: list[str] = []

    def collect(_: object) -> None:
        store = Store(mine.store)
        gone.extend(info.title for info in remove(store, choose(store, max_size=0)).artifacts)

    from harness.engine import EngineOptions
    from harness.run.execute import execute

    outcome = execute(session, EngineOptions("inline"), collect)
    assert gone == []
    assert values(outcome.results) == values(made.run_of("toy"))


def test_damage_is_repaired_and_made_again(made: Workshop, copied: Workshop, values) -> None:
    store = Store(copied.store)
    scores = [info for info in listing(store) if info.kind == "score"]
    (store.artifact_folder(scores[0].key) / "scores.json").write_text("{}")
    told = copied.command("cache", "verify", "--repair").stdout
    assert "scores.json: 2 bytes instead of" in told
    outcome = copied.run()
    assert copied.ran() == [scores[0].title]
    assert values(outcome.results) == values(made.run_of("toy"))


def test_sigterm_leaves_a_record_and_its_exit_code(workshop: Workshop) -> None:
    workshop.write(TOY.split("methods:")[0] + "methods:\n  Bad: {baseline: {use: misbehave, how: loop}}\n")
    process = subprocess.Popen(
        command_line("run", "suite.yaml", "--engine", "inline"),
        cwd=workshop.folder,
        env=workshop.environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    try:
        for line in process.stderr:
            if "finished prepare" in line:
                break
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGTERM)
        _, rest = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 143, rest
    assert "interrupted; finished stages are kept: `bench run suite.yaml --engine inline` goes on" in rest
    (record,) = all_runs(Store(workshop.store))
    assert record.status == "interrupted"
    assert (workshop.store / "runs" / record.id / "report.html").is_file()
    sweep(workshop.store)  # a signal within the system call that makes a lock leaves its file, which nobody holds
    assert list((workshop.store / "leases").iterdir()) == list((workshop.store / "tmp").iterdir()) == []


def test_a_full_disk_in_the_parent_leaves_a_record(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Store.try_lease

    def full(self: Store, key: str) -> object:
        if key.startswith("run-"):
            return real(self, key)
        raise DiskFullError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(Store, "try_lease", full)
        with pytest.raises(DiskFullError):
            workshop.run(methods=["ERM"])
    (record,) = all_runs(Store(workshop.store))
    assert record.status == "failed"
    assert workshop.run(methods=["ERM"]).exit_code == 0


def test_costs_that_cannot_be_kept_end_no_run(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Store, stage: Stage, facts: object) -> None:  # noqa: ARG001
        raise DiskFullError("the disk is full")

    monkeypatch.setattr(Store, "record_run", full)
    assert workshop.run(methods=["ERM"], seeds="1").exit_code == 0


def test_a_run_that_was_killed_says_so_after_the_next_start(copied: Workshop) -> None:
    store = Store(copied.store)
    (record,) = all_runs(store)
    path = store.runs / record.id / "run.json"
    path.write_text(path.read_text().replace('"status": "finished"', '"status": "running"'))
    (path.parent / ".run.json.half").touch()
    (store.runs / "20260101-000000-toy-0000").mkdir()
    (store.root / "leases").mkdir(exist_ok=True)
    for name in (record.id, "20260101-000000-toy-0000"):
        (store.root / "leases" / f"run-{name}.lock").touch()
    assert RunRecord.load(path.parent).status == "running"
    copied.run()
    told = json.loads(copied.command("runs", "--json").stdout)["runs"]
    assert [run["status"] for run in told] == ["interrupted", "finished"]
    assert RunRecord.load(path.parent).status == "interrupted"
    assert not (path.parent / ".run.json.half").exists()
    assert len(list(store.runs.iterdir())) == 2
