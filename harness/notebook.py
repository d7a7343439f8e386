"""The harness in a notebook or script: open a suite, look at its plan, run cells, read results, add a network of yours.

.. code-block:: python

    from harness import notebook as bench

    suite = bench.open_suite("quick", methods=["ERM"], seeds=[1])
    run = suite.run()
    run.frame()

Everything runs in this process, one stage after the other, so that no ``if __name__ == "__main__"`` is needed and a
running event loop is not in the way; ``suite.run(jobs=4)`` starts worker processes. An interrupt (Ctrl-C, or the stop
button) ends a run; what is finished stays in the store, and the next run goes on from there.

This is not the API that plugins import (:mod:`harness`). Nothing here imports torch before something has to run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.errors import UserError
from harness.results.rows import RunResults
from harness.run.session import Options, Session, open_session
from harness.store.folders import data_folder
from harness.suite import Overrides

if TYPE_CHECKING:
    import pandas as pd
    from torch import nn

    from harness.engine import Event
    from harness.run.custom_network import Call, Make

__all__ = ["Run", "SuiteHandle", "latest", "open_suite"]


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
        sets=_texts(sets, "sets"),
        datasets=_texts(datasets, "datasets"),
        methods=_texts(methods, "methods"),
    )
    data = data_folder(None if data_dir is None else Path(data_dir), "data_dir")
    options = Options(_folder(store), data, overrides, tuple(map(Path, _texts(plugins, "plugins"))))
    return SuiteHandle(open_session(str(suite), options), options)


def _folder(given: str | Path | None) -> Path | None:
    return None if given is None else Path(given).expanduser()


def _texts(values: Iterable[str], name: str) -> tuple[str, ...]:
    """A text alone is a mistake that would otherwise be taken letter by letter."""
    if isinstance(values, str):
        raise UserError(f"{name} takes a list: {name}=[{values!r}]")
    return tuple(values)


@dataclass(frozen=True)
class SuiteHandle:
    """An opened suite. ``session`` and ``options`` are the harness's own objects."""

    session: Session = field(repr=False)
    options: Options = field(repr=False)

    @property
    def cells(self) -> list[dict[str, Any]]:
        """Every cell: ``id``, ``dataset``, ``method``, ``config_id`` and ``seed``."""
        return [
            {
                "id": cell.id,
                "dataset": cell.dataset,
                "method": cell.method,
                "config_id": cell.configuration.id,
                "seed": cell.seed,
            }
            for cell in self.session.plan.cells
        ]

    def plan(self) -> list[dict[str, Any]]:
        """Where every stage stands (``bench plan``): ``kind``, ``title``, ``state``, ``reason``, ``seconds``.

        ``stored`` says when a stage failed in an earlier run; it runs again with ``run(retry_failed=True)``.
        """
        from harness.plan.status import survey

        return [
            {
                "kind": status.stage.kind,
                "title": status.stage.title,
                "state": status.state,
                "reason": status.reason,
                "seconds": status.seconds,
                "stored": status.stored,
            }
            for status in survey(self.session.plan, self.session.store)
        ]

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
        from harness.run.execute import EngineOptions, execute

        engine = EngineOptions("inline" if jobs is None else "processes", jobs, retry_failed=retry_failed)
        done = execute(self.session, self.options, engine, _told if progress else _quiet)
        return Run(done.results, self)

    def run_cell(
        self,
        cell: str | None = None,
        *,
        dataset: str | None = None,
        method: str | None = None,
        seed: int | None = None,
        config_id: str | None = None,
        progress: bool = False,
    ) -> Run:
        """Run one cell, given its id or what tells it from the others; a run of its own with that cell alone.

        Raises:
            UserError: no cell, or more than one, is so.
        """
        wanted = {"id": cell, "dataset": dataset, "method": method, "seed": seed, "config_id": config_id}
        asked = {name: value for name, value in wanted.items() if value is not None}
        found = [one for one in self.cells if all(one[name] == value for name, value in asked.items())]
        if len(found) != 1:
            text = ", ".join(f"{name}={value!r}" for name, value in asked.items()) or "nothing"
            some = (found or self.cells)[:8]
            known = "; ".join(f"{c['id']} ({c['method']} on {c['dataset']}, seed {c['seed']})" for c in some)
            raise UserError(f"{len(found)} cells fit {text}; name one of them by its id, such as {known}")
        return self._narrowed(found[0]).run(progress=progress)

    def _narrowed(self, cell: dict[str, Any]) -> SuiteHandle:
        """The suite with one cell in its plan."""
        from dataclasses import replace

        from harness.plan import Plan

        plan = self.session.plan
        (only,) = [one for one in plan.cells if one.id == cell["id"]]
        kept = plan.ancestry(only.score)
        narrow = Plan(plan.suite)
        narrow.add(stage for key, stage in plan.stages.items() if key in kept)
        narrow.cells.append(only)
        suite = self.session.suite
        row = next(row for row in suite.rows if (row.dataset, row.method) == (only.dataset, only.method))
        suite = replace(
            suite,
            seeds=(only.seed,),
            datasets=tuple(dataset for dataset in suite.datasets if dataset.label == only.dataset),
            methods=(only.method,),
            rows=(replace(row, configurations=(only.configuration,)),),
            analyses=(),
            trackers=(),
            overrides=(*suite.overrides, f"cell {only.id} alone"),
        )
        narrow.suite = suite
        return replace(self, session=replace(self.session, suite=suite, plan=narrow))

    def latest(self) -> Run:
        """The latest run of this suite, finished or not.

        Raises:
            UserError: there is none.
        """
        return latest(self.session.suite.path, store=self.session.store.root)

    def evaluate(
        self,
        label: str,
        network: nn.Module | Make,
        *,
        beside: Run | None = None,
        trained: bool = False,
        call: Call | None = None,
        datasets: Iterable[str] = (),
    ) -> Run:
        """A network of yours as a row of the table: same data, seeds, training settings and sealed labels.

        It is trained on the mean risk with the suite's optimizer, epochs and checkpoint rules. The row says that it is
        no registered method: it has no key, and nothing of it is cached.

        Args:
            label: its name in the table.
            network: a function from :class:`LearnerInfo` (``info.task.outputs`` logits, ``info.node_features``) to a
                ``torch.nn.Module``, called once for each seed, or a module, of which each seed trains a copy. It takes
                a PyG-style batch (``x``, ``edge_index``, ``batch``, ``num_graphs``) and gives logits, a row per graph.
            beside: a run whose rows stand above; that of this suite, if it has one, where absent.
            trained: do not train: the network comes with its weights. The row has one value, under the first seed.
            call: how it is applied to a batch, e.g. ``lambda net, b: net(b.x, b.edge_index, b.batch)``.
            datasets: labels of the datasets to take; all that the suite has where absent.

        Raises:
            UserError: the network does not fit the data, the label is taken, or a dataset is unknown.
            Exception: whatever the network raises.
        """
        from dataclasses import replace

        from harness.run import custom_network
        from harness.run.collect import collect
        from harness.run.record import start_record

        row = custom_network.evaluate(
            label,
            network,
            self.session,
            self.options,
            call=call,
            trained=trained,
            datasets=_texts(datasets, "datasets"),
        )
        if beside is None:  # what the store holds of this suite
            above = collect(replace(start_record(self.session, ""), status=""), self.session.store)
        else:
            above = beside.results
        return Run(custom_network.beside(above, row), self)


@dataclass(frozen=True)
class Run:
    """Results, and the suite that they are of (None where they were read from a store)."""

    results: RunResults = field(repr=False)
    suite: SuiteHandle | None = field(default=None, repr=False)

    def rows(self) -> list[dict[str, Any]]:
        """The flat table: one value of one cell on one split under one checkpoint rule a row."""
        return [asdict(row) for row in self.results.rows]

    def frame(self) -> pd.DataFrame:
        """:meth:`rows` as a pandas data frame.

        Raises:
            UserError: pandas is not installed.
        """
        return _frame(self.rows())

    def summary(self) -> list[dict[str, Any]]:
        """The comparison table: a dataset and method a row, with mean, spread, n and what is lacking."""
        from harness.report.build import make_report, to_json

        rows: list[dict[str, Any]] = to_json(make_report(self.results))["rows"]
        return rows

    def table(self, style: str = "plain") -> str:
        """The comparison table with its caption: ``plain``, ``markdown``, ``latex``, ``csv`` or ``json``."""
        from harness.report.build import make_report
        from harness.report.render import render

        return render(make_report(self.results), style)

    def evaluate(self, label: str, network: nn.Module | Make, **options: Any) -> Run:
        """This run with a network of yours as a row below; see :meth:`SuiteHandle.evaluate`.

        Raises:
            UserError: the run was read from a store; open its suite instead.
        """
        if self.suite is None:
            raise UserError("this run was read from a store: open its suite with open_suite and use its evaluate")
        return self.suite.evaluate(label, network, beside=self, **options)

    def __repr__(self) -> str:
        return self.table()

    def _repr_markdown_(self) -> str:
        """What a notebook shows."""
        return self.table("markdown")


def latest(name: str | Path, *, store: str | Path | None = None) -> Run:
    """The latest run of a suite by its name or file, or a run by its id, from the store; nothing is run.

    Raises:
        UserError: there is none.
    """
    from harness.run.collect import collect
    from harness.run.find import find_run
    from harness.store.store import Store

    opened = Store(_folder(store))
    return Run(collect(find_run(str(name), opened), opened))


def _frame(rows: list[dict[str, Any]]) -> pd.DataFrame:
    try:
        import pandas as pd
    except ImportError:
        raise UserError("frame() needs pandas: pip install 'equad-bench[notebook]'; rows() works without it") from None
    return pd.DataFrame(rows)


def _quiet(event: Event) -> None:
    """Say nothing."""


def _told(event: Event) -> None:
    """A line for each stage that ends."""
    if event.kind in ("finished", "failed", "skipped"):
        why = "" if event.failure is None else f": {event.failure.reason}{event.failure.remark}"
        print(f"{event.kind}: {event.stage.title} ({event.seconds:.1f} s){why}")
