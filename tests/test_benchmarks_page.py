"""``docs/performance.md`` is made by ``make bench``: its blocks hold commands, and what these print replaces them."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
OF_RESULTS = {"environments", "optimum", "irm_gradients", "record"}
"""Scripts whose figures stand in docs/results."""
REPORT = ROOT / "benchmarks" / "report.py"
PAGE = """\
# Page

<!-- measured: python -c "print('new')" -->
old

<!-- /measured -->

between

<!-- measured: python -c "import sys; print('no'); sys.exit(3)" -->
kept

<!-- /measured -->
"""


def _report(*words: str) -> tuple[int, str]:
    """Exit code and errors."""
    done = subprocess.run([sys.executable, str(REPORT), *words], check=False, capture_output=True, text=True, cwd=ROOT)
    return done.returncode, done.stderr


def test_every_benchmark_has_a_block() -> None:
    page = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    commands = re.findall(r"<!-- measured: python benchmarks/(\w+)\.py", page)
    scripts = {
        file.stem for file in (ROOT / "benchmarks").glob("*.py") if 'if __name__ == "__main__":' in file.read_text()
    }
    assert page.count("<!-- /measured -->") == len(commands)
    assert set(commands) == scripts - OF_RESULTS - {"report"}


def test_output_replaces_a_block_and_a_failure_leaves_it(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    code, errors = _report("--page", str(page))
    assert code == 1
    assert "sys.exit(3)" in errors
    first, second = page.read_text().split("\nbetween\n")
    assert re.search(r"```text\n20\d\d-.*load average before: [\d.]+\n\nnew\n```", first, re.DOTALL)
    assert "old" not in first
    assert second == PAGE.split("\nbetween\n")[1]
    assert _report("--page", str(page), "new") == (0, "")
    assert page.read_text().count("```text") == 1, "a block can be written again"
    code, errors = _report("--page", str(page), "nothing-like-it")
    assert code == 1
    assert "no block of" in errors


def test_planning_measures_what_the_screen_of_a_plan_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It reaches into the command, whose functions may change."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    planning = importlib.import_module("planning")
    suite = tmp_path / "suite.yaml"
    suite.write_text(planning.suite_text("grid", 1000), encoding="utf-8")
    planning.plan_once(str(suite), str(tmp_path / "store"))
    found = json.loads(capsys.readouterr().out)
    assert (found["cells"], found["stages"]) == (1000, 2060)
    assert found["lines"] > 5
