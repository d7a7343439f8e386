"""Sensitivity on results made by hand: every test split by itself, other axes at the selected values."""

from dataclasses import replace

import pytest

from harness.analysis import MeasuredCell, Study
from harness.data import Task
from harness.results.rows import DatasetFacts, MethodFacts, ResultRow, RunResults
from plugins.analyses.sensitivity import Sensitivity, _text

ROLES = {"train": "train", "id_val": "val", "id_test": "test", "ood_val": "val", "ood_test": "test"}
GRID = {f"a{a}b{b}c{c}": {"a": a, "b": b, "c": c} for a in (0, 1) for b in (0, 1) for c in (0, 1)}
SCORES = {"id_val": 0.9, "ood_val": 0.6, "id_test": 0.8, "ood_test": 0.5}
SELECTED = "a0b0c0"


def score(split, values):
    """Other values of ``c`` than the selected one give more, so that a maximum over them would show."""
    return SCORES[split] + 0.01 * values["a"] + 0.02 * values["b"] + 0.04 * values["c"]


@pytest.fixture
def study():
    rows = [
        ResultRow(
            "Set", "M", name, 1, split, "accuracy", "best@ood_val", score(split, values), selected=name == SELECTED
        )
        for name, values in GRID.items()
        for split in SCORES
    ]
    dataset = DatasetFacts("Set", splits=ROLES, default_val="ood_val")
    results = RunResults("s", "r", "p", (1,), (dataset,), ("M",), (MethodFacts("Set", "M", GRID),), rows=tuple(rows))
    cell = MeasuredCell("Set", "M", SELECTED, 1, Task("binary", 2), ROLES, "ood_val")
    return Study("Sensitivity", results, (cell,))


def test_each_test_split_has_rows_of_its_own(study):
    found = Sensitivity().present(study)
    by_split = {}
    for row in found.rows:
        named = dict(zip(found.columns, row, strict=True))
        values = GRID[_name(named["configuration"])]
        assert named["validation, %"] == pytest.approx(100 * score("ood_val", values))
        assert named["test, %"] == pytest.approx(100 * score(named["test split"], values))
        by_split[named["test split"]] = by_split.get(named["test split"], 0) + 1
    assert by_split == {"id_test": len(GRID), "ood_test": len(GRID)}


def _name(told):
    return "".join(part.replace("=", "") for part in told.split(", "))


def test_a_map_over_two_axes_holds_the_others_at_the_selected_values(study):
    pytest.importorskip("matplotlib")
    figure = Sensitivity(axes=["a", "b"]).figure(study)
    maps = [axes for axes in figure.axes if axes.images]
    assert [axes.get_title().splitlines()[-1] for axes in maps] == ["OOD validation", "ID test", "OOD test"]
    assert [axes.get_title().count("\n") for axes in maps] == [0, 0, 0]
    for axes, split in zip(maps, ("ood_val", "id_test", "ood_test"), strict=True):
        wanted = [[100 * score(split, GRID[f"a{a}b{b}c0"]) for b in (0, 1)] for a in (0, 1)]
        assert axes.images[0].get_array().tolist() == [pytest.approx(row) for row in wanted]
    assert [axes.get_ylabel() for axes in maps] == ["a", "", ""]


def test_maps_of_methods_with_other_values_keep_their_own_rows(study):
    pytest.importorskip("matplotlib")
    entry, results = study.results.entries[0], study.results
    grid = {f"x{n}": {"x": n, "y": 0} for n in range(5)}
    rows = [
        ResultRow("Set", "N", name, 1, split, "accuracy", "best@ood_val", 0.5, selected=name == "x0")
        for name in grid
        for split in SCORES
    ]
    both = replace(
        results,
        methods=("M", "N"),
        entries=(entry, replace(entry, method="N", configurations=grid)),
        rows=(*results.rows, *rows),
    )
    cells = (study.cells[0], replace(study.cells[0], method="N", config_id="x0"))
    four = _on(replace(study, results=both, cells=cells), "A", "B")
    figure = Sensitivity(axes=["a", "b", "x", "y"]).figure(four)
    maps = [axes for axes in figure.axes if axes.images]
    assert [axes.images[0].get_array().shape for axes in maps] == ([(2, 2)] * 3 + [(5, 1)] * 3) * 2
    assert [round(abs(axes.get_ylim()[0] - axes.get_ylim()[1])) for axes in maps] == ([2] * 3 + [5] * 3) * 2


def test_the_maps_of_a_method_have_one_scale_and_one_bar_of_colours(study):
    pytest.importorskip("matplotlib")
    figure = Sensitivity(axes=["a", "b"]).figure(study)
    maps = [axes for axes in figure.axes if axes.images]
    assert len({axes.images[0].get_clim() for axes in maps}) == 1
    assert len(figure.axes) == len(maps) + 1  # one bar of colours


def test_a_curve_has_validation_beside_test_a_panel_for_each_dataset(study):
    pytest.importorskip("matplotlib")
    figure = Sensitivity(axes=["a"]).figure(_on(study, "Set", "Other"))
    assert [axes.get_title() for axes in figure.axes] == ["Set", "Other"]
    for axes in figure.axes:
        drawn = {bars.get_label(): bars[0].get_ydata().tolist() for bars in axes.containers}
        for name, split in (("OOD validation", "ood_val"), ("ID test", "id_test"), ("OOD test", "ood_test")):
            assert drawn[name] == pytest.approx([100 * score(split, GRID[f"a{a}b0c0"]) for a in (0, 1)])


def _on(study, *labels):
    """The same results on datasets of other names."""
    results = study.results

    def each(items, name="dataset"):
        return tuple(replace(item, **{name: label}) for label in labels for item in items)

    facts = {"datasets": each(results.datasets, "label"), "entries": each(results.entries), "rows": each(results.rows)}
    return replace(study, results=replace(results, **facts), cells=each(study.cells))


def test_axes_that_end_alike_are_told_apart(study):
    pytest.importorskip("matplotlib")
    grid = {name: {"encoder.n": v["a"], "model.n": v["b"], "model.c": v["c"]} for name, v in GRID.items()}
    results = replace(study.results, entries=(MethodFacts("Set", "M", grid),))
    figure = Sensitivity().figure(replace(study, results=results))
    assert [axes.get_xlabel() for axes in figure.axes] == ["encoder.n", "model.n", "c"]


def test_values_at_ticks_read_as_in_the_table():
    assert [_text(value) for value in (1000.0, 0.001, 3, "$x")] == ["1000", "0.001", "3", r"\$x"]
