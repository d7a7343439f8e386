"""Runs in a store, made without training: what the HTML report reads."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

from results_kit import build_run

from harness.results.rows import DatasetFacts, RunResults
from harness.results.run_record import CellRecord, RunRecord
from harness.results.selection import mark_selected
from harness.safe_io import write_text
from harness.store import Stage, Store, digest

VOID = {"meta", "br", "img", "input", "hr", "link"}
HOSTILE = "<img src=x onerror=alert(1)>"


def small_run() -> RunResults:
    """Three methods on two datasets: one tuned, one with a hostile name and a failure."""
    run = build_run(
        {
            "ERM": {"A": [0.5, 0.52, 0.54], "B": [0.3, 0.35, 0.31]},
            "Tuned": {
                "A": {"a": [0.7, 0.71, 0.72], "b": [0.6, 0.61, 0.62]},
                "B": {"a": [0.2, 0.21, 0.22], "b": [0.6, 0.61, None]},
            },
            HOSTILE: {"A": [0.1, 0.2, "failed: RuntimeError: </script><script>alert(2)</script>"], "B": [None] * 3},
        },
        datasets=tuple(
            DatasetFacts(label, version=f"{label}-1", fingerprint="f00d", notes=("A note.",)) for label in "AB"
        ),
        facts={"Tuned": {"environments": "random(2)"}},
        run="20260101-000000-demo-0000",
        reference="ERM",
        overrides=("--epochs 3",),
    )
    failed = "Traceback\n  raise RuntimeError('<b>&')"
    return run.with_rows(replace(row, traceback=failed) if row.status == "failed" else row for row in run.rows)


def store_run(run: RunResults, store: Store, *, history: int = 0) -> tuple[RunRecord, RunResults]:
    """Give each cell of a run an id and keys, and write its folder; with trainings of so many epochs if asked."""
    cells = [
        CellRecord(
            id=digest([entry.dataset, entry.method, config, seed])[:8],
            dataset=entry.dataset,
            method=entry.method,
            config_id=config,
            hyperparameters=values,
            seed=seed,
            train=digest([entry.dataset, entry.method, config, seed, "train"]),
            score=digest([entry.dataset, entry.method, config, seed, "score"]),
            needs={
                digest([entry.dataset]): f"prepare {entry.dataset}",
                digest([entry.dataset, entry.method, config, seed, "train"]): f"train {entry.method}, seed {seed}",
            },
        )
        for entry in run.entries
        for config, values in entry.configurations.items()
        for seed in run.seeds
    ]
    ids = {(c.dataset, c.method, c.config_id, c.seed): c.id for c in cells}
    run = mark_selected(
        run.with_rows(
            replace(row, cell=ids[row.dataset, row.method, row.config_id, row.seed], seconds=1.5, peak_memory=2**20)
            for row in run.rows
        )
    )
    record = RunRecord(
        id=run.run,
        suite_path="demo.yaml",
        results=run.with_rows(()),
        cells=tuple(cells),
        prepared={},
        started="2026-01-01T00:00:00+00:00",
        status="finished",
        provenance={"versions": {"python": "3.11"}, "cpu": HOSTILE, "repository": {"commit": "abc", "changed": True}},
        facts={"seconds": 3.0, "stages": 7, "cached": 2},
    )
    folder = store.runs / record.id
    record.save(folder)
    write_text(folder / "suite.yaml", f"methods: {{{HOSTILE}: {{baseline: erm}}}}\n")
    write_text(folder / "workers.log", "a line\n" * 500 + "the last line\n")
    run.save(folder / "results.json")
    for cell in cells if history else ():
        _train(store, cell, history)
    return record, run


def epochs(count: int, seed: int = 1) -> list[dict[str, object]]:
    """A history as a training writes it."""
    return [
        {"epoch": n, "erm": 1 / (n + seed), "variance": None if n == 1 else 0.1 * seed, "loss": 1.2 / (n + seed)}
        | {"score/val": 0.5 + 0.3 * n / count}
        for n in range(count)
    ]


def _train(store: Store, cell: CellRecord, count: int) -> None:
    tuned = {"name": "irm", "params": {"penalty": 2.0}}
    learner = tuned if cell.method == "Tuned" else {"name": "erm", "params": {}}
    preimage = {
        "learner": {"kind": "baseline", "source": "5" * 64, **learner},
        "backbone": {"kind": "backbone", "name": "gin", "source": "6" * 64, "params": {"eps": True}},
        "model": {"readout": "sum"},
        "train": {"epochs": count},
        "cell": cell.id,
    }
    stage = Stage(kind="train", key=cell.train, place="train/x", preimage=preimage, title=cell.needs[cell.train])
    with store.create(stage) as draft:
        draft.write_json("history", epochs(count, cell.seed))
        draft.write_json("info", {"parameters": 1234, "environments": 2})
        draft.write_json("checkpoints", {"best@val": {"epoch": 2, "score": 0.5}, "last": {"epoch": count - 1}})
    store.record_run(stage, {"seconds": 2.0, "cpu_seconds": 1.0, "peak_memory": 3 * 2**20})


def large_run(methods: int = 200, datasets: int = 15) -> RunResults:
    """A run with three seeds everywhere."""
    value = lambda m, d, s: 0.4 + ((m * 37 + d * 11 + s * 7) % 100) / 250  # noqa: E731
    cells = {
        f"Method {m}, a name of usual length": {
            f"Dataset-{d:02}": [value(m, d, seed) for seed in range(3)] for d in range(datasets)
        }
        for m in range(methods)
    }
    return build_run(cells, run="20260101-000000-large-0000", reference=next(iter(cells)))


def page_path(store: Store, run: RunResults) -> Path:
    """Where the page of a run is."""
    return store.runs / run.run / "report.html"


class Reader(HTMLParser):
    """Elements, attributes, and the text of each script and style; complains of elements that are not closed."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.raw: list[tuple[str, str]] = []
        self.stack: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert not self.stack

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.stack.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.stack and self.stack[-1] in ("script", "style"):
            self.raw.append((self.stack[-1], data))
        else:
            self.words.append(data)
