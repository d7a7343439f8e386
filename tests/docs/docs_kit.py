"""Reading the documentation: fenced blocks, the files they stand for, and the suites they make."""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from harness.cli import app
from harness.engine import EngineOptions
from harness.plan.datasets import Declarations
from harness.registry.catalog import Catalog
from harness.registry.index import load_catalog
from harness.results.rows import RunResults
from harness.run.execute import execute
from harness.run.session import Options, open_session
from harness.store import Store
from harness.suite import Overrides, load_suite
from harness.suite.spec import Suite

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])

_FENCE = re.compile(r"^(?P<indent> *)```(?P<language>\w*)\n(?P<body>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"`(\w+\.py)`")
_NAMED = re.compile(r"`([\w.-]+\.(?:py|yaml|csv))`")
_KEY = re.compile(r"^([a-z]+):", re.MULTILINE)
MOLECULES = "smiles,active,assay\n" + "".join(
    f"C1{'C' * (n % 12 + 1)}C1OC(=O){'C' * (n % 4 + 1)},{n // 12 % 2},A{n % 5}\n" for n in range(60)
)
"""The table that the pages call ``mine.csv``, of which they show a few lines."""
_FILLERS = {
    "datasets": "  Filler: {use: two-piece, num_per_class: [4, 2, 2]}",
    "methods": "  Filler: {baseline: erm}",
}


@dataclass(frozen=True)
class Block:
    """A fenced block: its page, first line, language, text, and the prose before it."""

    page: Path
    line: int
    language: str
    text: str
    before: str

    @property
    def name(self) -> str:
        """``docs/suites.md:12``."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def is_plugin(self) -> bool:
        """Whether it is a file that registers components."""
        return self.language == "python" and "def bench_register" in self.text

    @property
    def is_data(self) -> bool:
        """Whether it is a file of the user's that a dataset imports: the prose right before it begins so."""
        return self.language == "python" and self.before.strip().rpartition("\n\n")[2].startswith("A file `")

    @property
    def file(self) -> str:
        """The Python file that the prose right before it names."""
        return _FILE.findall(self.before)[-1]

    @property
    def saved_as(self) -> str:
        """The file that the paragraph right before it says to save it as; empty for none."""
        endings = {"python": ".py", "yaml": ".yaml", "csv": ".csv"}
        ending = endings.get(self.language, "?")
        named = [name for name in _NAMED.findall(self.before.strip().rpartition("\n\n")[2]) if name.endswith(ending)]
        return named[-1] if named else ""


def command_line() -> Any:
    """The whole command line, as one object of the library that parses it."""
    return typer.main.get_command(app)


def blocks(*languages: str) -> list[Block]:
    """All blocks of these languages, by page and line."""
    return [block for page in PAGES for block in read(page) if block.language in languages]


def read(page: Path) -> list[Block]:
    """All blocks of a page."""
    text, end, found = page.read_text(encoding="utf-8"), 0, []
    for match in _FENCE.finditer(text):
        indent = len(match["indent"])
        body = "".join(line[indent:] for line in match["body"].splitlines(keepends=True))
        line = text.count("\n", 0, match.start()) + 1
        found.append(Block(page, line, match["language"], body, text[end : match.start()]))
        end = match.end()
    return found


def commands(block: Block) -> list[str]:
    """The command lines of a console block, without their comments."""
    lines = (line.removeprefix("$ ").split(" #")[0].strip() for line in block.text.splitlines())
    return [line for line in lines if line]


def prose(page: Path) -> str:
    """A page without its blocks."""
    return _FENCE.sub("", page.read_text(encoding="utf-8"))


def as_suite(text: str) -> str:
    """A whole suite from a block that may show a part of one."""
    keys = _KEY.findall(text)
    head = "" if "bench" in keys else "bench: 1\n"
    rest = "".join(f"{section}:\n{row}\n" for section, row in _FILLERS.items() if section not in keys)
    return head + text + rest


class Desk:
    """A folder with every plugin file of the documentation, and ways to read and run suites beside them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        plugins = {folder / block.file: block.text for block in blocks("python") if block.is_plugin}
        others = {folder / block.file: block.text for block in blocks("python") if block.is_data}
        for path, text in {**plugins, **others}.items():
            path.write_text(text, encoding="utf-8")
        (folder / "mine.csv").write_text(MOLECULES, encoding="utf-8")
        recorded = (ROOT / "benchmarks" / "recorded").glob("*.py")
        self.catalog: Catalog = load_catalog([*plugins, *recorded])
        self.store = Store(folder / "store")
        self.facts = Declarations(self.catalog, folder, self.store)

    def write(self, text: str) -> Path:
        path = self.folder / "suite.yaml"
        path.write_text(as_suite(text), encoding="utf-8")
        return path

    def load(self, path: Path, overrides: Overrides | None = None) -> Suite:
        path = path.resolve()
        with contextlib.chdir(self.folder):  # a file that a dataset names is relative to the current folder
            return load_suite(path, self.catalog, self.facts.declare, overrides=overrides)

    def run(self, text: str, overrides: Overrides) -> RunResults:
        options = Options(store=self.store.root, data_dir=self.folder, overrides=overrides)
        session = open_session(str(self.write(text)), options)
        return execute(session, EngineOptions("inline"), lambda _: None).results
