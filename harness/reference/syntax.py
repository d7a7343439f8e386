"""Reading the source of the core without importing it: definitions, signatures, docstrings."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

CORE = Path(__file__).resolve().parents[1]
WIDTH = 96
_WORDS = {"low": "at least", "high": "at most", "choices": "one of", "search": "tried", "active": "matters where"}
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Definition:
    """One name of a module: where it is defined, its syntax tree, and its docstring (empty for none)."""

    module: str
    name: str
    node: ast.stmt
    doc: str


@dataclass(frozen=True)
class Member:
    """One public member of a class.

    Attributes:
        name: of the member.
        sort: ``method``, ``property``, ``attribute`` or ``hyperparameter``.
        doc: the docstring, the text below an attribute, or the help of a hyperparameter; empty for none.
        signature: of a method.
        type: of anything else; empty where it is not annotated.
        value: what an attribute holds by default, as it is written; empty for nothing.
    """

    name: str
    sort: str
    doc: str
    signature: str = ""
    type: str = ""
    value: str = ""


@cache
def _tree(module: str) -> ast.Module:
    base = CORE.parent.joinpath(*module.split("."))
    path = base / "__init__.py" if base.is_dir() else base.with_suffix(".py")
    return ast.parse(path.read_text(encoding="utf-8"))


def find(module: str, name: str) -> Definition:
    """The definition of a name that a module of the core has or imports from another.

    Raises:
        LookupError: there is none.
    """
    body = _tree(module).body
    for node, after in zip(body, [*body[1:], None], strict=True):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and node.name == name:
            return Definition(module, name, node, ast.get_docstring(node) or "")
        if _assigned(node) == name:
            return Definition(module, name, node, _text(after))
    for each in ast.walk(_tree(module)):
        if isinstance(each, ast.ImportFrom) and (each.module or "").startswith("harness"):
            for alias in each.names:
                if (alias.asname or alias.name) == name:
                    return find(str(each.module), alias.name)
    raise LookupError(f"{module} has no '{name}'")


def functions(module: str) -> list[Definition]:
    """The functions of a module at its top, in the order of the file."""
    found = [node for node in _tree(module).body if isinstance(node, Function)]
    return [Definition(module, node.name, node, ast.get_docstring(node) or "") for node in found]


def _assigned(node: ast.stmt) -> str:
    """The name that a statement assigns to, or nothing."""
    if isinstance(node, ast.Assign):
        target = node.targets[0]
    elif isinstance(node, ast.AnnAssign):
        target = node.target
    else:
        return ""
    return target.id if isinstance(target, ast.Name) else ""


def _text(node: ast.stmt | None) -> str:
    """The text of a bare string, or nothing."""
    value = node.value if isinstance(node, ast.Expr) else None
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else ""


def signature(name: str, parts: Sequence[str], returns: str = "", width: int = WIDTH) -> str:
    """``name(parts) -> returns`` in one line where it fits, else a line for each part."""
    end = f" -> {returns}" if returns else ""
    line = f"{name}({', '.join(parts)}){end}"
    if len(line) <= width or not parts:
        return line
    return "\n".join([f"{name}(", *(f"    {part}," for part in parts), f"){end}"])


def function_signature(node: Function, *, bound: bool = False) -> str:
    """The signature of a function, without ``self`` or ``cls`` where it is bound."""
    parts = list(_parameters(node.args))
    if bound and parts and parts[0] in ("self", "cls"):
        parts = [part for part in parts[1:] if parts[1:2] != ["/"] or part != "/"]
    return signature(node.name, parts, ast.unparse(node.returns) if node.returns else "")


def _parameters(given: ast.arguments) -> Iterator[str]:
    ordered = [*given.posonlyargs, *given.args]
    defaults = [None] * (len(ordered) - len(given.defaults)) + list(given.defaults)
    for position, (each, default) in enumerate(zip(ordered, defaults, strict=True), 1):
        yield _parameter(each, default)
        if position == len(given.posonlyargs):
            yield "/"
    if given.vararg:
        yield f"*{_parameter(given.vararg, None)}"
    elif given.kwonlyargs:
        yield "*"
    for each, default in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        yield _parameter(each, default)
    if given.kwarg:
        yield f"**{_parameter(given.kwarg, None)}"


def _parameter(each: ast.arg, default: ast.expr | None) -> str:
    text = f"{each.arg}: {ast.unparse(each.annotation)}" if each.annotation else each.arg
    equals = " = " if each.annotation else "="
    return f"{text}{equals}{ast.unparse(default)}" if default is not None else text


def class_signature(node: ast.ClassDef) -> str:
    """How an object is made: the fields of a dataclass, the parameters of ``__init__``, or the name alone."""
    if any("dataclass" in ast.unparse(each) for each in node.decorator_list):
        fields = [item for item in node.body if isinstance(item, ast.AnnAssign) and _assigned(item)[0] != "_"]
        return signature(node.name, [_field(item) for item in fields if "ClassVar" not in ast.unparse(item.annotation)])
    for item in node.body:
        if isinstance(item, ast.FunctionDef) and item.name == "__init__":
            parts = list(_parameters(item.args))[1:]
            return signature(node.name, parts)
    return node.name


def _field(item: ast.AnnAssign) -> str:
    text = f"{ast.unparse(item.target)}: {ast.unparse(item.annotation)}"
    if item.value is None:
        return text
    made = ast.unparse(item.value)
    return f"{text} = {'…' if made.startswith('field(') else made}"


def members(found: Definition, known: frozenset[str]) -> list[Member]:
    """The public members of a class and of those of its bases in the core that are not ``known`` by themselves."""
    assert isinstance(found.node, ast.ClassDef)
    own = list(_own_members(found.node))
    seen = {member.name for member in own}
    for base in bases(found):
        if base.name not in known:
            inherited = [member for member in members(base, known) if member.name not in seen]
            own += inherited
            seen |= {member.name for member in inherited}
    return own


def bases(found: Definition) -> list[Definition]:
    """The bases of a class that the core defines, in order."""
    assert isinstance(found.node, ast.ClassDef)
    made = []
    for base in found.node.bases:
        try:
            made.append(find(found.module, ast.unparse(base)))
        except LookupError:
            continue
    return [base for base in made if isinstance(base.node, ast.ClassDef)]


def _own_members(node: ast.ClassDef) -> Iterator[Member]:
    made = any("dataclass" in ast.unparse(each) for each in node.decorator_list)
    for item, after in zip(node.body, [*node.body[1:], None], strict=True):
        if isinstance(item, ast.FunctionDef) and (not item.name.startswith("_") or item.name == "__call__"):
            yield from _function(item)
        elif isinstance(item, ast.AnnAssign) and not _assigned(item).startswith("_"):
            if isinstance(item.value, ast.Call) and ast.unparse(item.value.func) == "hparam":
                yield _hyperparameter(item, item.value)
            elif not made:
                value = ast.unparse(item.value) if item.value else ""
                yield Member(_assigned(item), "attribute", _text(after), type=_type(item.annotation), value=value)


def _function(item: ast.FunctionDef) -> Iterator[Member]:
    marks, doc = {ast.unparse(each) for each in item.decorator_list}, ast.get_docstring(item) or ""
    if "property" in marks:
        yield Member(item.name, "property", doc, type=_type(item.returns))
    elif not any(mark.endswith(".setter") for mark in marks):
        yield Member(item.name, "method", doc, function_signature(item, bound="staticmethod" not in marks))


def _hyperparameter(item: ast.AnnAssign, call: ast.Call) -> Member:
    given = {each.arg: each.value for each in call.keywords}
    told = ast.literal_eval(given.pop("help")) if "help" in given else ""
    more = "; ".join(f"{_WORDS.get(str(name), name)} ``{ast.unparse(value)}``" for name, value in given.items())
    doc = f"{told} ({more})" if more else told
    return Member(_assigned(item), "hyperparameter", doc, type=_type(item.annotation), value=ast.unparse(call.args[0]))


def _type(annotation: ast.expr | None) -> str:
    """An annotation as it is written, without ``ClassVar``."""
    text = ast.unparse(annotation) if annotation else ""
    return text.removeprefix("ClassVar[").removesuffix("]") if text.startswith("ClassVar[") else text
