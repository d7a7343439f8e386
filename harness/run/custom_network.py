"""A user's own network as a row of a suite's table: trained by the suite's protocol, or as it comes.

The row is made by the same stages as any other, from the same data and seeds, and scored where the sealed labels are.
It is no registered method: it has no key, nothing of it is cached, and the table says so.
"""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from torch import Tensor, nn

from harness.component import BUILT_IN
from harness.engine import EngineOptions
from harness.engine.process_state import one_thread
from harness.errors import BenchError, UserError
from harness.plan import build_plan
from harness.registry.catalog import Catalog, Entry
from harness.registry.index_build import traits
from harness.results.rows import RunResults
from harness.results.selection import mark_selected
from harness.run.collect import collect
from harness.run.execute import run_targets
from harness.run.record import start_record
from harness.run.session import Session
from harness.safe_io import write_text, yaml_text
from harness.stages import score, train
from harness.stages.context import Context
from harness.stages.reading import as_float32, read_graphs, read_info
from harness.store import Scratch
from harness.suite import load_suite
from harness.suite.settings import LAST, best_rule
from harness.training.bases import Baseline
from harness.training.loop import predict

if TYPE_CHECKING:
    from harness.graphs import Batch
    from harness.store import Stage
    from harness.training.networks import LearnerInfo

FLAG = "not a registered method: no key, not cached"
SAME_START = "every seed starts from the weights given"
AS_IT_COMES = "trained elsewhere, on what and how is not known here"
Make = Callable[["LearnerInfo"], nn.Module]
"""Called for each seed with what is known of the data; returns the network."""
Call = Callable[[nn.Module, "Batch"], Tensor]
"""Applies the network to a batch."""
_CURRENT: Final[ContextVar[tuple[nn.Module | Make, Call]]] = ContextVar("bench_custom_network")


class CustomModule(Baseline):
    """A network of the user's own, trained on the mean risk."""

    name = "custom-module"

    def build(self) -> None:
        """Make the user's network, under the seed of the initialisation."""
        network, self._call = _CURRENT.get()
        made: Any = network if isinstance(network, nn.Module) else network(self.info)
        if not isinstance(made, nn.Module):
            raise UserError(f"a network must be a torch.nn.Module, not {type(made).__name__}")
        self.network = copy.deepcopy(made)  # a function may give the same one for each seed

    def forward(self, batch: Batch) -> Tensor:
        """(B, C) logits, or (B, T) for multi-task."""
        logits = self._call(self.network, batch)
        wanted = (batch.num_graphs, self.info.task.outputs)
        if not isinstance(logits, Tensor) or tuple(logits.shape) != wanted:
            got = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
            raise UserError(f"the network must return logits of shape {wanted} for {wanted[0]} graphs, not {got}")
        return logits


def evaluate(
    label: str,
    network: nn.Module | Make,
    session: Session,
    *,
    call: Call | None = None,
    trained: bool = False,
) -> RunResults:
    """Return the results of a user's network: one row, of which nothing is stored. Datasets are, as in a run.

    The arguments are those of :meth:`harness.notebook.SuiteHandle.evaluate`.

    Raises:
        UserError: the network does not fit the data, or the label is taken.
        BenchError: a dataset could not be prepared.
        Exception: whatever the network raises.
    """
    remark = AS_IT_COMES if trained else ""
    if isinstance(network, nn.Module):
        remark = remark or SAME_START
    elif isinstance(network, Tensor) or not callable(network):
        raise UserError(f"expected a torch.nn.Module or a function that makes one, not {type(network).__name__}")
    with tempfile.TemporaryDirectory(prefix="bench-custom-") as name:
        folder = Path(name)
        opened = _with_custom(session, label, folder, trained)
        stages = opened.plan.stages
        inputs = [stages[cell.score].inputs[0] for cell in opened.plan.cells]
        failure = run_targets(opened, EngineOptions("inline", retry_failed=True), lambda _: None, inputs)
        if failure is not None:
            raise BenchError(f"a dataset could not be prepared: {failure.reason}")
        scratch = Scratch(session.store, folder / "store")
        context = Context(scratch, session.data_dir)
        token = _CURRENT.set((network, call or (lambda module, batch: module(batch))))
        try:
            with one_thread():
                for cell in opened.plan.cells:
                    (_predict if trained else train.body)(stages[cell.train], context)
                    score.body(stages[cell.score], context)
        finally:
            _CURRENT.reset(token)
        results = collect(start_record(opened, ""), scratch)
    flags = "; ".join(filter(None, (FLAG, remark)))
    return _flagged(results, flags, session.suite.seeds[1:] if trained else ())


def _flagged(results: RunResults, flags: str, other_seeds: Sequence[int]) -> RunResults:
    """Add what a reader should know; drop ids and keys, as no command finds a cell that was not stored.

    A network that was trained before has one value: the rows of the other seeds say so.
    """
    rows = [replace(row, cell="", key="", reason=flags if row.status == "ok" else row.reason) for row in results.rows]
    if other_seeds:
        rows = [replace(row, epoch=None) for row in rows]
    reason = f"{FLAG}; one trained network has one value"
    rows += [
        replace(row, seed=seed, value=None, epoch=None, status="skipped", reason=reason)
        for seed in other_seeds
        for row in rows
    ]
    return results.with_rows(rows)


def _predict(stage: Stage, context: Context) -> None:
    """Write the artifact of a training for a network that needs none: the same weights under either checkpoint rule."""
    payload, store = stage.payload, context.store
    train = read_graphs(store, payload.data, payload.train)
    info = read_info(payload, payload.networks, train, environments=0, total_steps=0)
    learner = CustomModule()
    learner.info = info
    learner.build()
    rules = [*(best_rule(split) for split in payload.validation), LAST]
    predictions: dict[str, Tensor] = {}
    for split in payload.splits:
        graphs = read_graphs(store, payload.data, split, max_batch_nodes=payload.networks.settings.max_batch_nodes)
        logits = as_float32(predict(learner, graphs.batches(payload.networks.settings.eval_batch_size)))
        predictions |= {f"{rule}/{split}": logits.clone() for rule in rules}
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
        draft.write_tensors("predictions", predictions)


def _with_custom(session: Session, label: str, folder: Path, trained: bool) -> Session:
    """Return the suite with one method, the user's network, planned."""
    suite = session.suite
    if label in suite.methods:
        raise UserError(f"the suite has a method '{label}'; give the network another name")
    left_out = ("report", "analyses", "trackers", "budget", "tune")
    resolved = {name: value for name, value in suite.resolved.items() if name not in left_out}
    resolved["methods"] = {label: {CustomModule.kind: CustomModule.name}}
    resolved["seeds"] = list(suite.seeds)[: 1 if trained else None]
    path = folder / "suite.yaml"
    write_text(path, yaml_text(resolved))
    catalog = Catalog([*session.catalog, _entry()], core_files=session.catalog.core_files)
    suite = load_suite(path, catalog, session.facts.declare)
    return replace(session, suite=suite, catalog=catalog, plan=build_plan(suite, catalog, session.facts))


def _entry() -> Entry:
    return Entry(
        kind=CustomModule.kind,
        name=CustomModule.name,
        module=CustomModule.__module__,
        qualname=CustomModule.__qualname__,
        file=str(Path(__file__).resolve()),
        plugin=BUILT_IN,
        digest="",
        traits=traits(CustomModule),
    )


def beside(results: RunResults, custom: RunResults) -> RunResults:
    """Return a run's results with a user's row below the others; an earlier row of that name is replaced."""
    return mark_selected(
        replace(
            results,
            methods=(*(method for method in results.methods if method not in custom.methods), *custom.methods),
            entries=(*(entry for entry in results.entries if entry.method not in custom.methods), *custom.entries),
            unsupported=(*(o for o in results.unsupported if o.method not in custom.methods), *custom.unsupported),
            rows=(*(row for row in results.rows if row.method not in custom.methods), *custom.rows),
        )
    )
