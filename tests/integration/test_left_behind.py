"""Nothing that a plugin starts outlives its stage or keeps ``bench`` from ending."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from integration_kit import TOY, Workshop

ROOT = Path(__file__).resolve().parents[2]
PLUGIN = """
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
SUITE = TOY.split("methods:")[0].replace("toy_plugin.py", "toy_plugin.py, leaver.py").replace("[1, 2]", "[1]")


def started(mark: str) -> list[psutil.Process]:
    return [process for process in psutil.process_iter() if mark in " ".join(words(process))]


def words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()[-1:]
    except psutil.Error:
        return []


@pytest.mark.parametrize(
    ("kinds", "limits"),
    [
        ({"ok": "then: ends", "timeout": "then: waits"}, ("--timeout", "8")),
        ({"memory": "then: waits, size: 1500000000"}, ("--memory", "1500M")),
    ],
)
def test_nothing_is_left(workshop: Workshop, tmp_path: Path, kinds: dict[str, str], limits: tuple[str, ...]) -> None:
    workshop.write(PLUGIN, "leaver.py")
    rows = [
        f"  {status} {detach}: {{baseline: {{use: leaver, {kind}, detach: {detach}, mark: {tmp_path}/mark}}}}\n"
        for status, kind in kinds.items()
        for detach in ("false", "true")
    ]
    workshop.write(f"{SUITE}methods:\n{''.join(rows)}")
    done = workshop.command("run", "suite.yaml", "--json", "--jobs", "2", *limits, check=False)
    told = {row["method"]: row["status"] for row in json.loads(done.stdout)["rows"]}
    assert told == {f"{status} {detach}": status for status in kinds for detach in ("false", "true")}
    time.sleep(0.2)
    assert started(f"{tmp_path}/mark") == []


THREAD = """
import threading, time
threading.Thread(target=lambda: time.sleep(60), name="ticker").start()  # as a plugin that is imported
import equad_bench
equad_bench.GRACE = 0.2
equad_bench.main()
"""


@pytest.mark.parametrize(("words", "code"), [(("runs",), 0), (("report", "none"), 2)])
def test_a_thread_in_the_parent_keeps_no_command_from_ending(
    workshop: Workshop, words: tuple[str, ...], code: int
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", THREAD, *words],
        cwd=workshop.folder,
        env=workshop.environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )
    assert done.returncode == code, done.stderr
    assert done.stderr.endswith("note: what a plugin left running is ended: 'ticker'\n")


AGAIN = """
import atexit, os, signal, sys
import equad_bench, harness.cli

def command():
    raise {"exit": SystemExit(130), "interrupt": KeyboardInterrupt()}[sys.argv[1]]

harness.cli.main = command
atexit.register(os.kill, os.getpid(), signal.SIGINT)
equad_bench.main()
"""


@pytest.mark.parametrize("how", ["exit", "interrupt"])
def test_a_further_interrupt_while_the_command_ends_leaves_no_traceback(how: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", AGAIN, how], cwd=ROOT, capture_output=True, text=True, check=False, timeout=50
    )
    assert (done.returncode, done.stderr) == (130, "")
