"""The cluster of a run: opened by the first stage that needs it, let go when the run ends. No Dask unless asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from harness.registry.catalog import Catalog

if TYPE_CHECKING:
    from harness.run.execute import EngineOptions


@contextmanager
def connected(options: EngineOptions, catalog: Catalog) -> Iterator[EngineOptions]:
    """The options with a cluster that all engines of the run share, where they name the Dask engine."""
    if options.engine != "dask":
        yield options
        return
    from harness.engine.cluster.connection import Cluster
    from harness.engine.cluster.profile import Profile

    profile = options.cluster if isinstance(options.cluster, Profile) else Profile()
    cluster = Cluster(profile, options.jobs, single_files(catalog))
    try:
        yield replace(options, cluster=cluster)
    finally:
        cluster.close()


def single_files(catalog: Catalog) -> tuple[Path, ...]:
    """Plugins that are single files, which workers must find under the same path."""
    return tuple(sorted({Path(entry.plugin) for entry in catalog if Path(entry.plugin).is_absolute()}))
