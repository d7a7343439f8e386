"""The effect of a hyperparameter: scores over one tuned axis, and over two."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from harness import Analysis, Findings, Register, Study, UserError, hookimpl, hparam
from plugins.analyses._plots import at_least, colors, legend_below, mean_and_spread, panels, plain


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
    probes = {"axes": {"axes": ["baseline.size"]}}

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
            (
                "Scores are fractions at the reported checkpoint; the configuration is selected on validation alone. "
                "Curves and maps hold other axes at the selected values; whiskers: standard deviation over seeds.",
            ),
        )

    def figure(self, study: Study) -> Any:
        titles = self._titles(study)
        if not titles:
            return None
        figure, axes = panels(titles, across=3)
        color = colors(split for tried in _tried(study).values() for split in tried[0].scores)
        for (pair, (kind, name)), axis in axes.items():
            tried, at = _tried(study)[pair], self._at(study, pair)
            if kind == "curve":
                _curve(axis, tried, name, at, color)
            else:
                _heat(axis, tried, self._axes(tried), name, at)
        legend_below(figure)
        return figure

    def _titles(self, study: Study) -> dict[tuple[tuple[str, str], tuple[str, str]], str]:
        """Return the curves first: a curve over each axis and, of methods with two axes, a map for each split."""
        curves, maps = {}, {}
        for pair, tried in _tried(study).items():
            names, title = self._axes(tried), "\n".join(pair)
            curves.update({(pair, ("curve", name)): title for name in names})
            if len(names) == 2:
                maps.update(
                    {(pair, ("map", split)): f"{title}\n{split} score, a fraction" for split in tried[0].scores}
                )
        return curves | maps

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


def _curve(axes: Any, tried: Sequence[_Tried], axis: str, at: Mapping[str, Any], color: Mapping[str, str]) -> None:
    """Mean and spread over one axis, others at the values of ``at``."""
    line = _beside(tried, at, axis)
    line.sort(key=lambda item: _order(item.values[axis]))
    for split in tried[0].scores:
        pairs = [mean_and_spread(item.scores[split]) for item in line if item.scores[split]]
        places = [place for place, item in enumerate(line) if item.scores[split]]
        means, spread = [mean for mean, _ in pairs], [spread or 0.0 for _, spread in pairs]
        axes.errorbar(places, means, yerr=spread, marker="o", markersize=4, capsize=2, label=split, color=color[split])
    axes.set_xticks(range(len(line)), [plain(str(item.values[axis])) for item in line])
    axes.set_ylim(at_least(axes.get_ylim(), 0.1))
    axes.set_xlabel(_short(axis, tried[0].values))
    axes.set_ylabel("score, a fraction")


def _heat(axes: Any, tried: Sequence[_Tried], names: Sequence[str], split: str, at: Mapping[str, Any]) -> None:
    """Mean score over two axes, others at the values of ``at``; blank where nothing was tried."""
    rows, columns = (sorted({item.values[name] for item in tried}, key=_order) for name in names)
    table = np.full((len(rows), len(columns)), np.nan)
    for item in _beside(tried, at, *names):
        if item.scores[split]:
            table[rows.index(item.values[names[0]]), columns.index(item.values[names[1]])] = np.mean(item.scores[split])
    known = table[~np.isnan(table)]
    low, high = at_least((known.min(), known.max()), 0.05) if known.size else (0.0, 1.0)
    axes.imshow(table, aspect="auto", vmin=low, vmax=high)
    for (row, column), value in np.ndenumerate(table):
        if not np.isnan(value):
            color = "white" if value < (low + high) / 2 else "black"
            axes.text(column, row, f"{value:.3f}", ha="center", va="center", fontsize=8, color=color)
    axes.grid(visible=False)
    axes.set_xticks(range(len(columns)), [plain(str(value)) for value in columns])
    axes.set_yticks(range(len(rows)), [plain(str(value)) for value in rows])
    axes.set_xlabel(_short(names[1], tried[0].values))
    axes.set_ylabel(_short(names[0], tried[0].values))


def _short(axis: str, axes: Iterable[str]) -> str:
    """``gamma`` for ``decorrelator.gamma``, unless another of the axes ends alike."""
    name = axis.rpartition(".")[2]
    return name if sum(other.rpartition(".")[2] == name for other in axes) == 1 else axis


def _order(value: Any) -> tuple[int, float, str]:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return (0, float(value), "") if number else (1, 0.0, str(value))


@hookimpl
def bench_register(register: Register) -> None:
    register(Sensitivity)
