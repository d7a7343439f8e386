"""Types that the scheduler, the engines and the progress display share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from harness.store import Failure, Stage

if TYPE_CHECKING:
    from harness.stages.context import Context


@dataclass(frozen=True)
class Job:
    """Settings of a worker, the same for every stage of a run.

    Attributes:
        body: runs one stage: writes its artifacts and returns a small dict (or ``None``).
        context: where the store and the data are, and on which device networks are trained.
        preload: modules that workers load before their first stage; on this machine once for all of them, in a fork
            server, which keeps those of the first job of a process.
    """

    body: Callable[[Stage, Context], Mapping[str, Any] | None]
    context: Context
    preload: Sequence[str] = ("harness.engine.preload",)


@dataclass(frozen=True)
class StageReport:
    """The end of one attempt at a stage.

    Attributes:
        failure: why there is no artifact; ``None`` after a success. Status ``killed`` makes the scheduler try
            the stage once more.
        detail: ``wall`` and ``cpu`` in seconds, ``peak_rss`` in bytes, and whatever the body returned; ``spent`` where
            the process can run no further stage.
        worker: the worker that ran it, for people.
    """

    failure: Failure | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)
    worker: str = ""


@dataclass(frozen=True)
class Event:
    """One thing that happened to a stage, for a progress display.

    Attributes:
        kind: ``started``, ``finished``, ``cached`` (its artifact is there already), ``failed``, ``retried`` (its
            worker died, it runs once more), ``waiting`` (another ``bench`` process runs it) or ``skipped``.
        stage: the stage.
        seconds: time since the attempt started, as the parent sees it.
        worker: the worker that ran it, for people.
        failure: for ``failed``, ``skipped`` and ``retried``.
        detail: the report's detail.
    """

    kind: str
    stage: Stage
    seconds: float = 0.0
    worker: str = ""
    failure: Failure | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)


Observer = Callable[[Event], None]


@dataclass
class StageOutcomes:
    """The result of a run: keys of the stages it finished, of those found ready, and the failures."""

    finished: list[str] = field(default_factory=list)
    failures: dict[str, Failure] = field(default_factory=dict)
    cached: list[str] = field(default_factory=list)
    seconds: float = 0.0


class Engine:
    """A place to run stages: ``with options.make() as engine: run(..., engine=engine)``.

    The scheduler keeps at most so many stages submitted as there are slots, and calls every method from one thread.
    """

    in_process = False
    """True where the scheduler runs all stages itself, in the calling process."""
    slots = 0
    """Number of stages that may run at a time, now; those in ``device_slots`` are not counted."""
    device_slots = 0
    """Number of stages that train networks beside them; 0 where these share the slots with all others."""

    def start(self, job: Job) -> None:
        """Take the job. An engine may serve several runs of one job, one after the other."""

    def submit(self, stage: Stage) -> Future[StageReport]:
        """Run one stage. The future never raises: whatever went wrong is in the report."""
        raise NotImplementedError

    def tick(self) -> float | None:
        """Enforce the limits on running stages; seconds until the next call is due, ``None`` for no hurry."""
        return None

    def kill(self) -> None:
        """End every running stage at once. Called when the run is interrupted."""

    def close(self) -> None:
        """Free the workers."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
