"""Selection of the configuration of a method that a table shows, by scores that are there already. No torch."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from harness.errors import listed
from harness.results.rows import MethodFacts, ResultRow, RunResults
from harness.results.summary import Summary
from harness.suite.settings import LAST, checkpoint_rule, checkpoint_word


@dataclass(frozen=True)
class Candidate:
    """A configuration's scores on the split that decides: one per seed of the suite, None without a score.

    ``statuses`` says why (``missing`` if the cell has not run yet).
    """

    config_id: str
    values: tuple[float | None, ...]
    statuses: tuple[str, ...]

    @property
    def lost(self) -> str:
        """The seeds without a score, by status; empty if there are none."""
        counts = Counter(status for status in self.statuses if status != "ok")
        return ", ".join(f"{count} of {len(self.statuses)} seeds {status}" for status, count in counts.items())


@dataclass(frozen=True)
class Choice:
    """The outcome of a selection.

    Attributes:
        config_id: the chosen configuration, or None if none is eligible; ``reason`` then says why.
        provisional: the search is unfinished, so that the choice may still change.
    """

    config_id: str | None
    provisional: bool = False
    reason: str = ""


def best_mean(candidates: Sequence[Candidate]) -> Choice:
    """Choose the configuration with the best mean over seeds.

    A configuration that lacks the score of any seed is not eligible; ties take the first declared. While the grid is
    unfinished the choice is provisional: among the complete configurations if there are any, else among those
    without a failure that have the most seeds so far. A single configuration needs no scores.
    """
    if len(candidates) == 1:
        return Choice(candidates[0].config_id)
    provisional = any("missing" in candidate.statuses for candidate in candidates)
    summaries = {candidate.config_id: Summary(candidate.values) for candidate in candidates}
    pool = [candidate for candidate in candidates if not candidate.lost]
    if not pool and provisional:
        started = [c for c in candidates if set(c.statuses) <= {"ok", "missing"} and summaries[c.config_id].n]
        most = max((summaries[c.config_id].n for c in started), default=0)
        pool = [c for c in started if summaries[c.config_id].n == most]
    means = {c.config_id: mean for c in pool if (mean := summaries[c.config_id].mean) is not None}
    if not means:
        lost = "; ".join(f"{c.config_id}: {c.lost}" for c in candidates[:3])
        more = f"; and {len(candidates) - 3} more" if len(candidates) > 3 else ""
        return Choice(None, provisional, f"no configuration has a score for every seed ({lost}{more})")
    return Choice(max(means, key=means.__getitem__), provisional)


class ScoreTable:
    """The values of a run by (dataset, method, configuration, split, checkpoint rule), aligned with its seeds."""

    def __init__(self, results: RunResults) -> None:
        self.results = results
        self._rows: dict[tuple[str, ...], dict[int, ResultRow]] = defaultdict(dict)
        self._cells: dict[tuple[str, ...], dict[int, ResultRow]] = defaultdict(dict)
        for row in results.rows:
            self._rows[row.dataset, row.method, row.config_id, row.split, row.checkpoint][row.seed] = row
            self._cells[row.dataset, row.method, row.config_id][row.seed] = row

    def rows(self, entry: MethodFacts, config_id: str, split: str, rule: str) -> tuple[ResultRow | None, ...]:
        """Return one row per seed of the suite; None if the cell has not run.

        A cell that ran but has no such row had no checkpoint to choose by this rule, and is undefined here.
        """
        rows = self._rows.get((entry.dataset, entry.method, config_id, split, rule), {})
        cells = self._cells.get((entry.dataset, entry.method, config_id), {})
        return tuple(rows.get(seed) or _without_checkpoint(cells.get(seed), split, rule) for seed in self.results.seeds)

    def candidate(self, entry: MethodFacts, config_id: str, split: str, rule: str) -> Candidate:
        """Return a configuration's scores on one split."""
        rows = self.rows(entry, config_id, split, rule)
        values = tuple(row.value if row else None for row in rows)
        return Candidate(config_id, values, tuple(row.status if row else "missing" for row in rows))

    def candidates(self, entry: MethodFacts, split: str, rule: str) -> list[Candidate]:
        """Return the scores of all configurations of a method, in the order of declaration."""
        return [self.candidate(entry, config_id, split, rule) for config_id in entry.configurations]


def _without_checkpoint(cell: ResultRow | None, split: str, rule: str) -> ResultRow | None:
    if cell is None:
        return None
    reason = f"no checkpoint by the rule {checkpoint_word(rule)}" if cell.value is not None else cell.reason
    status = "undefined" if cell.value is not None else cell.status
    return replace(cell, split=split, checkpoint=rule, value=None, epoch=None, status=status, reason=reason)


def rule_of(results: RunResults, entry: MethodFacts, checkpoint: str | None = None) -> str:
    """Return the checkpoint rule of a method in the flat table, by the suite's setting or by the one given instead."""
    return checkpoint_rule(checkpoint or entry.select.checkpoint, results.validation_split(entry))


def deciding_split(results: RunResults, entry: MethodFacts, test: str) -> str:
    """Return the split whose scores choose a method's configuration: the test split only by the rule ``oracle``."""
    return test if entry.select.config == "oracle" else results.validation_split(entry)


def choose(scores: ScoreTable, entry: MethodFacts, test: str, checkpoint: str | None = None) -> Choice:
    """Choose the configuration of a method on a dataset, for the table's column of one test split.

    By the rule ``mean-val`` the best mean over seeds on the validation split decides. By ``oracle`` that on the test
    split does: an upper bound, flagged wherever it is shown, never a default.
    """
    split = deciding_split(scores.results, entry, test)
    candidates = scores.candidates(entry, split, rule_of(scores.results, entry, checkpoint))
    choice = best_mean(candidates)
    return replace(choice, provisional=choice.provisional or entry.pending > 0)


def mark_selected(results: RunResults) -> RunResults:
    """Return the run with ``selected`` set on the rows of the chosen configurations.

    The choice is made for each of the method's two checkpoint rules; under ``oracle`` it is that of the first test
    split.
    """
    scores = ScoreTable(results)
    chosen: set[tuple[str, str, str | None, str]] = set()
    for entry in results.entries:
        test = next(iter(results.dataset(entry.dataset).test_splits), "")
        for checkpoint in ("best-val", LAST):
            choice = choose(scores, entry, test, checkpoint)
            chosen.add((entry.dataset, entry.method, choice.config_id, rule_of(results, entry, checkpoint)))
    selected = [(row, (row.dataset, row.method, row.config_id, row.checkpoint) in chosen) for row in results.rows]
    return results.with_rows(row if row.selected == mark else replace(row, selected=mark) for row, mark in selected)


def without_value(results: RunResults) -> int:
    """Count the trained cells without a value on any test split, under the checkpoint rule that the suite reports."""
    rules = {(entry.dataset, entry.method): rule_of(results, entry) for entry in results.entries}
    statuses: dict[str, set[str]] = defaultdict(set)
    for row in results.rows:
        reported = rules.get((row.dataset, row.method)) == row.checkpoint
        if reported and row.split in results.dataset(row.dataset).test_splits:
            statuses[row.cell].add(row.status)
    return sum("undefined" in found and "ok" not in found for found in statuses.values())


def lost_candidates(results: RunResults) -> Iterator[tuple[str, str]]:
    """Yield the configurations of searches that ran and lack values, which no table row shows: status and sentence.

    The sentence tells of how many cells, on which datasets, and why.
    """
    scores, lost = ScoreTable(results), defaultdict[tuple[str, str, str], list[ResultRow]](list)
    for entry in results.entries:
        test = next(iter(results.dataset(entry.dataset).test_splits), "")
        for config_id in entry.configurations if entry.tuned else ():
            for row in scores.rows(entry, config_id, test, rule_of(results, entry)):
                if row is not None and row.value is None:
                    lost[entry.method, config_id, row.status].append(row)
    for (method, config_id, status), rows in lost.items():
        reasons = list(dict.fromkeys(row.reason.partition("\n")[0] for row in rows if row.reason))
        more = f" (and {len(reasons) - 1} other reason{'s' if len(reasons) > 2 else ''})" if len(reasons) > 1 else ""
        cells = f"{len(rows)} cell{'s' if len(rows) > 1 else ''} {status}"
        datasets = listed(dict.fromkeys(row.dataset for row in rows))
        yield status, f"{method}, {config_id}: {cells} on {datasets}" + (f": {reasons[0]}{more}" if reasons else "")
