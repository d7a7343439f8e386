"""Cells that go wrong become failed cells with a reason; the others finish."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest
import yaml
from integration_kit import TOY, Workshop, bench

from harness.engine import EngineOptions
from harness.run.execute import RunOutcome
from harness.store import Failure

SUITE = TOY.split("methods:")[0] + (
    "methods:\n  Good: {baseline: erm}\n  Bad: {baseline: {use: misbehave, how: HOW}}\n"
).replace("seeds: [1, 2]", "seeds: [1]")
SMALL = TOY.split("methods:")[0] + "methods:\n  ERM: {baseline: erm}\n"
BOTH = SMALL + "  IRM: {baseline: irm, envs: random(2)}\n"


def run(workshop: Workshop, how: str, *words: str) -> dict[str, dict]:
    workshop.write(SUITE.replace("HOW", how))
    done = workshop.command("run", "suite.yaml", "--json", "--seeds", "1", *words, check=False)
    assert done.returncode == 1, done.stderr
    return {row["method"]: row for row in json.loads(done.stdout)["rows"]}


@pytest.mark.parametrize(
    ("how", "words", "status", "reason"),
    [
        ("raise", (), "failed", "ValueError: no such thing (toy_plugin.py:"),
        ("exit", (), "failed", "SystemExit: 3"),
        ("die", (), "failed", "exit code 9 (something calls os._exit, or crashed)"),
        ("loop", ("--timeout", "8"), "timeout", "ran longer than 8 s (in toy_plugin.py:"),
        ("memory", ("--memory", "1500M"), "memory", "of memory, the limit is 1.5 GB"),
        ("diverge", (), "diverged", "not finite"),
    ],
)
def test_a_bad_cell_is_reported_and_the_good_one_finishes(workshop: Workshop, how, words, status, reason) -> None:
    rows = run(workshop, how, "--jobs", "2", *words)
    assert rows["Good"]["status"] == "ok"
    assert rows["Good"]["mean"] is not None
    assert rows["Bad"]["status"] == status
    assert reason in rows["Bad"]["reason"]


def test_debug_shows_the_traceback_also_of_a_stored_failure(workshop: Workshop) -> None:
    workshop.write(SUITE.replace("HOW", "raise"))
    plain = workshop.command("run", "suite.yaml", check=False).stderr
    assert "Traceback" not in plain
    (summary,) = (line for line in plain.splitlines() if " stages run, " in line)
    assert "2 failed, 2 skipped" in summary
    assert "--debug shows tracebacks" in summary
    told = workshop.command("run", "suite.yaml", "--debug", check=False).stderr
    assert "train Bad on Toy, seed 1" in told
    assert "toy_plugin.py" in told
    assert "ValueError: no such thing" in told


def test_a_stored_failure_says_that_it_is_old_and_how_to_try_again(workshop: Workshop) -> None:
    workshop.write(SUITE.replace("HOW", "raise"))
    fresh = workshop.command("run", "suite.yaml", "--engine", "inline", check=False)
    assert "retry-failed" not in fresh.stderr + fresh.stdout
    again = workshop.command("run", "suite.yaml", "--engine", "inline", check=False)
    line = next(line for line in again.stderr.splitlines() if "] failed train Bad" in line)
    assert re.search(
        r"no such thing \(toy_plugin.py:\d+\) \(stored \S+ \S+ UTC; --retry-failed runs it again\) in", line
    )
    assert "; 2 failures of an earlier run, not tried again without --retry-failed; --debug" in again.stderr
    moment = r"\d{4}-\d\d-\d\d \d\d:\d\d UTC"
    told = rf"Failed in an earlier run \({moment}\) and not tried again \(Bad\); bench run --retry-failed does\."
    assert re.search(told, again.stdout)
    assert re.search(told, workshop.command("report", "suite.yaml").stdout)
    page = Path(again.stderr.rpartition("report: ")[2].strip()).read_text(encoding="utf-8")
    assert "--retry-failed runs it again)" in page
    planned = workshop.command("plan", "suite.yaml").stdout
    assert re.search(rf"\n    stored {moment}; `bench run` runs it again with --retry-failed", planned)
    first = min(folder.name for folder in (workshop.store / "runs").iterdir())
    assert "earlier run" not in workshop.command("report", first).stdout, "its failures are its own"


def test_a_missing_package_is_no_result(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    """It stayed a stored failure after the package was installed, of training as of preparing the data."""
    suite = workshop.write(SUITE.replace("HOW", "import").replace("{use: toy}", "{use: toy, package: package_of_data}"))
    (prepared,) = failed(workshop.run(suite, seeds="1"))
    told = "ModuleNotFoundError: No module named 'package_of_data' (toy_plugin.py:"
    assert prepared.status == "import"
    assert prepared.reason.startswith(told)
    assert "); install the package that provides 'package_of_data'" in prepared.reason
    monkeypatch.setitem(sys.modules, "package_of_data", ModuleType("package_of_data"))
    (trained,) = failed(workshop.run(suite, seeds="1"))
    assert "'package_of_misbehave'" in trained.reason
    monkeypatch.setitem(sys.modules, "package_of_misbehave", ModuleType("package_of_misbehave"))
    assert workshop.run(suite, seeds="1").exit_code == 0


def failed(outcome: RunOutcome) -> list[Failure]:
    return [failure for failure in outcome.record.failures.values() if failure.status != "skipped"]


def test_a_stored_failure_is_not_run_again_unless_asked(workshop: Workshop) -> None:
    suite = workshop.write(SUITE.replace("HOW", "raise"))
    assert workshop.run(suite).exit_code == 1
    again = workshop.run(suite)
    assert again.exit_code == 1
    assert [kind for kind, stage, _ in workshop.events if stage == "train"].count("started") == 0
    workshop.run(suite, EngineOptions("inline", retry_failed=True))
    assert [kind for kind, stage, _ in workshop.events if stage == "train"].count("started") == 2


def test_a_one_class_test_split_reads_undefined(workshop: Workshop) -> None:
    suite = workshop.write(TOY.replace("{use: toy}", "{use: toy, one_class: [test], metric: rocauc}"))
    outcome = workshop.run(suite)
    rows = [row for row in outcome.results.rows if row.split == "test"]
    assert {row.status for row in rows} == {"undefined"}
    assert outcome.exit_code == 1, "a table without a value is no success"
    told = workshop.command("run", "suite.yaml", check=False)
    assert told.returncode == 1
    assert "0 failed, 6 cells without a value" in told.stderr
    assert all("1 class" in row.reason for row in rows)
    assert "undefined" in workshop.command("report", "toy").stdout


def test_a_one_class_validation_split_is_the_reason_in_words(workshop: Workshop) -> None:
    suite = workshop.write(SMALL.replace("{use: toy}", "{use: toy, one_class: [val], metric: rocauc}"))
    outcome = workshop.run(suite)
    reasons = {row.reason for row in outcome.results.rows if row.checkpoint == "best@val"}
    assert reasons == {"no checkpoint: validation split 'val' holds one class: ROC-AUC is undefined"}
    assert "holds one class: ROC-AUC is undefined" in workshop.command("report", "toy").stdout
    sets = ("--set", "one_class=[val, test]", "--plugin", "toy_plugin.py")
    told = yaml.safe_load(workshop.command("data", "describe", "toy", *sets, "--set", "metric=rocauc").stdout)
    assert "split 'val' holds one class: ROC-AUC is undefined there" in told["notes"]
    assert str(told).count("holds one class") == 1, "test labels are sealed"
    told = yaml.safe_load(workshop.command("data", "describe", "toy", *sets).stdout)
    assert "split 'val' holds one class" in told["notes"]


def test_ctrl_c_keeps_what_is_finished_and_exits_130(workshop: Workshop) -> None:
    workshop.write(SUITE.replace("HOW", "loop"))
    process = subprocess.Popen(
        bench("run", "suite.yaml", "--jobs", "2"),
        cwd=workshop.folder,
        env=workshop.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    lines = []
    try:
        for line in process.stderr:
            lines.append(line)
            if "finished score Good" in line:
                break
        process.send_signal(signal.SIGINT)
        _, rest = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130, "".join(lines) + rest
    assert "interrupted" in rest
    report = json.loads(workshop.command("report", "toy", "--json").stdout)
    rows = {row["method"]: row for row in report["rows"]}
    assert rows["Good"]["n"] >= 1
    assert rows["Bad"]["status"] == "missing"


@pytest.mark.parametrize("after", [2.0, 4.0])
def test_a_killed_parent_leaves_nothing_behind_and_the_next_run_completes(workshop: Workshop, values, after) -> None:
    workshop.write(BOTH)
    process = subprocess.Popen(
        bench("run", "suite.yaml", "--jobs", "2"),
        cwd=workshop.folder,
        env=workshop.environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    time.sleep(after)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    resumed = values(workshop.run().results)
    fresh = Workshop(workshop.folder / "fresh")
    fresh.folder.mkdir()
    (fresh.folder / "toy_plugin.py").write_bytes((workshop.folder / "toy_plugin.py").read_bytes())
    assert values(fresh.run(fresh.write(BOTH)).results) == resumed
    deadline = time.monotonic() + 20
    while _members(process.pid) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not _members(process.pid)


def _members(group: int) -> list[str]:
    """Living processes of a process group."""
    told = subprocess.run(
        ["ps", "-o", "pid=,stat=,args=", "-g", str(group)], capture_output=True, text=True, check=False
    )
    return [line for line in told.stdout.splitlines() if " Z" not in line]


def test_two_runs_at_once_share_the_work(workshop: Workshop) -> None:
    workshop.write(BOTH)
    processes = [
        subprocess.Popen(
            bench("run", "suite.yaml", "--jobs", "1", "--json"),
            cwd=workshop.folder,
            env=workshop.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    ended = [process.communicate(timeout=200) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], ended
    tables = [json.loads(out)["rows"] for out, _ in ended]
    assert [(row["method"], row["values"]) for row in tables[0]] == [
        (row["method"], row["values"]) for row in tables[1]
    ]
    finished = [line.split("] ", 1)[1] for _, err in ended for line in err.splitlines() if "finished" in line]
    titles = [line.rsplit(" in ", 1)[0] for line in finished]
    assert all(" s of wall time" in line for line in finished), finished
    assert len(titles) == len(set(titles))
    assert "sound, 0 problems" in workshop.command("cache", "verify").stdout


def test_what_builds_on_a_stored_failure_is_not_to_run(workshop: Workshop) -> None:
    """Scores of trainings with a stored failure counted as work, with a time of their own."""
    workshop.write(SUITE.replace("HOW", "raise"))
    workshop.command("run", "suite.yaml", "--engine", "inline", check=False)
    planned = workshop.command("plan", "suite.yaml").stdout
    assert "\nnothing to run\n" in planned
    assert "\nfailed: 2 score stages: needs a stage that failed\n" in planned
