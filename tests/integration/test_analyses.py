"""Analyses of a run: measured once, sealed, told apart from the cells, never lost."""

from __future__ import annotations

import json
import math
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from integration_kit import TOY, Workshop

from harness.results.run_record import load_findings

pytest.importorskip("matplotlib")

ANALYSES = """\
analyses:
  Groups: {use: groups, quartiles: 3, smallest: 1}
  CMD: {use: cmd, methods: [ERM, EQuAD]}
  Map: {use: tsne, graphs: 15}
  Votes: logits
  Kept: quantifiers
  Frozen: {use: representation, epochs: 20}
  Time: runtime
  Forest: forest
  Curves: curves
"""
PEEK = '''\
from harness import Analysis, Findings, hookimpl, hparam


class Peek(Analysis):
    """Reads what it may not."""

    name = "peek"
    where: str = hparam("measure", choices=["measure", "oracle", "present", "raise", "shape", "cell"])

    def measure(self, cell):
        if self.where == "measure":
            cell.labels("test")
        if self.where == "oracle":
            cell.oracle("base", "train")
        return {"graphs": len(cell.labels("train"))}

    def present(self, study):
        if self.where == "present":
            study.cells[0].labels("test")
        if self.where == "raise":
            raise KeyError("lost")
        if self.where == "shape":
            return [1, 2]
        if self.where == "cell":
            return Findings(("graphs",), (([1, 2],),))
        return Findings(("graphs",), ((study.cells[0].values["graphs"],),))


@hookimpl
def bench_register(register):
    register(Peek)
'''


@pytest.fixture(scope="module")
def shop(made, tmp_path_factory):
    """A workshop whose store has the cells of the toy suite; analyses of them alone are left to run."""
    workshop = made.copy(tmp_path_factory.mktemp("analyses") / "copy")
    workshop.write(PEEK, "peek.py")
    return workshop


@pytest.fixture
def findings(shop):
    """Run a suite with analyses and read what its folder holds, by label."""

    def run(analyses):
        outcome = shop.run(shop.write(TOY + analyses, "analysed.yaml"))
        return outcome, {found.label: (found, folder) for found, folder in load_findings(outcome.folder)}

    return run


@pytest.fixture(scope="module")
def analysed(shop):
    """The suite with every analysis, once run, and what its folder holds, by label."""
    outcome = shop.run(shop.write(TOY + ANALYSES, "every.yaml"))
    return outcome, {found.label: (found, folder) for found, folder in load_findings(outcome.folder)}


@pytest.fixture
def peek(shop):
    text = TOY.replace("[toy_plugin.py]", "[toy_plugin.py, peek.py]")

    def run(where):
        peeking = f"{text}analyses:\n  Peek: {{use: peek, where: {where}}}\n  Time: runtime\n"
        outcome = shop.run(shop.write(peeking, "peeking.yaml"))
        return outcome, outcome.findings[0]

    return run


@pytest.mark.timeout(180)
def test_every_analysis_gives_a_table_and_a_figure(analysed, shop):
    outcome, found = analysed
    assert outcome.exit_code == 0
    assert {label: one.status for label, (one, _) in found.items()} == dict.fromkeys(
        ["Groups", "CMD", "Map", "Votes", "Kept", "Frozen", "Time", "Forest", "Curves"], "ok"
    )
    for label, (one, folder) in found.items():
        assert one.rows, label
        assert all(len(row) == len(one.columns) for row in one.rows), label
        assert (folder / "table.csv").read_text(encoding="utf-8").startswith(one.columns[0])
        assert one.figures, label
        assert all((folder / name).stat().st_size > 1000 for name in one.figures)
        drawn = (folder / "figure.svg").read_text(encoding="utf-8")
        assert re.search(r'<g id="patch_1">\s*<path [^>]*style="fill: none"', drawn), "a drawing has no background"
        assert re.search(r'width="(237.6|496.8)pt"', drawn), "it is as wide as a column or a page"
    again = shop.run(shop.folder / "every.yaml")
    assert shop.ran() == []
    assert [one.rows for one in again.findings] == [one.rows for one, _ in found.values()]
    assert _figures(again.folder) == _figures(outcome.folder)


def _figures(folder):
    return [path.read_bytes() for path in sorted(folder.glob("analyses/*/figure.svg"))]


def test_groups_weighed_by_their_size_give_the_table_value(analysed):
    outcome, found = analysed
    rows = [row for row in found["Groups"][0].rows if row[1] == "ERM"]
    values = {row[3]: (row[4], row[5] / 100) for row in rows if not row[3].startswith("worst")}
    score = np.mean(
        [r.value for r in outcome.results.rows if (r.method, r.split, r.checkpoint) == ("ERM", "test", "best@val")]
    )
    assert values["all"][1] == pytest.approx(score)
    for kind in ("nodes", "environment", "base [ad]", r"base \d"):
        parts = [value for name, value in values.items() if re.search(kind, name)]
        assert sum(count for count, _ in parts) == values["all"][0]
        assert sum(count * share for count, share in parts) / values["all"][0] == pytest.approx(score)
    assert found["Groups"][0].opens == ("test labels", "base")


def test_curves_are_those_of_the_trainings(analysed):
    outcome, found = analysed
    best = {row[1]: row[4] for row in found["Curves"][0].rows}
    for method in ("ERM", "EQuAD"):
        rows = [
            r.value for r in outcome.results.rows if (r.method, r.split, r.checkpoint) == (method, "val", "best@val")
        ]
        assert best[method] == pytest.approx(100 * np.mean(rows))


@pytest.mark.usefixtures("analysed")
def test_only_what_changed_is_measured_again(findings, shop):
    findings("analyses:\n  CMD: {use: cmd, methods: [ERM], moments: 3}\n  Kept: quantifiers\n")
    assert shop.ran() == ["cmd of ERM on Toy, seed 1", "cmd of ERM on Toy, seed 2"]


def test_methods_without_a_pipeline_have_no_quantifiers_and_a_kept_one_is_told(analysed):
    rows = analysed[1]["Kept"][0].rows
    assert {row[1] for row in rows} == {"EQuAD"}
    (kept,) = [row for row in rows if row[2] == "kept"]
    assert kept[3] == 4  # two per seed


@pytest.mark.parametrize(
    ("where", "reason"),
    [("measure", "'test' is a test split"), ("oracle", "'base' is not declared"), ("present", "declares opens_test")],
)
def test_what_is_sealed_stays_sealed(peek, where, reason):
    outcome, finding = peek(where)
    assert finding.status == "failed"
    assert reason in finding.reason
    assert outcome.exit_code == 1


@pytest.mark.parametrize(
    ("where", "reason"),
    [
        ("raise", "KeyError: 'lost'"),
        ("shape", "returned list, not Findings"),
        ("cell", "a text, a number or None, not list"),
    ],
)
def test_a_failing_analysis_leaves_cells_and_other_analyses_alone(peek, where, reason):
    outcome, finding = peek(where)
    assert reason in finding.reason
    assert not outcome.record.failures
    assert [one.status for one in outcome.findings] == ["failed", "ok"]
    assert outcome.exit_code == 1


def test_failed_cells_are_left_out(shop):
    text = TOY.replace("IRM: {baseline: irm, envs: random(2)}", "Bad: {baseline: {use: misbehave, how: raise}}")
    outcome = shop.run(shop.write(text + "analyses:\n  Groups: groups\n", "failing.yaml"))
    assert {row[1] for row in outcome.findings[0].rows} == {"ERM", "EQuAD"}


def test_a_missing_matplotlib_is_a_remark(findings, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    _, found = findings("analyses:\n  Time: runtime\n")
    one, folder = found["Time"]
    assert one.status == "ok"
    assert "equad-bench[figures]" in one.notes[-1]
    assert not list(folder.glob("figure.*"))


@pytest.fixture(scope="module")
def plain(shop):
    """The folder of a run without analyses, which commands find by its name."""
    return shop.run(shop.write(TOY.replace("name: toy", "name: plain"), "plain.yaml")).folder


def test_the_command_analyses_a_run_that_is_there(shop, plain):
    done = shop.command("analyse", "plain", "groups", "--set", "quartiles=2", "--methods", "ERM", "--json")
    (found,) = json.loads(done.stdout)["analyses"]
    assert {row[1] for row in found["rows"]} == {"ERM"}
    assert math.isclose(sum(row[4] for row in found["rows"] if "nodes" in row[3]), 23)
    shop.command("analyse", "plain", "groups", "--methods", "ERM")
    text = shop.command("analyse", "plain", "runtime").stdout
    assert "Analysis: runtime" in text
    assert "Figure: " in text
    assert [finding.label for finding, _ in load_findings(plain)] == ["groups", "runtime"]
    shown = shop.command("report", "plain", "--format", "markdown").stdout
    assert "Analysis: groups" in shown
    assert "Analysis: runtime" in shown
    assert len(json.loads(shop.command("report", "plain", "--json").stdout)["analyses"]) == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["analyse", "plain", "group"], "did you mean 'groups'?"),
        (["analyse", "plain", "groups", "--set", "quartile=2"], "did you mean 'quartiles'?"),
        (["analyse", "plain", "groups", "--methods", "ERN"], "fits none of the suite's methods (did you mean 'ERM'?)"),
        (["analyse", "plain"], "the suite has no 'analyses'"),
    ],
)
@pytest.mark.usefixtures("plain")
def test_a_wrong_command_line_is_told(shop, words, message):
    done = shop.command(*words, check=False)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_quiet_run_prints_the_table_and_names_the_files(shop: Workshop) -> None:
    """Whole tables of analyses, and the notes of a run, stood below the table."""
    shop.write(f"{TOY}analyses: {{Cost: runtime}}\n", "quiet.yaml")
    done = shop.command("run", "quiet.yaml", "--engine", "inline", "--quiet")
    assert "Cost" not in done.stdout
    (line,) = [line for line in done.stderr.splitlines() if not line.startswith("code of this suite")]
    assert line.startswith("analysis Cost: ")
    assert (Path(line.partition(": ")[2]) / "table.csv").is_file()
    assert "Cost" in shop.command("run", "quiet.yaml", "--engine", "inline").stdout
