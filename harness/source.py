"""Digests of source code: what of a component's code enters its key, and which files that is. No torch."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

HARNESS = Path(__file__).resolve().parent
_ALL_ROOMS = (
    "graphs",
    "nn",
    "training",
    "randomness.py",
    "stages/encode.py",
    "stages/quantify.py",
    "stages/annotate.py",
    "stages/train.py",
    "stages/upstream.py",
    "stages/reading.py",
)
_ROOMS = {"dataset": ("graphs/packed.py", "graphs/batch.py", "graphs/checks.py", "stages/prepare.py")}


def room_files(kind: str) -> list[Path]:
    """The core's files whose numerics a component of this kind depends on."""
    files: list[Path] = []
    for name in _ROOMS.get(kind, _ALL_ROOMS):
        path = HARNESS / name
        files += sorted(path.rglob("*.py")) if path.is_dir() else [path]
    return files


def component_digest(kind: str, file: Path, base: Path) -> str:
    """Digest of the syntax trees of a component's module, of what it imports from its own distribution, and of the
    core's rooms that its kind depends on.

    Args:
        file: the module's source file.
        base: the folder that holds the distribution's top-level package, or a single plugin file.
    """
    own = [(path.relative_to(base).as_posix(), syntax_digest(path)) for path in sorted(closure(file, base))]
    rooms = [(path.relative_to(HARNESS).as_posix(), syntax_digest(path)) for path in room_files(kind)]
    return hashlib.sha256(repr((own, rooms)).encode()).hexdigest()


def syntax_digest(path: Path) -> str:
    """Digest of a file's syntax tree without comments, docstrings and layout."""
    return _syntax_digest(path, path.stat().st_mtime_ns, path.stat().st_size)


@cache
def _syntax_digest(path: Path, _mtime: int, _size: int) -> str:
    tree = ast.parse(path.read_bytes(), filename=str(path))
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            _drop_docstring(node)
    return hashlib.sha256(ast.dump(tree, include_attributes=False).encode()).hexdigest()


def _drop_docstring(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    """Remove a docstring, and the bare strings that document attributes."""
    kept = [child for child in node.body if not _is_text(child)]
    node.body = kept or [ast.Pass()]


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def closure(file: Path, base: Path) -> set[Path]:
    """A module's file and every file of its own distribution that it imports, directly or not."""
    seen: set[Path] = set()
    waiting = [file]
    while waiting:
        path = waiting.pop()
        if path not in seen:
            seen.add(path)
            waiting += _imported(path, base)
    return seen


def _imported(path: Path, base: Path) -> Iterator[Path]:
    package = path.relative_to(base).parent.parts
    for node in ast.walk(ast.parse(path.read_bytes(), filename=str(path))):
        for parts in _names(node, package):
            yield from _files(parts, base)


def _names(node: ast.AST, package: tuple[str, ...]) -> Iterable[tuple[str, ...]]:
    if isinstance(node, ast.Import):
        return [tuple(alias.name.split(".")) for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        start = package[: len(package) - node.level + 1] if node.level else ()
        parent = (*start, *(node.module or "").split(".")) if node.module else start
        return [parent, *((*parent, alias.name) for alias in node.names)]
    return []


def _files(parts: tuple[str, ...], base: Path) -> Iterator[Path]:
    """The module's file, and the ``__init__`` files on the way to it."""
    for depth in range(1, len(parts) + 1):
        folder = base.joinpath(*parts[:depth])
        for candidate in (folder / "__init__.py", folder.with_suffix(".py")):
            if candidate.is_file():
                yield candidate
