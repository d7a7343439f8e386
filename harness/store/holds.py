"""Which runs are going on, so that nobody takes away what they need. No torch."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from harness.store.leftovers import RUN, close_run
from harness.store.locks import Lease

if TYPE_CHECKING:
    from harness.store.store import Store


@contextmanager
def begun(store: Store, suite: str) -> Iterator[str]:
    """The name of a new run, which is going on until the block or the process ends; where it raises, it is tidied.

    Raises:
        StoreError: the store cannot be written.
    """
    name, lease = _own_name(store, suite)
    try:
        yield name
    except BaseException:
        close_run(store.runs / name)
        raise
    finally:
        lease.release()


def _own_name(store: Store, suite: str) -> tuple[str, Lease]:
    """A name that nobody else has, and its lock; who looks for leftovers may have that for a moment."""
    while True:
        name = store.new_run_name(suite)
        lease = store.try_lease(RUN + name)
        if lease is not None:
            if not (store.runs / name).exists():
                return name, lease
            lease.release()
        time.sleep(0.001)


def running(store: Store) -> set[str]:
    """Ids of the runs that are going on; where the file system has no locks, also of those that were killed.

    Raises:
        StoreError: the store cannot be written.
    """
    found = set()
    for path in (store.root / "leases").glob(f"{RUN}*.lock"):
        lease = store.try_lease(path.stem)
        if lease is None or not lease.exclusive:
            found.add(path.stem.removeprefix(RUN))
        if lease is not None:
            lease.release()
    return found
