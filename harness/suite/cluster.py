"""``cluster`` in a suite, and profile files: where ``--engine dask`` runs stages. It changes no result and no key."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

from harness.engine.cluster.profile import KINDS, QUEUES, Profile
from harness.errors import UserError, did_you_mean
from harness.hparams import HParam
from harness.store.stage import STAGE_KINDS
from harness.suite.tree import Leaf, Problems, Table, Tree, describe, plain
from harness.suite.yaml import read_file

_LOCAL: Final = "local"
_ADDRESS: Final = re.compile(
    r"(?:tcp|tls|ucx)://(?:[^\s/:\[\]]+|\[[^\s/\[\]]+\]):0*(?P<port>[1-9][0-9]{0,4})|wss?://[^\s/:]\S*"
)
_HOW: Final = "write tcp://HOST:PORT or tls://HOST:PORT, with a port from 1 to 65535"


def _declared(*items: HParam) -> dict[str, HParam]:
    return {item.name: item for item in items}


CLUSTER: Final = _declared(
    HParam("kind", "str", "local", choices=KINDS, help="a scheduler's address, this machine, or a batch system"),
    HParam("address", "str", None, help="of the Dask scheduler, such as tcp://host:8786; means kind: address"),
    HParam("workers", "int", None, low=1, help="Dask workers to start"),
    HParam("adapt", "dict", None, help="fewest and most workers, started and ended as the work demands"),
    HParam("store", "str", None, help="the store's folder as workers see it, where it differs"),
    HParam("data", "str", None, help="the data folder as workers see it, where it differs"),
    HParam("resources", "dict", None, help="what a stage of each kind takes of its worker: {train: {GPU: 1}}"),
    HParam("offers", "dict", None, help="what each started worker has to offer: {GPU: 1}"),
    HParam("retries", "int", Profile.retries, low=0, help="how often a stage runs again because its worker was lost"),
    HParam("wait", "float", None, low=0, help="seconds to wait for the first worker, or for a lost scheduler"),
    HParam("environment", "dict", None, help="variables of the processes that run stages"),
    HParam("options", "dict", None, help="of Dask's class: LocalCluster, SLURMCluster, PBSCluster, LSFCluster"),
)
"""The keys, with types and help; tables are checked further by :func:`read_cluster`."""

_ADAPT: Final = _declared(HParam("minimum", "int", 0, low=0), HParam("maximum", "int", None, low=1))
_STARTS: Final = ("workers", "adapt", "offers", "retries", "options")
"""Keys that say how workers are started."""


def read_cluster(tree: Tree | None, problems: Problems) -> Profile | None:
    """The profile that a table describes; None where there is none or a fault was noted."""
    if tree is None or (isinstance(tree, Leaf) and tree.value is None):
        return None
    if not isinstance(tree, Table):
        problems.add(tree.place, f"'cluster' is a table such as {{kind: slurm, workers: 8}}, found {describe(tree)}")
        return None
    before = len(problems)
    values = _values(tree, CLUSTER, "'cluster'", problems)
    for name in ("resources", "offers", "environment", "adapt"):
        if name in values:
            values[name] = _READERS[name](tree.entries[name], problems)
    if len(problems) > before:
        return None
    if "address" in values:
        values.setdefault("kind", "address")
    _check(values, tree, problems)
    return Profile(**values) if len(problems) == before else None


def named_cluster(text: str) -> Profile:
    """The profile that ``--cluster`` names: ``local``, a scheduler's address, or a YAML file.

    Raises:
        SuiteError: every fault of the file, each with its place.
        UserError: neither of the three, or an address that no scheduler can have.
    """
    if text == _LOCAL:
        return Profile()
    if "://" in text:
        if not _is_address(text):
            raise UserError(f"--cluster {text}: that is no scheduler's address; {_HOW}")
        return Profile("address", address=text)
    path = Path(text).expanduser()
    if not path.is_file():
        known = f"write '{_LOCAL}', a scheduler's address such as tcp://host:8786, or a profile file"
        raise UserError(f"--cluster {text}: there is no such file; {known}{did_you_mean(text, [_LOCAL])}")
    problems = Problems()
    tree = read_file(path, problems)
    inner = tree.entries["cluster"] if isinstance(tree, Table) and list(tree) == ["cluster"] else tree
    profile = read_cluster(inner, problems)
    problems.check()
    if profile is None:
        raise UserError(f"--cluster {text}: the file is empty; a profile starts with 'kind: slurm' or the like")
    return profile


def schema() -> dict[str, Any]:
    """A JSON Schema of the table."""
    number = {"type": "number", "minimum": 0}
    amounts = {"type": "object", "additionalProperties": number}
    types = {"int": "integer", "float": "number", "str": "string", "dict": "object"}
    found: dict[str, Any] = {}
    for name, declared in CLUSTER.items():
        found[name] = {"type": types[declared.type], "description": declared.help}
        if declared.choices:
            found[name]["enum"] = list(declared.choices)
        if declared.low is not None:
            found[name]["minimum"] = declared.low
    bounds = {"minimum": {"type": "integer", "minimum": 0}, "maximum": {"type": "integer", "minimum": 1}}
    found["adapt"] |= {"properties": bounds, "required": ["maximum"], "additionalProperties": False}
    found["offers"] |= amounts
    found["resources"] |= {"properties": dict.fromkeys(STAGE_KINDS, amounts), "additionalProperties": False}
    found["environment"] |= {"additionalProperties": {"type": ["string", "number"]}}
    return {"type": "object", "properties": found, "additionalProperties": False}


def _is_address(text: str) -> bool:
    found = _ADDRESS.fullmatch(text)
    return found is not None and int(found["port"] or 1) < 2**16


def _values(table: Table, declared: dict[str, HParam], what: str, problems: Problems) -> dict[str, Any]:
    values = {}
    for name, tree in table.entries.items():
        if name not in declared:
            hint = did_you_mean(name, declared)
            problems.add(table.key(name), f"unknown key '{name}' in {what}{hint}; allowed: {', '.join(declared)}")
            continue
        try:
            values[name] = declared[name].coerce(plain(tree))
        except (ValueError, TypeError, OverflowError) as error:
            choices = declared[name].choices
            hint = did_you_mean(str(plain(tree)), choices) if choices else ""
            problems.add(tree.place, f"'{name}' in {what}: {error}{hint}")
    return values


def _read_adapt(tree: Tree, problems: Problems) -> tuple[int, int] | None:
    assert isinstance(tree, Table)
    values = _values(tree, _ADAPT, "'adapt'", problems)
    if "maximum" not in values:
        problems.add(tree.place, "'adapt' takes the most workers: {minimum: 0, maximum: 20}")
        return None
    bounds = values.get("minimum", 0), values["maximum"]
    if bounds[0] > bounds[1]:
        problems.add(tree.place, f"'adapt': the minimum {bounds[0]} is above the maximum {bounds[1]}")
    return bounds


def _read_amounts(tree: Tree, problems: Problems) -> dict[str, float]:
    """Name -> amount of a resource."""
    if not isinstance(tree, Table):
        problems.add(tree.place, f"resources are a table such as {{GPU: 1}}, found {describe(tree)}")
        return {}
    amounts = {}
    for name, value in tree.entries.items():
        try:
            amounts[name] = HParam(name, "float", None, low=0).coerce(plain(value))
        except (ValueError, TypeError, OverflowError) as error:
            problems.add(value.place, f"resource '{name}': {error}")
    return amounts


def _read_resources(tree: Tree, problems: Problems) -> dict[str, dict[str, float]]:
    """Stage kind -> name -> amount."""
    assert isinstance(tree, Table)
    for kind in tree:
        if kind not in STAGE_KINDS:
            hint = did_you_mean(kind, STAGE_KINDS)
            message = f"no stage is of kind '{kind}'{hint}; there are: {', '.join(STAGE_KINDS)}"
            problems.add(tree.key(kind), message)
    return {kind: _read_amounts(tree.entries[kind], problems) for kind in tree if kind in STAGE_KINDS}


def _read_environment(tree: Tree, problems: Problems) -> dict[str, str]:
    assert isinstance(tree, Table)
    for name, value in tree.entries.items():
        if not isinstance(value, Leaf) or value.value is None or "=" in name:
            problems.add(value.place, f"the variable '{name}' takes a text or a number, found {describe(value)}")
    return {name: str(value.value) for name, value in tree.entries.items() if isinstance(value, Leaf)}


_READERS: Final[dict[str, Any]] = {
    "adapt": _read_adapt,
    "offers": _read_amounts,
    "resources": _read_resources,
    "environment": _read_environment,
}


def _check(values: dict[str, Any], table: Table, problems: Problems) -> None:
    """Note keys that contradict each other."""
    kind = values.get("kind", _LOCAL)
    if kind == "address":
        if "address" not in values:
            problems.add(table.place, "'kind: address' takes the scheduler's address: tcp://host:8786")
        elif not _is_address(values["address"]):
            problems.add(table.entries["address"].place, f"'{values['address']}' is no scheduler's address; {_HOW}")
        for name in _STARTS:
            if name in values:
                message = f"'{name}' is of clusters that bench starts; that at an address is as its owner started it"
                problems.add(table.key(name), message)
    elif "address" in values:
        problems.add(table.key("address"), f"'address' belongs to kind: address, not to {kind}")
    if "workers" in values and "adapt" in values:
        problems.add(table.key("workers"), "give either 'workers' or 'adapt'")
    if kind in QUEUES and "workers" not in values and "adapt" not in values:
        problems.add(table.place, f"'kind: {kind}' needs 'workers', or 'adapt' with the most workers")
