"""What the HTML report shows: the view model, without a browser."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from random import Random

import pytest
from html_kit import HOSTILE, epochs, large_run, small_run, store_run
from results_kit import build_run

from harness.report import ReportOptions
from harness.report.html.dialogs import LEAST, MOST, curves, kind_of, points
from harness.report.html.page import flat, render_page
from harness.report.html.view import build_page, cost_table
from harness.results.compare import components, differences
from harness.results.record import Recorded
from harness.results.rows import DatasetFacts
from harness.store import Failure
from harness.suite.spec import SelectSettings


@pytest.fixture
def page(store):
    return build_page(*store_run(small_run(), store, history=6), store)


def cell(page, method, column, table=0):
    return page.data["tables"][table]["cells"][page.data["methods"].index(method)][column]


def test_one_table_for_each_checkpoint_rule(page) -> None:
    assert [table.rule for table in page.tables] == ["the best validation score", "the last epoch"]
    assert [table.section.main.rows[0][3].text for table in page.tables] == ["52.00 ± 2.00", "47.00 ± 2.00"]


def test_a_suite_of_mixed_rules_has_its_own_table_first(store) -> None:
    cells = {"A": {"X": [0.5] * 3}, "B": {"X": [0.6] * 3}}
    run = build_run(cells, facts={"B": {"select": SelectSettings(checkpoint="last")}})
    tables = build_page(*store_run(run, store), store).tables
    rules = ["each method's own checkpoint", "the best validation score", "the last epoch"]
    assert [table.rule for table in tables] == rules


def test_one_rule_alone_where_it_is_asked_for(store) -> None:
    page = build_page(*store_run(small_run(), store), store, ReportOptions(checkpoints=("last",)))
    assert [table.rule for table in page.tables] == ["the last epoch"]
    assert 'name="rule"' not in render_page(page)


def test_entries_carry_number_link_and_status(page) -> None:
    text = render_page(page)
    assert ' data-v="0.52"><a href="#t1/A/ERM">52.00 ± 2.00</a>' in text
    assert '<a href="#t1/A/%3Cimg%20src%3Dx%20onerror%3Dalert%281%29%3E">' in text
    first = text.partition('<table class="results"')[2].partition("</table>")[0]
    assert re.findall(r"is-(\w+)", first) == ["provisional", "failed", "missing"]
    assert '<button type="button">A (A-1)</button>' in first


def test_what_a_row_is_about_stands_below_its_name_and_numbers_come_first(page) -> None:
    first = render_page(page).partition('<table class="results"')[2].partition("</table>")[0]
    assert re.findall(r'<button type="button">(.*?)</button>', first) == ["Method", "A (A-1)", "B (B-1)"]
    assert re.findall(r"<small>(.*?)</small>", first) == ["Environments: random(2)", "Configurations: 2"]


def test_seeds_of_a_cell(page) -> None:
    good, bad = cell(page, "ERM", 0), cell(page, HOSTILE, 0)
    assert [line[:2] for line in good["seeds"]] == [[0.5, 0.6], [0.52, 0.62], [0.54, 0.64]]
    assert all(len(line) == 4 for line in good["seeds"])
    lost = bad["seeds"][2]
    assert lost[0] is None
    assert lost[4] == "failed"
    assert page.data["texts"][lost[5]].startswith("RuntimeError")
    training = page.data["trainings"][lost[2]]
    assert training["traceback"].startswith("Traceback")
    assert training["cell"] in {record.id for record in page.record.cells}


def test_a_cell_says_what_was_searched(page) -> None:
    tuned = cell(page, "Tuned", 0)
    texts = page.data["texts"]
    assert [(texts[line[0]], texts[line[1]]) for line in tuned["grid"]] == [("a", ""), ("b", "x.c: a → b")]
    assert [line[2:4] for line in tuned["grid"]] == [[0.81, 0.71], [0.71, 0.61]]
    unfinished = cell(page, "Tuned", 1)
    assert unfinished["grid"][1][4] == "1 missing"
    assert unfinished["value"].endswith("provisional)")


def test_a_value_with_oracle_information_is_flagged_wherever_it_stands(store, monkeypatch) -> None:
    run = build_run({"ERM": {"X": [0.5] * 3}, "Seer": {"X": [0.9] * 3}}, facts={"Seer": {"oracle": ("base",)}})
    one = Recorded("2026-01-01", "c" * 40, "a CPU", {}, run)
    monkeypatch.setattr("harness.results.record.load_record", lambda: (one,))
    page = build_page(*store_run(run, store), store, ReportOptions(published="record"))
    assert [cell(page, method, 0)["value"] for method in run.methods] == ["50.00 ± 0.00", "90.00 ± 0.00 ‡"]
    published = next(table for table in page.tables[0].section.beside if table.title.startswith("Published"))
    assert [row[2].flags for row in published.rows] == ["", "‡"]


def test_of_a_long_search_the_selected_configuration_is_listed(store, monkeypatch) -> None:
    monkeypatch.setattr("harness.report.html.dialogs.MOST_CONFIGURATIONS", 2)
    run = build_run({"Tuned": {"X": {"a": [0.5], "b": [0.6], "c": [0.7]}}}, seeds=(1,))
    page = build_page(*store_run(run, store), store)
    assert [page.data["texts"][line[0]] for line in cell(page, "Tuned", 0)["grid"]] == ["c", "a"]


def test_what_failed_has_an_entry_for_each_reason_in_a_method(store) -> None:
    search = {"a": [0.5] * 3, "b": ["undefined: the weights were not finite"] * 3}
    record, run = store_run(build_run({"Tuned": {"X": search}, "Bad": {"X": ["failed: x"] * 3}}), store)
    bad = [one for one in record.cells if one.method == "Bad"]
    record = replace(record, failures={one.train: Failure("failed", "KeyError: 3") for one in bad})
    page = build_page(record, run, store)
    assert [failure.title for failure in page.failures] == [
        "Bad, 3 stages: KeyError: 3",
        "Tuned, b: 3 cells undefined on X: the weights were not finite",
    ]
    assert len(page.failures[0].stages) == 3
    assert "Bad, 3 stages: KeyError: 3" in render_page(page)
    assert cell(page, "Tuned", 0)["grid"][1][4] == "3 undefined: the weights were not finite"


def test_a_cell_says_how_it_differs_from_the_reference(page) -> None:
    tuned, base = cell(page, "Tuned", 0), cell(page, "ERM", 0)
    assert "against" not in base
    assert page.data["differences"][tuned["against"]] == (("baseline", "irm", "erm"), ("baseline.penalty", "2.0", ""))
    assert page.data["settings"][base["settings"]] == (
        ("baseline", "erm"),
        ("backbone", "gin"),
        ("backbone.eps", "true"),
        ("model.readout", "sum"),
        ("train.epochs", "6"),
    )


def test_differences_name_what_a_side_lacks() -> None:
    changes = list(differences({"a": "1", "b": "2"}, {"a": "1", "c": "3"}, ""))
    assert changes == [("b", "2", ""), ("c", "", "3")]


def test_a_cell_whose_training_is_not_in_the_store_has_no_settings(store) -> None:
    page = build_page(*store_run(small_run(), store), store)
    assert "settings" not in cell(page, "ERM", 0)


def test_learning_curves_come_from_the_store(page) -> None:
    number = str(cell(page, "ERM", 0)["seeds"][0][2])
    drawn = page.curves[number]
    assert drawn["epochs"] == list(range(6))
    assert list(drawn["series"]) == ["score/val", "erm", "variance", "loss"]
    assert drawn["series"]["variance"][1] is None
    assert page.data["trainings"][0]["parameters"] == 1234
    assert page.components == (
        ("backbone", "gin", "6" * 64),
        ("baseline", "erm", "5" * 64),
        ("baseline", "irm", "5" * 64),
    )


def test_curves_are_thinned_but_keep_the_chosen_epochs() -> None:
    history = epochs(1000)
    drawn = curves(history, 20, keep=(777,))
    assert len(drawn["epochs"]) == 21
    assert {0, 777, 999} <= set(drawn["epochs"])
    assert len(curves(history[:5], 20)["epochs"]) == 5
    assert points(1) == MOST
    assert points(10**6) == LEAST


def test_the_sum_of_a_single_term_is_not_drawn_twice() -> None:
    history = [{"epoch": n, "erm": 0.5, "loss": 0.5, "score/val": None} for n in range(3)]
    assert list(curves(history, MOST)["series"]) == ["score/val", "erm"]


def test_stage_costs_by_kind(page) -> None:
    assert [[text.text for text in row] for row in page.costs.rows] == [
        ["prepare", "2 (0 timed)", "0.0", "0.0", "–"],
        ["train", "24", "48.0", "24.0", "3.15 MB"],
    ]
    assert kind_of("tsne of ERM on A, seed 1") == "analyse"
    assert cost_table({}, {}).rows == ()


def test_counts_and_status(store) -> None:
    record, run = store_run(small_run(), store)
    page = build_page(record, run, store)
    assert page.counts == ("19 of 24 cells with a result", "1 failed", "4 not run yet")


def test_a_cell_with_a_value_on_one_of_two_test_splits_has_a_result(store) -> None:
    splits = {"train": "train", "val": "val", "id_test": "test", "ood_test": "test"}
    run = build_run({"A": {"X": [0.5]}}, seeds=(1,), datasets=(DatasetFacts("X", splits=splits),))
    lost = {"value": None, "status": "undefined", "reason": "1 class"}
    run = run.with_rows(replace(row, **lost) if row.split == "ood_test" else row for row in run.rows)
    assert build_page(*store_run(run, store), store).counts == ("1 of 1 cells with a result",)


def test_a_dataset_that_no_method_can_run_on_keeps_its_column(store) -> None:
    facts = tuple(DatasetFacts(label) for label in "AB")
    run = build_run({"ERM": {"B": [0.5]}, "IRM": {"B": [0.6]}}, seeds=(1,), datasets=facts)
    page = build_page(*store_run(run, store), store)
    first = render_page(page).partition('<table class="results"')[2].partition("</table>")[0]
    assert re.findall(r'<button type="button">(.*?)</button>', first) == ["Method", "A", "B"]


def test_copies_are_those_of_the_other_renderers(page) -> None:
    assert page.tables[0].copies["latex"].count(r"\begin{table}") == 1
    assert "| Method |" in page.tables[0].copies["markdown"]
    assert page.tables[1].copies["csv"].startswith("dataset,version,method,")


def test_statistics_stand_beside_the_table_unless_there_are_too_many_methods(store, monkeypatch) -> None:
    record, run = store_run(small_run(), store)
    assert build_page(record, run, store).tables[0].section.beside
    assert not build_page(record, run, store, ReportOptions(statistics=False)).tables[0].section.beside
    monkeypatch.setattr("harness.report.html.view.STATISTICS_UP_TO", 2)
    assert not build_page(record, run, store).tables[0].section.beside


def test_the_log_is_cut_to_its_end(page) -> None:
    assert page.log.endswith("the last line")
    assert len(page.log.splitlines()) == 200


def test_a_run_without_store_or_files_still_has_a_page(store) -> None:
    record, run = store_run(small_run(), store)
    for name in ("suite.yaml", "workers.log", "run.json"):
        (store.runs / record.id / name).unlink()
    page = build_page(record, run, store)
    assert page.curves == {}
    assert page.suite == page.log == ""
    assert page.tables[0].section.main.rows


def test_a_run_that_has_not_begun(store) -> None:
    run = build_run({"A": {"X": [None] * 3}, "B": {"X": [None] * 3}}, reference="A")
    page = build_page(*store_run(run, store), store)
    assert {text.text for row in page.tables[0].section.main.rows for text in row[1:]} == {"missing"}
    assert page.counts == ("0 of 6 cells with a result", "6 not run yet")


def test_undefined_everywhere(store) -> None:
    run = build_run({"A": {"X": [math.nan] * 3}, "B": {"X": ["failed: x"] * 3}})
    page = build_page(*store_run(run, store), store)
    assert [row[1].value for row in page.tables[0].section.main.rows] == [None, None]


def test_words() -> None:
    assert flat({"a": {"b_c": 1, "d": None}, "e": [1, 2], "f": True, "g": ""}) == [
        ("a: b c", "1"),
        ("e", "1 2"),
        ("f", "yes"),
    ]


def test_components_of_a_preimage() -> None:
    nested = {
        "learner": {"kind": "baseline", "name": "x", "source": "1"},
        "quantify": [{"kind": "q", "name": "y", "source": "2"}],
    }
    assert [component["name"] for component in components(nested)] == ["x", "y"]


def test_a_page_of_200_methods_on_15_datasets_stays_below_five_megabytes(store, monkeypatch) -> None:
    """A quarter of it, thinned as the whole: the size is that of the entries, beside 150 kB that every page has."""
    noise = Random(1)
    history = [{"epoch": n, **{name: noise.random() for name in ("erm", "x", "loss", "score/val")}} for n in range(50)]
    drawn = curves(history, points(200 * 15 * 3))
    monkeypatch.setattr("harness.report.html.dialogs.Dialogs._read", lambda *_: drawn)
    run = large_run(methods=50)
    page = build_page(*store_run(run, store), store)
    assert len(page.curves) == 2250
    assert len(render_page(page).encode()) < 5_000_000 / 4
