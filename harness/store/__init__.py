"""The store of cached work: stages and their keys, artifacts, leases. Names load when they are first used; no torch.

Operations on a whole store have modules of their own: :mod:`harness.store.gc` (what is in it, making room),
:mod:`harness.store.verify` (checking and mending) and :mod:`harness.store.exchange` (copies to and from other stores).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.store.artifact import Artifact, Draft, Meta, MissingArtifact
    from harness.store.folders import cache_root, data_folder, data_root, index_root, store_root
    from harness.store.keys import FileMark, canonical, difference, digest, file_digest, file_mark, hash_file
    from harness.store.leases import Lease, begin_draft, claim_run, new_run_name, sweep, try_lock
    from harness.store.readings import reading
    from harness.store.stage import PROTOCOL_VERSION, STAGE_KINDS, Failure, Stage, moment, span, tier_key
    from harness.store.store import Scratch, Store

_HOME = {
    "artifact": ("Artifact", "Draft", "Meta", "MissingArtifact"),
    "folders": ("cache_root", "data_folder", "data_root", "index_root", "store_root"),
    "keys": ("FileMark", "canonical", "difference", "digest", "file_digest", "file_mark", "hash_file"),
    "leases": ("Lease", "begin_draft", "claim_run", "new_run_name", "sweep", "try_lock"),
    "readings": ("reading",),
    "stage": ("PROTOCOL_VERSION", "STAGE_KINDS", "Failure", "Stage", "moment", "span", "tier_key"),
    "store": ("Scratch", "Store"),
}
_WHERE = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "PROTOCOL_VERSION",
    "STAGE_KINDS",
    "Artifact",
    "Draft",
    "Failure",
    "FileMark",
    "Lease",
    "Meta",
    "MissingArtifact",
    "Scratch",
    "Stage",
    "Store",
    "begin_draft",
    "cache_root",
    "canonical",
    "claim_run",
    "data_folder",
    "data_root",
    "difference",
    "digest",
    "file_digest",
    "file_mark",
    "hash_file",
    "index_root",
    "moment",
    "new_run_name",
    "reading",
    "span",
    "store_root",
    "sweep",
    "tier_key",
    "try_lock",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'harness.store' has no attribute '{name}'")
    value = getattr(import_module(f"harness.store.{_WHERE[name]}"), name)
    globals()[name] = value
    return value
