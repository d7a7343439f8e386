"""Profile one cell: what it builds on is run where the store lacks it, then the first steps of its training."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from harness.devices import CPU
from harness.errors import BenchError, UserError
from harness.names import file_name
from harness.profiling.result import Profile, StageTime
from harness.runs.execute import EngineOptions, run_targets
from harness.stages.context import Context

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.engine import Event
    from harness.profiling.training import Limits
    from harness.runs.address import Addressed
    from harness.runs.session import Options
    from harness.stage import Stage


def profile(
    found: Addressed,
    options: Options,
    limits: Limits,
    observe: Callable[[Event], None],
    *,
    top: int = 12,
    functions: bool = False,
    trace: Path | None = None,
    device: str = CPU,
) -> Profile:
    """Measure a cell's training and the plain baseline's on the same data, in this process.

    Args:
        found: the cell.
        options: where store and data are.
        limits: how much is measured.
        observe: told of stages before the training that have to run first; these are stored, as in a run.
        top: how many operations and functions are told.
        functions: whether Python functions are measured too.
        trace: folder to write a Chrome trace of some steps to, or None.
        device: where networks are trained, see :class:`harness.stages.context.Context`.

    Raises:
        UserError: the folder for the trace cannot be made; nothing has been run.
        BenchError: a stage before the training failed.
        Exception: whatever the learner raises.
    """
    from harness.profiling.operations import Recorder
    from harness.profiling.training import measure, plain

    session, cell = found.session, found.cell
    if trace is not None:
        _make(trace)
    _upstream(found, options, observe, device)
    context = Context(session.store, options.data_dir, device)
    path = None if trace is None else trace / file_name(f"{cell.method}-{cell.dataset}-{cell.id}.trace.json")
    recorder = Recorder(top, functions=functions, trace=path)
    own = measure(found.train, context, limits, recorder)
    erm = measure(plain(found.train), context, limits)
    return Profile(
        cell=cell.id,
        method=cell.method,
        dataset=cell.dataset,
        seed=cell.seed,
        config=cell.configuration.id,
        stages=tuple(_time(stage, found) for stage in _stages(found)),
        batch_size=cell.configuration.train.batch_size,
        training=own.profile,
        plain=erm.profile,
        operations=own.operations,
        functions=own.functions,
        trace=None if own.trace is None else str(own.trace),
    )


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"no trace can be written to {folder}: {error.strerror or error}") from None


def _upstream(found: Addressed, options: Options, observe: Callable[[Event], None], device: str) -> None:
    import tempfile

    with tempfile.TemporaryDirectory(prefix="bench-profile-") as folder:
        log = Path(folder) / "workers.log"
        inline = EngineOptions("inline", device=device)
        failure = run_targets(found.session, options, inline, observe, found.train.inputs, log)
    if failure is not None:
        raise BenchError(f"a stage before the training failed: {failure.reason}")


def _stages(found: Addressed) -> list[Stage]:
    plan = found.session.plan
    ancestry = plan.ancestry(found.cell.score)
    return [stage for key, stage in plan.stages.items() if key in ancestry]


def _time(stage: Stage, found: Addressed) -> StageTime:
    seconds = found.session.store.record(stage.key).get("seconds")
    return StageTime(stage.kind, stage.title, None if seconds is None else float(seconds))
