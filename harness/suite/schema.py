"""A JSON Schema of suites for editors, made from the catalog: completion, types and help while typing."""

from __future__ import annotations

from typing import Any

from harness.hparams import HParam
from harness.registry.catalog import Catalog, Entry
from harness.results.published import publications
from harness.suite.cluster import schema as cluster_schema
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


_HELP = {
    "bench": "version of the suite language",
    "name": "of the suite, in tables and runs; the file's name unless given",
    "include": "suite files to build upon: later keys win, methods and datasets merge by name",
    "plugins": "plugin files, relative to this file",
    "protocol": "a named set of defaults of seeds, model, train and select",
    "seeds": "training seeds: initialisation, batch order, random environments; the protocol's unless given",
    "model": "backbone, readout and head",
    "train": "epochs, batches and optimizer",
    "select": "which checkpoint and which configuration a row reports",
    "budget": "most configurations of any tuned method; null, the default, for the whole grid",
    "datasets": "the columns: name -> dataset",
    "methods": "the rows: name -> method",
    "trackers": "tools that are told of the run",
    "cluster": "where `bench run --engine dask` runs the stages; part of no key",
    "analyses": "what to ask of the cells once they have run: label -> analysis",
    "report": "what the report shows",
    "reference": "the row that differences are taken to and that tests compare with",
    "published": "a paper whose printed numbers stand beside ours",
    "statistics": "confidence intervals, tests, ranks and detectable effects in every report",
    "baseline": "a method that trains in one go; or all three of the next",
    "encoder": "first step: embeddings learned without labels",
    "quantifier": "second step: class probabilities from embeddings",
    "decorrelator": "third step: a classifier that those probabilities do not explain",
    "envs": "what supplies environments to a learner that needs them",
    "like": "another method of the suite to copy",
    "bundle": f"ready settings of {', '.join(PIPELINE)}",
    "tune": "candidates by path, selected on validation",
    "matrix": "values by path, a row for each combination",
    "pool": "architectures whose outputs are put together",
}


def _described(properties: Schema) -> Schema:
    """Properties with what each is for."""
    return {name: schema | {"description": _HELP[name]} for name, schema in properties.items()}


def _top() -> Schema:
    seed: Schema = {"type": "integer", "minimum": 0}
    report: Schema = {
        "reference": {"type": "string"},
        "published": {"enum": publications()},
        "statistics": {"type": "boolean"},
    }
    return _described(
        {
            "bench": {"const": 1},
            "name": {"type": "string"},
            "include": _TEXTS,
            "plugins": _TEXTS,
            "protocol": {"enum": protocols()},
            "seeds": {"anyOf": [{"type": "array", "items": seed, "minItems": 1, "uniqueItems": True}, seed]},
            "model": _ref("model"),
            "train": _ref("train"),
            "select": _ref("select"),
            "budget": {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}]},
            "datasets": {"type": "object", "minProperties": 1, "additionalProperties": _ref("dataset")},
            "methods": {"type": "object", "minProperties": 1, "additionalProperties": _ref("method")},
            "trackers": {"type": "array", "items": _ref("tracker")},
            "cluster": cluster_schema(),
            "analyses": {"type": "object", "additionalProperties": _ref("analysis")},
            "report": _table(_described(report)),
        }
    )


def _method() -> Schema:
    return _table(
        _described(
            {
                **{role: _ref(kind) for role, kind in KIND_OF.items()},
                "like": {"type": "string"},
                "bundle": {"enum": bundles()},
                "model": _ref("model"),
                "train": _ref("train"),
                "select": _ref("select"),
                "tune": {"anyOf": [_AXES, {"const": "default"}]},
                "matrix": _AXES,
            }
        )
    )


def _model(catalog: Catalog) -> Schema:
    shared: Schema = {name: value(declared) for name, declared in MODEL.items()}
    for entry in catalog.of_kind("backbone"):
        shared = {name: value(declared) for name, declared in entry.hparams.items()} | shared
    backbone = _ref("backbone") | {"description": "the graph network; its hyperparameters may stand beside it"}
    return _table({"backbone": backbone, **shared})


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
        sections: Schema = {"model": _ref("model"), "train": _ref("train"), "select": _ref("select")}
        extra = _described(sections | {"envs": _ref("environment")})
    elif entry.kind == "tracker":
        extra = {}
    elif entry.kind == "analysis":
        extra = {"datasets": _TEXTS, "methods": _TEXTS}
    else:
        extra = _described({"tune": {"anyOf": [_AXES, {"const": "default"}]}, "matrix": _AXES})
    if entry.kind == "encoder":
        extra |= _described({"pool": _AXES})
    named = entry.name if not entry.traits.get("positional") else None
    use: Schema = {"const": named} if named else {"type": "string", "pattern": f"^{entry.name}(\\(.*\\))?$"}
    schema = _table({"use": use, **own, **extra}) | {"required": ["use"]}
    return schema | ({"description": entry.summary} if entry.summary else {})


def _table(properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}
