"""A run's table outlives its artifacts, and nothing that only looks like scores gets into it."""

from __future__ import annotations

import errno
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from integration_kit import TOY, Workshop

from harness.results.run_record import RunRecord
from harness.run.collect import collect
from harness.run.find import find_run
from harness.store import Draft, Failure, Meta, Store
from harness.store.artifact import META


def some_score(workshop: Workshop) -> Path:
    """The folder of the artifact with the first cell's scores."""
    store = Store(workshop.store)
    return store.artifact_folder(find_run("toy", store).cells[0].score)


def replace_scores(folder: Path, text: str) -> None:
    """Scores of another form, with a right size and checksum."""
    meta = Meta.read(folder)
    (folder / META).unlink()
    (folder / "scores.json").write_text(text, encoding="utf-8")
    Draft(folder).describe(**{name: value for name, value in vars(meta).items() if name != "files"})


def test_a_table_stays_when_its_artifacts_are_collected(copied: Workshop, made: Workshop) -> None:
    before = made.command("report", "toy").stdout
    assert copied.command("cache", "gc", "--older-than", "0s", "--yes").returncode == 0
    assert Store(copied.store).artifact_keys() == []
    assert copied.command("report", "toy").stdout == before
    assert copied.run_of("toy") == made.run_of("toy")
    assert copied.command("export", "toy", "-o", str(copied.folder / "out"), "--what", "results").returncode == 0
    rows = (copied.folder / "out" / "results.csv").read_text(encoding="utf-8")
    assert rows.count("\n") == len(made.run_of("toy").rows) + 1


def test_settings_stay_when_some_trainings_are_collected(copied: Workshop) -> None:
    """Those of other configurations were lost, which a comparison with a recorded run looks at."""
    copied.write(TOY.replace("{baseline: erm}", "{baseline: erm, tune: {train.lr: [1e-3, 1e-2]}}"))
    outcome = copied.run(methods=["ERM"], seeds="1")
    (entry,) = outcome.results.entries
    assert entry.tuned_settings == {f"lr={rate}": {"train.lr": rate} for rate in (0.001, 0.01)}
    store = Store(copied.store)
    shutil.rmtree(store.artifact_folder(outcome.record.cells[0].train))
    assert collect(outcome.record, store) == outcome.results


def test_a_damaged_score_does_not_change_the_table(copied: Workshop, made: Workshop, caplog) -> None:
    (some_score(copied) / "scores.json").write_text("[", encoding="utf-8")
    told = copied.command("report", "toy").stdout
    assert told == made.command("report", "toy").stdout
    assert "is damaged and will be made again" in caplog.text
    assert copied.run_of("toy") == made.run_of("toy")  # also when it has been put aside


def test_a_later_failure_of_the_same_stage_does_not_hide_a_value(copied: Workshop, made: Workshop) -> None:
    cell = find_run("toy", Store(copied.store)).cells[0]
    copied.command("cache", "gc", "--older-than", "0s", "--yes")
    store = Store(copied.store)
    store.record_failure(cell.train, Failure("diverged", "nan", ""), copied.open().plan.stages[cell.train])
    assert copied.run_of("toy") == made.run_of("toy")


def row(**changes: Any) -> dict[str, Any]:
    facts = {"split": "test", "role": "test", "rule": "last", "epoch": 1, "metric": "accuracy", "graphs": 9}
    return facts | {"value": 0.5, "status": "ok", "reason": ""} | changes


ODD = {
    "no list": ({"a": 1}, "Input should be a valid array"),
    "a text as value": ([row(value="0.5")], "0.value: Input should be a valid number"),
    "no value": ([row(value=None)], "0: Value error, status 'ok' does not go with value None"),
    "a value beside a status": ([row(status="undefined")], "status 'undefined' does not go with value 0.5"),
    "too much": ([row(value=7.5)], "7.5 is no 'accuracy'"),
    "no rule": ([{name: value for name, value in row().items() if name != "rule"}], "0.rule: Field required"),
}


@pytest.mark.parametrize("odd", ODD)
def test_what_cannot_be_scores_is_put_aside(copied: Workshop, made: Workshop, odd: str, caplog) -> None:
    value, why = ODD[odd]
    replace_scores(some_score(copied), json.dumps(value))
    assert copied.run_of("toy") == made.run_of("toy")
    assert "(these are no scores: " in caplog.text
    assert why in caplog.text
    assert not some_score(copied).exists()


def test_a_run_makes_scores_again_that_are_none(copied: Workshop, made: Workshop, values) -> None:
    replace_scores(some_score(copied), "{}")
    outcome = copied.run()
    assert [title.partition(" ")[0] for title in copied.ran()] == ["score"]
    assert outcome.exit_code == 0
    assert (outcome.record.facts["stages"], outcome.record.facts["cached"]) == (1, 18)
    assert values(outcome.results) == values(made.run_of("toy"))


def test_a_cell_without_rows_is_no_success(copied: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Odd scores that cannot be put aside, as in a folder of somebody else."""
    monkeypatch.setattr(Store, "put_aside", lambda *_: None)
    replace_scores(some_score(copied), "{}")
    outcome = copied.run()
    assert len({row.cell for row in outcome.results.rows}) == 5
    assert outcome.exit_code == 1


@pytest.mark.parametrize(("name", "text"), [("history", "null"), ("checkpoints", "[1]"), ("info", '"a"')])
def test_a_page_leaves_out_curves_that_are_none(copied: Workshop, name: str, text: str) -> None:
    store = Store(copied.store)
    folder = store.artifact_folder(find_run("toy", store).cells[0].train)
    meta = Meta.read(folder)
    (folder / META).unlink()
    (folder / f"{name}.json").write_text(text, encoding="utf-8")
    given = {key: value for key, value in vars(meta).items() if key != "files"}
    Draft(folder).describe(**given)
    page = copied.folder / "page.html"
    told = copied.command("report", "toy", "--html", "-o", str(page))
    assert told.returncode == 0
    assert page.is_file()


def test_a_table_is_shown_though_its_folder_cannot_be_written(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch, caplog, values, made: Workshop
) -> None:
    begun = RunRecord.save

    def full(record: RunRecord, folder: Path) -> None:
        if record.status != "running":
            raise OSError(errno.ENOSPC, "No space left on device", str(folder))
        begun(record, folder)

    workshop.write(TOY)
    monkeypatch.setattr(RunRecord, "save", full)
    outcome = workshop.run()
    assert values(outcome.results) == values(made.run_of("toy"))
    assert not outcome.saved
    assert outcome.exit_code == 1
    assert f"the disk is full: cannot write {outcome.folder}; the run's folder is incomplete" in caplog.text
    assert RunRecord.load(outcome.folder).status == "running", "what the disk kept from it"
    assert workshop.run_of("toy").status == workshop.run_of(outcome.record.id).status == "interrupted"
