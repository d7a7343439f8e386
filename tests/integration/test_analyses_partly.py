"""What goes wrong with one analysis, or one of its cells, leaves all else."""

from __future__ import annotations

from dataclasses import replace

import pytest
from integration_kit import TOY, Workshop

from harness.engine.provenance import versions
from harness.results.run_record import RunRecord
from harness.run.execute import RunOutcome
from harness.store import Store
from harness.store.maintenance import listing

PICKY = '''\
from harness import Analysis, Findings, hookimpl


class Picky(Analysis):
    """Cannot look at the second data set."""

    name = "picky"

    def measure(self, cell):
        if cell.task.num_classes == 3:
            raise RuntimeError("too many classes")
        return {"graphs": len(cell.labels("train"))}

    def present(self, study):
        return Findings(("dataset", "graphs"), tuple((c.dataset, c.values["graphs"]) for c in study.cells))


@hookimpl
def bench_register(register):
    register(Picky)
'''


def test_a_failed_measurement_loses_its_own_cells_alone(workshop: Workshop) -> None:
    (workshop.folder / "picky.py").write_text(PICKY, encoding="utf-8")
    text = TOY.replace("[toy_plugin.py]", "[toy_plugin.py, picky.py]")
    text = text.replace("  Toy: {use: toy}\n", "  Toy: {use: toy}\n  Large: {use: toy, classes: 3}\n")
    suite = workshop.write(text + "analyses: {Picky: picky}\n")
    check(workshop.run(suite, seeds="1", methods=["ERM"]))
    again = workshop.run(suite, seeds="1", methods=["ERM"])
    check(again)
    assert workshop.ran() == [], "the failure is stored, like that of any stage"
    assert "; --retry-failed runs it again)" in again.findings[0].reason
    told = workshop.command("analyse", "suite.yaml", "--engine", "inline", "--retry-failed", check=False)
    assert "too many classes" in told.stdout
    assert "retry-failed" not in told.stdout + told.stderr


def check(outcome: RunOutcome) -> None:
    (found,) = outcome.findings
    assert found.rows == (("Toy", 24),)
    assert found.status == "failed"
    assert "Large" in found.reason
    assert "too many classes" in found.reason
    assert outcome.exit_code == 1


FRAIL = '''\
from harness import Analysis, Findings, hookimpl, hparam


class Frail(Analysis):
    """Goes wrong in the process that presents it."""

    name = "frail"
    measures = False
    how: str = hparam("no", help="how")

    def __init__(self, **params):
        super().__init__(**params)
        if self.how == "made":
            raise RuntimeError("not to be made")

    def present(self, study):
        if self.how == "interrupted":
            raise KeyboardInterrupt
        return Findings(("dataset",), tuple((cell.dataset,) for cell in study.cells))


@hookimpl
def bench_register(register):
    register(Frail)
'''
EDITOR = '''\
from pathlib import Path

from harness import Baseline, hookimpl


class Editor(Baseline):
    """ERM that edits the file of an analysis while it trains."""

    name = "editor"

    def on_fit_start(self, train):
        path = Path(__file__).with_name("frail.py")
        path.write_text(path.read_text().replace('"dataset"', '"data"'))

    def loss(self, batch):
        return {"erm": self.risk(self(batch), batch).mean()}


@hookimpl
def bench_register(register):
    register(Editor)
'''


@pytest.fixture
def frail(workshop: Workshop) -> Workshop:
    """A suite whose only method edits the file of its analyses; ``HOW`` is what goes wrong in the first."""
    for name, text in {"frail.py": FRAIL, "picky.py": PICKY, "editor.py": EDITOR}.items():
        workshop.write(text, name)
    text = TOY.partition("  ERM:")[0].replace("[toy_plugin.py]", "[toy_plugin.py, frail.py, picky.py, editor.py]")
    analyses = "analyses:\n  First: {use: frail, how: HOW}\n  Size: picky\n"
    workshop.write(f"{text}  Editor: {{baseline: editor}}\n{analyses}")
    return workshop


def first_that_is(workshop: Workshop, how: str) -> RunOutcome:
    path = workshop.write((workshop.folder / "suite.yaml").read_text().replace("HOW", how), f"{how}.yaml")
    return workshop.run(path, seeds="1")


def test_an_analysis_is_made_as_it_was_planned_or_fails_alone(frail: Workshop) -> None:
    outcome = first_that_is(frail, "fine")
    assert '"data"' in (frail.folder / "frail.py").read_text(), "the edit was made"
    assert [(found.status, found.columns[:1]) for found in outcome.findings] == [("ok", ("dataset",))] * 2
    outcome = first_that_is(frail, "made")
    assert [found.status for found in outcome.findings] == ["failed", "ok"]
    assert outcome.findings[0].reason == "RuntimeError: not to be made (frail.py:14)"
    assert outcome.page is not None


def test_a_damaged_measurement_fails_its_analysis_alone_and_is_made_again(frail: Workshop) -> None:
    first_that_is(frail, "fine")
    store = Store(frail.store)
    (key,) = [info.key for info in listing(store) if info.kind == "analyse"]
    values = store.artifact_folder(key) / "values.json"
    values.write_text(values.read_text().replace("24", "42"))
    outcome = first_that_is(frail, "fine")
    assert [found.status for found in outcome.findings] == ["ok", "failed"]
    assert "is damaged (values.json: its checksum differs)" in outcome.findings[1].reason
    old = {**outcome.record.provenance, "versions": {"torch": "0.1"}}
    replace(outcome.record, provenance=old).save(outcome.folder)
    frail.command("analyse", outcome.record.id, "picky", "--engine", "inline")
    assert store.record(key)["provenance"]["versions"] == versions(), "not those of the run that it looks at"


def test_an_interrupt_while_analyses_are_made_leaves_a_report_and_names_the_run(frail: Workshop) -> None:
    with pytest.raises(KeyboardInterrupt) as stopped:
        first_that_is(frail, "interrupted")
    folder = frail.store / "runs" / stopped.value.args[0]
    assert RunRecord.load(folder).status == "finished"
    assert (folder / "report.html").is_file()
