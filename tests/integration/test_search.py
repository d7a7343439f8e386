"""A search by TPE at work: rounds, resume, what it is told, and what is said of it."""

from __future__ import annotations

import json

import pytest
from integration_kit import ROOT, TOY, Workshop

from harness.cli.progress import Tally
from harness.engine import EngineOptions, Event
from harness.notebook import SuiteHandle
from harness.report import make_report
from harness.results.selection import ScoreTable
from harness.results.summary import Summary
from harness.run.execute import RunOutcome, execute
from harness.run.find import open_cell
from harness.run.session import Options

pytest.importorskip("optuna")
HEAD = TOY.partition("methods:\n")[0].replace("epochs: 2", "epochs: 1") + "tune: {sampler: tpe, trials: 13}\n"
AXES = "{model.layers: [1, 2, 3, 4], train.lr: [0.0001, 0.001, 0.01, 0.1]}"
SEARCH = (
    f"{HEAD}methods:\n"
    f"  ERM: {{baseline: erm, tune: {AXES}}}\n"
    f"  IRM: {{baseline: {{use: irm, tune: {{penalty: [1, 10]}}}}, envs: random(2), tune: {AXES}}}\n"
    "  V-REx: {baseline: {use: vrex, tune: {penalty: [1, 10]}}, envs: random(2)}\n"
)


def trials(outcome: RunOutcome) -> dict[tuple[str, str], list[str]]:
    return {(e.dataset, e.method): list(e.configurations) for e in outcome.results.entries}


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> tuple[Workshop, RunOutcome]:
    """The suite once run, for tests that read it."""
    made = Workshop.toy(tmp_path_factory.mktemp("search"), SEARCH + "trackers: [jsonl]\n")
    return made, made.run()


def test_every_method_has_its_trials_and_a_second_run_runs_nothing(searched: tuple[Workshop, RunOutcome]) -> None:
    workshop, outcome = searched
    assert outcome.exit_code == 0
    assert {key: len(set(names)) for key, names in trials(outcome).items()} == {
        ("Toy", "ERM"): 13,
        ("Toy", "IRM"): 13,
        ("Toy", "V-REx"): 2,
    }
    assert outcome.record.facts["stages"] == len(workshop.ran())
    again = workshop.run()
    assert workshop.ran() == []
    assert (trials(again), again.record.cells) == (trials(outcome), outcome.record.cells)
    assert again.record.facts["cached"] == outcome.record.facts["stages"]
    told = [json.loads(line) for line in (outcome.folder / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    assert sum(line["event"] == "cell" for line in told) == len(outcome.record.cells) == 2 * (13 + 13 + 2)


def test_a_trial_follows_from_the_mean_validation_scores_of_those_before(
    searched: tuple[Workshop, RunOutcome],
) -> None:
    workshop, outcome = searched
    scores = ScoreTable(outcome.results)
    for row in workshop.open().suite.rows[:2]:
        entry = outcome.results.entry(row.dataset, row.method)
        assert entry is not None
        assert row.ask is not None
        tried = list(row.configurations)
        assert len(tried) == 10
        while len(tried) < 13:
            found = [Summary(scores.candidate(entry, one.id, "val", "best@val").values).mean for one in tried]
            tried.append(row.ask(tried, [mean for mean in found if mean is not None]))
        assert [one.id for one in tried] == list(entry.configurations)


def test_the_caption_and_the_reports_name_sampler_and_trials(searched: tuple[Workshop, RunOutcome]) -> None:
    workshop, outcome = searched
    caption = make_report(outcome.results).sections[0].main.caption
    assert caption[2].endswith("best mean score over seeds on val among at most 13 trials each (TPE, Optuna).")
    assert json.loads(workshop.command("report", "toy", "--json").stdout)["tune"] == {"sampler": "tpe", "trials": 13}
    assert "13 trials each (TPE, Optuna)" in (outcome.folder / "report.html").read_text(encoding="utf-8")
    assert "optuna" in outcome.record.provenance


def test_a_trial_can_be_opened_again_and_run_alone(searched: tuple[Workshop, RunOutcome]) -> None:
    workshop, outcome = searched
    last = [cell for cell in outcome.record.cells if cell.method == "IRM"][-1]
    opened = open_cell(last.id, Options(store=workshop.store))
    assert (opened.cell.config_id, opened.cell.score) == (last.config_id, last.score)
    assert workshop.command("reproduce", last.id).stdout.count("identical") == 1
    alone = SuiteHandle(workshop.open()).run_cell(last.id)
    assert [(row["config_id"], row["provisional"]) for row in json.loads(alone.table("json"))["rows"]] == [
        (last.config_id, False)
    ]


def test_selected_configurations_are_exported_without_the_search(searched: tuple[Workshop, RunOutcome]) -> None:
    workshop, _ = searched
    workshop.command("export", "toy", "--what", "suite", "-o", "out")
    suite = workshop.folder / "out" / "selected-Toy.yaml"
    assert "tune:" not in suite.read_text(encoding="utf-8")
    workshop.run(suite)
    assert workshop.ran() == []


class Stop:
    """Interrupts a run after some stages."""

    def __init__(self, after: int) -> None:
        self.left = after

    def __call__(self, event: Event) -> None:
        self.left -= event.kind == "finished"
        if self.left < 0:
            raise KeyboardInterrupt


def test_an_interrupted_search_is_provisional_and_goes_on_to_the_same_trials(
    workshop: Workshop, searched: tuple[Workshop, RunOutcome]
) -> None:
    """Interrupted among the trials that are drawn, and again in a later round, where V-REx has all of its two."""
    workshop.write(SEARCH)
    for after, early in ((30, True), (71, False)):
        with pytest.raises(KeyboardInterrupt):
            execute(workshop.open(), EngineOptions("inline"), Stop(after))
        cut = workshop.run_of("toy")
        assert cut.status == "interrupted"
        rows = make_report(cut).sections[0].table.rows
        assert {row.method: row.provisional for row in rows} == {"ERM": True, "IRM": True, "V-REx": early}
        plan = json.loads(workshop.command("plan", "suite.yaml", "--json").stdout)
        assert 0 < plan["pending_trials"] <= 6
        assert Tally(workshop.open()).seconds_left() is None
        told = workshop.command("plan", "suite.yaml").stdout
        assert f"{plan['pending_trials']} further trials to be chosen by TPE" in told
    outcome = workshop.run()
    assert trials(outcome) == trials(searched[1])
    assert not any(row.provisional for row in make_report(outcome.results).sections[0].table.rows)


def test_a_search_takes_the_cells_of_a_grid(workshop: Workshop) -> None:
    suite = workshop.write(SEARCH.partition("  IRM")[0])
    workshop.run(suite, sets=["tune=null"], seeds="1")
    outcome = workshop.run(suite, seeds="1")
    assert workshop.ran() == []
    assert len(trials(outcome)["Toy", "ERM"]) == 13


def test_each_dataset_has_trials_of_its_own_and_test_labels_change_none(workshop: Workshop) -> None:
    head, rows = SEARCH.partition("  IRM")[0].split("  Toy: {use: toy}\n")
    other = "  Toy: {use: toy}\n  Shuffled: {use: toy, permute_test: 3}\n  Other: {use: toy, seed: 5}\n"
    found = trials(workshop.run(workshop.write(head + other + rows), seeds="1"))
    assert found["Toy", "ERM"] == found["Shuffled", "ERM"] != found["Other", "ERM"]
    assert found["Toy", "ERM"][:10] == found["Other", "ERM"][:10]


BAD = "  Bad: {baseline: {use: misbehave, tune: {how: [none, raise, diverge]}}, tune: {train.lr: [1, 2, 3, 4, 5, 6]}}\n"


def test_trials_that_fail_are_told_as_such(workshop: Workshop) -> None:
    workshop.write(f"{HEAD}methods:\n{BAD}".replace("[1, 2]", "[1]"))
    outcome = workshop.run()
    assert outcome.exit_code == 1
    names = trials(outcome)["Toy", "Bad"]
    assert len(names) == 13
    assert any("how=raise" in name for name in names[:10])
    assert sum("how=none" in name for name in names[10:]) >= 2
    again = workshop.run()
    assert (trials(again), workshop.ran()) == (trials(outcome), [])


def test_what_all_trials_need_and_lack_is_tried_once(workshop: Workshop) -> None:
    lacking = "datasets:\n  Toy: {use: toy, one_class: [train]}\n"
    pipeline = (
        "methods:\n  P:\n    encoder: {use: mvgrl, layers: 2, hidden: 8, snapshots: [1], batch_size: 8}\n"
        "    quantifier: svm\n    decorrelator: {use: eqn7, keep: 1}\n"
        f"    tune: {AXES}\n"
    )
    workshop.write(HEAD.replace("datasets:\n  Toy: {use: toy}\n", lacking) + pipeline)
    for _ in range(2):
        events: list[Event] = []
        outcome = execute(workshop.open(), EngineOptions("inline", retry_failed=True), events.append)
        tried = [event.stage.title for event in events if event.kind == "started"]
        assert sum(title.startswith("quantify") for title in tried) == 2
        assert len(trials(outcome)["Toy", "P"]) == 13
        assert not outcome.results.stored
        assert not any(one.since for one in outcome.record.failures.values() if one.status != "skipped")


def test_only_a_suite_with_a_search_loads_optuna(workshop: Workshop) -> None:
    broken = workshop.folder / "broken"
    broken.mkdir()
    (broken / "optuna.py").write_text("raise SystemExit('loaded')\n", encoding="utf-8")
    for suite, loads in ((TOY, False), (SEARCH, True)):
        built_in = suite.replace("plugins: [toy_plugin.py]\n", "").replace("{use: toy}", "{use: two-piece}")
        workshop.write(built_in)  # which needs no torch to be validated
        done = workshop.command("validate", "suite.yaml", apart=True, check=not loads, PYTHONPATH=f"{broken}:{ROOT}")
        assert ("loaded" in done.stderr) == loads
