"""One cell by what people call it: the id that reports show, or a suite narrowed by options. No torch."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

from harness.errors import UserError, did_you_mean
from harness.plan.build import Cell
from harness.plan.stage import Stage
from harness.run.reproduce import find_cell
from harness.run.session import Options, Session, open_session
from harness.store.store import Store
from harness.suite import Overrides, find_suite

_ID = re.compile(r"[0-9a-f]{8}")


@dataclass(frozen=True)
class Addressed:
    """A cell that was asked for.

    Attributes:
        session: its suite, narrowed to what was asked for.
        cell: the cell.
        fitting: how many cells were asked for; the first is taken.
    """

    session: Session
    cell: Cell
    fitting: int = 1

    @property
    def train(self) -> Stage:
        """The stage that trains it."""
        return self.session.plan.stages[self.cell.train]

    @property
    def text(self) -> str:
        """The cell in words."""
        cell = self.cell
        chosen = "" if cell.configuration.id == "-" else f" ({cell.configuration.id})"
        return f"cell {cell.id}: {cell.method}{chosen} on {cell.dataset}, seed {cell.seed}"


def find(target: str, options: Options, config: str | None = None) -> Addressed:
    """The cell with an id, or the first cell of a suite that fits the overrides.

    Args:
        target: id of a cell of any run of the store, or a suite file or name.
        options: where store and data are. Of the overrides of a cell with an id, epochs and sets count.
        config: id of a configuration of a tuned method; the first where absent.

    Raises:
        UserError: there is no such cell or suite, or no such configuration.
    """
    if _ID.fullmatch(target) and not Path(target).is_file():
        return _by_id(target, options, config)
    try:
        find_suite(target)
    except UserError as error:
        raise UserError(
            f"'{target}' is not the id of a cell (8 digits, 0-9 and a-f) and not a suite: {error}"
        ) from None
    session = open_session(target, options)
    return _chosen(session, config)


def _by_id(cell_id: str, options: Options, config: str | None) -> Addressed:
    given = options.overrides
    if config is not None or given.seeds is not None or given.datasets or given.methods:
        raise UserError(f"'{cell_id}' is one cell: --seeds, --datasets, --methods and --config narrow a suite")
    store = Store(options.store)
    record, cell = find_cell(cell_id, store)
    suite = store.runs / record.id / "suite.yaml"
    if not suite.is_file():
        raise UserError(f"run {record.id} has lost its suite ({suite} is not there)")
    only = Overrides(
        seeds=str(cell.seed),
        epochs=given.epochs,
        sets=given.sets,
        datasets=(cell.dataset,),
        methods=(cell.method,),
    )
    session = open_session(str(suite), replace(options, overrides=only))
    return _chosen(session, cell.config_id)


def _chosen(session: Session, config: str | None) -> Addressed:
    cells = session.plan.cells
    fitting = [cell for cell in cells if config is None or cell.configuration.id == config]
    if not fitting:
        known = list(dict.fromkeys(cell.configuration.id for cell in cells))
        raise UserError(
            f"no configuration is called '{config}'{did_you_mean(config or '', known)}; there are: {'; '.join(known)}"
        )
    return Addressed(session, fitting[0], len(fitting))
