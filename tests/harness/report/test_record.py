"""The record beside a run: what is comparable, tests paired by seed against rows that nobody trains, and its files."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from scipy import stats

from harness.errors import UserError
from harness.report import ReportOptions, make_report, render
from harness.report.published import compare_published
from harness.results import record
from harness.results.aggregate import build_table
from harness.results.record import Recorded, beside_record, load_record
from harness.results.rows import DatasetFacts
from harness.safe_io import parse_json_as

SETTINGS = {"train.epochs": 50, "model.layers": 3}
DATA = DatasetFacts("Mine", fingerprint="f1", component="spmotif")
NEW, ERM, IRM = [0.60, 0.63, 0.69], [0.50, 0.55, 0.57], [0.40, 0.42, 0.44]


@pytest.fixture
def ours(make_run):
    """A run of one new method, on data under a name of its own."""

    def build(method="New", values=NEW, data=DATA, settings=SETTINGS, **fields):
        return make_run(
            {method: {data.label: values}}, datasets=(data,), facts={method: {"settings": settings}}, **fields
        )

    return build


@pytest.fixture
def recorded(make_run, monkeypatch: pytest.MonkeyPatch):
    """Makes ERM and IRM, on data of the same content under another name, the whole record."""

    def build(data="Theirs", **changes) -> Recorded:
        facts = DatasetFacts(data, fingerprint="f1", component="spmotif")
        cells = {"ERM": {data: ERM}, "IRM": {data: IRM}}
        settings = {"ERM": {"settings": SETTINGS}, "IRM": {"settings": {**SETTINGS, **changes}}}
        results = make_run(cells, datasets=(facts,), facts=settings)
        one = Recorded("2026-11-30", "abcdef012345", "a CPU", {"torch": "2.13.0"}, results)
        monkeypatch.setattr(record, "load_record", lambda: (one,))
        return one

    return build


def test_recorded_rows_on_the_same_data_join_the_table_with_paired_tests(ours, recorded) -> None:
    recorded()
    joined, remarks = beside_record(ours())
    table = build_table(joined)
    assert [(row.method, row.dataset) for row in table.rows] == [
        ("New", "Mine"), ("ERM, recorded", "Mine"), ("IRM, recorded", "Mine"),
    ]  # fmt: skip
    assert joined.reference == "New"
    assert table.rows[1].test.values == tuple(ERM)
    shown = make_report(joined, ReportOptions(statistics=True, differences=True, remarks=remarks))
    difference = next(row for row in shown.sections[0].statistics.rows if row.method == "ERM, recorded").difference
    paired = stats.ttest_rel(ERM, NEW).confidence_interval(0.95)
    assert (difference.low, difference.high) == pytest.approx((100 * paired.low, 100 * paired.high))
    assert "commit abcdef0, 2026-11-30, a CPU" in render(shown, "plain").replace("\n", " ")


def test_another_processor_is_told(ours, recorded) -> None:
    recorded()
    assert "Trained on another processor (a CPU)" in beside_record(ours(), cpu="another")[1][1]
    assert len(beside_record(ours(), cpu="a CPU")[1]) == 1


def test_data_that_the_record_does_not_have_leave_the_table(make_run, recorded) -> None:
    recorded()
    other = DatasetFacts("Other", fingerprint="f9")
    values = {"New": {"Mine": NEW, "Other": NEW}}
    joined, remarks = beside_record(make_run(values, datasets=(DATA, other), facts={"New": {"settings": SETTINGS}}))
    shown = make_report(joined, ReportOptions(remarks=remarks))
    assert [column.label for column in shown.sections[0].table.columns] == ["Mine"]


def test_what_is_not_comparable_is_left_out_and_told(ours, recorded) -> None:
    recorded(**{"train.epochs": 30})
    joined, remarks = beside_record(ours())
    assert joined.methods == ("New", "ERM, recorded")
    assert "IRM on Theirs (train.epochs: 50 / 30)" in remarks[1]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"data": DatasetFacts("Theirs", fingerprint="f2", component="spmotif")}, "data of Theirs: f2 / f1"),
        ({"protocol": "good"}, "protocol: good / equad"),
        ({"settings": {**SETTINGS, "model.layers": 5}}, "model.layers: 5 / 3"),
        ({"data": DatasetFacts("Nowhere", fingerprint="f3")}, "it has none on these data, but on Theirs"),
        ({"settings": {}}, "settings unknown"),
        ({"seeds": (4, 5, 6)}, "no seed in common"),
    ],
)
def test_a_run_that_nothing_is_comparable_to_is_refused_with_the_reason(ours, recorded, changes, told) -> None:
    recorded()
    with pytest.raises(UserError, match=re.escape(told)):
        beside_record(ours(**changes))


def test_a_row_that_another_run_of_the_record_has_is_not_told_as_left_out(ours, recorded, monkeypatch) -> None:
    one = recorded()
    other = replace(one, results=replace(one.results, protocol="gala"))
    for both in ((one, other), (other, one)):
        monkeypatch.setattr(record, "load_record", lambda both=both: both)
        joined, remarks = beside_record(ours())
        assert joined.methods == ("New", "ERM, recorded", "IRM, recorded")
        assert not [remark for remark in remarks if "not comparable" in remark]


def test_only_common_seeds_count(ours, recorded) -> None:
    recorded()
    joined, _ = beside_record(ours(values=[0.6, 0.7], seeds=(3, 1)))
    assert joined.seeds == (3, 1)
    erm = build_table(joined).rows[1]
    assert erm.test.values == (ERM[2], ERM[0])
    _, remarks = beside_record(ours(values=[0.6, 0.7], seeds=(3, 9)))
    assert remarks[1] == "Seeds of the run that are left out, as the record does not have them: 9."


def test_the_reference_must_be_a_row_of_the_run(ours, recorded) -> None:
    recorded()
    with pytest.raises(UserError, match="'Newer' is no row of run"):
        beside_record(ours(), "Newer")


def test_a_row_of_a_recorded_name_is_refused(ours, recorded) -> None:
    recorded()
    with pytest.raises(UserError, match="rename yours"):
        beside_record(ours("ERM, recorded"))


def test_a_row_without_values_is_no_reference_by_itself(make_run, recorded) -> None:
    recorded()
    values = {"Boom": {"Mine": ["failed: boom"] * 3}, "New": {"Mine": NEW}}
    run = make_run(values, datasets=(DATA,), facts={"New": {"settings": SETTINGS}})
    assert beside_record(run)[0].reference == "New"


def test_a_setting_that_one_side_alone_tunes_is_told(ours, recorded) -> None:
    recorded()
    run = ours(settings={"model.layers": 3})
    tuned = replace(run.entries[0], configurations={"-": {"train.epochs": 1}})
    with pytest.raises(UserError, match=r"train\.epochs: tuned on one side alone"):
        beside_record(replace(run, entries=(tuned,)))


def test_published_record_says_over_which_seeds(ours, recorded) -> None:
    recorded()
    (cell,) = compare_published(build_table(ours("ERM", [0.52, 0.53], seeds=(1, 2))), "record").rows
    assert cell.remarks == ("difference over seeds 1, 2",)
    (equal,) = compare_published(build_table(ours("ERM", ERM)), "record").rows
    assert (equal.difference.estimate, equal.difference.low, equal.verdict) == (0.0, None, "no verdict")


def test_published_record_compares_environments(make_run, recorded) -> None:
    recorded()
    facts = {"ERM": {"settings": SETTINGS, "environments": "random(2)"}}
    (cell,) = compare_published(
        build_table(make_run({"ERM": {"Mine": ERM}}, datasets=(DATA,), facts=facts)), "record"
    ).rows
    assert cell.differs == ("environments: random(2) / none",)


def test_published_record_pairs_rows_of_one_name(ours, recorded) -> None:
    recorded()
    mine = [0.52, 0.53, 0.60]
    (cell,) = compare_published(build_table(ours("ERM", mine)), "record").rows
    paired = stats.ttest_rel(mine, ERM).confidence_interval(0.95)
    assert (cell.difference.low, cell.difference.high) == pytest.approx((100 * paired.low, 100 * paired.high))
    assert (cell.verdict, cell.runs, cell.mean) == ("within noise", 3, pytest.approx(54.0))


def test_published_record_says_why_a_row_is_not_comparable(ours, recorded) -> None:
    recorded()
    other = DatasetFacts("Theirs", fingerprint="f2", component="spmotif", values={"bias": 0.9})
    compared = compare_published(build_table(ours("ERM", data=other, settings={"train.epochs": 5})), "record")
    (cell,) = compared.rows
    assert cell.verdict == "not comparable"
    assert cell.differs[0].startswith("data of Theirs: f2 / f1")
    assert "train.epochs: 5 / 50" in cell.differs
    assert "Recorded on these data, and not here: IRM." in compared.caption


def test_without_a_row_in_the_record_the_report_says_so(ours, recorded) -> None:
    recorded()
    told = render(make_report(ours(), ReportOptions(published="record")), "plain")
    assert "The record has none of these rows on these data." in told
    assert "not here: ERM, IRM.\nbench compare-to-record puts those that are comparable beside these rows." in told


def test_a_file_of_the_record_reads_as_the_run_was(recorded) -> None:
    one = recorded()
    read = parse_json_as(Recorded, one.text())
    assert read == replace(one, results=one.results.with_rows(replace(row, key="") for row in one.results.rows))


@pytest.mark.parametrize("one", load_record(), ids=lambda one: one.results.suite)
def test_the_shipped_record_says_what_it_is_of(one: Recorded) -> None:
    assert re.fullmatch("[0-9a-f]{40}", one.commit)
    assert one.cpu
    assert {"python", "torch"} <= one.versions.keys()
    assert all(re.fullmatch("[0-9a-f]{64}|[0-9a-f]{16}", data.fingerprint) for data in one.results.datasets)
    assert one.results.rows
    assert not re.search(r'"/\w+', one.text()), "a path of a machine"
