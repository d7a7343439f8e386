"""The record: runs of this repository's own suites, shipped as data to stand beside a user's. No torch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

from harness.errors import UserError
from harness.results.compare import not_comparable
from harness.results.published import RECORD
from harness.results.rows import DatasetFacts, MethodFacts, ResultRow, RunResults
from harness.results.run_record import RunRecord
from harness.safe_io import json_text, parse_json_as

FOLDER = Path(__file__).resolve().parent / "published" / RECORD
MARK = ", recorded"
"""The end of a recorded row's name in a table of a user's."""
_NOT_KEPT = ("key", "traceback", "peak_memory")


@dataclass(frozen=True)
class Recorded:
    """One run of the record: a file of :data:`FOLDER`.

    Attributes:
        started: the day; ``seconds`` the run took.
        commit, cpu, versions: of the code, the machine and the packages.
        results: every value of every seed, split and checkpoint rule.
    """

    started: str
    seconds: float
    commit: str
    cpu: str
    versions: Mapping[str, str]
    results: RunResults

    @property
    def source(self) -> str:
        """Suite, commit, day and machine."""
        return f"{self.results.suite}, commit {self.commit[:7]}, {self.started}, {self.cpu}"

    @classmethod
    def of_run(cls, record: RunRecord, results: RunResults) -> Recorded:
        """Take what the record keeps of a run; rows of which a cell has not run are left out."""
        cells = {row.cell: (row.dataset, row.method) for row in results.rows}
        ended = Counter(cells.values())
        entries = [
            entry
            for entry in results.entries
            if ended[entry.dataset, entry.method] == len(entry.configurations) * len(results.seeds)
        ]
        run = {(entry.dataset, entry.method) for entry in entries}
        results = replace(
            results,
            status="",
            datasets=tuple(data for data in results.datasets if any(data.label == label for label, _ in run)),
            methods=tuple(method for method in results.methods if any(method == name for _, name in run)),
            entries=tuple(entries),
            rows=tuple(row for row in results.rows if (row.dataset, row.method) in run),
        )
        made = record.provenance
        commit, seconds = (made.get("repository") or {}).get("commit", ""), float(record.facts.get("seconds", 0))
        return cls(record.started[:10], seconds, commit, str(made.get("cpu", "")), made.get("versions", {}), results)

    def text(self) -> str:
        """Return strict JSON with a line for each row, without what is of one store or a default."""
        rows = ",\n".join(json_text(_kept(row), indent=None).rstrip() for row in self.results.rows)
        head = json_text(replace(self, results=self.results.with_rows(())), indent=None).rstrip().removesuffix("]}}")
        return f"{head}\n{rows}\n]}}}}\n"


def _kept(row: ResultRow) -> dict[str, Any]:
    values = {item.name: (getattr(row, item.name), item.default) for item in fields(row)}
    kept = {name: value for name, (value, default) in values.items() if value != default and name not in _NOT_KEPT}
    return kept | {"selected": True} if row.selected else kept


@cache
def load_record() -> tuple[Recorded, ...]:
    """Read the record, the oldest run first."""
    files = sorted(FOLDER.glob("*.json"))
    found = [parse_json_as(Recorded, path.read_text(encoding="utf-8")) for path in files]
    return tuple(sorted(found, key=lambda one: one.started))


def recorded_entries(dataset: DatasetFacts) -> Iterator[tuple[Recorded, MethodFacts]]:
    """Yield the recorded rows on these data; where there are none, those on a dataset of the same name."""
    every = [(run, data) for run in load_record() for data in run.results.datasets]
    same = [(run, data) for run, data in every if dataset.fingerprint and data.fingerprint == dataset.fingerprint]
    for run, data in same or [(run, data) for run, data in every if data.label == dataset.label]:
        for entry in run.results.entries:
            if entry.dataset == data.label:
                yield run, entry


def beside_record(
    results: RunResults, reference: str | None = None, checkpoint: str | None = None
) -> tuple[RunResults, tuple[str, ...]]:
    """Add the recorded rows that are comparable to a run's, as rows of its table, over the seeds that both have.

    Args:
        reference: the row of the run that tests compare the others with; None: the first that the record does not have.
        checkpoint: the rule for all rows; None: each one's own.

    Returns:
        The results, and sentences that say where the recorded rows are from and which were left out, and why.

    Raises:
        UserError: the reference is no row of the run, or no recorded row is comparable.
    """
    reference = reference or _new_method(results)
    if reference not in results.methods:
        raise UserError(f"'{reference}' is no row of run {results.run}; there are: {', '.join(results.methods)}")
    taken: dict[tuple[str, str], tuple[Recorded, MethodFacts]] = {}
    left_out: dict[str, str] = {}
    for dataset in results.datasets:
        ours = results.entry(dataset.label, reference)
        for run, entry in recorded_entries(dataset) if ours is not None else ():
            assert ours is not None
            reasons = not_comparable(results, ours, run.results, entry, checkpoint)
            if not reasons and not set(results.seeds) & set(run.results.seeds):
                reasons = ["no seed in common"]
            if reasons:
                left_out[f"{entry.method} on {entry.dataset}"] = "; ".join(reasons)
            else:
                taken[dataset.label, entry.method] = run, entry
    if not taken:
        why = "".join(f"\n  {name}: {reason}" for name, reason in list(left_out.items())[:5])
        raise UserError(f"no recorded row is comparable to '{reference}' of run {results.run}{why or _nothing()}")
    return _joined(results, reference, taken), tuple(_remarks(taken.values(), left_out))


def _new_method(results: RunResults) -> str:
    known = {entry.method for run in load_record() for entry in run.results.entries}
    return next((method for method in results.methods if method not in known), results.methods[0])


def _nothing() -> str:
    labels = dict.fromkeys(data.label for run in load_record() for data in run.results.datasets)
    return f"; it has these data: {', '.join(labels)}"


def _joined(
    results: RunResults, reference: str, taken: Mapping[tuple[str, str], tuple[Recorded, MethodFacts]]
) -> RunResults:
    seeds = tuple(s for s in results.seeds if all(s in run.results.seeds for run, _ in taken.values()))
    entries, rows = list(results.entries), list(results.rows)
    for (label, method), (run, entry) in taken.items():
        name = f"{method}{MARK}"
        entries.append(replace(entry, dataset=label, method=name))
        of_entry = (row for row in run.results.rows if (row.dataset, row.method) == (entry.dataset, method))
        rows += [replace(row, dataset=label, method=name) for row in of_entry]
    return replace(
        results,
        datasets=tuple(data for data in results.datasets if any(data.label == label for label, _ in taken)),
        methods=(*results.methods, *dict.fromkeys(f"{method}{MARK}" for _, method in taken)),
        entries=tuple(entries),
        rows=tuple(rows),
        seeds=seeds,
        reference=reference,
    )


def _remarks(taken: Iterable[tuple[Recorded, MethodFacts]], left_out: Mapping[str, str]) -> Iterator[str]:
    sources = dict.fromkeys(run.source for run, _ in taken)
    yield f"Rows ending in '{MARK[2:]}' were not trained here, they are the record's: {'; '.join(sources)}."
    if left_out:
        told = "; ".join(f"{name} ({why})" for name, why in left_out.items())
        yield f"Recorded rows that are not comparable: {told}."
