"""Cells that go wrong become failed cells with a reason; the others finish."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import yaml
from integration_kit import HERE, TOY, Workshop, bench

from harness.engine import EngineOptions
from harness.run.execute import RunOutcome
from harness.store import Failure

HEAD = TOY.split("methods:")[0]
SUITE = (HEAD + "methods:\n  Good: {baseline: erm}\n  Bad: {baseline: {use: misbehave, how: HOW}}\n").replace(
    "seeds: [1, 2]", "seeds: [1]"
)
SMALL = HEAD + "methods:\n  ERM: {baseline: erm}\n"
INLINE = ("--engine", "inline")
BAD = {
    "raise": ("failed", "ValueError: no such thing (toy_plugin.py:"),
    "exit": ("failed", "SystemExit: 3"),
    "die": ("failed", "exit code 9 (something calls os._exit, or crashed)"),
    "loop": ("timeout", "ran longer than 8 s (in toy_plugin.py:"),
    "diverge": ("diverged", "not finite"),
}
HOG = {"memory": ("memory", "of memory, the limit is 1.5 GB")}


@pytest.mark.parametrize(("bad", "limit"), [(BAD, ("--timeout", "8")), (HOG, ("--memory", "1500M"))])
def test_bad_cells_are_reported_and_the_good_one_finishes(
    workshop: Workshop, bad: dict[str, tuple[str, str]], limit: tuple[str, str]
) -> None:
    more = [f"  {how}: {{baseline: {{use: misbehave, how: {how}}}}}\n" for how in bad]
    workshop.write(SUITE.partition("  Bad:")[0] + "".join(more))
    done = workshop.command("run", "suite.yaml", "--json", "--jobs", "2", *limit, check=False)
    assert done.returncode == 1, done.stderr
    rows = {row["method"]: row for row in json.loads(done.stdout)["rows"]}
    assert rows["Good"]["status"] == "ok"
    assert rows["Good"]["mean"] is not None
    for how, (status, reason) in bad.items():
        assert rows[how]["status"] == status
        assert reason in rows[how]["reason"]


@pytest.fixture(scope="module")
def raised(tmp_path_factory: pytest.TempPathFactory) -> tuple[Workshop, str]:
    """A workshop whose store keeps a failure, and what the run that failed printed."""
    made = Workshop(tmp_path_factory.mktemp("raised"))
    made.write(SUITE.replace("HOW", "raise"))
    (made.folder / "toy_plugin.py").symlink_to(HERE / "toy_plugin.py")
    done = made.command("run", "suite.yaml", *INLINE, check=False)
    return made, done.stderr + done.stdout


def test_debug_shows_the_traceback_also_of_a_stored_failure(raised: tuple[Workshop, str]) -> None:
    workshop, plain = raised
    assert "Traceback" not in plain
    (summary,) = (line for line in plain.splitlines() if " stages run, " in line)
    assert "1 failed, 1 skipped" in summary
    assert "--debug shows tracebacks" in summary
    told = workshop.command("run", "suite.yaml", "--debug", *INLINE, check=False).stderr
    assert "train Bad on Toy, seed 1" in told
    assert "toy_plugin.py" in told
    assert "ValueError: no such thing" in told


def test_a_stored_failure_says_that_it_is_old_and_how_to_try_again(raised: tuple[Workshop, str]) -> None:
    """What builds on it is not to run either: scores of such trainings counted as work, with a time of their own."""
    workshop, fresh = raised
    assert "retry-failed" not in fresh
    again = workshop.command("run", "suite.yaml", *INLINE, check=False)
    line = next(line for line in again.stderr.splitlines() if "] failed train Bad" in line)
    assert re.search(
        r"no such thing \(toy_plugin.py:\d+\) \(stored \S+ \S+ UTC; --retry-failed runs it again\) in", line
    )
    assert "; 1 failure of an earlier run, not tried again without --retry-failed; --debug" in again.stderr
    moment = r"\d{4}-\d\d-\d\d \d\d:\d\d UTC"
    told = rf"Failed in an earlier run \({moment}\) and not tried again \(Bad\); bench run --retry-failed does\."
    assert re.search(told, again.stdout)
    assert re.search(told, workshop.command("report", "suite.yaml").stdout)
    page = Path(again.stderr.rpartition("report: ")[2].strip()).read_text(encoding="utf-8")
    assert "--retry-failed runs it again)" in page
    planned = workshop.command("plan", "suite.yaml").stdout
    assert "\nnothing to run\n" in planned
    assert "\nfailed: 1 score stage: needs a stage that failed\n" in planned
    assert re.search(rf"\n    stored {moment}; `bench run` runs it again with --retry-failed", planned)
    first = min(folder.name for folder in (workshop.store / "runs").iterdir())
    assert "earlier run" not in workshop.command("report", first).stdout, "its failures are its own"
    assert workshop.run(engine=EngineOptions("inline", retry_failed=True)).exit_code == 1
    assert [kind for kind, stage, _ in workshop.events if stage == "train"].count("started") == 1


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
