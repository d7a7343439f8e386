"""The caption names all that a reader must know."""

from dataclasses import replace

import pytest

from harness.errors import listed
from harness.report import ReportOptions, make_report, render
from harness.results.rows import DatasetFacts
from harness.results.selection import lost_candidates
from harness.suite.spec import SelectSettings, TuneSettings


def caption(run, **options):
    return make_report(run, ReportOptions(**options)).sections[0].main.caption


def notes(run, **options):
    return make_report(run, ReportOptions(**options)).sections[0].main.notes


def test_a_caption_is_three_sentences_and_the_rest_are_notes(paper_run):
    assert caption(paper_run) == (
        "Test accuracy in percent: mean ± sample standard deviation over 3 training seeds (1, 2, 3) on one draw of "
        "the data.",
        "Protocol: equad.",
        "Checkpoint: first epoch with the best score on val; configuration: best mean score over seeds on val.",
    )
    assert notes(paper_run) == (
        "2 of 6 cells lack values; they say so and are not ranked.",
        "Configurations that lack values: EQuAD, gamma=0.5: 1 cell failed on Two-piece (0.7, 0.9): boom.",
        "†: used validation labels before or during training, beyond these choices.",
        "Validation is unbiased (SPMotif_0.60); biased (Two-piece (0.7, 0.9)).",
        "Data: published, dataset seed 0, split seed 0 (SPMotif_0.60); one-direction edges, dataset seed 0, split seed "
        "0 (Two-piece (0.7, 0.9)).",
        "The command line changed settings of the suite; the run's page lists them.",
    )
    plain = render(make_report(paper_run), "plain")
    assert plain.count("†: ") == 1
    assert "--epochs 3" not in plain
    latex = render(make_report(paper_run), "latex")
    printed, _, below = latex.partition(r"\caption{")[2].partition(r"\label")
    assert printed.count(".") == 3
    assert r"$^{\dagger}$: used validation labels" in below


def test_configurations_that_diverged_are_named_with_row_cells_and_reason(make_run):
    search = {"c=1": [0.5, 0.6, 0.7], "c=9": ["undefined: the weights were not finite at the end of training"] * 3}
    run = make_run({"A": {"D": search}, "B": {"D": [0.5] * 3}})
    told = "A, c=9: 3 cells undefined on D: the weights were not finite at the end of training"
    assert f"Configurations that lack values: {told}." in notes(run)
    assert list(lost_candidates(run)) == [("undefined", told)]


def test_two_reasons_of_one_configuration_are_counted(make_run):
    search = {"c=1": [0.5, 0.6], "c=9": ["failed: one", "failed: two"]}
    told = "A, c=9: 2 cells failed on D: one (and 1 other reason)"
    assert list(lost_candidates(make_run({"A": {"D": search}}, seeds=(1, 2)))) == [("failed", told)]


def test_facts_of_many_datasets_are_told_once(make_run):
    labels = [f"SPMotif-0.{n}0" for n in range(1, 9)]
    datasets = tuple(DatasetFacts(label, variant="published", validation="unbiased") for label in labels)
    cells = {f"Method {n}": {label: [0.5] for label in labels} for n in range(23)}
    run = make_run(cells, seeds=(1,), datasets=datasets)
    entries = tuple(
        replace(e, environments="domain" if e.dataset in labels[:4] else "random(2)") if e.method[-1] == "1" else e
        for e in run.entries
    )
    run = replace(run, entries=entries)
    assert "Data: published." in notes(run)
    told = f"domain ({', '.join(labels[:4])}); random(2) ({', '.join(labels[4:])})"
    assert f"Environments by dataset: Method 1, Method 11, Method 21: {told}." in notes(run)
    assert {row[1].text for row in make_report(run).sections[0].main.rows} == {"–", "by dataset"}
    assert sum(map(len, caption(run))) < 300


@pytest.mark.parametrize(
    ("split", "told"), [("auto", "OOD"), ("ood_val", "OOD"), ("iid_val", "in-distribution"), ("late", "split late")]
)
@pytest.mark.parametrize("style", ["plain", "markdown", "latex"])
def test_what_validation_is_follows_from_the_split_that_chose(make_run, split, told, style):
    splits = {"train": "train", "iid_val": "val", "ood_val": "val", "late": "val", "test": "test"}
    dataset = DatasetFacts("D", splits=splits, default_val="ood_val", validation="OOD")
    select = {"select": SelectSettings(split=split)}
    run = make_run(
        {"A": {"D": [0.5]}, "B": {"D": [0.6]}}, datasets=(dataset,), seeds=(1,), facts=dict.fromkeys("AB", select)
    )
    assert f"Validation is {told}." in render(make_report(run), style)


def test_one_seed_claims_no_spread(make_run):
    first, *_ = caption(make_run({"A": {"D": [0.5]}}, seeds=(4,)))
    assert first == "Test accuracy in percent, n=1: one training seed (4) on one draw of the data, hence no spread."
    assert "nothing was tuned." in caption(make_run({"A": {"D": [0.5]}}, seeds=(4,)))[2]


def test_the_last_epoch_is_named(make_run):
    run = make_run({"A": {"D": [0.5]}}, seeds=(1,))
    assert "Checkpoint: last epoch; nothing was tuned." in caption(run, checkpoints=("last",))


def test_metrics_and_splits_are_named(make_run):
    datasets = (
        DatasetFacts("D", splits={"train": "train", "val": "val", "ood_test": "test"}, seed=1),
        DatasetFacts("E", metric="rocauc", task="multitask"),
    )
    first, *_ = caption(make_run({"A": {"D": [0.5, 0.5], "E": [0.5, 0.5]}}, seeds=(1, 2), datasets=datasets))
    assert first == (
        "Test accuracy and ROC-AUC (mean over labelled tasks) in percent on ood_test and test: mean ± sample standard "
        "deviation over 2 training seeds (1, 2) on one draw of the data."
    )


def test_oracles_are_flagged_in_caption_and_cells(make_run):
    cells = {"A": {"D": {"c=1": [0.9], "c=2": [0.8]}}, "B": {"D": [0.9], "E": [0.9]}}
    facts = {"A": {"select": SelectSettings(config="oracle")}, "B": {"oracle": ("base",), "environments": "base"}}
    run = make_run(cells, seeds=(1,), facts=facts)
    assert "configuration: ORACLE, best mean TEST score, an upper bound and not a result ‡." in caption(run)[2]
    assert "‡: oracle information, not ranked: configuration chosen on test scores; opened base (B)." in notes(run)
    grid = make_report(run).sections[0].main
    assert [row[3].flags for row in grid.rows] == ["‡", "‡"]
    assert [row[1].text for row in grid.rows] == ["–", "base"]


def test_a_provisional_choice_is_said(make_run):
    run = make_run({"A": {"D": {"c=1": [0.9], "c=2": [None]}}}, seeds=(1,))
    assert "1 cell is provisional" in " ".join(notes(run))
    section = make_report(run).sections[0]
    assert section.main.rows[0][2].text == "90.00 (n=1, provisional)"
    assert section.main.selected == ("A on D: c=1 (provisional)",)


def test_a_choice_for_several_test_splits_is_told_once(make_run):
    splits = {"train": "train", "val": "val", "id_test": "test", "ood_test": "test"}
    cells = {"A": {"D": {"c=1": [0.9], "c=2": [0.8]}}}
    run = make_run(cells, seeds=(1,), datasets=(DatasetFacts("D", splits=splits, validation="unbiased"),))
    assert make_report(run).sections[0].main.selected == ("A on D: c=1",)


def test_rows_that_were_left_out_are_counted(make_run):
    skipped = ("row 3 (line 4): cannot read 'X'", "row 9 (line 10): no label")
    run = make_run({"A": {"D": [0.5]}}, seeds=(1,), datasets=(DatasetFacts("D", skipped=skipped),))
    told = "Rows of the data left out: D: 2, row 3 (line 4): cannot read 'X'; row 9 (line 10): no label."
    assert told in notes(run)
    skipped = tuple(f"row {row} (line {row + 1}): cannot read 'X'" for row in (3, 5, 7, 9))
    run = make_run({"A": {"D": [0.5]}}, seeds=(1,), datasets=(DatasetFacts("D", skipped=skipped),))
    assert "Rows of the data left out: D: 4, row 3 (line 4): cannot read 'X'; " in " ".join(notes(run))


def test_a_reduced_run_is_not_called_by_the_papers_name(make_run):
    reduced = "reduced: 200/60/100 of 3000/1000/1000 graphs per class"
    datasets = (DatasetFacts("D", departures=(reduced,)), DatasetFacts("E"))
    facts = {"A": {"departures": ("epochs 6 (protocol 50)", "lr 0.1 (protocol 0.001)")}}
    facts["B"] = {"departures": ("epochs 6 (protocol 50)",)}
    cells = {"A": {"D": [0.5], "E": [0.5]}, "B": {"D": [0.5], "E": [0.5]}}
    run = make_run(cells, seeds=(1,), datasets=datasets, facts=facts)
    told = f"Protocol: equad; {reduced} (D); epochs 6 (protocol 50); lr 0.1 (protocol 0.001) (A)."
    assert told in caption(run)
    assert told in render(make_report(run), "latex")


def test_gpus_that_cells_were_trained_on_are_named(make_run):
    made = make_run({"A": {"D": [0.5, 0.6]}, "B": {"D": [0.5, "failed: no"]}}, seeds=(1, 2))
    run = made.with_rows(replace(row, cell=f"{row.method}{row.seed}") for row in made.rows)
    assert not [sentence for sentence in notes(run) if sentence.startswith("Trained on")]
    everywhere = run.with_rows(replace(row, device="NVIDIA H100") for row in run.rows)
    assert "Trained on NVIDIA H100." in notes(everywhere)
    partly = run.with_rows(replace(row, device="NVIDIA H100") if row.method == "A" else row for row in run.rows)
    assert "Trained on NVIDIA H100 (2 of 3 cells); the CPU (1 of 3 cells)." in notes(partly)


def test_labels_with_commas_are_told_apart():
    names = ["ERM", "EQuAD, GraphCL", "Two-piece (0.7, 0.9)"]
    assert listed(names) == "ERM, 'EQuAD, GraphCL', Two-piece (0.7, 0.9)"


@pytest.mark.parametrize(
    ("tune", "said"),
    [
        (TuneSettings("tpe", 2), "on val among 2 trials each (TPE, Optuna)."),
        (TuneSettings("random", 9), "on val among at most 9 trials each (random search, Optuna)."),
        (None, "on val."),
    ],
)
def test_a_search_is_named_with_its_sampler_and_trials(make_run, tune, said):
    run = make_run({"A": {"D": {"c=1": [0.5] * 3, "c=2": [0.6] * 3}}, "B": {"D": [0.5] * 3}}, tune=tune)
    assert caption(run)[2].endswith(f"configuration: best mean score over seeds {said}")
    assert all("Optuna" not in text for text in caption(make_run({"B": {"D": [0.5] * 3}}))[:3])
