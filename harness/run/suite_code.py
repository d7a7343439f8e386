"""Code that a suite brings as plugin files or that its datasets name: described, recorded, archived, never run."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from harness.errors import UserError
from harness.registry.catalog import Catalog
from harness.registry.discovery import file_source
from harness.registry.index import is_known
from harness.registry.source_digest import read_code
from harness.store import hash_file
from harness.suite.spec import Suite

DIGITS = 12
"""Of a file's SHA-256: enough to see that it changed."""


@dataclass(frozen=True)
class SuiteCode:
    """Code that a suite brings.

    Attributes:
        what: in words, such as ``plugin file``.
        place: the file, import path or cluster.
        digest: first digits of the file's SHA-256; empty where it is no file.
        beside: further files that it imports from its folder.
        known: True if it has been loaded before as it is now.
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


Tell = Callable[[SuiteCode], None]


def plugin_code(files: Sequence[Path]) -> Iterator[SuiteCode]:
    """Describe the plugin files of a suite."""
    for file in files:
        source = file_source(file)
        imported = [path for path in _imported(file, source.roots()) if source.base in path.parents]
        beside = sorted(path.relative_to(source.base).as_posix() for path in imported)
        yield SuiteCode("plugin file", str(file), hash_file(file)[:DIGITS], tuple(beside), is_known(file))


def named_code(dataset: str, target: str) -> SuiteCode:
    """Describe what a dataset names as ``module:NAME`` or ``file.py:NAME``."""
    what, file = f"named by dataset '{dataset}'", Path(target.rpartition(":")[0])
    if file.suffix != ".py" or not file.is_file():
        return SuiteCode(what, target)
    return SuiteCode(what, target, hash_file(file)[:DIGITS], tuple(sorted(_code_files(file).keys() - {file.name})))


def _imported(file: Path, roots: Mapping[str, Path]) -> set[Path]:
    """Return the files that a file of code imports; none where it cannot be parsed, which running it will say."""
    try:
        return read_code(file, roots).contents.keys() - {file}
    except (SyntaxError, OSError, ValueError):
        return set()


def _code_files(file: Path) -> dict[str, Path]:
    """Return a file of code that is no plugin, and what it imports from its folder, by their place in it."""
    folder = file.parent
    names = [*(path.stem for path in folder.glob("*.py")), *(path.name for path in folder.glob("*/"))]
    files = {file, *_imported(file, dict.fromkeys(names, folder))}
    return {path.relative_to(folder).as_posix(): path for path in files}


def named_files(suite: Suite, catalog: Catalog, digest: Callable[[Path], str]) -> list[dict[str, Any]]:
    """Describe each absolute path that a dataset names, for the record of a run.

    Returns:
        ``dataset``, ``hyperparameter`` and ``value``, ``code`` (True for code), and ``files``, name -> SHA-256: the
        file and, of code, what it imports from its folder; nothing of a folder.
    """
    named = []
    for dataset in suite.datasets:
        traits = catalog.get("dataset", dataset.component.name).traits
        code_names = traits.get("names_code", ())
        for name in (*code_names, *traits.get("names_files", ())):
            code, value = name in code_names, dataset.component.params.get(name)
            for text in value if isinstance(value, list) else [value or ""]:
                path = Path(text.rpartition(":")[0] if code else text)
                if not (path.is_absolute() and path.exists()):
                    continue
                files = _code_files(path) if code else {path.name: path} if path.is_file() else {}
                digests = {place: digest(file) for place, file in sorted(files.items())}
                where = {"dataset": dataset.label, "hyperparameter": name, "value": text}
                named.append({**where, "code": code, "files": digests})
    return named


def digests_from(folder: Path, named: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return the files that :func:`named_files` gave, seen from a folder -> SHA-256, as those of a suite are kept."""
    digests: dict[str, str] = {}
    for item in named:
        path = Path(item["value"].rpartition(":")[0] if item["code"] else item["value"])
        digests |= {os.path.relpath(path.parent / name, folder): digest for name, digest in item["files"].items()}
    return {name: digest for name, digest in digests.items() if name.isprintable()}


def archived(named: Iterable[Mapping[str, Any]], datasets: Mapping[str, dict[str, Any]]) -> dict[str, bytes]:
    """Make a suite's datasets name files by the archive's own folder. Returns the code among them, by place.

    Args:
        named: what :func:`named_files` gave of the run.
        datasets: the datasets of its suite, which are changed. Data files are named alone: they go beside the suite.

    Raises:
        UserError: a file of code is gone, or is not what it was.
    """
    files: dict[str, bytes] = {}
    for number, item in enumerate(named, start=1):
        old, new = item["value"], PurePath(item["value"]).name
        if item["code"]:
            folder, new = Path(old).parent, f"datasets/{number:02d}/{new}"
            for name, sha256 in item["files"].items():
                files[f"datasets/{number:02d}/{name}"] = _unchanged(folder / name, sha256)
        table, name = datasets[item["dataset"]], item["hyperparameter"]
        value = table[name]
        table[name] = [new if text == old else text for text in value] if isinstance(value, list) else new
    return files


def _unchanged(path: Path, sha256: str) -> bytes:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror or error}") from None
    if hashlib.sha256(data).hexdigest() != sha256:
        raise UserError(f"{path} has changed since the run; run the suite again and export that run")
    return data
