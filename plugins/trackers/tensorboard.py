"""Curves and hyperparameters for TensorBoard."""

from __future__ import annotations

from pathlib import Path

from harness import Register, TrackedCell, TrackedRun, Tracker, UserError, hookimpl, hparam


class TensorBoard(Tracker):
    """Write event files: per cell the loss terms and validation scores by epoch, and its hyperparameters with scores.

    Each cell is a run of TensorBoard's (Abadi et al., *TensorFlow: A System for Large-Scale Machine Learning*, OSDI
    2016), so that methods and seeds can be laid over each other: ``tensorboard --logdir FOLDER``. Needs the extra
    ``tensorboard`` (the package tensorboardX, which needs neither TensorFlow nor torch).
    """

    name = "tensorboard"

    folder: str | None = hparam(
        None, help="where to write, from the current folder; none: `tensorboard` in the run folder"
    )

    def start(self, run: TrackedRun) -> None:
        try:
            from tensorboardX import SummaryWriter
        except ImportError:
            raise UserError("it needs tensorboardX: pip install 'equad-bench[tensorboard]'") from None
        self._writer = SummaryWriter
        self._folder = run.folder / "tensorboard" if self.folder is None else Path(self.folder).expanduser() / run.id

    def cell(self, cell: TrackedCell) -> None:
        if cell.status != "ok" and not cell.history:
            return
        with self._writer(str(self._folder / _name(cell)), write_to_disk=True) as writer:
            for epoch, numbers in cell.numbers:
                for name, value in numbers.items():
                    writer.add_scalar(_tag(name), value, epoch)
            chosen = {"dataset": cell.dataset, "method": cell.method, "seed": cell.seed, **cell.hyperparameters}
            for name, value in cell.scores.items():
                writer.add_scalar(_tag(f"score/{name}"), value, 0)
            writer.add_text("cell", ", ".join(f"{name}={value}" for name, value in chosen.items()), 0)


def _tag(name: str) -> str:
    """A tag that TensorBoard takes as it is."""
    return "".join(c if c.isalnum() or c in "-./_" else "_" for c in name)


def _name(cell: TrackedCell) -> str:
    """A folder name that says which cell it is."""
    text = "".join(c if c.isalnum() or c in "-_." else "-" for c in f"{cell.dataset}-{cell.method}-{cell.seed}")
    return f"{text[:100]}-{cell.id}"


@hookimpl
def bench_register(register: Register) -> None:
    register(TensorBoard)
