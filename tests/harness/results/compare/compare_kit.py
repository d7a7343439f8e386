"""Two sides of a comparison, made of dictionaries: runs, and what their stages were made with."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

from results_kit import build_run

from harness.results.aggregate import build_table
from harness.results.compare import Side
from harness.results.rows import DatasetFacts
from harness.results.run_record import CellRecord, RunRecord

SETTINGS = {"train.epochs": 50, "model.backbone": "gin"}
DATA = DatasetFacts("A", fingerprint="f" * 64, component="toy", values={"size": 3})
SOURCE = "a" * 64


class Shelf:
    """As much of a store as a comparison looks at."""

    def __init__(self, root: str, made: dict[str, tuple[str, dict]], versions: dict[str, str]) -> None:
        self.root, self.made, self.versions = Path(root), made, versions

    def meta(self, key: str) -> SimpleNamespace | None:
        found = self.made.get(key)
        return None if found is None else SimpleNamespace(place=found[0], preimage=found[1])

    def record(self, key: str) -> dict:
        return {"provenance": {"versions": self.versions}} if key else {}


def train_of(method: str, *, source: str = SOURCE, **params) -> dict:
    """The preimage of a training."""
    return {
        "stage": "train",
        "protocol": 1,
        "learner": {"kind": "baseline", "name": method.lower(), "source": source, "params": params},
        "backbone": {"kind": "backbone", "name": "gin", "source": SOURCE, "params": {"hidden": 8}},
        "data": "d" * 64,
        "seed": 1,
    }


def side(
    run: str = "r1",
    cells=None,
    *,
    seeds=(1, 2, 3),
    data=(DATA,),
    settings=SETTINGS,
    protocol="equad",
    made=None,
    versions=None,
    root="store",
    provenance=None,
    checkpoint=None,
    facts=None,
) -> Side:
    """A run from ``{method: {dataset: values}}`` or ``{method: {dataset: {configuration: values}}}``."""
    cells = cells or {"ERM": {"A": [0.5, 0.51, 0.52]}, "IRM": {"A": [0.6, 0.61, 0.63]}}
    given = {method: {"settings": settings, **(facts or {}).get(method, {})} for method in cells}
    results = build_run(cells, seeds=seeds, datasets=data, facts=given, suite=run, run=run, protocol=protocol)
    records = [
        CellRecord(entry.dataset, method, name, seed, f"{method}{seed}", {}, key, "", {key: key})
        for entry in results.entries
        for method, key in [(entry.method, f"train {entry.method}")]
        for name in entry.configurations
        for seed in seeds
    ]
    record = RunRecord(run, "suite.yaml", results, tuple(records), {}, "", provenance=provenance or {})
    stages = {f"train {method}": (f"train/toy/{method}", train_of(method)) for method in cells}
    shelf = Shelf(root, {**stages, **(made or {})}, versions or {"torch": "2.13.0"})
    return Side(record, shelf, build_table(results, checkpoint))
