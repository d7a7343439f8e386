"""Where in its author's file a problem of a component is: ``mine.py:14``."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from harness.component import Component

_CORE = Path(__file__).resolve().parents[1]
_QUOTED = re.compile(r"'([\w.-]+)'")
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def place_of_problem(cls: type[Component], problem: str, methods: Sequence[str] = ()) -> str:
    """The line that a problem is about, as well as can be told; empty where the source cannot be read.

    It is where something that the problem quotes is written: a hyperparameter's declaration, the attribute that holds a
    module, a loss term's name. Else the first of the methods that the class defines, else the class.

    Args:
        cls: the component.
        problem: the text.
        methods: where such a problem usually is, the likeliest first.
    """
    sources = [found for base in cls.__mro__ if (found := _source(base)) is not None]
    words = _QUOTED.findall(problem)
    for find in (_declared, _assigned, _written):
        for word in words:
            for file, node in sources:
                if (line := find(node, word)) is not None:
                    return f"{file.name}:{line}"
    for name in methods:
        for file, node in sources:
            for function in _functions(node):
                if function.name == name:
                    return f"{file.name}:{function.lineno}"
    return place_of_class(cls)


def place_of_class(cls: type[Component]) -> str:
    """The line on which the class begins."""
    found = _source(cls)
    return "" if found is None else f"{found[0].name}:{found[1].lineno}"


def _source(cls: type) -> tuple[Path, ast.ClassDef] | None:
    """File and syntax tree of a class that is not the core's own."""
    try:
        file = Path(inspect.getfile(cls)).resolve()
        tree = _parsed(file)
    except (OSError, TypeError, SyntaxError, ValueError):
        return None
    if file.is_relative_to(_CORE):
        return None
    body, found = tree.body, None
    for part in cls.__qualname__.split("."):
        found = next((node for node in body if isinstance(node, ast.ClassDef) and node.name == part), None)
        if found is None:
            return None
        body = found.body
    return None if found is None else (file, found)


@lru_cache(maxsize=32)
def _parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_bytes())


def _functions(node: ast.ClassDef) -> Iterator[_Function]:
    yield from (item for item in node.body if isinstance(item, _Function))


def _declared(node: ast.ClassDef, word: str) -> int | None:
    """The line of ``word: … = …`` in the body of the class."""
    for item in node.body:
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name) and item.target.id == word:
            return item.lineno
    return None


def _assigned(node: ast.ClassDef, word: str) -> int | None:
    """The line of ``self.word = …``, of a module's name such as ``word.0.weight``."""
    first = word.partition(".")[0]
    for item in ast.walk(node):
        if isinstance(item, ast.Attribute) and isinstance(item.ctx, ast.Store) and item.attr == first:
            return item.lineno
    return None


def _written(node: ast.ClassDef, word: str) -> int | None:
    """The line on which a method writes ``"word"``, such as a loss term's name."""
    for function in _functions(node):
        for item in ast.walk(function):
            if isinstance(item, ast.Constant) and item.value == word:
                return item.lineno
    return None
