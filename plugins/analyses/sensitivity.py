"""How much a hyperparameter matters: scores over one tuned axis, and over two."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from harness import Analysis, Findings, Study, UserError, hookimpl, hparam
from plugins.analyses._plots import mean_and_spread, panels


@dataclass(frozen=True)
class _Tried:
    """One configuration: its values by axis, and by split one score per seed, the validation split first."""

    values: Mapping[str, Any]
    scores: Mapping[str, Sequence[float]]


class Sensitivity(Analysis):
    """Validation and test score of every configuration of a search, by the tuned values.

    Over one axis as a curve, over two axes as a heat map as well, other axes at the selected configuration's values.
    Each test split has its own scores. It shows how flat the optimum is, and whether validation and test agree on it:
    test scores are shown for every configuration, so no value may be chosen by looking at them.
    """

    name = "sensitivity"
    measures = False

    axes: list[str] | None = hparam(None, help="tuned axes, such as decorrelator.gamma; none: all of them")

    def present(self, study: Study) -> Findings:
        rows = []
        for (dataset, method), tried in _tried(study).items():
            validation, *tests = tried[0].scores
            for test in tests:
                for item in tried:
                    told = ", ".join(f"{name}={value}" for name, value in item.values.items())
                    numbers = [*_numbers(item.scores[validation]), *_numbers(item.scores[test])]
                    rows.append((dataset, method, test, told, *numbers, len(item.scores[test])))
        if not rows:
            raise UserError("no chosen method tunes anything, so there is nothing to vary")
        return Findings(
            ("dataset", "method", "test split", "configuration", "validation", "s.d.", "test", "s.d. ", "seeds"),
            tuple(rows),
            ("Scores are fractions at the reported checkpoint; the configuration is selected on validation alone.",),
        )

    def figure(self, study: Study) -> Any:
        drawn = [(pair, axis) for pair, tried in _tried(study).items() for axis in self._axes(tried)]
        maps = [
            (pair, split)
            for pair, tried in _tried(study).items()
            if len(self._axes(tried)) == 2
            for split in tried[0].scores
        ]
        if not drawn:
            return None
        titles = [f"{dataset}\n{method}, {axis}" for (dataset, method), axis in drawn]
        titles += [f"{dataset}\n{method}, {split} score" for (dataset, method), split in maps]
        figure, axes = panels(titles)
        for title, (pair, axis) in zip(titles, drawn, strict=False):
            _curve(axes["", title], _tried(study)[pair], axis, self._at(study, pair))
        for title, (pair, split) in zip(titles[len(drawn) :], maps, strict=True):
            tried = _tried(study)[pair]
            _heat(figure, axes["", title], tried, self._axes(tried), split, self._at(study, pair))
        return figure

    def _axes(self, tried: Sequence[_Tried]) -> list[str]:
        known = list(tried[0].values)
        return [axis for axis in known if self.axes is None or axis in self.axes]

    def _at(self, study: Study, pair: tuple[str, str]) -> Mapping[str, Any]:
        """The selected configuration's values."""
        entry = study.results.entry(*pair)
        assert entry is not None
        chosen = next(cell.config_id for cell in study.cells if (cell.dataset, cell.method) == pair)
        return entry.configurations[chosen]


def _tried(study: Study) -> dict[tuple[str, str], list[_Tried]]:
    """(dataset, method) -> every configuration of a tuned method that has a score."""
    results, found = study.results, {}
    for pair in study.groups():
        entry = results.entry(*pair)
        if entry is None or not entry.tuned:
            continue
        rule, splits = (
            study.checkpoint_rule(*pair),
            (results.validation_split(entry), *results.dataset(pair[0]).test_splits),
        )
        scores: dict[tuple[str, str], list[float]] = defaultdict(list)
        for row in results.rows:
            if (row.dataset, row.method, row.checkpoint) == (*pair, rule) and row.value is not None:
                scores[row.config_id, row.split].append(row.value)
        tried = [
            _Tried(values, {split: scores[config, split] for split in splits})
            for config, values in entry.configurations.items()
        ]
        found[pair] = [item for item in tried if any(item.scores[split] for split in splits[1:])]
    return {pair: tried for pair, tried in found.items() if tried}


def _numbers(scores: Sequence[float]) -> tuple[float | None, float | None]:
    return mean_and_spread(scores) if scores else (None, None)


def _beside(tried: Sequence[_Tried], at: Mapping[str, Any], *free: str) -> list[_Tried]:
    """The configurations that differ from the values of ``at`` in nothing but the free axes."""
    return [item for item in tried if all(item.values[name] == value for name, value in at.items() if name not in free)]


def _curve(axes: Any, tried: Sequence[_Tried], axis: str, at: Mapping[str, Any]) -> None:
    """Mean and spread over one axis, others at the values of ``at``."""
    line = _beside(tried, at, axis)
    line.sort(key=lambda item: _order(item.values[axis]))
    for split in tried[0].scores:
        pairs = [mean_and_spread(item.scores[split]) for item in line if item.scores[split]]
        places = [place for place, item in enumerate(line) if item.scores[split]]
        spread = [spread or 0.0 for _, spread in pairs]
        axes.errorbar(places, [mean for mean, _ in pairs], yerr=spread, marker="o", capsize=2, label=split)
    axes.set_xticks(range(len(line)), [str(item.values[axis]) for item in line])
    axes.set_xlabel(axis)
    axes.set_ylabel("score (a fraction)")
    axes.legend()


def _heat(
    figure: Any, axes: Any, tried: Sequence[_Tried], names: Sequence[str], split: str, at: Mapping[str, Any]
) -> None:
    """Mean score over two axes, others at the values of ``at``; blank where nothing was tried."""
    rows, columns = (sorted({item.values[name] for item in tried}, key=_order) for name in names)
    table = np.full((len(rows), len(columns)), np.nan)
    for item in _beside(tried, at, *names):
        if item.scores[split]:
            table[rows.index(item.values[names[0]]), columns.index(item.values[names[1]])] = np.mean(item.scores[split])
    image = axes.imshow(table, aspect="auto")
    for (row, column), value in np.ndenumerate(table):
        if not np.isnan(value):
            light = value < np.nanmean(table)
            axes.text(column, row, f"{value:.3f}", ha="center", va="center", color="white" if light else "black")
    axes.grid(visible=False)
    axes.set_xticks(range(len(columns)), [str(value) for value in columns])
    axes.set_yticks(range(len(rows)), [str(value) for value in rows])
    axes.set_xlabel(names[1])
    axes.set_ylabel(names[0])
    figure.colorbar(image, ax=axes, label=f"{split} score")


def _order(value: Any) -> tuple[int, float, str]:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return (0, float(value), "") if number else (1, 0.0, str(value))


@hookimpl
def bench_register(register):
    register(Sensitivity)
