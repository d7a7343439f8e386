"""Runs for Weights & Biases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness import Register, TrackedCell, TrackedRun, Tracker, UserError, hookimpl, hparam


class WandB(Tracker):
    """One W&B run per cell, grouped by the bench run: configuration, curves by epoch, final scores as the summary.

    Weights & Biases (Biewald, *Experiment Tracking with Weights and Biases*, 2020, software). ``mode: offline`` writes
    to the run folder alone, for ``wandb sync`` later. Cells that were cached are left out unless ``cached`` is set.
    Needs the extra ``wandb``.
    """

    name = "wandb"
    probes = {"*": {"mode": "offline"}}

    project: str = hparam("bench", help="project")
    entity: str | None = hparam(None, help="user or team; none: the account's default")
    mode: str = hparam("online", choices=("online", "offline"), help="send at once, or write to the run folder")
    cached: bool = hparam(False, help="also log cells whose result was there before")

    def start(self, run: TrackedRun) -> None:
        try:
            import wandb
        except ImportError:
            raise UserError("it needs wandb: pip install 'equad-bench[wandb]'") from None
        self._wandb, self._run = wandb, run

    def cell(self, cell: TrackedCell) -> None:
        if cell.cached and not self.cached:
            return
        chosen = {"dataset": cell.dataset, "method": cell.method, "seed": cell.seed, "protocol": self._run.protocol}
        logged = self._wandb.init(
            project=self.project,
            entity=self.entity,
            mode=self.mode,
            dir=str(self._run.folder),
            group=self._run.id,
            name=cell.name,
            config={**chosen, **cell.hyperparameters},
            reinit="create_new",
            settings=self._wandb.Settings(silent=True, console="off"),  # the screen is the run's own
        )
        code = 1
        try:
            for epoch, numbers in cell.numbers:
                logged.log(numbers, step=epoch)
            logged.summary.update({f"score/{name}": value for name, value in cell.scores.items()})
            logged.summary.update({"status": cell.status, "reason": cell.reason, "cell": cell.id})
            code = 0 if cell.status == "ok" else 1
        finally:
            logged.finish(exit_code=code)

    def finish(self, table: Sequence[Mapping[str, Any]], status: str) -> None:
        del table, status
        if self._wandb.run is None:  # in a notebook, a run of the user's own goes on
            self._wandb.teardown()  # ends the process that it keeps


@hookimpl
def bench_register(register: Register) -> None:
    register(WandB)
