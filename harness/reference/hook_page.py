"""The hooks as a page: each hook specification with its exact signature."""

from __future__ import annotations

import ast

from harness.reference.api import section
from harness.reference.markdown import docstring
from harness.reference.syntax import Definition, Function, function_signature, functions

MODULE = "harness.hooks"


def hooks() -> list[Definition]:
    """The hook specifications, in the order of their file."""
    return [each for each in functions(MODULE) if _is_specification(each)]


def _is_specification(found: Definition) -> bool:
    assert isinstance(found.node, Function)
    return any(ast.unparse(mark).partition("(")[0] == "hookspec" for mark in found.node.decorator_list)


def page() -> str:
    """The page of all hooks."""
    parts = [
        "# Hooks",
        "A plugin implements hooks with the decorator `hookimpl` of `harness`. These are all there are: a function of "
        "another name under the decorator is refused, with the nearest name. [Writing components](../plugins.md) has a "
        "complete file for each kind of component.",
    ]
    for hook in hooks():
        assert isinstance(hook.node, Function)
        parts += [f"## {hook.name}", f"```python\n{function_signature(hook.node)}\n```", docstring(hook.doc)]
    parts.append(section(MODULE, "Register", {}))
    return "\n\n".join(parts) + "\n"
