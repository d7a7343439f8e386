"""A user's own network as a row of a suite's table: trained by the suite's protocol, or as it comes.

The row is made by the same stages as any other, from the same data and seeds, and scored where the sealed labels are.
It is no registered method: it has no key, nothing of it is cached, and the table says so.
"""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import yaml
from torch import Tensor, nn

from harness.engine.threads import one_thread
from harness.errors import UserError
from harness.plan import build_plan
from harness.registry.catalog import Catalog, Entry
from harness.registry.index_worker import traits
from harness.results.rows import LAST, RunResults
from harness.results.selection import mark_selected
from harness.run.collect import collect
from harness.run.record import start_record
from harness.run.session import Session
from harness.stages import score, train
from harness.stages.context import Context
from harness.stages.reading import as_float32, read_graphs, read_info
from harness.store.scratch import Scratch
from harness.suite import load_suite
from harness.training.bases import Baseline
from harness.training.loop import best_rule, predict

if TYPE_CHECKING:
    from harness.graphs import Batch
    from harness.plan.build import Cell
    from harness.store.stage import Stage
    from harness.training.networks import LearnerInfo

FLAG = "not a registered method: no key, not cached"
SAME_START = "every seed starts from the weights given"
AS_IT_COMES = "trained elsewhere, on what and how is not known here"
Make = Callable[["LearnerInfo"], nn.Module]
Call = Callable[[nn.Module, "Batch"], Tensor]


@dataclass(frozen=True)
class OwnNetwork:
    """What the user gives.

    Attributes:
        make: called for each seed with what is known of the data (:class:`LearnerInfo`); returns the network.
        call: how the network is applied to a batch, where not ``network(batch)``.
        flags: what a reader of the table should know.
    """

    make: Make
    call: Call | None = None
    flags: tuple[str, ...] = (FLAG,)


_AT_WORK: Final[ContextVar[OwnNetwork]] = ContextVar("bench_own_network")


class OwnModule(Baseline):
    """A network of the user's own, trained on the mean risk."""

    name = "own-module"

    def build(self) -> None:
        """Make the user's network, under the seed of the initialisation."""
        self._own = _AT_WORK.get()
        self.network = self._own.make(self.info)
        if not isinstance(self.network, nn.Module):
            raise UserError(f"a network must be a torch.nn.Module, not {type(self.network).__name__}")

    def forward(self, batch: Batch) -> Tensor:
        """(B, C) logits, or (B, T) for multi-task."""
        call = self._own.call
        logits = self.network(batch) if call is None else call(self.network, batch)
        wanted = (batch.num_graphs, self.info.task.outputs)
        if not isinstance(logits, Tensor) or tuple(logits.shape) != wanted:
            got = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
            raise UserError(f"the network must return logits of shape {wanted} for {wanted[0]} graphs, not {got}")
        return logits


@contextmanager
def _at_work(own: OwnNetwork) -> Iterator[None]:
    token = _AT_WORK.set(own)
    try:
        yield
    finally:
        _AT_WORK.reset(token)


def network_of(given: nn.Module | Make, call: Call | None) -> OwnNetwork:
    """A network that is there already, of which each seed trains a copy, or a function that makes one.

    Raises:
        UserError: it is neither.
    """
    if isinstance(given, nn.Module):
        return OwnNetwork(lambda _: copy.deepcopy(given), call, (FLAG, SAME_START))
    if isinstance(given, Tensor) or not callable(given):
        raise UserError(f"expected a torch.nn.Module or a function that makes one, not {type(given).__name__}")
    return OwnNetwork(given, call)


def own_row(
    label: str, own: OwnNetwork, session: Session, data_dir: Path | None, *, trained: bool, datasets: tuple[str, ...]
) -> RunResults:
    """The results of a user's network: one row, and nothing stored.

    Args:
        label: its name in the table.
        own: the network.
        session: the suite; its datasets must have been prepared.
        data_dir: the user's data folder, or None.
        trained: take the networks as they come, without training; only the suite's first seed then has a value.
        datasets: labels of the suite's datasets to take.

    Raises:
        UserError: the network does not fit the data.
        Exception: whatever the network raises.
    """
    with tempfile.TemporaryDirectory(prefix="bench-own-") as name, one_thread(), _at_work(own):
        folder = Path(name)
        opened = _with_own(session, label, folder, datasets, trained)
        scratch = Scratch(session.store, folder / "store")
        context = Context(scratch, data_dir)
        for cell in opened.plan.cells:
            stages = opened.plan.stages
            (_predict if trained else train.body)(stages[cell.train], context)
            score.body(stages[cell.score], context)
        found = _flagged(collect(start_record(opened, ""), scratch), (FLAG, AS_IT_COMES) if trained else own.flags)
        return _one_value(found, session.suite.seeds) if trained else found


def _flagged(results: RunResults, flags: Sequence[str]) -> RunResults:
    """With what a reader should know, and without ids and keys: no command finds a cell that was not stored."""
    told = "; ".join(flags)
    return results.with_rows(
        replace(row, cell="", key="", reason=told if row.status == "ok" else row.reason) for row in results.rows
    )


def _one_value(results: RunResults, seeds: Sequence[int]) -> RunResults:
    """The table says of the other seeds why they have none."""
    why = {"value": None, "epoch": None, "status": "skipped", "reason": f"{FLAG}; one trained network has one value"}
    first = [replace(row, epoch=None) for row in results.rows]
    others = [replace(row, seed=seed, **why) for seed in seeds[1:] for row in first]  # type: ignore[arg-type]
    return results.with_rows([*first, *others])


def _predict(stage: Stage, context: Context) -> None:
    """What a training leaves, from a network that needs none; the same weights under either checkpoint rule."""
    payload, store = stage.payload, context.store
    info = read_info(payload, read_graphs(store, payload["data"], payload["train"]), environments=0, total_steps=0)
    learner = OwnModule()
    learner.info = info
    learner.build()
    rules = [*(best_rule(split) for split in payload["validation"]), LAST]
    found: dict[str, Tensor] = {}
    for split in payload["splits"]:
        graphs = read_graphs(store, payload["data"], split, max_batch_nodes=payload["loop"]["max_batch_nodes"])
        logits = as_float32(predict(learner, graphs.batches(payload["loop"]["eval_batch_size"])))
        found |= {f"{rule}/{split}": logits.clone() for rule in rules}
    facts = {
        "epochs": 0,
        "parameters": sum(value.numel() for value in learner.parameters()),
        "environments": 0,
        "flags": [],
    }
    with store.create(stage) as draft:
        draft.write_json("history", [])
        draft.write_json("checkpoints", {rule: {"epoch": None, "score": None} for rule in rules})
        draft.write_json("info", facts)
        draft.write_tensors("predictions", found)


def _with_own(session: Session, label: str, folder: Path, datasets: tuple[str, ...], trained: bool) -> Session:
    """The suite with one method, the user's network, planned."""
    if label in session.suite.methods:
        raise UserError(f"the suite has a method '{label}'; give the network another name")
    resolved = {
        name: value
        for name, value in session.suite.resolved.items()
        if name not in ("methods", "report", "analyses", "trackers", "budget")
    }
    resolved["methods"] = {label: {OwnModule.kind: OwnModule.name}}
    resolved["datasets"] = {name: resolved["datasets"][name] for name in datasets}
    resolved["seeds"] = list(session.suite.seeds)[: 1 if trained else None]
    path = folder / "suite.yaml"
    path.write_text(yaml.safe_dump(resolved, sort_keys=False, allow_unicode=True), encoding="utf-8")
    catalog = Catalog([*session.catalog, _entry()], rooms=session.catalog.rooms)
    suite = load_suite(path, catalog, session.facts.declare)
    return replace(session, suite=suite, catalog=catalog, plan=build_plan(suite, catalog, session.facts))


def _entry() -> Entry:
    return Entry(
        kind=OwnModule.kind,
        name=OwnModule.name,
        module=OwnModule.__module__,
        qualname=OwnModule.__qualname__,
        file=str(Path(__file__).resolve()),
        plugin="built-in",
        digest="",
        traits=traits(OwnModule),
    )


def beside(results: RunResults, own: RunResults) -> RunResults:
    """A run's results with a user's row below the others."""
    rest = [row for row in results.rows if row.method not in own.methods]
    entries = [entry for entry in results.entries if entry.method not in own.methods]
    methods = [method for method in results.methods if method not in own.methods]
    joined = replace(
        results,
        methods=(*methods, *own.methods),
        entries=(*entries, *own.entries),
        rows=(*rest, *own.rows),
    )
    return mark_selected(joined)


def prepared(session: Session, cells: list[Cell]) -> list[str]:
    """Keys of the prepared datasets of some cells."""
    return list(dict.fromkeys(session.plan.stages[cell.score].inputs[0] for cell in cells))
