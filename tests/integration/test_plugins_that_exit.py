"""A plugin that ends the process where the harness calls it in its own is that plugin's failure."""

from __future__ import annotations

import json

import pytest
from integration_kit import TOY, Workshop

PLUGIN = """
import sys
import numpy as np
from harness import Analysis, Dataset, Declaration, Features, Findings, Task, Tracker, hookimpl, hparam

class Leaves(Dataset):
    \"\"\"Leaves when it is described.\"\"\"

    name = "leaves"
    family = "synthetic"
    when: str = hparam("declare", choices=["made", "declare", "files", "build"], help="where")

    def __init__(self, **values):
        super().__init__(**values)
        if self.when == "made":
            sys.exit(0)

    def declare(self, data_dir):
        if self.when == "declare":
            sys.exit(0)
        print("told by declare")
        return Declaration(Task("binary", 2), Features("numeric", (3,)))

    def files(self, data_dir):
        return sys.exit(0) if self.when == "files" else []

class Ends(Analysis):
    \"\"\"Leaves when it is asked for its table or its figure.\"\"\"

    name = "ends"
    when: str = hparam("present", choices=["present", "figure"], help="where")

    def measure(self, cell):
        return {}

    def present(self, study):
        if self.when == "present":
            sys.exit(0)
        return Findings(("n",), ((len(study.cells),),))

    def figure(self, study):
        sys.exit(0)

class Quits(Tracker):
    \"\"\"Leaves at the first cell.\"\"\"

    name = "quits"

    def cell(self, cell):
        sys.exit(0)

@hookimpl
def bench_register(register):
    register(Leaves)
    register(Ends)
    register(Quits)
"""
SUITE = TOY.replace("[toy_plugin.py]", "[toy_plugin.py, exits.py]").split("  IRM")[0].replace("[1, 2]", "[1]")


@pytest.fixture
def exiting(workshop: Workshop) -> Workshop:
    workshop.write(PLUGIN, "exits.py")
    return workshop


@pytest.mark.parametrize(
    ("command", "when"),
    [("run", "made"), ("run", "declare"), ("run", "files"), ("plan", "made"), ("validate", "files")],
)
def test_a_dataset(exiting: Workshop, command: str, when: str) -> None:
    exiting.write(SUITE.replace("{use: toy}", f"{{use: leaves, when: {when}}}"))
    done = exiting.command(command, "suite.yaml", check=False)
    assert done.returncode == 2
    assert "describing it raised SystemExit: 0 (exits.py, line " in done.stderr


def test_what_a_dataset_prints_is_no_part_of_an_answer(exiting: Workshop) -> None:
    exiting.write(SUITE.replace("{use: toy}", "{use: leaves, when: build}"))
    done = exiting.command("plan", "suite.yaml", "--json")
    assert json.loads(done.stdout)["suite"] == "toy"
    assert "told by declare" in done.stderr


@pytest.mark.parametrize("when", ["present", "figure"])
def test_an_analysis(exiting: Workshop, when: str) -> None:
    exiting.write(f"{SUITE}analyses:\n  Ends: {{use: ends, when: {when}}}\n")
    done = exiting.command("run", "suite.yaml", "--engine", "inline", check=False)
    assert done.returncode == 1
    assert "SystemExit: 0" in done.stdout + done.stderr


def test_a_tracker(exiting: Workshop, caplog: pytest.LogCaptureFixture) -> None:
    exiting.write(f"{SUITE}trackers: [quits]\n")
    exiting.run()
    assert "tracker 'quits' is off: SystemExit: 0" in caplog.text
