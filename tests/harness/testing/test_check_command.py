"""``bench check``, and the kit under pytest: what they say, and their exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.cli.main import main

ROOT = Path(__file__).resolve().parents[3]
HEAD = "import torch\nfrom harness import Environment, hookimpl, hparam\n\n"
SOUND = '''
class Halves(Environment):
    """Two halves."""

    name = "halves"

    def assign(self, train, oracle, upstream):
        return torch.arange(len(train)) % 2
'''
FAULTY = '''
class Idle(Halves):
    """Has a hyperparameter that does nothing."""

    name = "idle"
    rate: float = hparam(0.5, low=0.0)
'''
TAIL = """

@hookimpl
def bench_register(register):
    for component in (NAMES):
        register(component)
"""


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BENCH_CACHE", os.environ.get("BENCH_CACHE", str(ROOT / ".pytest_cache" / "bench")))


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One file for all tests, indexed once."""
    file = tmp_path_factory.mktemp("plugin") / "mine.py"
    file.write_text(HEAD + SOUND + FAULTY + TAIL.replace("NAMES", "Halves, Idle"), encoding="utf-8")
    return file


def bench(*words: str, code: int, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as ended:
        main(["check", *words])
    told = capsys.readouterr()
    assert int(ended.value.code or 0) == code, told.out + told.err
    return told.out if code < 2 else told.err


def test_a_file_s_components(plugin: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = bench(str(plugin), code=1, capsys=capsys)
    assert "ok      environment/halves" in out
    assert "FAILED  environment/idle" in out
    assert "hyperparameters_matter" in out
    assert "'rate': 1.0 and 0.25 and 0.0 gives what 0.5 gives" in out
    assert "1 of 2 components passed" in out


def test_one_component_of_a_plugin(plugin: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = bench("halves", "--plugin", str(plugin), "-v", code=0, capsys=capsys)
    assert "1 of 1 components passed" in out
    assert "  ok       same_seed: Two uses with one seed" in out


def test_json(plugin: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(bench(str(plugin), "--json", code=1, capsys=capsys))
    assert found["passed"] is False
    assert {report["name"]: report["passed"] for report in found["reports"]} == {"halves": True, "idle": False}
    (failed,) = [outcome for outcome in found["reports"][1]["outcomes"] if outcome["status"] == "failed"]
    assert failed["check"] == "hyperparameters_matter"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "name components or plugin files, or say --all"),
        (("erm", "--all"), "name components or plugin files, or say --all"),
        (("ermm",), "no component that can be checked is called 'ermm' (did you mean 'erm'?)"),
        (("encoder/erm",), "no component that can be checked is called 'encoder/erm'"),
        (("missing.py",), "not found"),
        (("erm", "--memory=lots"), "--memory"),
        (("erm", "--timeout=-5"), "--timeout"),
    ],
)
def test_user_errors(words: tuple[str, ...], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert told in bench(*words, code=2, capsys=capsys)


def test_a_plugin_that_does_not_load(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "broken.py"
    file.write_text("1 / 0\n", encoding="utf-8")
    assert "ZeroDivisionError" in bench(str(file), code=2, capsys=capsys)


PLUGIN = ("-p", "harness.testing.pytest_plugin")
ALONE = "PYTEST_DISABLE_PLUGIN_AUTOLOAD"


@pytest.fixture
def pytest_here(
    plugin: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str]]:
    """Run pytest within this process, in the plugin's folder."""
    monkeypatch.chdir(plugin.parent)
    monkeypatch.syspath_prepend(plugin.parent)
    monkeypatch.setenv(ALONE, "1")
    loaded = set(sys.modules)

    def run(*words: str) -> tuple[int, str]:
        code = pytest.main(["-p", "no:cacheprovider", "-s", *PLUGIN, *words])
        for name in {"mine", "test_mine", "test_other"} - loaded:
            sys.modules.pop(name, None)
        told = capsys.readouterr()
        return int(code), told.out + told.err

    return run


def test_pytest_option(plugin: Path, pytest_here: Callable[..., tuple[int, str]]) -> None:
    (plugin.parent / "test_other.py").write_text("def test_other():\n    assert False\n", encoding="utf-8")
    code, out = pytest_here("--bench-check", "mine.py", "-v")
    assert code == 1
    assert "environment/halves-works PASSED" in out
    assert "environment/idle-hyperparameters_matter FAILED" in out
    assert "'rate': 1.0 and 0.25 and 0.0 gives what 0.5 gives" in out
    assert "Traceback" not in out
    assert "1 failed" in out
    assert "test_other" not in out


def test_pytest_option_beside_tests(plugin: Path, pytest_here: Callable[..., tuple[int, str]]) -> None:
    (plugin.parent / "test_other.py").write_text("def test_other():\n    pass\n", encoding="utf-8")
    code, out = pytest_here("--bench-check", "environment/random", "test_other.py", "-v")
    assert code == 0
    assert "test_other PASSED" in out
    assert "environment/random-same_seed PASSED" in out


def test_pytest_option_with_an_unknown_name(pytest_here: Callable[..., tuple[int, str]]) -> None:
    code, out = pytest_here("--bench-check", "halvs")
    assert code == pytest.ExitCode.USAGE_ERROR
    assert "is called 'halvs'" in out


def test_a_test_file_of_an_author(plugin: Path, pytest_here: Callable[..., tuple[int, str]]) -> None:
    (plugin.parent / "test_mine.py").write_text(
        "from harness.testing import conformance\nfrom mine import Halves\n\n"
        "test_file = conformance('mine.py')\ntest_class = conformance(Halves)\n",
        encoding="utf-8",
    )
    code, out = pytest_here("test_mine.py", "-v")
    assert code == 1
    assert "test_file[environment/halves-works] PASSED" in out
    assert "test_class[environment/halves-works] PASSED" in out
    assert "test_file[environment/idle-hyperparameters_matter] FAILED" in out
    assert "1 failed" in out


def test_pytest_starts_without_anything_heavy() -> None:
    code = "import harness.testing.pytest_plugin, sys; print({'torch', 'numpy', 'yaml', 'typer'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


ODD = """
class Hanging(Halves):
    name = "hanging"

    def assign(self, train, oracle, upstream):
        while True:
            pass


class Leaving(Halves):
    name = "leaving"

    def assign(self, train, oracle, upstream):
        print("not part of the report")
        os._exit(7)


class Crashing(Halves):
    name = "crashing"

    def assign(self, train, oracle, upstream):
        os.abort()


class Noisy(Halves):
    name = "noisy"

    def assign(self, train, oracle, upstream):
        for number in range(500):
            print("\\x1b[2J line", number)
        os.write(2, b"\\a raw\\n")
        return super().assign(train, oracle, upstream)


class Rude(Noisy):
    name = "rude"

    def assign(self, train, oracle, upstream):
        super().assign(train, oracle, upstream)
        raise ValueError("\\x1b[2J all passed \\u202e")


class Leaking(Halves):
    name = "leaking"
    kept = []

    def assign(self, train, oracle, upstream):
        while True:
            self.kept.append(torch.ones(2_000_000))
"""


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One file for all tests, indexed once."""
    file = tmp_path_factory.mktemp("odd") / "odd.py"
    names = "Halves, Hanging, Leaving, Crashing, Noisy, Rude, Leaking"
    file.write_text("import os\n" + HEAD + SOUND + ODD + TAIL.replace("NAMES", names), encoding="utf-8")
    return file


class TestProcesses:
    """A component that hangs or ends its process costs itself alone."""

    def reports(self, odd: Path, capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
        found = json.loads(bench(*words, "--plugin", str(odd), "--json", code=1, capsys=capsys))
        return {item["name"]: item for item in found["reports"]}

    def test_a_project_may_have_a_module_of_our_name(self, tmp_path: Path) -> None:
        """The fork server looked for ``harness`` in the current folder first."""
        folder = tmp_path / "project"
        folder.mkdir()
        (folder / "harness.py").touch()
        script = "from equad_bench import main\n\nif __name__ == '__main__':\n    main()\n"
        (tmp_path / "bench").write_text(script, encoding="utf-8")
        command = [sys.executable, str(tmp_path / "bench"), "check", "environment/random"]
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
        assert "ok      environment/random" in done.stdout, done.stdout + done.stderr

    def test_one_that_ends_its_process_leaves_the_others(self, odd: Path, capsys: pytest.CaptureFixture[str]) -> None:
        reports = self.reports(odd, capsys, "crashing", "halves", "leaving", "--jobs", "2")
        assert list(reports) == ["crashing", "halves", "leaving"], "in order, and nothing else is printed"
        assert reports["halves"]["passed"]
        left, crashed = (reports[name]["outcomes"][-1] for name in ("leaving", "crashing"))
        assert (left["status"], crashed["status"]) == ("failed", "failed")
        assert "left with exit code 7 (something calls os._exit, or crashed) in this check" in left["problems"][0]
        assert "died of SIGABRT in this check" in crashed["problems"][0]
        assert left["check"] == crashed["check"] != "import"

    def test_what_is_printed_neither_drowns_the_verdict_nor_steers_the_terminal(
        self, odd: Path, capfd: pytest.CaptureFixture[str]
    ) -> None:
        with pytest.raises(SystemExit):
            main(["check", "leaving", "noisy", "rude", "--plugin", str(odd), "--jobs", "2"])
        told = capfd.readouterr()
        assert not {"\x1b", "\a", "\u202e"} & {*told.out, *told.err}
        assert "line 1" not in told.err
        assert r"raised ValueError: \u001b[2J all passed \u202e" in told.out
        left, noisy, rude = (told.out.partition(f"environment/{name}")[2] for name in ("leaving", "noisy", "rude"))
        assert "the last lines that it printed:\n    | not part of the report\n" in left.partition("environment/")[0]
        assert " line 499" not in noisy.partition("environment/")[0]
        assert "the last lines that it printed:\n    | \\u001b[2J line 493\n" in rude
        assert "    | \\u001b[2J line 499\n    | \\u0007 raw\n" in rude

    def test_what_is_printed_is_part_of_the_json(self, odd: Path, capfd: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit):
            main(["check", "noisy", "--plugin", str(odd), "--json"])
        told = capfd.readouterr().out
        (report,) = json.loads(told)["reports"]
        assert report["passed"]
        assert report["printed"][-1] == "\a raw"

    def test_one_that_loops_for_ever_is_stopped(self, odd: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (report,) = self.reports(odd, capsys, "hanging", "--timeout", "2s").values()
        problem = report["outcomes"][-1]["problems"][0]
        assert "checks did not end within 2 s, and were stopped in this one" in problem
        line = odd.read_text(encoding="utf-8").partition("while True")[0].count("\n") + 1
        assert any(f"(odd.py:{line + more})" in problem for more in (0, 1))

    def test_one_that_takes_ever_more_memory_is_stopped(self, odd: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (report,) = self.reports(odd, capsys, "leaking", "--memory", "900M").values()
        problem = report["outcomes"][-1]["problems"][0]
        assert "checks took more than 900 MB of memory, and were stopped in this one (odd.py:" in problem
