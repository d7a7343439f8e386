"""What every use of RDKit here shares: its settings, codes for its enumerations, and both directions of bonds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@contextmanager
def rdkit_session() -> Iterator[None]:
    """Silence RDKit's log and hold it to legacy stereo perception, as OGB's features had it; both are put back.

    Without the legacy perception E and Z bonds become TRANS and CIS.
    """
    from rdkit import Chem, rdBase

    legacy = Chem.GetUseLegacyStereoPerception()
    Chem.SetUseLegacyStereoPerception(True)
    try:
        with rdBase.BlockLogs():
            yield
    finally:
        Chem.SetUseLegacyStereoPerception(legacy)


def both_directions(ends: NDArray[np.int64], codes: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Bonds (m, 2) with codes (m, K) as ``edge_index`` (2, 2m) and ``edge_attr`` (2m, K): each, then its reverse."""
    import numpy as np

    directed = np.stack([ends, ends[:, ::-1]], axis=1).reshape(-1, 2)
    return np.ascontiguousarray(directed.T), np.repeat(codes, 2, axis=0)


def codes(enumeration: Any, known: Mapping[str, int], other: int) -> dict[Any, int]:
    """Member of an RDKit enumeration -> its code; members that are not ``known`` by name have the code ``other``."""
    return {member: known.get(name, other) for name, member in enumeration.names.items()}
