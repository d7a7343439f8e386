"""The schema that editors read: beside the suites, current, named by each file, and true of each of them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from harness.component import BUILT_IN
from harness.registry.catalog import Catalog
from harness.registry.index import load_catalog
from harness.safe_io import json_text
from harness.suite import json_schema, suites_folder

ROOT = Path(__file__).resolve().parents[3]
SCHEMA = ROOT / "suites" / "suite.schema.json"
FILES = sorted([*(ROOT / "suites").rglob("*.yaml"), *(ROOT / "harness" / "bundles").rglob("*.yaml")])
LINE = "# yaml-language-server: $schema="


def named(path: Path) -> Path:
    """The schema that a file's first line names, as an editor finds it."""
    first = path.read_text(encoding="utf-8").splitlines()[0]
    assert first.startswith(LINE), f"{path} names no schema in its first line"
    return path.parent / first.removeprefix(LINE)


def content(path: Path) -> Any:
    """A file as an editor reads it, in YAML 1.2: ``1e-3`` is a number."""
    loader = type("Loader", (yaml.SafeLoader,), {})
    loader.add_implicit_resolver(
        "tag:yaml.org,2002:float", re.compile(r"^-?\d+(\.\d*)?[eE][+-]?\d+$"), list("-0123456789")
    )
    return yaml.load(path.read_text(encoding="utf-8"), loader)


def validator(path: Path) -> Draft202012Validator:
    def retrieve(uri: str) -> Resource[Any]:
        return Resource.from_contents(json.loads(Path(uri.removeprefix("file://")).read_text(encoding="utf-8")))

    schema = json.loads(path.read_text(encoding="utf-8"))
    return Draft202012Validator({"$id": path.resolve().as_uri(), **schema}, registry=Registry(retrieve=retrieve))


def test_it_is_current() -> None:
    known = Catalog(entry for entry in load_catalog() if entry.plugin == BUILT_IN)
    told = "run `bench schema --built-in -o suites/suite.schema.json`"
    assert SCHEMA.read_text(encoding="utf-8") == json_text(json_schema(known)), told
    assert suites_folder() == ROOT / "suites"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_file_names_it_and_fits(path: Path) -> None:
    schema = named(path)
    assert schema.is_file()
    faults = [f"{list(fault.path)}: {fault.message}" for fault in validator(schema).iter_errors(content(path))]
    assert not faults


def test_it_refuses_what_is_wrong() -> None:
    check = validator(SCHEMA)
    sound = {"bench": 1, "datasets": {"A": "spmotif"}, "methods": {"B": {"baseline": {"use": "irm", "penalty": 1.0}}}}
    assert check.is_valid(sound)
    assert not check.is_valid({**sound, "sedes": [1]})
    assert not check.is_valid({**sound, "methods": {"B": {"baseline": {"use": "irm", "penalti": 1.0}}}})
    assert not check.is_valid({**sound, "datasets": {"A": "spmotiv"}})
