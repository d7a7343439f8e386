"""Cells that go wrong become failed cells with a reason; the others finish."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import psutil
import pytest
import yaml
from integration_kit import TOY, Workshop, command_line

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
    "diverge": ("diverged", "not finite"),
}
LEFT = {"ends": ("ok", ""), "waits": ("timeout", "ran longer than 8 s (in leaver.py:")}
HOG = ("memory", "of memory, the limit is 1.5 GB")
LEAVER = """
import os, subprocess, sys, time
from harness import Baseline, hookimpl, hparam

SLEEPER = "import sys, time; hog = bytearray(int(sys.argv[1])); time.sleep(600)"

class Leaver(Baseline):
    \"\"\"Starts a process that would outlive it.\"\"\"

    name = "leaver"
    detach: bool = hparam(False, help="detach it")
    size: int = hparam(1, help="bytes that it takes")
    then: str = hparam("ends", choices=["ends", "waits"], help="what the stage does then")
    mark: str = hparam("", help="by which it is found")

    def on_fit_start(self, train):
        words = [sys.executable, "-c", SLEEPER, str(self.size), self.mark]
        if not self.detach:
            subprocess.Popen(words)
        elif os.fork() == 0:
            os.setsid()
            subprocess.Popen(words)
            os._exit(0)
        else:
            os.wait()
        time.sleep(600 if self.then == "waits" else 0)

    def loss(self, batch):
        return {"erm": self.risk(self(batch), batch).mean()}

@hookimpl
def bench_register(register):
    register(Leaver)
"""


def started(mark: str) -> list[psutil.Process]:
    return [process for process in psutil.process_iter() if mark in " ".join(words(process))]


def words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()[-1:]
    except psutil.Error:
        return []


@pytest.mark.parametrize(
    ("bad", "left", "limit"),
    [(BAD, LEFT, ("--timeout", "8")), ({"memory": HOG}, {"waits, size: 1500000000": HOG}, ("--memory", "1500M"))],
)
def test_bad_cells_are_reported_the_good_one_finishes_and_no_process_is_left(
    workshop: Workshop,
    bad: dict[str, tuple[str, str]],
    left: dict[str, tuple[str, str]],
    limit: tuple[str, str],
) -> None:
    mark, expected = f"{workshop.folder}/mark", {"Good": ("ok", "")}
    uses = {"Good": "erm"}
    for how, told in bad.items():
        expected[how], uses[how] = told, f"{{use: misbehave, how: {how}}}"
    for then, told in left.items():
        for detach in ("false", "true"):
            expected[f"{then} {detach}"] = told
            uses[f"{then} {detach}"] = f"{{use: leaver, then: {then}, detach: {detach}, mark: {mark}}}"
    workshop.write(LEAVER, "leaver.py")
    head = HEAD.replace("toy_plugin.py", "toy_plugin.py, leaver.py").replace("[1, 2]", "[1]")
    rows = [f'  "{name}": {{baseline: {use}}}\n' for name, use in uses.items()]
    workshop.write(f"{head}methods:\n{''.join(rows)}")
    done = workshop.command("run", "suite.yaml", "--json", "--jobs", "2", *limit, check=False)
    assert done.returncode == 1, done.stderr
    rows = {row["method"]: row for row in json.loads(done.stdout)["rows"]}
    assert rows["Good"]["mean"] is not None
    for name, (status, reason) in expected.items():
        assert rows[name]["status"] == status
        assert reason in rows[name]["reason"]
    time.sleep(0.2)
    assert started(mark) == []


@pytest.fixture(scope="module")
def raised(tmp_path_factory: pytest.TempPathFactory) -> tuple[Workshop, str]:
    """A workshop whose store keeps a failure, and what the run that failed printed."""
    made = Workshop.toy(tmp_path_factory.mktemp("raised"), SUITE.replace("HOW", "raise"))
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
        command_line("run", "suite.yaml", "--jobs", "2"),
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
