"""The unit of cached work: a stage with its key, its inputs and all that a worker needs to run it. No torch."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, is_dataclass
from typing import Any

from harness.component import BUILT_IN
from harness.errors import bounded
from harness.store.keys import digest

PROTOCOL_VERSION = 1
"""Part of every key; bumped when a default of the harness changes what a stage computes."""
STAGE_KINDS = ("prepare", "encode", "quantify", "annotate", "train", "score", "analyse")


@dataclass(frozen=True, slots=True)
class Stage:
    """One node of the plan.

    Attributes:
        kind: one of :data:`STAGE_KINDS`.
        key: content address: SHA-256 of the canonical JSON of ``preimage``.
        place: logical place, the same in every suite (``train/two-piece/erm``), for "what differs".
        preimage: everything that can change the output, as JSON.
        inputs: keys of the stages whose artifacts this one reads.
        payload: all that the body needs to run; a dataclass of :mod:`harness.stages.payloads`.
        title: for people, e.g. ``train ERM on SPMotif-0.60, seed 1``.
        in_parent: run in the parent process (``score``: it opens sealed data).
        outputs: further keys that the stage writes beside its own (``prepare``: the oracle and sealed tiers).
    """

    kind: str
    key: str
    place: str
    preimage: Mapping[str, Any]
    inputs: tuple[str, ...] = ()
    payload: Any = None
    title: str = ""
    in_parent: bool = False
    outputs: tuple[str, ...] = ()

    @property
    def work(self) -> str:
        """Its place with what decides how long it takes: data, epochs, and the settings of an encoder or a dataset."""
        own = {"data": self.preimage.get("data")}
        for part, name in (("train", "epochs"), ("encoder", "params"), ("dataset", "params")):
            settings = self.preimage.get(part)
            own[part] = settings.get(name) if isinstance(settings, Mapping) else None
        return f"{self.place}/{digest(own)[:8]}"

    @property
    def trains(self) -> bool:
        """Return True if networks are trained, so that the stage runs on a run's device; others run on the CPU."""
        return self.kind in ("encode", "train") or (self.kind == "annotate" and self.payload.networks is not None)

    @property
    def foreign(self) -> bool:
        """Return True if code of a plugin runs that is not built in; it may change the state of its process."""
        return any(ref["plugin"] != BUILT_IN for ref in references(self.payload))


@dataclass(frozen=True)
class Failure:
    """The reason why a stage has no artifact.

    Attributes:
        status: ``failed`` (an exception, ``sys.exit``), ``diverged``, ``timeout``, ``memory``, ``killed``
            (the worker died twice), ``disk`` (full, or the store could not be read or written),
            ``device`` (a GPU could not be used), ``import`` (a package is missing or broken), ``data``
            (:class:`harness.errors.DataError`), ``changed`` (code, see :class:`harness.errors.ChangedError`) or
            ``skipped`` (an input failed).
        reason: one line; the whole message for ``data``.
        traceback: short, for ``bench report`` and the log; empty where there is none.
        since: when it was stored, for people, where it was taken from the store instead of running the stage; empty
            for one that has just happened.
    """

    status: str
    reason: str
    traceback: str = ""
    since: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "reason", bounded(self.reason))
        object.__setattr__(self, "traceback", bounded(self.traceback, 20_000))

    @property
    def kept(self) -> bool:
        """Return True if the failure is a result (stored), rather than something to run again next time."""
        return self.status in ("failed", "diverged")

    @property
    def remark(self) -> str:
        """Return the remark on a failure that was taken from the store; empty for one that has just happened."""
        return f" (stored {self.since}; --retry-failed runs it again)" if self.since else ""


def references(payload: Any) -> Iterator[Mapping[str, Any]]:
    """Yield all components that a payload names."""
    for value in (payload if isinstance(payload, Mapping) else getattr(payload, "__dict__", {})).values():
        if isinstance(value, Mapping) or is_dataclass(value):
            yield from [value] if isinstance(value, Mapping) and "qualname" in value else references(value)


def moment(created: float) -> str:
    """Format a time in seconds since 1970; raises an error of any kind where it is none."""
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(float(created)))


def span(moments: Iterable[str]) -> str:
    """Join the times of some failures: the one moment, or the first and the last."""
    ordered = sorted(set(moments))
    return ordered[0] if len(ordered) == 1 else f"{ordered[0]} to {ordered[-1]}"


def tier_key(key: str, tier: str) -> str:
    """Return the key of the oracle or sealed tier of a prepared dataset."""
    return digest({"tier": tier, "of": key})
