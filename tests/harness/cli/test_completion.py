"""What the three shells are offered, through their own protocol: the words in the environment, the offers printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cli import completion
from harness.cli.main import main
from harness.registry.index import load_catalog

ROOT = Path(__file__).resolve().parents[3]


class Shell:
    """A line up to the cursor, and what a shell is offered."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._environment, self._capsys = monkeypatch, capsys

    def _offered(self, **environment: str) -> str:
        for name, value in environment.items():
            self._environment.setenv(name, value)
        with pytest.raises(SystemExit):
            main([])
        told = self._capsys.readouterr()
        assert told.err == ""
        return told.out

    def bash(self, *words: str) -> list[str]:
        found = self._offered(
            _BENCH_COMPLETE="complete_bash", COMP_WORDS="\n".join(words), COMP_CWORD=str(len(words) - 1)
        )
        return [line for line in found.splitlines() if line]

    def zsh(self, line: str) -> str:
        return self._offered(_BENCH_COMPLETE="complete_zsh", _TYPER_COMPLETE_ARGS=line)

    def fish(self, line: str) -> dict[str, str]:
        found = self._offered(
            _BENCH_COMPLETE="complete_fish", _TYPER_COMPLETE_FISH_ACTION="get-args", _TYPER_COMPLETE_ARGS=line
        )
        return {word: told for word, _, told in (line.partition("\t") for line in found.splitlines()) if word}


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Shell:
    monkeypatch.setenv("BENCH_CACHE", str(ROOT / ".pytest_cache" / "bench"))
    monkeypatch.setenv("BENCH_STORE", str(tmp_path / "store"))
    monkeypatch.chdir(tmp_path)
    load_catalog()  # completion builds no index
    return Shell(monkeypatch, capsys)


def test_commands_and_options(shell: Shell) -> None:
    assert {"debug", "describe"} <= set(shell.bash("bench", "de"))
    assert "--methods" in shell.bash("bench", "run", "mine.yaml", "--me")


def test_suites_are_installed_ones_and_files_are_left_to_the_shell(shell: Shell) -> None:
    assert "molecules" in shell.bash("bench", "run", "m")
    assert shell.bash("bench", "plan", "suites/deep/") == []
    assert "paper/table1" in shell.bash("bench", "validate", "paper/")


def test_components(shell: Shell) -> None:
    assert {"gin", "gil"} <= set(shell.bash("bench", "describe", "gi"))
    assert "baseline/gil" in shell.bash("bench", "describe", "baseline/g")
    assert set(shell.bash("bench", "data", "describe", "sp")) >= {"spmotif"}
    assert "gil" not in shell.bash("bench", "data", "describe", "g")


def test_runs_the_latest_first(shell: Shell, tmp_path: Path) -> None:
    for name in ("20260101-000000-toy-aaaa", "20260102-000000-toy-bbbb"):
        (tmp_path / "store" / "runs" / name).mkdir(parents=True)
    assert shell.bash("bench", "report", "2026") == ["20260102-000000-toy-bbbb", "20260101-000000-toy-aaaa"]


def test_zsh_and_fish_get_words_with_their_explanations(shell: Shell) -> None:
    assert shell.fish("bench describe baseline/gi")["baseline/gil"].startswith("baseline: ")
    assert '"gil":' in shell.zsh("bench describe gi")


@pytest.mark.parametrize(
    "words",
    [
        ("report", "/no/such/folder/"),
        ("describe", "\0"),
        ("check", "~nobody/"),
    ],
)
def test_whatever_is_wrong_offers_nothing_and_says_nothing(shell: Shell, words: tuple[str, ...]) -> None:
    if "\0" not in words[-1]:
        assert shell.bash("bench", *words) == []
    assert completion.complete_runs(None, words[-1]) == []  # type: ignore[arg-type]
