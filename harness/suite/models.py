"""Pydantic models of suites, protocols and bundles, and the JSON Schema for editors that follows from them."""

from __future__ import annotations

import re
from functools import partial
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, TypeAdapter, WithJsonSchema

from harness.errors import did_you_mean
from harness.hparams import HParam
from harness.registry.catalog import Catalog, Entry
from harness.results.published import RECORD, publications
from harness.suite.cluster import KEYS
from harness.suite.files import shipped
from harness.suite.settings import KIND_OF, PARTS, PIPELINE, ROLES, SELECT, TRAIN, TUNE, seeds_of
from harness.suite.spec import MODEL
from harness.suite.tree import describe
from harness.suite.validation import (
    KEY,
    Fields,
    Loc,
    Name,
    Names,
    Schema,
    check_name,
    checked_type,
    fault,
    faults,
    list_of,
    name_of,
    rows_of,
    settings,
    table_of,
    typed,
)


def _suite_name(value: Any) -> Any:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._ -]{0,99}", check_name(value)):
        raise fault(f"'name' may hold letters, digits, spaces and . _ - (at most 100), found {value!r}")
    return value


def _version(value: Any) -> Any:
    if value != 1 or value is True:
        raise fault(f"this bench reads suites of version 1, found {describe(value)}")
    return value


def _named(value: Any) -> Any:
    if isinstance(value, dict):
        return value
    if isinstance(value, str):
        return {"use": value}
    hint = "; to compare several, use 'matrix'" if isinstance(value, list) else ""
    raise fault(f"{{title}}: found {describe(value)}; a component is NAME or {{use: NAME, hyperparameters…}}{hint}")


def component(kind: str) -> Any:
    """A component as a file writes it; its hyperparameters are checked later, once it is complete."""
    table = table_of(kind, {"use": (Name, ""), **BESIDE.get(kind, {})}, rest=True)
    return Annotated[table, BeforeValidator(_named), WithJsonSchema({"definition": kind})]


def _axes(kind: str, *, paths: bool) -> Any:
    """Values by name, or by dotted path."""
    axes = {"type": "object", "additionalProperties": {"anyOf": [{"type": "array", "minItems": 1}, _DEFAULT]}}
    schema = {"anyOf": [axes, _DEFAULT]} if kind == "tune" else axes
    return checked_type(partial(_check_axes, kind, paths=paths), schema=schema)


_DEFAULT = {"const": "default"}
_HEADS = (*PARTS, "model", "train")


def _check_axes(kind: str, value: Any, *, paths: bool) -> Any:
    if kind == "tune" and value == "default":
        return value
    if not isinstance(value, dict):
        also = "'default' or " if kind == "tune" else ""
        raise fault(f"'{kind}' takes {also}a table of lists, found {describe(value)}")
    texts: dict[Loc, str] = {}
    for path, options in value.items():
        default = kind == "tune" and options == "default"
        if paths and not _is_path(path, kind, default=default):
            hint = did_you_mean(path.partition(".")[0], _HEADS)
            hint = "; the sampler stands under 'tune' of the suite, for all methods" if path in TUNE else hint
            known = f"a path starts with {', '.join(_HEADS)} (for example baseline.penalty){hint}"
            texts[path, KEY] = f"'{path}' in '{kind}': {known}"
        elif not (isinstance(options, list) and options) and not default:
            what = "an empty list" if options == [] else describe(options)
            texts[path,] = f"'{path}' in '{kind}' takes a list of values, found {what}"
        elif paths and path in KIND_OF:
            for position, option in enumerate(options):
                if not isinstance(option.get("use") if isinstance(option, dict) else option, str):
                    texts[path, position] = f"a component in '{kind}' over '{path}' needs a name: {{use: NAME, …}}"
    faults(texts.items())
    return value


def _is_path(path: str, kind: str, *, default: bool) -> bool:
    head, dot, name = path.partition(".")
    if dot:
        return head in _HEADS and name not in ("", "*")
    return (default and head in ("*", *ROLES)) or (kind == "matrix" and head in PARTS)


# Tables


def _check_method(method: Any) -> Any:
    if {"like", "bundle"} <= method.model_fields_set:
        faults([(("bundle", KEY), "give either 'like' or 'bundle'")])
    return method


_AXES = {
    "tune": "candidates by path, selected on validation",
    "matrix": "values by path, a row for each combination",
    "pool": "architectures whose outputs are put together",
}
_OF_METHOD: Fields = {kind: (_axes(kind, paths=True), _AXES[kind]) for kind in ("tune", "matrix")}
_OF_PART: Fields = {kind: (_axes(kind, paths=False), _AXES[kind]) for kind in ("tune", "matrix")}
BESIDE: dict[str, Fields] = {
    **dict.fromkeys(("backbone", "environment", *ROLES), _OF_PART),
    "encoder": {**_OF_PART, "pool": (_axes("pool", paths=False), _AXES["pool"])},
    "analysis": dict.fromkeys(("datasets", "methods"), (Names, "")),
}
"""Kind of component -> the keys that it may have beside its hyperparameters."""
BACKBONE = (component("backbone"), "the graph network; its hyperparameters may stand beside it")
_MODEL = settings("model", MODEL, {"backbone": BACKBONE}, rest=True)
SECTIONS: Fields = {
    "model": (Annotated[_MODEL, WithJsonSchema({"definition": "model"})], "backbone, readout and head"),
    "train": (settings("train", TRAIN), "epochs, batches and optimizer"),
    "select": (settings("select", SELECT), "which checkpoint and which configuration a row reports"),
}
_ENVIRONMENTS = (component("environment"), "what supplies environments to a learner that needs them")
BESIDE["dataset"] = {**SECTIONS, "envs": _ENVIRONMENTS}
METHOD = table_of(
    "method",
    {
        "baseline": (component("baseline"), "a method that trains in one go; or all three of the next"),
        "encoder": (component("encoder"), "first step: embeddings learned without labels"),
        "quantifier": (component("quantifier"), "second step: class probabilities from embeddings"),
        "decorrelator": (component("decorrelator"), "third step: a classifier that those probabilities do not explain"),
        "like": (Name, "another method of the suite to copy"),
        "bundle": (name_of(shipped("bundles"), "bundle is"), f"ready settings of {', '.join(PIPELINE)}"),
        **BESIDE["dataset"],
        **_OF_METHOD,
    },
    check=_check_method,
)
REPORT = table_of(
    "report",
    {
        "reference": (Name, "the row that differences are taken to and that tests compare with"),
        "published": (
            name_of([*publications(), RECORD], "published numbers are"),
            "a paper whose printed numbers stand beside ours, or this repository's own record",
        ),
        "statistics": (
            typed(HParam("statistics", "bool", False)),
            "confidence intervals, tests, ranks and detectable effects in every report",
        ),
    },
)


def _seeds(value: Any) -> list[Any]:
    if value is None or value == []:
        raise fault("'seeds' is empty; write for example 'seeds: [1, 2, 3]'")
    try:
        return seeds_of(value)
    except ValueError:
        raise fault(f"seeds are whole numbers, such as 1,2,3; found {value!r}") from None


def _distinct(seeds: list[int]) -> list[int]:
    if len(set(seeds)) < len(seeds):
        raise fault("a seed is given twice in 'seeds'")
    return seeds


_SEED: Schema = {"type": "integer", "minimum": 0}
_SEEDS: Schema = {"anyOf": [{"type": "array", "items": _SEED, "minItems": 1, "uniqueItems": True}, _SEED]}
_EACH: Any = list_of(typed(HParam("seeds", "int", None, low=0, high=2**31 - 1)))
SEEDS = Annotated[_EACH, BeforeValidator(_seeds), AfterValidator(_distinct), WithJsonSchema(_SEEDS)]
_BUDGET = HParam("budget", "int", None, optional=True, low=1)
SUITE = table_of(
    "suite",
    {
        "bench": (checked_type(_version, schema={"const": 1}), "version of the suite language"),
        "name": (checked_type(_suite_name, str), "of the suite, in tables and runs; the file's name unless given"),
        "include": (Names, "suite files to build upon: later keys win, methods and datasets merge by name"),
        "plugins": (Names, "plugin files, relative to this file"),
        "protocol": (
            name_of(shipped("protocols"), "protocol is"),
            "a named set of defaults of seeds, model, train and select",
        ),
        "seeds": (
            SEEDS,
            "training seeds: initialisation, batch order, random environments; the protocol's unless given",
        ),
        **SECTIONS,
        "strict": (
            typed(HParam("strict", "bool", False)),
            "refuse a method that a dataset does not support, instead of showing n/a",
        ),
        "budget": (typed(_BUDGET), "most configurations of any tuned method; null, the default, for the whole grid"),
        "tune": (
            settings("tune", TUNE) | None,
            "draw the configurations of every tuned method by Optuna; null, the default, for the grid",
        ),
        "datasets": (rows_of(component("dataset")), "the columns: name -> dataset"),
        "methods": (rows_of(METHOD), "the rows: name -> method"),
        "analyses": (
            rows_of(component("analysis"), 0),
            "what to ask of the cells once they have run: label -> analysis",
        ),
        "trackers": (list_of(component("tracker")), "tools that are told of the run"),
        "cluster": (KEYS | None, "where `bench run --engine dask` runs the stages; part of no key"),
        "report": (REPORT, "what the report shows"),
    },
)


# JSON Schema


def json_schema(catalog: Catalog) -> Schema:
    """The schema (draft 2020-12) of a suite that may use the components of a catalog."""
    suite = _schema_of(SUITE)
    kinds = ["dataset", "backbone", "analysis", "tracker", *dict.fromkeys(KIND_OF.values())]
    definitions = {kind: _component_schema(catalog, kind) for kind in kinds}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **suite,
        "title": "bench suite",
        "$defs": definitions | suite["$defs"] | {"model": _model_schema(catalog)},
    }


def _schema_of(model: Any) -> Schema:
    """Return a model's schema without pydantic's titles; definitions of components are references."""
    schema: Schema = _tidy(TypeAdapter(model).json_schema())
    return schema


def _tidy(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_tidy(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    tidy = {name: _tidy(item) for name, item in schema.items() if name not in ("title", "definition")}
    return tidy | ({"$ref": f"#/$defs/{schema['definition']}"} if "definition" in schema else {})


def _component_schema(catalog: Catalog, kind: str) -> Schema:
    """A name, a named component with its own hyperparameters, or changes without a name (of a copied method)."""
    entries = catalog.of_kind(kind)
    calls = [f"^{entry.name}\\(.*\\)$" for entry in entries if entry.traits.get("positional")]
    named = [{"enum": [entry.name for entry in entries]}, *({"type": "string", "pattern": call} for call in calls)]
    return {"anyOf": [*named, *map(_entry_schema, entries), {"type": "object", "properties": {"use": False}}]}


def _entry_schema(entry: Entry) -> Schema:
    pattern = {"type": "string", "pattern": f"^{entry.name}(\\(.*\\))?$"}
    use = Annotated[Any, WithJsonSchema(pattern if entry.traits.get("positional") else {"const": entry.name})]
    schema = _schema_of(settings(entry.name, entry.hparams, {"use": (use, ""), **BESIDE.get(entry.kind, {})}))
    schema.pop("$defs", None)
    return schema | {"required": ["use"]} | ({"description": entry.summary} if entry.summary else {})


def _model_schema(catalog: Catalog) -> Schema:
    declared = {name: item for entry in catalog.of_kind("backbone") for name, item in entry.hparams.items()}
    return _schema_of(settings("model", declared | MODEL, {"backbone": BACKBONE}))
