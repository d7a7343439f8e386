"""A small finished run on which analyses and trackers are tried: made once per process, in a store of its own."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from harness.component import Component
from harness.plan import build_plan
from harness.plan.datasets import DatasetFacts
from harness.registry.catalog import Catalog, Entry
from harness.registry.discovery import Source
from harness.registry.index import load_catalog
from harness.registry.index_worker import entry
from harness.results.rows import RunResults
from harness.results.run_record import RunRecord
from harness.run.collect import collect
from harness.run.execute import EngineOptions, run_targets
from harness.run.record import start_record
from harness.run.session import Options, Session
from harness.stages.context import Context
from harness.store import Store, new_run_name
from harness.suite import load_suite
from harness.testing import toy_components
from harness.testing.scratch import scratch_folder
from harness.testing.toys import KitBackbone

_HEAD = """\
bench: 1
name: conformance-kit
seeds: [1, 2]
model: {backbone: conformance-kit, layers: 1, hidden: 4}
train: {epochs: 2, batch_size: 8, lr: 1e-2}
"""
USUAL = f"""\
{_HEAD}
datasets:
  Usual: {{use: conformance-kit}}
  Bare: {{use: conformance-kit, task: binary, bare: true}}
  One class: {{use: conformance-kit, one_class: true}}
methods:
  Plain: {{baseline: conformance-kit}}
  Pipeline:
    encoder: {{use: conformance-kit, layers: 1, hidden: 4, snapshots: [1, 2]}}
    quantifier: conformance-kit
    decorrelator: {{use: conformance-kit, keep: 2}}
  Tuned: {{baseline: {{use: conformance-kit, tune: {{size: [0.1, 0.5], tilt: [0.1, 0.5]}}}}}}
"""
"""A study is of a part of it."""
SEVERAL_TASKS = f"""\
{_HEAD}
datasets:
  Several tasks: {{use: conformance-kit, task: multitask}}
methods:
  Plain: {{baseline: conformance-kit}}
  Tuned: {{baseline: {{use: conformance-kit, tune: {{size: [0.1, 0.5], tilt: [0.1, 0.5]}}}}}}
"""
"""Pipelines are for one label per graph."""


@dataclass(frozen=True)
class ToyRun:
    """The run, with what it was made of."""

    session: Session
    record: RunRecord
    results: RunResults

    @property
    def context(self) -> Context:
        """Where its stages work."""
        return Context(self.session.store)


@lru_cache(maxsize=2)
def toy_run(suite_text: str = USUAL) -> ToyRun:
    """The run of a suite; its cells are trained on the first call."""
    folder = scratch_folder("toy")
    path = folder / "conformance-kit.yaml"
    path.write_text(suite_text, encoding="utf-8")
    catalog = Catalog([*load_catalog(), *map(kit_entry, _components())])
    store = Store(folder / "store")
    facts = DatasetFacts(catalog, None, store)
    suite = load_suite(path, catalog, facts.declare)
    session = Session(suite, catalog, facts, build_plan(suite, catalog, facts), store)
    options, targets = Options(store=store.root), [cell.score for cell in session.plan.cells]
    failure = run_targets(session, options, EngineOptions("inline"), lambda _: None, targets, folder / "log")
    assert failure is None, failure
    record = start_record(session, store.new_run(new_run_name(suite.name)).name)
    return ToyRun(session, record, collect(record, store))


def _components() -> Sequence[type[Component]]:
    return (
        KitBackbone,
        toy_components.KitDataset,
        toy_components.KitBaseline,
        toy_components.KitDecorrelator,
        toy_components.KitEncoder,
        toy_components.KitQuantifier,
    )


def kit_entry(cls: type[Component]) -> Entry:
    """The catalog's row of a class that need not be registered."""
    file = Path(inspect.getfile(cls)).resolve()
    return entry(Source("conformance-kit", cls.__module__, file, file.parent), cls)
