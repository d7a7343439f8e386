"""The authors' API as pages: every name of ``harness.__all__`` with its signature, docstring and members."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

import harness
import harness.graphs
import harness.nn
from harness.reference.markdown import cell, code, docstring, escaped, table
from harness.reference.syntax import (
    Definition,
    Function,
    Member,
    bases,
    class_signature,
    find,
    function_signature,
    members,
)

_GROUPS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "registering": ("Registering and declaring", ("harness.hooks", "harness.hparams", "harness.component")),
    "bases": ("Base classes", ("harness.training.bases",)),
    "data": ("Datasets", ("harness.data",)),
    "analyses": ("Analyses and trackers", ("harness.analysis", "harness.tracker", "harness.stages.cell")),
    "graphs": ("Graphs and batches", ("harness.graphs", "harness.graphs.augment", "harness.graphs.diffusion")),
    "losses": ("Losses and environments", ("harness.nn.losses", "harness.nn.environments")),
    "networks": ("Networks", ("harness.nn.", "harness.training.optim")),
    "errors": (
        "Errors, files, locks",
        ("harness.errors", "harness.store.folders", "harness.store.keys", "harness.store.leases"),
    ),
}
_REST = ("more", "More")
_SHARED = {"bases": ("harness.component", "Component", "What every base class has. It is no base class of a plugin's.")}
"""A class that is no name of the API but whose members all of a group have."""
_INTERNAL = ("kind", "hparams", "reserved")
_SORTS = {"hyperparameter": "Hyperparameters", "attribute": "Attributes", "property": "Properties"}


def names() -> list[str]:
    """What plugins may import."""
    listed = {*harness.__all__, *harness.graphs.__all__, *harness.nn.__all__}
    return sorted(name for name in listed if not name.startswith("__"))


def home(name: str) -> str:
    """The module that a name is loaded from."""
    if name in harness._WHERE:
        return harness._WHERE[name]
    package = harness.nn if name in harness.nn.__all__ else harness.graphs
    module: str = getattr(package, name).__module__
    return module


def pages() -> dict[str, str]:
    """Address below ``reference/`` -> page: an index, and a page for each group of names."""
    groups = _grouped()
    links = {name: f"{slug}.md#{name}" for slug, group in groups.items() for name in group}
    links |= {name: f"{slug}.md#{name}" for slug, (_, name, _) in _SHARED.items()}
    made = {"api/index.md": _index(groups)}
    for slug, group in groups.items():
        here = {name: link.removeprefix(f"{slug}.md") for name, link in links.items()}
        sections = [section(home(name), name, here) for name in group]
        if slug in _SHARED:
            module, name, note = _SHARED[slug]
            sections.append(section(module, name, here, note))
        made[f"api/{slug}.md"] = "\n\n".join([f"# {_title(slug)}", *sections]) + "\n"
    return made


def _title(slug: str) -> str:
    return _GROUPS[slug][0] if slug in _GROUPS else _REST[1]


def _grouped() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name in names():
        found.setdefault(_group(home(name)), []).append(name)
    return {slug: found[slug] for slug in (*_GROUPS, _REST[0]) if slug in found}


def _group(module: str) -> str:
    for slug, (_, modules) in _GROUPS.items():
        if any(module == each or (each.endswith(".") and module.startswith(each)) for each in modules):
            return slug
    return _REST[0]


def _index(groups: Mapping[str, Sequence[str]]) -> str:
    parts = [
        "# The authors' API",
        "What a plugin imports is in `harness`, `harness.nn` and `harness.graphs`. [Writing components]"
        "(../../plugins.md) shows them at work.",
    ]
    for slug, group in groups.items():
        rows = [[f"[`{name}`]({slug}.md#{name})", escaped(_first(find(home(name), name).doc))] for name in group]
        parts += [f"## {_title(slug)}", table(["name", "what it is"], rows)]
    return "\n\n".join(parts) + "\n"


def _first(text: str) -> str:
    """The first line of a docstring, with references as code spans."""
    return docstring(text).partition("\n")[0]


def section(module: str, name: str, links: Mapping[str, str], note: str = "") -> str:
    """One name: signature, docstring, and for a class its members.

    Args:
        module: where it is.
        name: the name.
        links: address of each name of the API, from the page that the section is for.
        note: a sentence above the docstring.
    """
    found = find(module, name)
    parts = [f"## {name} {{ #{name} }}", _fenced(_shown(found)), note, docstring(found.doc, links)]
    if isinstance(found.node, ast.ClassDef):
        above = [base.name for base in bases(found) if base.name in links]
        if above:
            parts.append("Derives from " + ", ".join(f"[`{base}`]({links[base]})" for base in above) + ".")
        parts += _members(members(found, frozenset(links)), links)
    return "\n\n".join(part for part in parts if part)


def _shown(found: Definition) -> str:
    node = found.node
    if isinstance(node, ast.ClassDef):
        return f"class {class_signature(node)}"
    return function_signature(node) if isinstance(node, Function) else ast.unparse(node)


def _members(found: Sequence[Member], links: Mapping[str, str]) -> list[str]:
    made = []
    for sort, title in _SORTS.items():
        chosen = [member for member in found if member.sort == sort and member.name not in _INTERNAL]
        rows = [[code(each.name), cell(each.doc, links), code(each.type), code(each.value)] for each in chosen]
        headings = ["name", "meaning", "type", "default"]
        if sort == "property":
            rows, headings = [row[:-1] for row in rows], headings[:-1]
        made += [f"**{title}**", table(headings, rows)] if rows else []
    methods = [member for member in found if member.sort == "method"]
    made += ["**Methods**"] if methods else []
    for method in methods:
        made += [_fenced(method.signature), docstring(method.doc, links)]
    return made


def _fenced(text: str) -> str:
    return f"```python\n{text}\n```"
