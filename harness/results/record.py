"""The record: runs of this repository's own suites, shipped as data to stand beside a user's. No torch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

from harness.errors import UserError, listed
from harness.results.compare import not_comparable, tuned_paths
from harness.results.published import RECORD
from harness.results.rows import DatasetFacts, MethodFacts, ResultRow, RunResults
from harness.results.run_record import Finding, RunRecord
from harness.results.selection import mark_selected
from harness.safe_io import json_text, parse_json_as

FOLDER = Path(__file__).resolve().parent / "published" / RECORD
MARK = ", recorded"
"""The end of a recorded row's name in a table of a user's."""
_FEW = 5
"""Reasons that an error lists."""
_NOT_KEPT = ("key", "traceback", "peak_memory")


@dataclass(frozen=True)
class Recorded:
    """One run of the record: a file of :data:`FOLDER`.

    Attributes:
        started: the day.
        commit, cpu, versions: of the code, the machine and the packages.
        results: every value of every seed, split and checkpoint rule.
        findings: the tables of its analyses.
    """

    started: str
    commit: str
    cpu: str
    versions: Mapping[str, str]
    results: RunResults
    findings: tuple[Finding, ...] = ()

    @property
    def source(self) -> str:
        """Suite, commit, day and machine."""
        return f"{self.results.suite}, commit {self.commit[:7]}, {self.started}, {self.cpu}"

    @classmethod
    def of_run(cls, record: RunRecord, results: RunResults, findings: Sequence[Finding] = ()) -> Recorded:
        """Take what the record keeps of a run; rows of which a cell has not run are left out."""
        cells = {row.cell: (row.dataset, row.method) for row in results.rows}
        ended = Counter(cells.values())
        entries = [
            entry
            for entry in results.entries
            if ended[entry.dataset, entry.method] == len(entry.configurations) * len(results.seeds)
        ]
        run = {(entry.dataset, entry.method) for entry in entries}
        rows = (row for row in results.rows if (row.dataset, row.method) in run)
        results = replace(results, status="", entries=tuple(entries), rows=tuple(rows))
        results = results.of({label for label, _ in run}, {method for _, method in run})
        made = record.provenance
        commit = (made.get("repository") or {}).get("commit", "")
        return cls(
            record.started[:10], commit, str(made.get("cpu", "")), made.get("versions", {}), results, tuple(findings)
        )

    def at_settings(self, entry: MethodFacts, ours: MethodFacts) -> tuple[Recorded, MethodFacts]:
        """Return a row as it is over those of its configurations that have our settings of network and training.

        All of them where we tune the same settings, or where none has ours.
        """
        paths = {path for path in tuned_paths(entry) - tuned_paths(ours) if path.startswith(("train.", "model."))}
        kept = {
            config: values
            for config, values in entry.configurations.items()
            if config in entry.tuned_settings
            and all(entry.tuned_settings[config].get(path) == ours.settings.get(path) for path in paths)
        }
        if not paths or not kept or not ours.settings:
            return self, entry
        narrowed = replace(
            entry,
            configurations={config: _without(values, paths) for config, values in kept.items()},
            settings={**entry.settings, **{path: ours.settings[path] for path in paths & ours.settings.keys()}},
            tuned_settings={config: _without(entry.tuned_settings[config], paths) for config in kept},
        )
        results = self.results.of({entry.dataset}, {entry.method})
        rows = tuple(row for row in results.rows if row.config_id in kept)
        return replace(self, results=mark_selected(replace(results, entries=(narrowed,), rows=rows))), narrowed

    def text(self) -> str:
        """Return strict JSON with a line for each row, without what is of one store or a default."""
        parts = {item.name: json_text(getattr(self, item.name), indent=None).rstrip() for item in fields(self)}
        found = ",\n".join(json_text(finding, indent=None).rstrip() for finding in self.findings)
        parts |= {"results": self.results.text(_kept).rstrip(), "findings": f"[\n{found}\n]"}
        return "{" + ", ".join(f'"{name}": {text}' for name, text in parts.items()) + "}\n"


def _kept(row: ResultRow) -> dict[str, Any]:
    values = {item.name: (getattr(row, item.name), item.default) for item in fields(row)}
    return {name: value for name, (value, default) in values.items() if value != default and name not in _NOT_KEPT}


def _without(values: Mapping[str, Any], paths: Collection[str]) -> dict[str, Any]:
    return {path: value for path, value in values.items() if path not in paths}


Taken = dict[tuple[str, str], tuple[Recorded, MethodFacts]]
"""(dataset of a user's, recorded method) -> the recorded row."""


@cache
def load_record() -> tuple[Recorded, ...]:
    """Read the record, the oldest run first, as files are named after runs."""
    return tuple(parse_json_as(Recorded, path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.json")))


def recorded_entries(dataset: DatasetFacts) -> Iterator[tuple[Recorded, MethodFacts]]:
    """Yield the recorded rows on these data; where there are none, those on a dataset of the same name."""
    every = [(run, data) for run in load_record() for data in run.results.datasets]
    same = [(run, data) for run, data in every if dataset.fingerprint and data.fingerprint == dataset.fingerprint]
    for run, data in same or [(run, data) for run, data in every if data.label == dataset.label]:
        for entry in run.results.entries:
            if entry.dataset == data.label:
                yield run, entry


def beside_record(
    results: RunResults, reference: str | None = None, checkpoint: str | None = None, cpu: str = ""
) -> tuple[RunResults, tuple[str, ...]]:
    """Add the recorded rows that are comparable to a run's, as rows of its table, over the seeds that both have.

    Args:
        reference: the row of the run that tests compare the others with; None: the first with values that the record
            does not have.
        checkpoint: the rule for all rows; None: each one's own.
        cpu: the processor of the run, if known.

    Returns:
        The results, and sentences that say where the recorded rows are from and which were left out, and why.

    Raises:
        UserError: the reference is no row of the run, no recorded row is comparable, or the run has a row of the name
            that a recorded one would get.
    """
    reference = reference or _new_method(results)
    if reference not in results.methods:
        raise UserError(f"'{reference}' is no row of run {results.run}; there are: {listed(results.methods)}")
    taken, left_out, parts = _comparable(results, reference, checkpoint)
    if not taken:
        why = "".join(f"\n  {name}: {reason}" for name, reason in list(left_out.items())[:_FEW])
        more = f"\n  and {len(left_out) - _FEW} more" if len(left_out) > _FEW else ""
        labels = dict.fromkeys(data.label for run in load_record() for data in run.results.datasets)
        why = why or f": it has none on these data, but on {listed(labels)}"
        raise UserError(f"no recorded row is comparable to '{reference}' of run {results.run}{why}{more}")
    twice = [name for _, method in taken if (name := f"{method}{MARK}") in results.methods]
    if twice:
        raise UserError(f"'{twice[0]}' is a row of run {results.run}; recorded rows have such names: rename yours")
    joined = _joined(results, reference, taken)
    others = sorted({run.cpu for run, _ in taken.values()} - {cpu}) if cpu else []
    seeds = sorted({*results.seeds} - {*joined.seeds})
    return joined, tuple(_remarks(taken.values(), left_out, parts, seeds, others))


def _comparable(results: RunResults, reference: str, checkpoint: str | None) -> tuple[Taken, dict[str, str], list[str]]:
    """Return the recorded rows that are comparable to a row of the run, why the others are not, and those not whole."""
    taken: Taken = {}
    counts: dict[tuple[str, str], tuple[int, int]] = {}
    left_out: dict[tuple[str, str], tuple[str, str]] = {}
    for ours in (entry for entry in results.entries if entry.method == reference):
        for whole, every in recorded_entries(results.dataset(ours.dataset)):
            run, entry = whole.at_settings(every, ours)
            place = ours.dataset, entry.method
            reasons = not_comparable(results, ours, run.results, entry, checkpoint)
            if not reasons and not set(results.seeds) & set(run.results.seeds):
                reasons = ["no seed in common"]
            if reasons:
                left_out[place] = f"{entry.method} on {entry.dataset}", "; ".join(reasons)
            else:
                taken[place] = run, entry
                counts[place] = len(entry.configurations), len(every.configurations)
    parts = [f"{method} on {label} ({n} of {total})" for (label, method), (n, total) in counts.items() if n < total]
    return taken, dict(told for place, told in left_out.items() if place not in taken), parts


def _new_method(results: RunResults) -> str:
    known = {entry.method for run in load_record() for entry in run.results.entries}
    trained = {row.method for row in results.rows if row.value is not None}
    return next((method for method in results.methods if method in trained - known), results.methods[0])


def _joined(results: RunResults, reference: str, taken: Taken) -> RunResults:
    seeds = tuple(s for s in results.seeds if all(s in run.results.seeds for run, _ in taken.values()))
    results = results.of({label for label, _ in taken}, results.methods)
    entries, rows = list(results.entries), list(results.rows)
    for (label, method), (run, entry) in taken.items():
        name = f"{method}{MARK}"
        entries.append(replace(entry, dataset=label, method=name))
        of_entry = (row for row in run.results.rows if (row.dataset, row.method) == (entry.dataset, method))
        rows += [replace(row, dataset=label, method=name) for row in of_entry]
    return replace(
        results,
        methods=(*results.methods, *dict.fromkeys(f"{method}{MARK}" for _, method in taken)),
        entries=tuple(entries),
        rows=tuple(rows),
        seeds=seeds,
        reference=reference,
    )


def _remarks(
    taken: Iterable[tuple[Recorded, MethodFacts]],
    left_out: Mapping[str, str],
    parts: Sequence[str],
    seeds: Sequence[int],
    cpus: Sequence[str],
) -> Iterator[str]:
    sources = dict.fromkeys(run.source for run, _ in taken)
    yield f"Rows ending in '{MARK[2:]}' were not trained here, they are the record's: {'; '.join(sources)}."
    if cpus:
        yield f"Trained on another processor ({', '.join(cpus)}), where rounding makes equal seeds different trainings."
    if parts:
        yield f"Of tuned rows those configurations count that have your network and training: {', '.join(parts)}."
    if seeds:
        yield f"Seeds of the run that are left out, as the record does not have them: {', '.join(map(str, seeds))}."
    if left_out:
        told = "; ".join(f"{name} ({why})" for name, why in left_out.items())
        yield f"Recorded rows that are not comparable: {told}."
