"""Aggregation: counts, spread, statuses, selection, differences, ranks and averages."""

import csv
import io
import json
import math
import statistics
from dataclasses import replace

import pytest

from harness.report import ReportOptions, make_report, to_json
from harness.report.csv_table import render_csv
from harness.results.aggregate import averages, build_table
from harness.results.rows import DatasetFacts
from harness.results.summary import Summary, paired_difference
from harness.safe_io import json_text, parse_json
from harness.suite.spec import SelectSettings, Unsupported


def only(table):
    (row,) = table.rows
    return row


def by_method(table):
    return {row.method: row for row in table.rows}


def test_summary_is_the_mean_and_the_sample_standard_deviation():
    found = Summary((0.1, None, 0.4, 0.7))
    assert (found.n, found.complete) == (3, False)
    assert found.mean == pytest.approx(0.4)
    assert found.spread == pytest.approx(statistics.stdev([0.1, 0.4, 0.7]))
    assert (Summary((0.5,)).spread, Summary((None,)).mean, Summary(()).complete) == (None, None, False)


def test_differences_are_paired_by_seed():
    assert paired_difference((0.5, None, 0.9), (0.25, 0.1, None)).values == (0.25, None, None)


def test_a_complete_cell(make_run):
    row = only(build_table(make_run({"A": {"D": [0.5, 0.6, 0.7]}})))
    assert (row.test.n, row.test.values, row.status, row.reason) == (3, (0.5, 0.6, 0.7), "ok", "")
    assert row.test.spread == pytest.approx(0.1)
    assert row.validation.mean == pytest.approx(0.7)
    assert (row.checkpoint, row.validation_split) == ("best@val", "val")


def test_a_partial_cell_keeps_its_place_by_seed_and_is_not_ranked(make_run):
    cells = {"A": {"D": [0.5] * 5}, "B": {"D": [0.9, "failed: boom", 0.9, "failed: boom", 0.9]}}
    rows = by_method(build_table(make_run(cells, seeds=(1, 2, 3, 4, 5))))
    assert rows["B"].test.values == (0.9, None, 0.9, None, 0.9)
    assert (rows["B"].test.n, rows["B"].status, rows["B"].rank) == (3, "failed", "")
    assert rows["B"].reason == "seeds 2, 4 failed: boom"
    assert rows["A"].rank == "best"


def test_missing_failed_and_undefined_are_told_apart(make_run):
    cells = {
        "A": {"D": [None, None]},
        "B": {"D": ["failed: boom", "failed: boom"]},
        "C": {"D": [math.nan, math.nan]},
        "D": {"D": ["timeout: over 60 s", None]},
    }
    rows = by_method(build_table(make_run(cells, seeds=(1, 2))))
    assert {m: (r.status, r.reason) for m, r in rows.items()} == {
        "A": ("missing", "not run yet"),
        "B": ("failed", "boom"),
        "C": ("undefined", "1 class"),
        "D": ("timeout", "seed 1 timeout: over 60 s; seed 2 missing"),
    }


def test_a_cell_without_the_checkpoint_rule_is_undefined_rather_than_missing(make_run):
    run = make_run({"A": {"D": [0.5]}}, seeds=(1,))
    run = run.with_rows(row for row in run.rows if row.checkpoint == "last")
    row = only(build_table(run))
    assert (row.status, row.reason) == ("undefined", "no checkpoint by the rule best-val")
    assert build_table(run, "last").rows[0].status == "ok"


def test_the_configuration_is_chosen_on_validation_and_named(make_run):
    row = only(build_table(make_run({"A": {"D": {"c=1": [0.5, 0.6], "c=2": [0.7, 0.8]}}}, seeds=(1, 2))))
    assert (row.config_id, row.configurations, row.selection) == ("c=2", 2, "mean-val")
    assert row.hyperparameters == {"x.c": "c=2"}


def test_how_many_configurations_each_row_tried_is_shown_where_any_was_tuned(make_run):
    grid = {f"c={n}": [0.1 * n] for n in (1, 2, 3)}
    plain, tuned = (
        make_report(make_run({"ERM": {"D": [0.5], "E": [0.5]}, "A": {"D": a, "E": [0.4]}}, seeds=(1,))).sections[0].main
        for a in ([0.4], grid)
    )
    assert plain.header == ("Method", "D", "E")
    assert tuned.header == ("Method", "Configurations", "D", "E")
    assert [(row[1].text, row[1].value) for row in tuned.rows] == [("1", 1), ("by dataset", 3)]
    assert "Configurations by dataset: A: 3 (D); 1 (E)." in tuned.notes


def test_both_checkpoint_rules_can_be_shown(make_run):
    run = make_run({"A": {"D": [0.5, 0.6]}}, seeds=(1, 2))
    assert only(build_table(run, "best-val")).test.values == (0.5, 0.6)
    assert only(build_table(run, "last")).test.values == pytest.approx((0.45, 0.55))


def test_a_row_that_selects_on_another_validation_split_has_its_own_value(make_run):
    splits = {"train": "train", "id_val": "val", "ood_val": "val", "test": "test"}
    facts = {"ID": {"select": SelectSettings(split="id_val")}, "OOD": {"select": SelectSettings(split="ood_val")}}
    dataset = DatasetFacts("D", splits=splits, default_val="ood_val", validation="OOD")
    run = make_run({"ID": {"D": [0.47]}, "OOD": {"D": [0.35]}}, seeds=(1,), datasets=(dataset,), facts=facts)
    run = run.with_rows(
        replace(row, checkpoint="best@id_val") if row.method == "ID" and row.checkpoint != "last" else row
        for row in run.rows
    )
    report = make_report(run)
    rows = by_method(report.sections[0].table)
    assert (rows["ID"].test.mean, rows["OOD"].test.mean) == (0.47, 0.35)
    assert (
        "Checkpoint: first epoch with the best score on id_val (ID); first epoch with the best score on ood_val (OOD); "
        in report.sections[0].main.caption[2]
    )
    assert "Validation is in-distribution (ID); OOD (OOD)." in report.sections[0].main.notes


def test_no_eligible_configuration_is_a_failed_cell_with_the_reason(make_run):
    cells = {"A": {"D": {"c=1": [0.5, "failed: boom"], "c=2": ["diverged: nan", 0.7]}}}
    row = only(build_table(make_run(cells, seeds=(1, 2))))
    assert (row.status, row.config_id, row.test.n) == ("failed", None, 0)
    assert "c=1: 1 of 2 seeds failed" in row.reason


def test_an_oracle_without_a_test_score_has_the_status_of_that_split(make_run):
    cells = {"A": {"D": {"c=1": [0.5], "c=2": [0.6]}}}
    run = make_run(cells, seeds=(1,), facts={"A": {"select": SelectSettings(config="oracle")}})
    lost = {"value": None, "status": "undefined", "reason": "1 class"}
    row = only(build_table(run.with_rows(replace(r, **lost) if r.split == "test" else r for r in run.rows)))
    assert (row.status, row.config_id) == ("undefined", None)


def test_provisional_and_oracle_rows_are_shown_and_not_ranked(make_run):
    cells = {
        "plain": {"D": [0.5, 0.5]},
        "unfinished": {"D": {"c=1": [0.9, 0.9], "c=2": [None, None]}},
        "chosen on test": {"D": {"c=1": [0.9, 0.9], "c=2": [0.8, 0.8]}},
        "reads base": {"D": [0.9, 0.9]},
    }
    facts = {"chosen on test": {"select": SelectSettings(config="oracle")}, "reads base": {"oracle": ("base",)}}
    rows = by_method(build_table(make_run(cells, seeds=(1, 2), facts=facts)))
    assert {m: r.rank for m, r in rows.items()} == {
        "plain": "best",
        "unfinished": "",
        "chosen on test": "",
        "reads base": "",
    }
    assert rows["unfinished"].provisional
    assert rows["chosen on test"].oracle_selection


def test_equal_rows_share_a_mark_and_undefined_is_never_best(make_run):
    cells = {"A": {"D": [0.2]}, "B": {"D": [0.3]}, "C": {"D": [0.3]}, "N": {"D": [math.nan]}}
    rows = by_method(build_table(make_run(cells, seeds=(1,))))
    assert {m: r.rank for m, r in rows.items()} == {"A": "", "B": "best", "C": "best", "N": ""}


def test_each_dataset_is_ranked_by_itself_and_a_lone_method_is_not(make_run):
    run = make_run({"A": {"D": [0.9], "E": [0.1]}, "B": {"D": [0.2], "E": [0.3]}}, seeds=(1,))
    assert [(r.dataset, r.method) for r in build_table(run).rows if r.rank == "best"] == [("D", "A"), ("E", "B")]
    assert only(build_table(make_run({"A": {"D": [0.5]}}, seeds=(1,)))).rank == ""


def test_json_rows_hold_the_contract(paper_run):
    data = parse_json(json_text(to_json(make_report(paper_run))))
    needed = {"dataset", "method", "metric", "n", "mean", "spread", "values", "status", "reason"}
    assert all(needed <= set(row) for row in data["rows"])
    erm = data["rows"][0]
    assert (erm["values"], erm["n"]) == ([0.5, 0.52, 0.54], 3)
    irm = next(r for r in data["rows"] if r["method"] == "IRM" and r["n"] == 1)
    assert (irm["values"], irm["spread"], irm["status"]) == ([0.51, None, None], None, "failed")
    assert data["seeds"] == [1, 2, 3]
    assert json.loads(json.dumps(data, allow_nan=False)) == data


def test_the_average_takes_each_seed_over_the_datasets(make_run):
    run = make_run({"A": {"D": [0.2, 0.4], "E": [0.6, 0.4]}, "B": {"D": [0.1, 0.1], "E": [0.1, 0.1]}}, seeds=(1, 2))
    (column,) = averages(build_table(run))
    cell = column.cells["A"]
    assert cell.summary.values == pytest.approx((0.4, 0.4))
    assert (cell.summary.spread, cell.rank, column.cells["B"].rank) == (pytest.approx(0.0), "best", "second")


def test_the_average_never_mixes_metrics_or_id_with_ood(make_run):
    splits = {"train": "train", "val": "val", "iid_test": "test", "ood_test": "test"}
    datasets = (
        DatasetFacts("D", splits=splits),
        DatasetFacts("E", splits=splits),
        DatasetFacts("F", metric="rocauc"),
    )
    run = make_run({"A": {"D": [0.2], "E": [0.4], "F": [0.9]}}, seeds=(1,), datasets=datasets)
    found = averages(build_table(run))
    assert [(c.label, [x.label for x in c.columns]) for c in found] == [
        ("Average (accuracy, ID)", ["D [iid_test]", "E [iid_test]"]),
        ("Average (accuracy, OOD)", ["D [ood_test]", "E [ood_test]"]),
    ]


def test_undefined_columns_leave_the_average_with_a_note_and_gaps_are_counted(make_run):
    cells = {
        "A": {"D": [0.2], "E": [0.4], "F": [math.nan]},
        "B": {"D": [0.9], "E": ["failed: boom"], "F": [math.nan]},
    }
    run = make_run(cells, seeds=(1,))
    (column,) = averages(build_table(run))
    assert [c.label for c in column.excluded] == ["F"]
    assert (column.cells["A"].covered, column.cells["A"].rank) == (2, "best")
    assert (column.cells["B"].covered, len(column.columns), column.cells["B"].rank) == (1, 2, "")
    section = make_report(run, ReportOptions(average=True)).sections[0]
    assert any("left out because no method has a value there: F" in sentence for sentence in section.main.notes)
    assert "(1/2 datasets)" in section.main.rows[1][-1].text


def test_an_average_over_an_unfinished_search_is_provisional(make_run):
    cells = {"A": {"D": {"c=1": [0.9, 0.9], "c=2": [0.8, None]}, "E": [0.5, 0.5]}, "B": {"D": [0.2, 0.2]}}
    section = make_report(make_run(cells, seeds=(1, 2)), ReportOptions(average=True)).sections[0]
    assert [row[-1].text for row in section.main.rows] == ["70.00 ± 0.00 (provisional)", "20.00 ± 0.00 (1/2 datasets)"]


def test_no_average_unless_asked(paper_run):
    section = make_report(paper_run).sections[0]
    assert section.averages == ()
    assert "Average" not in " ".join(section.main.header)


def test_what_a_dataset_does_not_support_is_told_in_every_format(make_run):
    cells = {"A": {"D": [0.5], "E": [0.5]}, "B": {"D": [0.5]}, "C": {"D": [0.5]}}
    lacking = [Unsupported("E", method, f"baseline '{method}'", "no several tasks") for method in "BC"]
    report = make_report(
        make_run(cells, seeds=(1,), unsupported=tuple(lacking)),
        ReportOptions(average=True, statistics=True, validation=True),
    )
    main = report.sections[0].main
    assert [(row[3].text, row[3].notes) for row in main.rows[1:]] == [("n/a", (1,))] * 2
    assert main.footnotes == ("n/a: no several tasks",), "a reason stands once"
    assert to_json(report)["unsupported"][0] == vars(lacking[0])
    last = list(csv.DictReader(io.StringIO(render_csv(report))))[-1]
    told = {"dataset": "E", "method": "C", "status": "unsupported", "reason": "baseline 'C' no several tasks"}
    assert {name: value for name, value in last.items() if value} == told
