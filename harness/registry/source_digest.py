"""Digests of source code: the part of a component's code that enters its key. No torch.

A component's digest covers the syntax trees of its module, of the modules of its own distribution that this one
imports, directly or not, and of the core's files whose numerics its kind depends on. These parts cannot change a result
and do not enter: comments, docstrings, layout, names of local variables, the place of a core file, imports from the
core, the ``active``, ``help`` and ``search`` of a hyperparameter, and, unless a method of the code reads them, class
attributes for people and for the conformance kit and the addresses of a dataset's files. Imports by a computed name are
not seen.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

from harness.registry.core_files import HARNESS, core_files

_TEXT_ONLY = {"hparam": ("active", "help", "search")}
_TOLD_ONLY = (
    "equals_erm",
    "foreign_statistics",
    "listed",
    "names_code",
    "names_files",
    "probes",
    "unused",
)
"""Class attributes that no computation reads."""
_ASKS = ("locals", "vars", "eval", "exec", "dir")
"""Functions that may read a local variable by its name."""
_FETCHES_ONLY = ("downloads",)
"""Methods that name the origin of data; the content of the data is in the key."""
SILENT = frozenset((*_TOLD_ONLY, *_FETCHES_ONLY))


def core_digest(kind: str, core: Path = HARNESS) -> str:
    """Return the digest of the core files of a kind."""
    return _combined(("", digest) for digest in sorted(tree_digest(f, f.read_bytes()) for f in core_files(kind, core)))


@dataclass(frozen=True)
class Code:
    """A module's file and every file of its own distribution that it imports, directly or not, as read once.

    Attributes:
        file: the module's file.
        contents: the bytes of each file.
        names: the place of each file below the folder of its distribution, with ``/``.
    """

    file: Path
    contents: Mapping[Path, bytes]
    names: Mapping[Path, str]

    @property
    def digest(self) -> str:
        """The digest of the code.

        Neither the folder nor the module's own name matters, so that a plugin file can be moved.
        """
        silent = SILENT - {name for path, data in self.contents.items() for name in _read_names(path, data)}
        trees = {path: tree_digest(path, data, silent) for path, data in self.contents.items()}
        helpers = sorted((self.names[path], digest) for path, digest in trees.items() if path != self.file)
        return _combined([("", trees[self.file]), *helpers])

    @property
    def hashes(self) -> dict[str, str]:
        """SHA-256 of each file, by name."""
        return {self.names[path]: hashlib.sha256(data).hexdigest() for path, data in self.contents.items()}


def read_code(file: Path, roots: Mapping[str, Path], known: Mapping[Path, bytes] = MappingProxyType({})) -> Code:
    """Read a module and every module of its own distribution that it imports.

    Args:
        file: the module's source file, below one of the roots.
        roots: top-level names that count as its own -> the folder that holds them.
        known: files that were read before, which are not read again.

    Raises:
        SyntaxError: a file does not parse.
        OSError: a file cannot be read.
    """
    contents: dict[Path, bytes] = {}
    waiting = [file]
    while waiting:
        path = waiting.pop()
        if path not in contents:
            contents[path] = known[path] if path in known else path.read_bytes()
            for parts in _imports(path, contents[path], roots):
                waiting += _files(parts, roots)
    return Code(file, contents, {path: _relative(path, roots) for path in contents})


def component_digest(own: str, core: str) -> str:
    """Return a component's source digest, from :attr:`Code.digest` and :func:`core_digest`."""
    return _combined([("own", own), ("core", core)])


def _combined(named: Iterable[tuple[str, str]]) -> str:
    return hashlib.sha256("\n".join(f"{name}\t{digest}" for name, digest in named).encode()).hexdigest()


def _base(path: Path, roots: Mapping[str, Path]) -> Path | None:
    """Return the nearest of the roots' folders that holds a file."""
    return max((base for base in roots.values() if path.is_relative_to(base)), key=lambda b: len(b.parts), default=None)


def _relative(path: Path, roots: Mapping[str, Path]) -> str:
    """Return the path of a file below the folder of its distribution; the whole path if it is in none."""
    base = _base(path, roots)
    return path.as_posix() if base is None else path.relative_to(base).as_posix()


def _imports(file: Path, data: bytes, roots: Mapping[str, Path]) -> set[tuple[str, ...]]:
    """Return every module that a file may import, as absolute name parts; relative ones are resolved if possible."""
    base = _base(file, roots)
    package = () if base is None else file.relative_to(base).parent.parts
    found: set[tuple[str, ...]] = set()
    silent = SILENT - _read_names(file, data)
    waiting: list[ast.AST] = [parse(file, data)]
    while waiting:
        node = waiting.pop()
        found.update(_names(node, package))
        waiting += [item for item in ast.iter_child_nodes(node) if not _only_fetches(item, node, silent)]
    return found


def _only_fetches(item: object, parent: ast.AST, silent: frozenset[str]) -> bool:
    if not (isinstance(parent, ast.ClassDef) and isinstance(item, ast.FunctionDef)):
        return False
    return item.name in silent and item.name in _FETCHES_ONLY


@lru_cache(maxsize=512)
def _read_names(path: Path, data: bytes) -> frozenset[str]:
    """Return those of the silent names that a function reads, as an attribute or by a text.

    A dataset's ``files`` does not count: name and content of what it returns are in the key.
    """
    functions = [node for node in ast.walk(parse(path, data)) if isinstance(node, (ast.FunctionDef, ast.Lambda))]
    nodes = [node for function in functions if getattr(function, "name", "") != "files" for node in ast.walk(function)]
    read = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    return SILENT & (read | {node.value for node in nodes if isinstance(node, ast.Constant)})


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
    """Yield the module's file, and the ``__init__`` files on the way to it; nothing for others' modules."""
    base = roots.get(parts[0]) if parts else None
    if base is None:
        return
    for depth in range(1, len(parts) + 1):
        folder = base.joinpath(*parts[:depth])
        for candidate in (folder / "__init__.py", folder.with_name(f"{folder.name}.py")):
            if candidate.is_file():
                yield candidate


@lru_cache(maxsize=512)
def parse(path: Path, data: bytes) -> ast.Module:
    """Return the syntax tree of a file's content; do not change it, it is shared.

    Raises:
        SyntaxError: it does not parse.
    """
    return ast.parse(data, filename=str(path))


@lru_cache(maxsize=512)
def tree_digest(path: Path, data: bytes, silent: frozenset[str] = SILENT) -> str:
    """Return the digest of a file's syntax tree without the parts that cannot change a result.

    Args:
        silent: class attributes and methods that do not enter.

    Raises:
        SyntaxError: it does not parse.
    """
    tokens: list[str] = []
    _tokens(parse(path, data), tokens, silent)
    return hashlib.sha256("\0".join(tokens).encode("utf-8", "backslashreplace")).hexdigest()


def _tokens(
    node: ast.AST, tokens: list[str], silent: frozenset[str], local: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Append a tree as text; empty fields are left out: later Pythons add fields that are empty in older code.

    Args:
        local: name -> what stands for it, of the variables of the function that the node is in.
    """
    tokens.append(f"({type(node).__name__}")
    if isinstance(node, ast.FunctionDef) and not local:
        local = _local_variables(node)
    if isinstance(node, ast.Constant):
        tokens.append(f"{type(node.value).__name__}={node.value!r}")
    elif isinstance(node, ast.Name):
        tokens += [local.get(node.id, node.id), type(node.ctx).__name__]
    else:
        for name, value in ast.iter_fields(node):
            items = value if isinstance(value, list) else [value]
            shown = [item for item in items if item is not None and not _silent(item, node, silent)]
            tokens += [name] if shown else []
            for item in shown:
                if isinstance(item, ast.AST):
                    _tokens(item, tokens, silent, local)
                else:
                    tokens.append(repr(item))
    tokens.append(")")


def _local_variables(function: ast.FunctionDef) -> dict[str, str]:
    """Number the variables that a function assigns, by first use.

    A name that stands for something else too, in the function or in one within it, keeps its name; so do all where code
    could ask for names, or where a class within the function makes them attributes.
    """
    nodes = list(ast.walk(function))
    if any(isinstance(node, ast.ClassDef) or (isinstance(node, ast.Name) and node.id in _ASKS) for node in nodes):
        return {}
    names = [node for node in nodes if isinstance(node, ast.Name)]
    assigned = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    for node in nodes:
        if not isinstance(node, (ast.Name, ast.Attribute, ast.Constant)):
            fields = (value for _, value in ast.iter_fields(node))
            texts = (item for value in fields for item in (value if isinstance(value, list) else [value]))
            assigned -= {text for text in texts if isinstance(text, str)}
    ordered = dict.fromkeys(node.id for node in names if node.id in assigned)
    return {name: f"local {number}" for number, name in enumerate(ordered)}


def _silent(item: object, parent: ast.AST, silent: frozenset[str]) -> bool:
    """Return True for a part of a tree that does nothing: a docstring, another bare string, ``pass`` …"""
    if isinstance(item, ast.keyword) and isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name):
        return item.arg in _TEXT_ONLY.get(parent.func.id, ())
    if isinstance(item, ast.Assign) and isinstance(parent, ast.ClassDef):
        return all(isinstance(target, ast.Name) and target.id in silent for target in item.targets)
    if isinstance(item, ast.ImportFrom):
        of_core = not item.level and (item.module or "").split(".")[0] in ("harness", "__future__")
        return of_core and not any(alias.asname for alias in item.names)
    if isinstance(item, ast.Expr):
        return isinstance(item.value, ast.Constant) and isinstance(item.value.value, str)
    return isinstance(item, ast.Pass) or _only_fetches(item, parent, silent)
