"""The names that a new component bears: in suites, as a module, as a class, and for people. No torch."""

from __future__ import annotations

import ast
import keyword
import re
from dataclasses import dataclass
from pathlib import Path
from unicodedata import normalize

import yaml

from harness.errors import UserError
from harness.registry.catalog import Catalog
from harness.registry.importing import find_spec

LONGEST = 40
"""Characters of a name: lines that hold it stay short enough for every formatter."""
_KEBAB = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


@dataclass(frozen=True)
class Names:
    """One component's names.

    Attributes:
        kind: its kind.
        name: in suites, ``my-method``.
    """

    kind: str
    name: str

    @property
    def module(self) -> str:
        """``my_method``."""
        return self.name.replace("-", "_")

    @property
    def cls(self) -> str:
        """``MyMethod``."""
        return "".join(part.capitalize() for part in self.name.split("-"))

    @property
    def title(self) -> str:
        """``My method``, the label of its row."""
        return self.name.replace("-", " ").capitalize()

    @property
    def words(self) -> dict[str, str]:
        """What stands in a template -> what takes its place."""
        return {
            "new-component": self.name,
            "new_component": self.module,
            "NewComponent": self.cls,
            "New component": self.title,
            "new component": self.name.replace("-", " "),
            "component-kind": self.kind,
        }


def checked(kind: str, name: str, template: str, catalog: Catalog) -> Names:
    """The names of a new component.

    Args:
        template: the file that it will be made of, whose own names it must not hide.
        catalog: the components that are there.

    Raises:
        UserError: the name is no identifier in kebab case, cannot be a module's or a class's, or is taken.
    """
    names = Names(kind, name)
    if not _KEBAB.fullmatch(name) or len(name) > LONGEST:
        hint = _kebab(name)
        raise UserError(
            f"'{name}' is not a name for a component: lower-case letters, digits and single dashes, a letter first, "
            f"at most {LONGEST} characters" + (f" (did you mean '{hint}'?)" if hint and hint != name else "")
        )
    taken = catalog.find(kind, name)
    if taken is not None:
        raise UserError(
            f"the {kind} '{name}' is there already ({taken.file}); choose another name, such as 'my-{name}'"
        )
    reason = _unusable(names, template)
    if reason:
        raise UserError(f"'{name}' {reason}; choose another name, such as 'my-{name}'")
    return names


def _kebab(name: str) -> str:
    """The nearest name in kebab case, or nothing; of letters with accents, those without."""
    name = normalize("NFKD", name).encode("ascii", "ignore").decode()
    parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)
    joined = "-".join(part.lower() for part in parts)[:LONGEST].rstrip("-").lstrip("-0123456789")
    return joined if _KEBAB.fullmatch(joined) else ""


def _unusable(names: Names, template: str) -> str:
    """Why Python or YAML would read a name as something else, or nothing."""
    if keyword.iskeyword(names.module) or keyword.iskeyword(names.cls):
        return "is a word of Python's own"
    spec = find_spec(names.module)
    if spec is not None and Path(spec.origin or "").resolve().parent != Path.cwd():  # a file here is told of by name
        return f"makes the file {names.module}.py, whose name another Python module has"
    if names.cls in _defined(template):
        return f"makes the class {names.cls}, whose name the file needs for something else"
    if any(yaml.safe_load(text) != text for text in (names.name, names.title)):
        return "means something else in YAML"
    return ""


def _defined(code: str) -> set[str]:
    """Names that a module imports, assigns to or defines."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            found |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        elif isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
    return found - {"NewComponent"}
