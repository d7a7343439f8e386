"""The code that a suite brings, to be looked at before it runs. No torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.registry.discovery import file_source
from harness.registry.index import is_known
from harness.registry.source_digest import closure
from harness.run.named import code_files
from harness.store.keys import hash_file

DIGITS = 12
"""Of a file's SHA-256: enough to see that it changed."""


@dataclass(frozen=True)
class Code:
    """Code that a suite brings.

    Attributes:
        what: in words, such as ``plugin file``.
        place: the file, import path or cluster.
        digest: first digits of the file's SHA-256; empty where it is no file.
        beside: further files that it imports from its folder.
        known: whether it has been loaded before as it is now.
    """

    what: str
    place: str
    digest: str = ""
    beside: tuple[str, ...] = ()
    known: bool = False

    def __str__(self) -> str:
        digest = f"  sha256 {self.digest}" if self.digest else ""
        beside = f", with {', '.join(self.beside)}" if self.beside else ""
        return f"{self.what}: {self.place}{digest}{beside}" + ("" if self.known else "  (not run before)")


Tell = Callable[[Code], None]


def plugin_code(files: Sequence[Path]) -> Iterator[Code]:
    """What the plugin files of a suite are. Runs nothing of them."""
    for file in files:
        yield Code("plugin file", str(file), hash_file(file)[:DIGITS], tuple(_beside(file)), is_known(file))


def named_code(dataset: str, target: str) -> Code:
    """What a dataset names as ``module:NAME`` or ``file.py:NAME``. Runs nothing of it."""
    what, file = f"named by dataset '{dataset}'", Path(target.rpartition(":")[0])
    if file.suffix != ".py" or not file.is_file():
        return Code(what, target)
    others = [name for name in code_files(file) if name != file.name]
    return Code(what, target, hash_file(file)[:DIGITS], tuple(sorted(others)))


def _beside(file: Path) -> list[str]:
    source = file_source(file)
    try:
        own = closure(source.file, source.roots()) - {source.file}
    except (SyntaxError, OSError, ValueError):  # loading it will say so
        return []
    return sorted(path.relative_to(source.base).as_posix() for path in own if path.is_relative_to(source.base))
