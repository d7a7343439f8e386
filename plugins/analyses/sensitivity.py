"""The effect of a hyperparameter: scores over one tuned axis, and over two."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from harness import Analysis, Findings, Register, Study, UserError, hookimpl, hparam
from plugins.analyses._plots import at_least, legend_above, of_pairs, panels, percent, plain, size, split_name, styles

Pair = tuple[str, str]
BELOW = 0.45
"""Height of a legend or a bar of colours below panels, in inches."""


@dataclass(frozen=True)
class _Tried:
    """One configuration: its values by axis, and by split one score per seed, the validation split first."""

    values: Mapping[str, Any]
    scores: Mapping[str, Sequence[float]]


class Sensitivity(Analysis):
    """Validation and test score of every configuration of a search, by the tuned values.

    Over each axis as a curve, other axes at the selected configuration's values; of methods with two axes as heat maps
    instead. Validation stands beside each test split. It shows how flat the optimum is, and whether validation and test
    agree on it: test scores are shown for every configuration, so no value may be chosen by looking at them.
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
                    numbers = [*percent(item.scores[validation]), *percent(item.scores[test])]
                    rows.append((dataset, method, test, told, *numbers, len(item.scores[test])))
        if not rows:
            raise UserError("no chosen method tunes anything, so there is nothing to vary")
        return Findings(
            (
                *("dataset", "method", "test split", "configuration"),
                *("validation, %", "its s.d., %", "test, %", "s.d., %", "seeds"),
            ),
            tuple(rows),
            (
                "Scores at the reported checkpoint; the configuration is selected on validation alone. "
                "Curves hold other axes at the selected values; whiskers: standard deviation over seeds.",
            ),
        )

    def figure(self, study: Study) -> Any:
        from matplotlib.figure import Figure

        tried = _tried(study)
        lines, maps = self._lines(tried), self._maps(tried)
        across = max((len(found[0].scores) for found in tried.values()), default=2)
        sizes = [size(titles, columns) for titles, columns in ((lines, 2), (maps, across)) if titles]
        if not sizes:
            return None
        heights = [height + BELOW for _, _, height in sizes]
        figure = Figure(figsize=(max(width for _, width, _ in sizes), sum(heights)), layout="constrained")
        parts = iter(figure.subfigures(len(sizes), height_ratios=heights, squeeze=False).ravel())
        if lines:
            self._draw_lines(next(parts), lines, study)
        if maps:
            self._draw_maps(next(parts), maps, across, study)
        return figure

    def _lines(self, tried: Mapping[Pair, Sequence[_Tried]]) -> dict[tuple[Pair, str], str]:
        """Titles of the curves: of a method's axis, all datasets one after another."""
        keys = [(pair, axis) for pair in tried for axis in self._axes(tried[pair]) if len(self._axes(tried[pair])) != 2]
        together = list(dict.fromkeys((method, axis) for (_, method), axis in keys))
        titles = of_pairs(tried)
        return {key: titles[key[0]] for key in sorted(keys, key=lambda key: together.index((key[0][1], key[1])))}

    def _maps(self, tried: Mapping[Pair, Sequence[_Tried]]) -> dict[tuple[Pair, str], str]:
        """Titles of the heat maps: of a dataset and method with two axes, all splits beside one another."""
        two = [pair for pair in tried if len(self._axes(tried[pair])) == 2]
        titles = of_pairs(tried)
        return {
            (pair, split): f"{titles[pair]}\n{split_name(split)}" for pair in two for split in tried[pair][0].scores
        }

    def _draw_lines(self, part: Any, titles: Mapping[tuple[Pair, str], str], study: Study) -> None:
        """Mean and spread over one axis, others at the selected values."""
        _, panel = panels(titles, figure=part, y=f"{study.metric}, %")
        tried = _tried(study)
        style = styles(split for found in tried.values() for split in found[0].scores)
        for (pair, name), axis in panel.items():
            line = _beside(tried[pair], self._at(study, pair), name)
            line.sort(key=lambda item: _order(item.values[name]))
            for split in tried[pair][0].scores:
                places = [place for place, item in enumerate(line) if item.scores[split]]
                found = [percent(line[place].scores[split]) for place in places]
                means, spread = [mean for mean, _ in found], [spread or 0.0 for _, spread in found]
                look = style[split] | {"markersize": 3, "capsize": 2, "label": split_name(split)}
                axis.errorbar(places, means, yerr=spread, **look)
            axis.set_xticks(range(len(line)), [_text(item.values[name]) for item in line])
            axis.set_ylim(at_least(axis.get_ylim(), 10))
            axis.set_xlabel(_short(name, tried[pair][0].values))
        legend_above(part)

    def _draw_maps(self, part: Any, titles: Mapping[tuple[Pair, str], str], across: int, study: Study) -> None:
        """Mean scores over two axes in one scale of colours; blank where nothing was tried."""
        _, panel = panels(titles, across=across, figure=part)
        tried, tables = _tried(study), {}
        for pair, split in titles:
            names = self._axes(tried[pair])
            rows, columns = (sorted({item.values[name] for item in tried[pair]}, key=_order) for name in names)
            tables[pair, split] = table = np.full((len(rows), len(columns)), np.nan)
            for item in _beside(tried[pair], self._at(study, pair), *names):
                if item.scores[split]:
                    place = rows.index(item.values[names[0]]), columns.index(item.values[names[1]])
                    table[place] = percent(item.scores[split])[0]
            axis = panel[pair, split]
            axis.set_xticks(range(len(columns)), map(_text, columns))
            axis.set_yticks(range(len(rows)), map(_text, rows))
            axis.set_xlabel(_short(names[1], tried[pair][0].values))
            if split == next(iter(tried[pair][0].scores)):
                axis.set_ylabel(_short(names[0], tried[pair][0].values))
            else:  # it has the rows of the map beside it
                axis.tick_params(labelleft=False)
        known = np.concatenate([table[~np.isnan(table)] for table in tables.values()])
        low, high = at_least((known.min(), known.max()), 5)
        for key, table in tables.items():
            image = _heat(panel[key], table, low, high)
        part.colorbar(image, ax=list(panel.values()), location="bottom", aspect=40, label=f"{study.metric}, %")

    def _axes(self, tried: Sequence[_Tried]) -> list[str]:
        known = list(tried[0].values)
        return [axis for axis in known if self.axes is None or axis in self.axes]

    def _at(self, study: Study, pair: Pair) -> Mapping[str, Any]:
        """The selected configuration's values."""
        entry = study.results.entry(*pair)
        assert entry is not None
        chosen = next(cell.config_id for cell in study.cells if (cell.dataset, cell.method) == pair)
        return entry.configurations[chosen]


def _tried(study: Study) -> dict[Pair, list[_Tried]]:
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


def _beside(tried: Sequence[_Tried], at: Mapping[str, Any], *free: str) -> list[_Tried]:
    """The configurations that differ from the values of ``at`` in nothing but the free axes."""
    return [item for item in tried if all(item.values[name] == value for name, value in at.items() if name not in free)]


def _heat(axis: Any, table: Any, low: float, high: float) -> Any:
    """Draw a table of percentages, with the numbers where they fit."""
    image = axis.imshow(table, aspect="auto", vmin=low, vmax=high)
    axis.grid(visible=False)
    for (row, column), value in np.ndenumerate(table):
        if not np.isnan(value) and table.shape[1] <= 5:
            color = "white" if value < (low + high) / 2 else "black"
            axis.text(column, row, f"{value:.1f}", ha="center", va="center", fontsize=7, color=color)
    return image


def _short(axis: str, axes: Iterable[str]) -> str:
    """``gamma`` for ``decorrelator.gamma``, unless another of the axes ends alike."""
    name = axis.rpartition(".")[2]
    return name if sum(other.rpartition(".")[2] == name for other in axes) == 1 else axis


def _text(value: Any) -> str:
    """A value at a tick, a number as in the table: ``10`` for ``10.0``."""
    return plain(f"{value:g}" if isinstance(value, float) else str(value))


def _order(value: Any) -> tuple[int, float, str]:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return (0, float(value), "") if number else (1, 0.0, str(value))


@hookimpl
def bench_register(register: Register) -> None:
    register(Sensitivity)
