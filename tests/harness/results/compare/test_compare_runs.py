"""Pairs of two runs: differences by seed, what forbids to compare, what is noted, what is missing, every format."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import pytest
from compare_kit import DATA, SETTINGS, side, train_of
from scipy import stats

from harness.errors import UserError
from harness.report.comparison import comparison_table, render_comparison
from harness.results.aggregate import build_table
from harness.results.compare import compare, narrowed
from harness.safe_io import parse_json
from harness.suite.spec import SelectSettings

B = replace(DATA, label="B", fingerprint="b" * 64)
LAST_EPOCH = {method: {"select": SelectSettings("last")} for method in ("ERM", "IRM")}


def text_of(first, second, **options) -> str:
    return render_comparison(compare(first, second, **options), "plain")


def refused(first, second) -> list[str]:
    """The lines that say what two runs differ in."""
    with pytest.raises(UserError) as told:
        compare(first, second)
    assert told.value.exit_code == 2
    return [line.strip() for line in str(told.value).splitlines() if line.startswith("  ")]


def test_differences_are_second_minus_first_paired_by_seed() -> None:
    second = side("r2", {"ERM": {"A": [0.53, 0.52, 0.56]}, "IRM": {"A": [0.6, 0.61, 0.63]}})
    erm, irm = compare(side(), second).pairs
    expected = stats.ttest_1samp([3.0, 1.0, 4.0], 0).confidence_interval(0.95)
    assert erm.difference.estimate == pytest.approx(8 / 3)
    assert erm.difference.low == pytest.approx(expected.low, abs=1e-6)
    assert (erm.identical, irm.identical) == (False, True)


def test_seeds_are_paired_by_name_not_by_position() -> None:
    first = side("r1", {"ERM": {"A": [0.1, 0.2, 0.3]}})
    second = side("r2", {"ERM": {"A": [0.9, 0.3, 0.2]}}, seeds=(4, 3, 2))
    (pair,) = compare(first, second).pairs
    assert pair.seeds == (2, 3)
    assert pair.values == ((0.2, 0.2), (0.3, 0.3))
    assert pair.identical
    text = text_of(first, second)
    assert "25.00 ± 7.07" in text  # the mean over the paired seeds alone
    assert "Only in r1: seeds 1." in text
    assert "Only in r2: seeds 4." in text


def test_a_seed_without_a_value_on_a_side_is_no_pair() -> None:
    second = side("r2", {"ERM": {"A": [0.6, "failed: boom", 0.64]}, "IRM": {"A": ["failed: boom"] * 3}})
    erm, irm = compare(side(), second).pairs
    assert (erm.difference.n, irm.difference.n) == (2, 0)
    assert not irm.identical
    text = text_of(side(), second)
    assert "(n=2/3)" in text
    assert "failed: boom" in text


def test_the_selected_configurations_are_compared_and_named() -> None:
    first = side("r1", {"IRM": {"A": {"x=1": [0.5, 0.5, 0.5], "x=2": [0.4, 0.4, 0.4]}}})
    second = side("r2", {"IRM": {"A": {"x=1": [0.5, 0.5, 0.5], "x=2": [0.6, 0.6, 0.6]}}})
    found = compare(first, second)
    assert (found.pairs[0].first.config_id, found.pairs[0].second.config_id) == ("x=1", "x=2")
    assert "configuration: x=1 / x=2" in found.notes


def test_nothing_has_changed() -> None:
    assert "Nothing has changed: every cell is identical." in text_of(side(), side("r2"))
    assert compare(side(), side("r2")).notes == ()


def test_a_seed_that_a_side_lost_is_a_change() -> None:
    lost = side("r2", {"ERM": {"A": [0.5, 0.51, "failed: boom"]}, "IRM": {"A": [0.6, 0.61, 0.63]}})
    found = compare(side(), lost)
    assert (found.pairs[0].identical, found.identical) == (False, False)
    assert "Nothing has changed" not in render_comparison(found, "plain")
    assert compare(lost, replace(lost, record=replace(lost.record, id="r3"))).identical


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"protocol": "good"}, "protocol: equad / good"),
        ({"settings": {**SETTINGS, "train.epochs": 10}}, "train.epochs: 50 / 10"),
        ({"settings": {**SETTINGS, "model.hidden": 64}}, "model.hidden: the default / 64"),
        ({"data": (replace(DATA, metric="rocauc"),)}, "metric of A: accuracy / rocauc"),
        ({"data": (replace(DATA, version="ChEMBL 30"),)}, "version of A: nothing / ChEMBL 30"),
        ({"facts": LAST_EPOCH}, "checkpoint: best-val / last"),
        (
            {"facts": {"IRM": {"select": SelectSettings(config="oracle")}}},
            "selection: mean-val / oracle (IRM)",
        ),
    ],
)
def test_what_forbids_a_comparison(change: dict, told: str) -> None:
    assert told in refused(side(), side("r2", **change))


def test_other_data_say_what_they_were_made_with() -> None:
    other = replace(DATA, fingerprint="e" * 64, values={"size": 4}, variant="clean")
    assert refused(side(), side("r2", data=(other,))) == [
        "data of A: ffffffffffff / eeeeeeeeeeee (size: 3 / 4; variant: nothing / clean)"
    ]
    unbuilt = side("r2", data=(replace(DATA, fingerprint=""),))
    assert refused(side(), unbuilt) == ["data of A: ffffffffffff / not built"]


def test_other_splits() -> None:
    splits = {"train": "train", "val": "val", "ood_val": "val", "test": "test"}
    first = side("r1", data=(replace(DATA, splits=splits),))
    second = side("r2", data=(replace(DATA, splits=splits, default_val="ood_val"),))
    assert "validation split: val / ood_val" in refused(first, second)
    assert any(line.startswith("splits of A") for line in refused(side("r3"), first))


def test_a_setting_of_one_method_names_it() -> None:
    changed = {"IRM": {"settings": {**SETTINGS, "train.epochs": 10}}}
    assert refused(side(), side("r2", facts=changed)) == ["train.epochs: 50 / 10 (IRM)"]


def test_a_tuned_setting_is_no_difference() -> None:
    axes = {"IRM": {"configurations": {"-": {"train.epochs": 10}}, "settings": {"model.backbone": "gin"}}}
    assert compare(side(), side("r2", facts=axes)).pairs


def test_force_compares_all_the_same_and_says_so() -> None:
    found = compare(side(), side("r2", protocol="good"), force=True)
    assert found.forced == ("protocol: equad / good",)
    for style in ("plain", "markdown", "latex"):
        assert "NOT COMPARABLE, compared by force; the runs differ in: protocol: equad / good" in render_comparison(
            found, style
        )


def test_oracle_information_and_unfinished_searches_are_said() -> None:
    tuned = {
        "ERM": {"A": {"x=1": [0.5, 0.5, 0.5], "x=2": [0.6, 0.6, 0.6]}},
        "IRM": {"A": {"x=1": [0.4] * 3, "x=2": [0.3] * 3}},
    }
    facts = {"ERM": {"select": SelectSettings(config="oracle")}}
    late = {**tuned, "IRM": {"A": {"x=1": [0.4] * 3, "x=2": [None] * 3}}}
    found = compare(side("r1", tuned, facts=facts), side("r2", late, facts=facts))
    rows = comparison_table(found).rows
    assert [[text.flags for text in row[2:4]] for row in rows] == [["‡", "‡"], ["", ""]]
    text = render_comparison(found, "plain")
    assert "60.00 ± 0.00 ‡" in text
    assert (
        "‡: oracle information: the configuration was chosen on test scores, or the method opens oracle fields." in text
    )
    assert "Provisional, as a search is unfinished: IRM on A in r2." in text
    told = parse_json(render_comparison(found, "json"))["rows"]
    assert [(row["oracle"], row["provisional"]) for row in told] == [
        ([True] * 2, [False] * 2),
        ([False] * 2, [False, True]),
    ]
    assert "‡" not in text_of(side(), side("r2"))


def test_narrowing_leaves_out_what_differs() -> None:
    cells = {"ERM": {"A": [0.5, 0.5, 0.5], "B": [0.5, 0.5, 0.5]}}
    first = side("r1", cells, data=(DATA, B))
    second = side("r2", cells, data=(DATA, replace(B, fingerprint="c" * 64)))
    assert refused(first, second)
    narrow = [replace(s, table=build_table(narrowed(s.results, ["A"], ["E*"]))) for s in (first, second)]
    pairs = compare(*narrow).pairs
    assert [pair.label for pair in pairs] == ["A"]
    with pytest.raises(UserError, match=r"'C' fits no column of run r1"):
        narrowed(first.results, ["C"], [])


def test_a_name_with_brackets_is_that_name() -> None:
    results = side("r1", {"ERM [1]": {"A": [0.5] * 3}, "ERM 1": {"A": [0.5] * 3}}).results
    assert narrowed(results, [], ["ERM [1]"]).methods == ("ERM [1]",)
    assert narrowed(results, [], ["ERM [0-9]"]).methods == ("ERM 1",)


def test_sources_values_and_versions_are_noted() -> None:
    made = {
        "train ERM": ("train/toy/ERM", train_of("ERM", source="c" * 64)),
        "train IRM": ("train/toy/IRM", train_of("IRM", penalty=5)),
    }
    second = side("r2", made=made, versions={"torch": "2.14.0", "rdkit": "2026.9"}, provenance={"cpu": "fast"})
    notes = compare(side(), second).notes
    assert "source of baseline erm changed (ERM)" in notes
    assert "irm.penalty: default / 5 (IRM)" in notes
    assert "torch: 2.13.0 / 2.14.0" in notes
    assert "rdkit: nothing / 2026.9" in notes
    assert "cpu: nothing / fast" in notes
    assert not any("backbone" in note or "data" in note for note in notes)


def test_other_components_are_noted() -> None:
    first = side("r1", made={"train ERM": ("train/toy/elsewhere", train_of("gil"))})
    assert any("gil / baseline erm" in note for note in compare(first, side("r2")).notes)


def test_rows_and_columns_of_one_run_only() -> None:
    cells = {"ERM": {"A": [0.5, 0.5, 0.5], "B": [0.5, 0.5, 0.5]}, "CIGA, cut": {"A": [0.5, 0.5, 0.5]}}
    found = compare(side(), side("r2", cells, data=(DATA, B)))
    assert found.missing == ("only in r1: methods IRM", "only in r2: datasets B; methods 'CIGA, cut'")
    every = {"ERM": {"A": [0.5] * 3, "B": [0.5] * 3}, "IRM": {"A": [0.5] * 3, "B": [0.5] * 3}}
    fewer = {"ERM": every["ERM"], "IRM": {"A": [0.5] * 3}}
    found = compare(side("r1", every, data=(DATA, B)), side("r2", fewer, data=(DATA, B)))
    assert found.missing == ("only in r1: cells IRM on B",)


def test_nothing_in_common() -> None:
    other = side("r2", {"CIGA": {"A": [0.5, 0.5, 0.5]}})
    with pytest.raises(
        UserError, match="no dataset, split and method in common: only in r1: methods ERM, IRM; only in r2"
    ):
        compare(side(), other)
    with pytest.raises(UserError, match="no seed in common: only in r1: seeds 1, 2, 3; only in r2: seeds 4, 5, 6"):
        compare(side(), side("r2", seeds=(4, 5, 6)))


def test_a_run_is_not_compared_with_itself() -> None:
    with pytest.raises(UserError, match="both are run r1"):
        compare(side(), side())
    assert compare(side(), side(root="elsewhere")).pairs


def test_the_checkpoint_rule_asked_for() -> None:
    found = compare(side(checkpoint="last"), side("r2", facts=LAST_EPOCH, checkpoint="last"), checkpoint="last")
    assert {pair.first.checkpoint for pair in found.pairs} == {"last"}


def test_json_and_csv() -> None:
    second = side("r2", {"ERM": {"A": [0.53, "failed: boom", 0.56]}})
    found = compare(side(), second)
    told = parse_json(render_comparison(found, "json"))
    assert (told["first"]["run"], told["second"]["run"], told["identical"]) == ("r1", "r2", False)
    (row,) = told["rows"]
    assert row["second"] == [0.53, None, 0.56]
    assert row["difference"]["n"] == 2
    rows = list(csv.DictReader(io.StringIO(render_comparison(found, "csv"))))
    assert [(row["seed"], row["second"]) for row in rows] == [("1", "0.53"), ("2", ""), ("3", "0.56")]


def test_the_block_has_a_row_for_each_pair() -> None:
    grid = comparison_table(compare(side(), side("r2")))
    assert grid.header == ("Dataset", "Method", "First: r1", "Second: r2", "Second − first")
    assert [[text.text for text in row][-1] for row in grid.rows] == ["identical (n=3)"] * 2
