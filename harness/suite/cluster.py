"""``cluster`` in a suite, and profile files: where ``--engine dask`` runs stages. It changes no result and no key."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import AfterValidator

from harness.engine.cluster import KINDS, QUEUES, Profile
from harness.errors import UserError, did_you_mean
from harness.hparams import HParam
from harness.store import STAGE_KINDS
from harness.suite.tree import Problems, Table, Tree
from harness.suite.validation import KEY, Loc, checked, faults, table_of, typed
from harness.suite.yaml import read_file

_FORM: Final = "write tcp://HOST:PORT or tls://HOST:PORT, with a port from 1 to 65535"
_ADDRESS: Final = re.compile(r"(tcp|tls|ucx|wss?)://[^\s/]*[^\s/:]:(?P<port>[1-9][0-9]{0,4})")
_STARTED: Final = ("workers", "adapt", "offers", "retries", "options")
"""What is said of clusters that bench starts."""


def _is_address(text: str) -> bool:
    match = _ADDRESS.fullmatch(text)
    return match is not None and int(match["port"]) < 2**16


def _check_cluster(cluster: Any) -> Profile:
    given, adapt = cluster.model_fields_set, cluster.adapt
    kind = cluster.kind or ("address" if "address" in given else "local")
    idle = given.intersection(_STARTED if kind == "address" else ("address",))
    texts: dict[Loc, str] = {(name, KEY): f"'{name}' has no meaning with 'kind: {kind}'" for name in idle}
    if kind == "address" and not _is_address(cluster.address or ""):
        texts["address",] = f"'{cluster.address or ''}' is no scheduler's address; {_FORM}"
    if {"workers", "adapt"} <= given:
        texts["workers", KEY] = "give either 'workers' or 'adapt'"
    if kind in QUEUES and not {"workers", "adapt"} & given:
        texts[()] = f"'kind: {kind}' needs 'workers', or 'adapt' with the most workers"
    if adapt and (adapt.maximum is None or (adapt.minimum or 0) > adapt.maximum):
        texts["adapt",] = "'adapt' takes the fewest and the most workers: {minimum: 0, maximum: 20}"
    faults(texts.items())
    values = {name: getattr(cluster, name) for name in given} | {"kind": kind}
    return Profile(**values | ({"adapt": (adapt.minimum or 0, adapt.maximum)} if adapt else {}))


_AMOUNTS = dict[str, typed(HParam("resource", "float", None, low=0))]  # type: ignore[misc, valid-type]
_ADAPT = table_of(
    "adapt",
    {name: (typed(HParam(name, "int", None, low=low)), "") for name, low in (("minimum", 0), ("maximum", 1))},
)
_RESOURCES = table_of(
    "resources",
    dict.fromkeys(STAGE_KINDS, (_AMOUNTS, "")),
    check=lambda table: table.model_dump(exclude_unset=True),
)
_VALUES = (
    HParam("kind", "str", None, choices=KINDS, help="a scheduler's address, this machine, or a batch system"),
    HParam("address", "str", None, help="of the Dask scheduler, such as tcp://host:8786; means kind: address"),
    HParam("workers", "int", None, low=1, help="Dask workers to start"),
    HParam("store", "str", None, help="the store's folder as workers see it, where it differs"),
    HParam("data", "str", None, help="the data folder as workers see it, where it differs"),
    HParam("retries", "int", None, low=0, help="how often a stage runs again because its worker was lost"),
    HParam("wait", "float", None, low=0, help="seconds to wait for the first worker, and for workers that were lost"),
    HParam("options", "dict", None, help="of Dask's class: LocalCluster, SLURMCluster, PBSCluster, LSFCluster"),
)
KEYS = table_of(
    "cluster",
    {
        **{declared.name: (typed(declared), declared.help) for declared in _VALUES},
        "adapt": (_ADAPT, "fewest and most workers, started and ended as the work demands"),
        "resources": (_RESOURCES, "what a stage of each kind takes of its worker: {train: {GPU: 1}}"),
        "offers": (_AMOUNTS, "what each started worker has to offer: {GPU: 1}"),
    },
)
"""A table of a profile, which another may complete."""
_CLUSTER: Any = Annotated[KEYS, AfterValidator(_check_cluster)]


def read_cluster(tree: Tree, problems: Problems) -> Profile | None:
    """Return the profile that a table describes, or None after a noted fault."""
    profile: Profile | None = checked(_CLUSTER, tree, problems, "'cluster'")[1]
    return profile


def named_cluster(text: str) -> Profile:
    """The profile that ``--cluster`` names: ``local``, a scheduler's address, or a YAML file.

    Raises:
        SuiteError: every fault of the file, each with its place.
        UserError: neither of the three, or an address that no scheduler can have.
    """
    if text == "local":
        return Profile()
    if _is_address(text):
        return Profile("address", address=text)
    path = Path(text).expanduser()
    if not path.is_file():
        known = f"write 'local', a scheduler's address or a profile file{did_you_mean(text, ['local'])}"
        raise UserError(f"--cluster {text}: there is no such file, and that is no scheduler's address; {known}")
    problems = Problems()
    tree = read_file(path, problems)
    inner = tree.entries["cluster"] if isinstance(tree, Table) and list(tree) == ["cluster"] else tree
    profile = None if inner is None else read_cluster(inner, problems)
    problems.check()
    if profile is None:
        raise UserError(f"--cluster {text}: the file is empty; a profile starts with 'kind: slurm' or the like")
    return profile
