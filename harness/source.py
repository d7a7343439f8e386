"""Digests of source code: what of a component's code enters its key, and which files that is. No torch.

A component's digest covers the syntax trees of its module, of the modules of its own distribution that this one
imports, directly or not, and of the core's rooms whose numerics its kind depends on. Comments, docstrings, layout,
the ``help`` and ``search`` of a hyperparameter, and what a class says for people and for the conformance kit cannot
change a result and do not enter, nor does where a dataset's files come from. Imports by a computed name are not seen.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path

HARNESS = Path(__file__).resolve().parent
_ALL_ROOMS = (
    "graphs",
    "nn",
    "training",
    "randomness.py",
    "stats/means.py",
    "stages/encode.py",
    "stages/quantify.py",
    "stages/annotate.py",
    "stages/train.py",
    "stages/upstream.py",
    "stages/reading.py",
)
_ROOMS = {
    "dataset": ("graphs/packed.py", "graphs/batch.py", "graphs/checks.py", "stages/prepare.py"),
    "analysis": (*_ALL_ROOMS, "stages/analyse.py", "stages/cell.py"),
}
_TEXT_ONLY = {"hparam": ("help", "search")}
_TOLD_ONLY = (
    "deviations",
    "equals_erm",
    "foreign_statistics",
    "listed",
    "names_code",
    "names_files",
    "probes",
    "untrained",
    "unused",
)
"""Class attributes that nothing that computes reads."""
_FETCHES_ONLY = ("downloads",)
"""Methods that say where data come from; the data's own content is in the key."""
_TOLD_NAMES = ("Download", "deviation")


def room_files(kind: str, core: Path = HARNESS) -> list[Path]:
    """The core's files whose numerics a component of this kind depends on, in order."""
    files: list[Path] = []
    for name in _ROOMS.get(kind, _ALL_ROOMS):
        path = core / name
        files += sorted(path.rglob("*.py")) if path.is_dir() else [path] if path.is_file() else []
    return files


def rooms_digest(kind: str, core: Path = HARNESS) -> str:
    """Digest of the rooms of a kind."""
    return _combined((path.relative_to(core).as_posix(), tree_digest(path)) for path in room_files(kind, core))


def own_digest(file: Path, roots: Mapping[str, Path]) -> str:
    """Digest of a module and of what it imports from its own distribution.

    Neither the folder nor the module's own name matters, so that a plugin file can be moved.

    Args:
        file: the module's source file.
        roots: see :func:`closure`.

    Raises:
        SyntaxError: a file does not parse.
    """
    helpers = closure(file, roots) - {file}
    named = sorted((_relative(path, roots), tree_digest(path)) for path in helpers)
    return _combined([("", tree_digest(file)), *named])


def component_digest(own: str, rooms: str) -> str:
    """A component's source digest, from :func:`own_digest` and :func:`rooms_digest`."""
    return _combined([("own", own), ("rooms", rooms)])


def _combined(named: Iterable[tuple[str, str]]) -> str:
    return hashlib.sha256("\n".join(f"{name}\t{digest}" for name, digest in named).encode()).hexdigest()


def _relative(path: Path, roots: Mapping[str, Path]) -> str:
    base = next(base for base in roots.values() if path.is_relative_to(base))
    return path.relative_to(base).as_posix()


def closure(file: Path, roots: Mapping[str, Path]) -> set[Path]:
    """A module's file and every file of its own distribution that it imports, directly or not.

    Args:
        file: the module's source file, below one of the roots.
        roots: top-level names that count as its own -> the folder that holds them.

    Raises:
        SyntaxError: a file does not parse.
        OSError: a file cannot be read.
    """
    seen: set[Path] = set()
    waiting = [file]
    while waiting:
        path = waiting.pop()
        if path not in seen:
            seen.add(path)
            for parts in imports(path, roots):
                waiting += _files(parts, roots)
    return seen


def imports(file: Path, roots: Mapping[str, Path]) -> set[tuple[str, ...]]:
    """Every module that a file may import, as absolute name parts; relative ones are resolved where possible."""
    package = next(
        (file.relative_to(base).parent.parts for base in roots.values() if file.is_relative_to(base)), tuple[str, ...]()
    )
    return {parts for node in _computing(parse(file)) for parts in _names(node, package)}


def _computing(tree: ast.AST) -> Iterator[ast.AST]:
    """Every node of a tree except those within a method that only says where data come from."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += [item for item in ast.iter_child_nodes(node) if not _only_fetches(item, node)]


def _only_fetches(item: object, parent: ast.AST) -> bool:
    return isinstance(parent, ast.ClassDef) and isinstance(item, ast.FunctionDef) and item.name in _FETCHES_ONLY


def absolute_names(file: Path) -> set[str]:
    """The top-level names that a file imports other than relatively."""
    found: set[str] = set()
    for node in ast.walk(parse(file)):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            found.add(node.module.split(".")[0])
    return found


def _names(node: ast.AST, package: tuple[str, ...]) -> Iterable[tuple[str, ...]]:
    if isinstance(node, ast.Import):
        return [tuple(alias.name.split(".")) for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        start = package[: len(package) - node.level + 1] if node.level else ()
        parent = (*start, *node.module.split(".")) if node.module else start
        named = [parent, *((*parent, alias.name) for alias in node.names)]
        return [parts for parts in named if parts]  # `from . import x` beside a single file has no parent
    return []


def _files(parts: tuple[str, ...], roots: Mapping[str, Path]) -> Iterator[Path]:
    """The module's file, and the ``__init__`` files on the way to it; nothing for others' modules."""
    base = roots.get(parts[0]) if parts else None
    if base is None:
        return
    for depth in range(1, len(parts) + 1):
        folder = base.joinpath(*parts[:depth])
        for candidate in (folder / "__init__.py", folder.with_name(f"{folder.name}.py")):
            if candidate.is_file():
                yield candidate


def parse(path: Path) -> ast.Module:
    """The syntax tree of a file; do not change it, it is shared.

    Raises:
        SyntaxError: it does not parse.
    """
    return _parse(path, _mark(path))


def _mark(path: Path) -> tuple[int, ...]:
    stat = path.stat()
    return stat.st_mtime_ns, stat.st_ctime_ns, stat.st_size, stat.st_ino


@lru_cache(maxsize=512)
def _parse(path: Path, mark: tuple[int, ...]) -> ast.Module:
    del mark  # part of the cache's key alone
    return ast.parse(path.read_bytes(), filename=str(path))


def tree_digest(path: Path) -> str:
    """Digest of a file's syntax tree without what cannot change a result.

    Raises:
        SyntaxError: it does not parse.
    """
    return _tree_digest(path, _mark(path))


@lru_cache(maxsize=512)
def _tree_digest(path: Path, mark: tuple[int, ...]) -> str:
    tokens: list[str] = []
    _tokens(_parse(path, mark), tokens)
    return hashlib.sha256("\0".join(tokens).encode("utf-8", "backslashreplace")).hexdigest()


def _tokens(node: ast.AST, found: list[str]) -> None:
    """A tree as text. Empty fields are left out: later Pythons add fields that are empty in older code."""
    found.append(f"({type(node).__name__}")
    if isinstance(node, ast.Constant):
        found.append(f"{type(node.value).__name__}={node.value!r}")
    else:
        for name, value in ast.iter_fields(node):
            items = value if isinstance(value, list) else [value]
            shown = [item for item in items if item is not None and not _silent(item, node)]
            found += [name] if shown else []
            for item in shown:
                if isinstance(item, ast.AST):
                    _tokens(item, found)
                else:
                    found.append(repr(item))
    found.append(")")


def _silent(item: object, parent: ast.AST) -> bool:
    """Whether a part of a tree does nothing: a docstring, another bare string, ``pass``, what is only told."""
    if isinstance(item, ast.keyword) and isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name):
        return item.arg in _TEXT_ONLY.get(parent.func.id, ())
    if isinstance(item, ast.Assign) and isinstance(parent, ast.ClassDef):
        return all(isinstance(target, ast.Name) and target.id in _TOLD_ONLY for target in item.targets)
    if isinstance(item, ast.alias) and isinstance(parent, ast.ImportFrom):
        return parent.module == "harness" and item.name in _TOLD_NAMES
    if isinstance(item, ast.Expr):
        return isinstance(item.value, ast.Constant) and isinstance(item.value.value, str)
    return isinstance(item, ast.Pass) or _only_fetches(item, parent)
