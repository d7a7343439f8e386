"""A JSON Schema of suites for editors, made from the catalog: completion, types and help while typing."""

from __future__ import annotations

from typing import Annotated, Any

from harness.registry.catalog import Catalog, Entry
from harness.suite.settings import KIND_OF
from harness.suite.spec import MODEL

Schema = dict[str, Any]


def json_schema(catalog: Catalog) -> Schema:
    """The schema (draft 2020-12) of a suite that may use the components of a catalog."""
    from harness.suite.models import SUITE

    suite = _schema_of(SUITE)
    kinds = ["dataset", "backbone", "analysis", "tracker", *dict.fromkeys(KIND_OF.values())]
    definitions = {kind: _component(catalog, kind) for kind in kinds}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **suite,
        "title": "bench suite",
        "$defs": definitions | suite["$defs"] | {"model": _model(catalog)},
    }


def _schema_of(model: Any) -> Schema:
    """Return a model's schema without pydantic's titles; definitions of components are references."""
    from pydantic import TypeAdapter

    schema: Schema = _tidy(TypeAdapter(model).json_schema())
    return schema


def _tidy(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_tidy(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    tidy = {name: _tidy(item) for name, item in schema.items() if name not in ("title", "definition")}
    return tidy | ({"$ref": f"#/$defs/{schema['definition']}"} if "definition" in schema else {})


def _component(catalog: Catalog, kind: str) -> Schema:
    """A name, a named component with its own hyperparameters, or changes without a name (of a copied method)."""
    entries = catalog.of_kind(kind)
    calls = [f"^{entry.name}\\(.*\\)$" for entry in entries if entry.traits.get("positional")]
    named = [{"enum": [entry.name for entry in entries]}, *({"type": "string", "pattern": call} for call in calls)]
    return {"anyOf": [*named, *map(_named, entries), {"type": "object", "properties": {"use": False}}]}


def _named(entry: Entry) -> Schema:
    from pydantic import WithJsonSchema

    from harness.suite.models import BESIDE
    from harness.suite.validation import settings

    pattern = {"type": "string", "pattern": f"^{entry.name}(\\(.*\\))?$"}
    use = Annotated[Any, WithJsonSchema(pattern if entry.traits.get("positional") else {"const": entry.name})]
    schema = _schema_of(settings(entry.name, entry.hparams, {"use": (use, ""), **BESIDE.get(entry.kind, {})}))
    schema.pop("$defs", None)
    return schema | {"required": ["use"]} | ({"description": entry.summary} if entry.summary else {})


def _model(catalog: Catalog) -> Schema:
    from harness.suite.models import BACKBONE
    from harness.suite.validation import settings

    declared = {name: item for entry in catalog.of_kind("backbone") for name, item in entry.hparams.items()}
    return _schema_of(settings("model", declared | MODEL, {"backbone": BACKBONE}))
