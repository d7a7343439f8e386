"""The harness in a notebook or script: open a suite, run cells, read results, add a network of yours.

Everything runs in this process, one stage after the other; ``suite.run(jobs=4)`` starts worker processes. An interrupt
(Ctrl-C, or the stop button) ends a run; what is finished stays in the store, and the next run goes on from there.

This is not the API that plugins import (:mod:`harness`). Nothing here imports torch before something has to run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.engine import EngineOptions, Event
from harness.errors import UserError, did_you_mean
from harness.plan import build_plan
from harness.report import make_report, render
from harness.results.rows import RunResults
from harness.run.collect import collect
from harness.run.execute import execute
from harness.run.find import find_run
from harness.run.record import start_record
from harness.run.session import Options, Session, open_session
from harness.store import Store, data_folder
from harness.suite import Overrides

if TYPE_CHECKING:
    import pandas as pd
    from torch import nn

    from harness.run.custom_network import Call, Make

__all__ = ["Run", "SuiteHandle", "latest", "open_suite"]
_CELL = ("id", "dataset", "method", "config_id", "seed")


def open_suite(
    suite: str | Path,
    *,
    datasets: Iterable[str] = (),
    methods: Iterable[str] = (),
    seeds: Sequence[int] | None = None,
    epochs: int | None = None,
    sets: Iterable[str] = (),
    store: str | Path | None = None,
    data_dir: str | Path | None = None,
    plugins: Iterable[str] = (),
) -> SuiteHandle:
    """Open a suite, as ``bench run`` would.

    Args:
        suite: a file, or the name of an installed suite.
        datasets, methods: globs of the columns and rows to take; all without any.
        seeds: training seeds instead of the suite's.
        epochs: epochs of every training.
        sets: ``KEY=VALUE`` texts, as of ``--set``.
        store, data_dir: folders; ``BENCH_STORE`` and ``BENCH_DATA`` or the user's cache where absent.
        plugins: further plugin files.

    Raises:
        UserError: anything that you can mend; nothing has been run.
    """
    overrides = Overrides(
        seeds=None if seeds is None else ",".join(map(str, seeds)),
        epochs=epochs,
        sets=tuple(sets),
        datasets=tuple(datasets),
        methods=tuple(methods),
    )
    data = data_folder(_path(data_dir), "data_dir")
    return SuiteHandle(open_session(str(suite), Options(_path(store), data, overrides, tuple(map(Path, plugins)))))


def latest(name: str | Path, *, store: str | Path | None = None) -> Run:
    """Read a suite's latest complete run (else its latest) by its name or file, or a run by its id; nothing is run.

    Raises:
        UserError: there is none.
    """
    opened = Store(_path(store))
    return Run(collect(find_run(str(name), opened), opened))


@dataclass(frozen=True)
class SuiteHandle:
    """An opened suite; ``session`` is the harness's own object."""

    session: Session = field(repr=False)

    @property
    def cells(self) -> list[dict[str, Any]]:
        """Every cell: ``id``, ``dataset``, ``method``, ``config_id`` and ``seed``."""
        return [{name: getattr(cell, name) for name in _CELL} for cell in self.session.plan.cells]

    def run(self, *, jobs: int | None = None, progress: bool = False, retry_failed: bool = False) -> Run:
        """Run what is not cached, leave a run folder, and return the results.

        Args:
            jobs: worker processes; none where absent, everything runs here.
            progress: print a line for each stage that ends.
            retry_failed: run stored failures again.

        Raises:
            KeyboardInterrupt: finished stages are kept.
            DataError: a dataset cannot be built from its files; nothing has been trained.
        """
        engine = EngineOptions("inline" if jobs is None else "processes", jobs, retry_failed=retry_failed)
        return Run(execute(self.session, engine, _print_ended if progress else lambda _: None).results, self)

    def run_cell(self, cell: str | None = None, *, progress: bool = False, **named: str | int) -> Run:
        """Run one cell, by its id or by ``dataset``, ``method``, ``seed`` and ``config_id``; a run of its own.

        Raises:
            UserError: no cell, or more than one, is so.
        """
        wanted = named if cell is None else {"id": cell, **named}
        cells = self.session.plan.cells
        for name in wanted:
            if name not in _CELL:
                raise UserError(f"a cell has no '{name}'{did_you_mean(name, _CELL)}; it has: {', '.join(_CELL)}")
        fitting = [item for item in cells if all(getattr(item, name) == value for name, value in wanted.items())]
        if len(fitting) != 1:
            known = "; ".join(f"{item.id} ({item.name})" for item in (fitting or cells)[:8])
            raise UserError(f"{len(fitting)} cells fit {wanted}; name one of them by its id, such as {known}")
        (chosen,) = fitting
        suite = self.session.suite
        row = next(row for row in suite.rows if (row.dataset, row.method) == (chosen.dataset, chosen.method))
        suite = replace(
            suite,
            seeds=(chosen.seed,),
            datasets=(suite.dataset(chosen.dataset),),
            methods=(chosen.method,),
            rows=(replace(row, configurations=(chosen.configuration,), pending=0),),
            analyses=(),
            trackers=(),
            overrides=(*suite.overrides, f"cell {chosen.id} alone"),
            departures=(),  # n=1 says that there is one seed
        )
        plan = build_plan(suite, self.session.catalog, self.session.facts)
        return SuiteHandle(replace(self.session, suite=suite, plan=plan)).run(progress=progress)

    def evaluate(
        self,
        label: str,
        network: nn.Module | Make,
        *,
        beside: Run | None = None,
        trained: bool = False,
        call: Call | None = None,
    ) -> Run:
        """Show a network of yours as a row of the table: same data, seeds, training settings and sealed labels.

        Args:
            network: a function from :class:`LearnerInfo` (``info.task.outputs`` logits, ``info.node_features``) to a
                ``torch.nn.Module``, called once for each seed, or a module, of which each seed trains a copy. It takes
                a PyG-style batch (``x``, ``edge_index``, ``batch``, ``num_graphs``) and gives logits, a row per graph.
            beside: a run whose rows stand above; that of this suite, if it has one, where absent.
            trained: do not train: the network comes with its weights. The row has one value, under the first seed.
            call: how it is applied to a batch, e.g. ``lambda net, b: net(b.x, b.edge_index, b.batch)``.

        Raises:
            UserError: the network does not fit the data, or the label is taken.
            Exception: whatever the network raises.
        """
        from harness.run import custom_network

        row = custom_network.evaluate(label, network, self.session, call=call, trained=trained)
        if beside is None:
            record = replace(start_record(self.session, ""), status="")
            return Run(custom_network.beside(collect(record, self.session.store), row), self)
        return Run(custom_network.beside(beside.results, row), self)


@dataclass(frozen=True)
class Run:
    """Results, and the suite that they are of; None where they were read from a store."""

    results: RunResults = field(repr=False)
    suite: SuiteHandle | None = field(default=None, repr=False)

    def rows(self) -> list[dict[str, Any]]:
        """Return the flat table: one value of one cell on one split under one checkpoint rule a row."""
        return [asdict(row) for row in self.results.rows]

    def frame(self) -> pd.DataFrame:
        """Return :meth:`rows` as a pandas data frame.

        Raises:
            UserError: pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError:
            raise UserError("frame() needs pandas: pip install 'equad-bench[notebook]'") from None
        return pd.DataFrame(self.rows())

    def table(self, style: str = "plain") -> str:
        """Write the comparison table with its caption: ``plain``, ``markdown``, ``latex``, ``csv`` or ``json``."""
        return render(make_report(self.results), style)

    def evaluate(self, label: str, network: nn.Module | Make, **options: Any) -> Run:
        """Show this run with a network of yours as a row below; see :meth:`SuiteHandle.evaluate`.

        Raises:
            UserError: the run was read from a store; open its suite instead.
        """
        if self.suite is None:
            raise UserError("this run was read from a store: open its suite with open_suite and use its evaluate")
        return self.suite.evaluate(label, network, beside=self, **options)

    def __repr__(self) -> str:
        return self.table()

    def _repr_markdown_(self) -> str:
        """Return what a notebook shows."""
        return self.table("markdown")


def _path(folder: str | Path | None) -> Path | None:
    return None if folder is None else Path(folder)


def _print_ended(event: Event) -> None:
    if event.kind in ("finished", "failed", "skipped"):
        why = "" if event.failure is None else f": {event.failure.reason}{event.failure.remark}"
        print(f"{event.kind}: {event.stage.title} ({event.seconds:.1f} s){why}")
