"""A JSON Schema of suites for editors, made from the catalog: completion, types and help while typing."""

from __future__ import annotations

from typing import Any

from harness.catalog import Catalog, Entry
from harness.hparams import HParam
from harness.published import publications
from harness.suite.files import bundles, protocols
from harness.suite.settings import KIND_OF, MODEL, PIPELINE, SELECT, TRAIN

Schema = dict[str, Any]
_TYPES = {"bool": "boolean", "int": "integer", "float": "number", "str": "string", "dict": "object"}
_TEXTS: Schema = {"type": "array", "items": {"type": "string"}}
_AXES: Schema = {
    "type": "object",
    "additionalProperties": {"anyOf": [{"type": "array", "minItems": 1}, {"const": "default"}]},
}


def json_schema(catalog: Catalog) -> Schema:
    """The schema (draft 2020-12) of a suite that may use the components of a catalog."""
    kinds = ["dataset", "backbone", "analysis", "tracker", *dict.fromkeys(KIND_OF.values())]
    definitions: Schema = {kind: _component(catalog, kind) for kind in kinds}
    definitions |= {
        "model": _model(catalog),
        "train": _table({name: value(declared) for name, declared in TRAIN.items()}),
        "select": _table({name: value(declared) for name, declared in SELECT.items()}),
        "method": _method(),
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "bench suite",
        **_table(_top()),
        "$defs": definitions,
    }


def value(declared: HParam) -> Schema:
    """The schema of a hyperparameter's value."""
    many = declared.type.startswith("list[")
    item: Schema = {"type": _TYPES[declared.type[5:-1] if many else declared.type]}
    if declared.choices is not None:
        item["enum"] = list(declared.choices)
    if declared.low is not None:
        item["minimum"] = declared.low
    if declared.high is not None:
        item["maximum"] = declared.high
    schema: Schema = {"type": "array", "items": item} if many else item
    if declared.optional:
        schema = {"anyOf": [schema, {"type": "null"}]}
    return schema | {"default": declared.default} | ({"description": declared.help} if declared.help else {})


def _top() -> Schema:
    seed: Schema = {"type": "integer", "minimum": 0}
    return {
        "bench": {"const": 1, "description": "version of the suite language"},
        "name": {"type": "string"},
        "include": _TEXTS | {"description": "fragments; later keys win, methods and datasets merge by name"},
        "plugins": _TEXTS | {"description": "plugin files, relative to this file"},
        "protocol": {"enum": protocols()},
        "seeds": {"anyOf": [{"type": "array", "items": seed, "minItems": 1, "uniqueItems": True}, seed]},
        "model": _ref("model"),
        "train": _ref("train"),
        "select": _ref("select"),
        "budget": {"type": "integer", "minimum": 1, "description": "configurations drawn for every tuned method"},
        "datasets": {"type": "object", "minProperties": 1, "additionalProperties": _ref("dataset")},
        "methods": {"type": "object", "minProperties": 1, "additionalProperties": _ref("method")},
        "trackers": {"type": "array", "items": _ref("tracker"), "description": "tools that are told of the run"},
        "analyses": {"type": "object", "additionalProperties": _ref("analysis")},
        "report": _table(
            {
                "reference": {"type": "string"},
                "published": {"enum": publications()},
                "statistics": {"type": "boolean"},
            }
        ),
    }


def _method() -> Schema:
    return _table(
        {
            **{role: _ref(kind) for role, kind in KIND_OF.items()},
            "like": {"type": "string", "description": "another method to copy"},
            "bundle": {"enum": bundles(), "description": f"ready settings of {', '.join(PIPELINE)}"},
            "model": _ref("model"),
            "train": _ref("train"),
            "select": _ref("select"),
            "tune": {"anyOf": [_AXES, {"const": "default"}], "description": "selected on validation"},
            "matrix": _AXES | {"description": "a row for each combination"},
        }
    )


def _model(catalog: Catalog) -> Schema:
    shared: Schema = {name: value(declared) for name, declared in MODEL.items()}
    for entry in catalog.of_kind("backbone"):
        shared = {name: value(declared) for name, declared in entry.hparams.items()} | shared
    return _table({"backbone": _ref("backbone"), **shared})


def _component(catalog: Catalog, kind: str) -> Schema:
    """A name, a named component with its own hyperparameters, or changes without a name (of a copied method)."""
    entries = catalog.of_kind(kind)
    names = [entry.name for entry in entries]
    calls = [f"^{entry.name}\\(.*\\)$" for entry in entries if entry.traits.get("positional")]
    options: list[Schema] = [{"enum": names}, *({"type": "string", "pattern": pattern} for pattern in calls)]
    options += [_named(entry) for entry in entries]
    options.append({"type": "object", "properties": {"use": False}})
    return {"anyOf": options}


def _named(entry: Entry) -> Schema:
    own: Schema = {name: value(declared) for name, declared in entry.hparams.items()}
    extra: Schema = {}
    if entry.kind == "dataset":
        extra = {"model": _ref("model"), "train": _ref("train"), "select": _ref("select"), "envs": _ref("environment")}
    elif entry.kind == "tracker":
        extra = {}
    elif entry.kind == "analysis":
        extra = {"datasets": _TEXTS, "methods": _TEXTS}
    else:
        extra = {"tune": {"anyOf": [_AXES, {"const": "default"}]}, "matrix": _AXES}
    if entry.kind == "encoder":
        extra["pool"] = _AXES
    named = entry.name if not entry.traits.get("positional") else None
    use: Schema = {"const": named} if named else {"type": "string", "pattern": f"^{entry.name}(\\(.*\\))?$"}
    schema = _table({"use": use, **own, **extra}) | {"required": ["use"]}
    return schema | ({"description": entry.summary} if entry.summary else {})


def _table(properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}
