"""Page of the suite keys, from the schema that ``bench schema`` prints for editors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.reference.components import PLURALS, bounds, code, escaped, table, value
from harness.registry.catalog import Catalog
from harness.suite.files import read_shipped
from harness.suite.load import DEFAULT_PROTOCOL
from harness.suite.models import json_schema
from harness.suite.tree import Leaf, Place, Problems, plain


def page(catalog: Catalog) -> str:
    """Return the page of all keys."""
    schema = json_schema(catalog)
    parts = ["# Suite keys", _INTRODUCTION, "## A suite", keys(schema)]
    for name in ("tune", "report", "cluster", "adapt", "resources"):
        parts += [f"## {name}", keys(schema["$defs"][name])]
    parts += ["## A dataset", _DATASET, keys(_common(schema["$defs"]["dataset"]))]
    parts += ["## A method", keys(schema["$defs"]["method"])]
    parts += ["## A component", _COMPONENT, keys(_common(schema["$defs"]["encoder"]))]
    defaults = _defaults()
    for name in ("model", "train", "select"):
        parts += [f"## {name}", keys(schema["$defs"][name], defaults[name])]
    return "\n\n".join(parts) + "\n"


_INTRODUCTION = (
    "Every key that a suite may have. [The suite language](../suites.md) explains them with examples; `bench schema` "
    "prints the same as JSON Schema for an editor, with your plugins' components in it."
)
_DATASET = "`NAME` or a table of `use`, the [hyperparameters](components/datasets.md) of that dataset, and:"
_COMPONENT = (
    "`NAME`, `NAME(value)` where it has a main value, or a table of `use`, the hyperparameters of that component, and "
    "(`pool` for encoders alone):"
)


def _common(definition: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys that all components of a kind share, beside their own hyperparameters."""
    named = [option["properties"] for option in definition["anyOf"] if "use" in option.get("required", ())]
    shared = set.intersection(*map(set, named))
    keys = {name: schema for name, schema in named[0].items() if name in shared}
    structure = {name: schema for name, schema in keys.items() if "default" not in schema and "description" in schema}
    return {"properties": {"use": {"type": "string", "description": "the component's name"}, **structure}}


def keys(definition: Mapping[str, Any], defaults: Mapping[str, str] | None = None) -> str:
    """Return a table of the properties of a definition, with the values of the default protocol."""
    rows = []
    for name, schema in definition["properties"].items():
        default = [code(defaults.get(name, ""))] if defaults is not None else []
        rows.append([code(name), escaped(schema.get("description", "")), values(schema), *default])
    last = [f"protocol `{DEFAULT_PROTOCOL}`"] if defaults is not None else []
    return table(["key", "meaning", "values", *last], rows)


def values(schema: Mapping[str, Any]) -> str:
    """Return the values that a schema allows, in words."""
    if "$ref" in schema:
        return _reference(schema["$ref"].rpartition("/")[2])
    if "const" in schema or "enum" in schema:
        return ", ".join(code(item) for item in schema.get("enum", [schema.get("const")]))
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(values(option) for option in schema["anyOf"]))
    if schema["type"] == "object":
        inner = schema.get("additionalProperties")
        return f"table of {values(inner)}" if isinstance(inner, Mapping) else "table"
    return _plain_type(schema)


_WORDS = {"string": "text", "integer": "whole number", "number": "number", "boolean": "`true`, `false`", "null": "none"}


def _plain_type(schema: Mapping[str, Any]) -> str:
    if schema["type"] == "array":
        return f"list of {values(schema['items'])}" if "items" in schema else "list"
    limits = bounds(schema.get("minimum"), schema.get("maximum"))
    return ", ".join(filter(None, [_WORDS[schema["type"]], limits]))


def _reference(name: str) -> str:
    if name in PLURALS:
        return f"[{name}](components/{PLURALS[name]}.md)"
    return {"method": "[method](#a-method)"}.get(name, f"[table](#{name})")


def _defaults() -> dict[str, dict[str, str]]:
    """Return the settings of the default protocol."""
    problems = Problems()
    protocol = plain(read_shipped("protocols", Leaf(DEFAULT_PROTOCOL, Place("")), problems))
    problems.check()
    return {
        section: {name: value(item) for name, item in protocol[section].items()}
        for section in ("model", "train", "select")
    }
