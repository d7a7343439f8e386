"""The console blocks of the documentation, run: page by page, in order, in this process, on shrunken suites.

A page is a story: the files that its blocks are to be saved as lie in a folder, and its commands run there one after
the other. Their output is compared with the text block that follows them, numbers aside.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from docs_kit import MOLECULES, PAGES, ROOT, Block, Desk, command_line, commands, read

from harness.cli.main import main
from harness.results import record
from harness.suite import Overrides, find_suite
from harness.testing import pytest_plugin

NOT_RUN = {
    "make": "installs everything; that its targets are there is tested beside",
    "source": "of the shell",
    "python": "benchmarks, which take minutes on a machine of their own",
    "pytest": "the kit's cases; the kit is run on every plugin of the pages beside",
    "bench check": "starts a process for each component; the kit is run on every plugin of the pages beside",
    "bench debug": "takes the id of a cell; has tests of its own",
    "bench profile": "takes the id of a cell; has tests of its own",
}
"""Commands that are only checked for the options and arguments that they are given, and why."""
NEEDS_FILES = ("bench data fetch", "bench data path", "bench data verify", "bench data describe drugood")
"""They end with exit code 2 or 1 where no data are, and tell what to put where."""
STAND_IN = """\
bench: 1
name: stand-in
seeds: [1, 2]
model: {hidden: 8, layers: 2}
train: {epochs: 1}
datasets:
  Two-piece: {use: two-piece, invariant: 0.7, spurious: 0.9, num_per_class: [8, 4, 4]}
methods:
  ERM: {baseline: erm}
  EQuAD:
    encoder: {use: mvgrl, layers: 2, hidden: 8, snapshots: [1]}
    quantifier: {use: svm, C: [1.0]}
    decorrelator: reweighted-erm
report: {reference: ERM}
"""
"""A run for the commands that look at a run which the page has not made."""
SMALL = {
    r"epochs: \d+": "epochs: 1",
    r"num_per_class: \[[^]]*\]": "num_per_class: [8, 4, 4]",
    r"snapshots: \[[^]]*\]": "snapshots: [1, 2]",
}
SAID = [page for page in PAGES if any(block.language == "console" for block in read(page))]


class Story:
    """A page's folder, and its commands run in it."""

    def __init__(self, page: Path, folder: Path, desk: Desk) -> None:
        self.folder, self.desk = folder, desk
        self.made: set[str] = set()
        (folder / "mine.csv").write_text(MOLECULES, encoding="utf-8")
        for block in read(page):
            name = block.saved_as
            if name and block.language != "csv":
                (folder / name).write_text(shrunk(block.text), encoding="utf-8")

    def tell(self, line: str) -> str:
        """Run a command line; gives what it printed."""
        words = shlex.split(line)
        understood(words)
        name = command_name(words)
        if name in NOT_RUN or words[0] in NOT_RUN:
            return ""
        if name == "bench run":
            return self._run(words)
        if name == "bench compare":
            words = self._between_runs_that_are_there(words)
        looks = ("bench report", "bench export", "bench analyse", "bench compare-to-record")
        if name in looks and Path(words[2]).stem not in self.made:
            words[2] = "stand-in"
        if name == "bench data fetch" and "--offline" not in words:
            words.append("--offline")
        codes = (0, 1, 2) if line.startswith(NEEDS_FILES) else (0,)
        return called(words[1:], codes)

    def _run(self, words: list[str]) -> str:
        """Run a suite of the page; of an installed or recorded one only see that it is valid with these options."""
        if (suite := self.folder / words[2]).is_file():
            suite.write_text(shrunk(suite.read_text(encoding="utf-8")), encoding="utf-8")  # one that a command made
            told = called([*words[1:], "--engine", "inline"], (0,))
            self.made.add(re.findall(r"^name: (\S+)$", (self.folder / words[2]).read_text(), re.MULTILINE)[0])
            return told
        given = parse(words[1:])
        path = find_suite(words[2] if not (ROOT / words[2]).is_file() else ROOT / words[2])
        if path.name not in ("molecules.yaml", "table2.yaml"):  # need files
            asked = {name: tuple(given.get(name) or ()) for name in ("sets", "datasets", "methods")}
            assert self.desk.load(path, Overrides(given.get("seeds"), given.get("epochs"), **asked)).rows
        return ""

    def _between_runs_that_are_there(self, words: list[str]) -> list[str]:
        store = self.desk.folder / "console"
        first, second = sorted(path.name for path in (store / "runs").glob("*-stand-in-*"))
        words = [*words[:2], first, second, *words[4:]]
        if "--second-store" in words:
            words[words.index("--second-store") + 1] = str(store)
        return words


def shrunk(text: str) -> str:
    """A suite that takes a second."""
    for pattern, small in SMALL.items():
        text = re.sub(pattern, small, text)
    return text


def command_name(words: list[str]) -> str:
    """``bench data fetch`` of a command line."""
    command, name = command_line(), [words[0]]
    for word in words[1:]:
        if word not in getattr(command, "commands", {}):
            break
        command = command.commands[word]
        name.append(word)
    return " ".join(name)


def understood(words: list[str]) -> None:
    """Check what a command is given, also of one that is not run."""
    first, *rest = words
    if first == "make":
        targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
        assert rest
        assert set(rest) <= set(targets)
    elif first == "bench":
        parse(rest)
    elif first == "python":
        assert (ROOT / rest[0]).is_file()
    elif first == "pytest":
        assert rest[:3] == ["-p", pytest_plugin.__name__, pytest_plugin.OPTION]
        assert len(rest) == 4
    else:
        assert first in ("source", "export")


def parse(words: list[str]) -> dict[str, object]:
    """The parameters of a command line; raises for an unknown command, option or argument."""
    command = command_line()
    words = [word for word in words if word not in ("--debug", "--no-plugins")]  # allowed anywhere on the line
    while hasattr(command, "commands"):
        assert words[0] in command.commands, f"no command '{words[0]}'"
        command, words = command.commands[words[0]], words[1:]
    return dict(command.make_context(command.name, list(words)).params)


def called(words: list[str], codes: tuple[int, ...]) -> str:
    """What a command prints, after checking its exit code."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        pytest.raises(SystemExit) as ended,
    ):
        main(words)
    told, complained = (_text(stream) for stream in (out, err))
    assert int(ended.value.code or 0) in codes, f"bench {shlex.join(words)}\n{told}{complained}"
    return told


def _text(stream: io.TextIOWrapper) -> str:
    stream.seek(0)
    return stream.read()


def skeleton(text: str) -> list[str]:
    """Lines without what differs from run to run: numbers, marks of the best, widths of columns."""
    text = re.sub(r"\d{8}-\d{6}-[\w-]+", "RUN", text)
    text = re.sub(r"[-+−]?\d+(\.\d+)?", "N", text)
    lines = (re.sub(r"-{2,}", "-", re.sub(r" [*+](?= |$)", "", line)) for line in text.splitlines())
    return [" ".join(line.split()) for line in lines if line.strip()]


@pytest.fixture(scope="module")
def surroundings(desk: Desk) -> Iterator[None]:
    """The environment of the commands, with two runs that every page may look at."""
    with pytest.MonkeyPatch.context() as patch:
        data = desk.folder / "no-data"
        data.mkdir()
        patch.setenv("BENCH_STORE", str(desk.folder / "console"))
        patch.setenv("BENCH_DATA", str(data))
        suite = desk.folder / "stand-in.yaml"
        suite.write_text(STAND_IN, encoding="utf-8")
        for _ in range(2):
            called(["run", str(suite), "--engine", "inline"], (0,))
        small = [one for one in record.load_record() if one.results.suite == "recorded-small"]
        entries = [(one, entry) for one in small for entry in one.results.entries]
        patch.setattr(record, "recorded_entries", lambda _: entries)  # of other data than shrunken suites have
        patch.setattr(record, "not_comparable", lambda *_: [])
        yield


@pytest.mark.usefixtures("surroundings")
@pytest.mark.parametrize("page", SAID, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_commands_of_a_page_do_what_it_says(
    page: Path, desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    story, told = Story(page, tmp_path, desk), ""
    monkeypatch.chdir(tmp_path)
    end = ""
    for block in read(page):
        if block.language == "console":
            told = "".join(story.tell(line) for line in commands(block))
            end = block.text
        elif block.language == "text" and end and follows(block):
            missing = [line for line in skeleton(block.text) if line not in skeleton(told)]
            assert not missing, f"{block.name} shows what the commands above it did not print, {missing}:\n{told}"


def test_every_suite_that_a_page_saves_is_run_there() -> None:
    for page in PAGES:
        named = {block.saved_as for block in read(page) if block.language == "yaml" and block.saved_as}
        saved = {name for name in named if not name.endswith(".deviations.yaml")}
        lines = [line for block in read(page) if block.language == "console" for line in commands(block)]
        saved -= set(re.findall(r"--cluster (\S+)", page.read_text(encoding="utf-8")))  # profiles, not suites
        assert {words[2] for words in map(str.split, lines) if words[:2] == ["bench", "run"]} >= saved, page


def follows(block: Block) -> bool:
    """Whether nothing stands between a block and the one before it."""
    return not block.before.strip()


def test_every_reason_is_needed() -> None:
    lines = [line for page in SAID for block in read(page) if block.language == "console" for line in commands(block)]
    used = {command_name(shlex.split(line)) for line in lines}
    assert set(NOT_RUN) <= used
    assert not [start for start in NEEDS_FILES if not any(line.startswith(start) for line in lines)]
