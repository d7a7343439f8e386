"""Work on large plans without the collector of cyclic garbage."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Without the collector of cyclic garbage: it would walk a large plan again and again and find none."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            # What was made counts as old, as if it had been walked and found in use; it stays collectable.
            if not gc.get_freeze_count():  # else whoever calls us has frozen something, which is to stay so
                gc.freeze()
                gc.unfreeze()
            gc.enable()
