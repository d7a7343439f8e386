"""The Dask engine for a profile, once its packages are known to be there."""

from __future__ import annotations

from pathlib import Path

from harness.engine.cluster.connection import Cluster
from harness.engine.cluster.engine import Dask
from harness.engine.cluster.profile import QUEUES, Profile
from harness.engine.cluster.starting import need


def make_dask(
    cluster: Profile | Cluster | None, *, jobs: int | None, timeout: float | None, memory: int | None, log: Path | None
) -> Dask:
    """A Dask engine, not yet started; its cluster is not opened before the first stage.

    Raises:
        UserError: a package of the extra ``cluster`` is missing.
    """
    opened = cluster if isinstance(cluster, Cluster) else Cluster(cluster or Profile(), jobs)
    need("distributed")
    if opened.profile.kind in QUEUES:
        need("dask_jobqueue")
    return Dask(opened, timeout, memory, log)
