"""Which runs are going on, so that nobody takes away what they need. No torch."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from harness.storage.leftovers import RUN, close_run

if TYPE_CHECKING:
    from harness.store import Store


@contextmanager
def held(store: Store, run: str) -> Iterator[None]:
    """Say that a run is going on, until the block or the process ends; tidies its folder where the block raises.

    Raises:
        StoreError: the store cannot be written.
    """
    while (lease := store.try_lease(RUN + run)) is None:  # somebody who looks for leftovers has it for a moment
        time.sleep(0.01)
    try:
        yield
    except BaseException:
        close_run(store.runs / run)
        raise
    finally:
        lease.release()


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
