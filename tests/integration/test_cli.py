"""The command line: help without heavy imports, JSON of every command, reports, exports, warm runs."""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from integration_kit import TOY, Workshop, command_line

from harness.cli.progress import Tally
from harness.engine import EngineOptions, Event
from harness.run.execute import execute
from harness.run.find import all_runs
from harness.store import Store

SMALL = TOY.replace("  IRM: {baseline: irm, envs: random(2)}\n", "")
SHIPPED = """\
bench: 1
name: shipped
seeds: [1]
model: {hidden: 8, layers: 2}
train: {epochs: 1}
datasets:
  Two-piece: {use: two-piece, invariant: 0.7, spurious: 0.9, num_per_class: [8, 4, 4]}
methods:
  ERM: {baseline: erm}
  EQuAD:
    encoder: {use: mvgrl, layers: 2, hidden: 8, snapshots: [1]}
    quantifier: {use: svm, C: [1.0]}
    decorrelator: {use: reweighted-erm}
"""
ROW = {"dataset", "method", "metric", "n", "mean", "spread", "values", "status", "reason"}


def strict(text: str):
    """Parse JSON as the standard has it: no NaN, no Infinity, no key twice."""

    def refuse(constant: str) -> None:
        raise ValueError(constant)

    def pairs(items: list[tuple[str, object]]) -> dict[str, object]:
        assert len(dict(items)) == len(items)
        return dict(items)

    return json.loads(text, parse_constant=refuse, object_pairs_hook=pairs)


def table(text: str) -> list[dict[str, str]]:
    """The rows of a CSV text with a header."""
    return list(csv.DictReader(io.StringIO(text)))


def test_help_imports_neither_torch_nor_numpy(workshop: Workshop) -> None:
    _without(workshop, ("torch", "numpy", "yaml"), "run", "--help")


def _without(workshop: Workshop, modules: tuple[str, ...], *words: str) -> None:
    """Run a command in a process of its own and fail where it has loaded one of the modules."""
    code = (
        "import sys\nfrom harness.cli import main\ntry:\n    main()\nfinally:\n"
        f"    print('loaded:', [name for name in {modules!r} if name in sys.modules], file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        cwd=workshop.folder,
        env=workshop.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "loaded: []" in done.stderr


def test_a_warm_run_loads_no_torch(workshop: Workshop) -> None:
    suite = workshop.write(SHIPPED)
    assert workshop.run(suite).exit_code == 0
    _without(workshop, ("torch", "sklearn", "rdkit"), "run", "suite.yaml")
    _without(workshop, ("torch", "sklearn", "rdkit"), "plan", "suite.yaml")
    _without(workshop, ("torch", "sklearn", "rdkit"), "report", "shipped")
    drawing = ("torch", "numpy", "scipy", "pandas", "matplotlib")
    _without(workshop, drawing, "report", "shipped", "--html", "--no-statistics")


def test_json_before_there_is_a_run(bench) -> None:
    listed = strict(bench("list", "--json"))
    assert {"erm", "mvgrl", "svm", "two-piece"} <= {entry["name"] for entry in listed["components"]}
    assert listed["broken"] == []
    encoders = strict(bench("list", "encoders", "--json"))["components"]
    assert {entry["kind"] for entry in encoders} == {"encoder"}
    assert "quick" in [suite["name"] for suite in strict(bench("list", "suites", "--json"))["suites"]]
    described = strict(bench("describe", "mvgrl", "--json"))
    assert described["name"] == "mvgrl"
    assert described["hparams"]["alpha"]
    assert strict(bench("describe", "toy", "--plugin", "toy_plugin.py", "--json"))["kind"] == "dataset"
    planned = strict(bench("plan", "suite.yaml", "--json"))
    assert {stage["state"] for stage in planned["stages"]} == {"new"}
    assert strict(bench("runs", "--json")) == {"runs": []}
    assert strict(bench("cache", "list", "--json")) == {"artifacts": []}
    assert strict(bench("cache", "size", "--json"))["kinds"] == {}
    examined = strict(bench("doctor", "--json"))
    assert {"versions", "devices", "PyGCL", "store", "data folder", "broken plugins"} <= set(examined)
    assert not {"pyg", "smiles-csv"} & {*examined["datasets missing"]}, "a suite names their files"


def test_describe_shows_deviations(bench) -> None:
    told = bench("describe", "eqn7")
    assert "Yao et al., ICML 2024, Eqns. 7, 8" in " ".join(told.split())
    rows = told.partition("\nhyperparameters:\n")[2].splitlines()
    assert "    switch       divide_by_k: false" in rows
    assert "equals_erm" not in told
    described = strict(bench("describe", "eqn7", "--json"))
    assert "divide_by_k: false" in [row["switch"] for row in described["deviations"]]
    assert described["headline"].startswith("EQuAD's decorrelation loss")
    assert "deviations:" not in bench("describe", "two-piece")


def test_the_schema_knows_the_components_and_those_of_a_plugin_file(bench) -> None:
    told = strict(bench("schema"))
    assert told["$schema"].startswith("https://json-schema.org/")
    assert "erm" in told["$defs"]["baseline"]["anyOf"][0]["enum"]
    assert "toy" not in told["$defs"]["dataset"]["anyOf"][0]["enum"]
    assert "toy" in strict(bench("schema", "--plugin", "toy_plugin.py"))["$defs"]["dataset"]["anyOf"][0]["enum"]


def test_texts_before_there_is_a_run(bench) -> None:
    assert bench("--version").startswith("bench ")
    assert "suite.yaml: valid; 1 dataset, 3 methods, 2 seeds, 6 cells" in bench("validate", "suite.yaml")
    assert re.search(r"^  mvgrl +MVGRL: contrast .* \(Hassani and Khasahmadi, ICML 2020\)", bench("list"), re.MULTILINE)
    assert re.search("^ablation +The ablation of EQuAD's three steps", bench("list", "suites"), re.MULTILINE)
    assert re.search("^equad/paper +EQuAD as its paper describes it", bench("list", "bundles"), re.MULTILINE)
    assert "\nquantifier: " in bench("describe", "equad/paper")
    assert "did you mean 'equad/paper'" in bench("describe", "equad/papr", code=2)
    assert "alpha" in bench("describe", "encoder/mvgrl")
    assert "dataset toy" in bench("describe", "toy", "--plugin", "toy_plugin.py")
    assert re.search(r"^to run: \d+ stages, no estimate yet$", bench("plan", "suite.yaml"), re.MULTILINE)
    assert "no runs" in bench("runs")
    assert "PyGCL" in bench("doctor")
    assert "did you mean 'mvgrl'" in bench("describe", "mvgrll", code=2)
    assert "did you mean 'encoder'" in bench("list", "encodr", code=2)
    assert "no runs" in bench("report", "toy", code=2)


def test_everything_after_a_run(workshop: Workshop, bench) -> None:
    """One run, and then every command that looks at it."""
    suite = workshop.write(SMALL)
    assert workshop.run(suite).exit_code == 0
    _check_rows(bench)
    _check_formats(bench, workshop.folder)
    _check_store(bench)
    _check_export(bench, workshop.folder)
    _check_names(bench, workshop)


def _check_rows(bench) -> None:
    told = bench("report", "toy", "--json")
    rows = strict(told)["rows"]
    assert [(row["dataset"], row["method"]) for row in rows] == [("Toy", "ERM"), ("Toy", "EQuAD")]
    for row in rows:
        assert set(row) >= ROW
        assert row["metric"] == "accuracy"
        assert row["status"] == "ok"
        assert row["n"] == len(row["values"]) == 2
        assert row["mean"] == pytest.approx(sum(row["values"]) / 2)
        assert row["spread"] == pytest.approx(abs(row["values"][0] - row["values"][1]) / 2**0.5)
    again = bench("run", "suite.yaml", "--json", "--engine", "inline")
    assert json.dumps(strict(again)["rows"]) == json.dumps(rows)


def _check_formats(bench, folder: Path) -> None:
    assert "±" in bench("report", "toy")
    assert "| ERM" in bench("report", "toy", "-f", "markdown")
    latex = bench("report", "toy", "-f", "latex")
    assert r"\toprule" in latex
    assert r"\textbf" in latex
    assert {row["method"] for row in csv.DictReader(io.StringIO(bench("report", "toy", "-f", "csv")))} == {
        "ERM",
        "EQuAD",
    }
    assert bench("report", "toy", "-f", "latex", "-o", "table.tex") == "table.tex\n"
    assert (folder / "table.tex").read_text(encoding="utf-8") == latex
    for name, style in (
        ("t.json", "json"),
        ("T.TEX", "latex"),
        ("t.md", "markdown"),
        ("t.csv", "csv"),
        ("t.txt", "plain"),
    ):
        bench("report", "toy", "-o", name)
        assert (folder / name).read_text(encoding="utf-8") == bench("report", "toy", "-f", style), "the ending chooses"
    bench("report", "toy", "-o", "page.html")
    assert (folder / "page.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    for words in (["--checkpoint", "both"], ["--validation"], ["--differences"], ["--average"]):
        assert "ERM" in bench("report", "toy", *words)
    assert "did you mean 'latex'" in bench("report", "toy", "-f", "latx", code=2)
    assert "cannot write" in bench("report", "toy", "-o", "suite.yaml/table.md", code=2)


def _check_store(bench) -> None:
    sizes = strict(bench("cache", "size", "--json"))
    listed = strict(bench("cache", "list", "--json"))["artifacts"]
    assert sum(kind["artifacts"] for kind in sizes["kinds"].values()) == len(listed) > 10
    assert sizes["bytes"] >= sum(kind["bytes"] for kind in sizes["kinds"].values()) > 0
    assert "0 problems" in bench("cache", "verify")
    assert "would remove 0 artifacts" in bench("cache", "gc", "--unreachable-from", "suite.yaml")
    assert {run["status"] for run in strict(bench("runs", "--json"))["runs"]} == {"finished"}
    assert {stage["state"] for stage in strict(bench("plan", "suite.yaml", "--json"))["stages"]} == {"cached"}
    assert "nothing to run" in bench("plan", "suite.yaml")


def _check_export(bench, folder: Path) -> None:
    bench("export", "toy", "-o", "out", "--what", "results,predictions", "--what", "checkpoints")
    out = folder / "out"
    rows = strict((out / "results.json").read_text(encoding="utf-8"))["rows"]
    assert len(table((out / "results.csv").read_text(encoding="utf-8"))) == len(rows)
    assert len(list((out / "predictions").iterdir())) == 4
    assert len(list((out / "checkpoints").iterdir())) >= 4
    cell = rows[0]["cell"]
    bench("export", "toy", "-o", "one", "--what", "predictions", "--cell", cell)
    assert [path.name.partition("-")[0] for path in (folder / "one" / "predictions").iterdir()] == [cell]
    assert "no cell 'zzzzzzzz'" in bench("export", "toy", "-o", "none", "--cell", "zzzzzzzz", code=2)
    assert "did you mean 'results'" in bench("export", "toy", "-o", "none", "--what", "result", code=2)
    assert "cannot write" in bench("export", "toy", "-o", "suite.yaml/out", code=2)


def _check_names(bench, workshop: Workshop) -> None:
    first = all_runs(Store(workshop.store))[0]
    by_file, by_id = bench("report", "suite.yaml", "--json"), bench("report", first.id, "--json")
    assert strict(by_file)["rows"] == strict(by_id)["rows"]
    assert "did you mean 'toy'" in bench("report", "tooy", code=2)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_no_internal_error(workshop: Workshop) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            command_line("list"),
            env=workshop.environment(),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr.startswith("error: cannot write: ")


def test_a_closed_output_is_no_error(workshop: Workshop) -> None:
    closed = f"{shlex.join(command_line('list'))} >&-"
    done = subprocess.run(closed, shell=True, env=workshop.environment(), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_differences_without_a_reference_are_told(made: Workshop) -> None:
    told = made.command("report", "suite.yaml", "--differences").stdout
    assert "No differences: the suite names no reference row" in told


def test_the_time_left_is_divided_by_the_workers_and_does_not_jump_between_stages(workshop: Workshop) -> None:
    session = workshop.open()
    for stage in session.plan.stages.values():
        session.store.record_run(stage, {"seconds": 10.0})
    tally = Tally(session)
    stages = list(session.plan.stages.values())
    for stage in stages[:2]:
        tally.add(Event("started", stage))
    assert tally.seconds_left() == 5.0 * len(stages)
    tally.add(Event("finished", stages[0], seconds=10.0))
    assert tally.seconds_left() == 5.0 * (len(stages) - 1)


def test_no_time_is_told_that_nobody_knows(workshop: Workshop) -> None:
    told = workshop.command("run", "suite.yaml", "--engine", "inline", "--methods", "ERM").stderr
    first, *_, last = told.splitlines()[:5]
    assert re.fullmatch(r"\[1/5\] finished prepare Toy in \d+\.\d s of wall time", first)
    assert re.fullmatch(r"\[5/5\] .* of wall time, about 0s left", last)
    assert workshop.command("list", "methods", check=False).stderr.endswith("analysis, tracker, suites, bundles\n")
    told = workshop.command("data", "describe", "nope", check=False).stderr
    assert told.startswith("error: no dataset is called 'nope'; there are: ")


def test_overrides_are_in_every_output(bench) -> None:
    changes = ["--epochs", "1", "--seeds", "7", "--set", "model.hidden=4", "--methods", "ERM"]
    told = bench("run", "suite.yaml", "--engine", "inline", *changes)
    outputs = [told, *(bench("report", "toy", "-f", style) for style in ("terminal", "markdown", "latex"))]
    for text in outputs:
        plain = text.replace("\\_", "_")
        assert "epochs" in plain
        assert "hidden 4 (protocol 32)" in plain
        assert "n=1" in plain.replace("$", "").replace(" ", "")
        assert "±" not in plain
        assert r"\pm" not in plain
    overrides = json.dumps(strict(bench("report", "toy", "--json")))
    assert "model.hidden=4" in overrides
    assert "model.hidden=4" in bench("runs")


def test_two_fresh_stores_give_the_same_rows_byte_for_byte(workshop: Workshop, bench) -> None:
    rows = []
    for name in ("one", "two"):
        words = ["suite.yaml", "--engine", "inline", "--methods", "E*", "--store", str(workshop.folder / name)]
        bench("run", *words)
        rows.append(json.dumps(strict(bench("report", "toy", "--json", "--store", words[-1]))["rows"]))
    assert rows[0] == rows[1]


def test_an_interrupted_run_has_a_report_and_goes_on(workshop: Workshop, bench) -> None:
    workshop.write(TOY.partition("  IRM:")[0])
    session = workshop.open()

    def observe(event: Event) -> None:
        if event.kind == "finished" and event.stage.kind == "score":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        execute(session, EngineOptions("inline"), observe)
    assert [run["status"] for run in strict(bench("runs", "--json"))["runs"]] == ["interrupted"]
    rows = strict(bench("report", "toy", "--json"))["rows"]
    assert {row["status"] for row in rows} >= {"missing"}
    assert all(row["reason"] for row in rows if row["status"] == "missing")
    assert "missing" in bench("report", "toy")
    (page,) = workshop.store.glob("runs/*/report.html")
    assert "1 not run yet" in page.read_text(encoding="utf-8")
    bench("run", "suite.yaml", "--engine", "inline")
    assert {row["status"] for row in strict(bench("report", "toy", "--json"))["rows"]} == {"ok"}


def test_a_malformed_molecule_is_left_out_and_counted_and_a_repeated_one_is_noted(workshop: Workshop) -> None:
    pytest.importorskip("rdkit")
    rings = [f"C1{'C' * size}C1" for size in range(1, 21)]
    rows = [f"{'N' * (n % 3)}{ring},{n % 2}" for n, ring in enumerate(rings * 3)]
    rows.insert(7, "C1CC(nonsense,1")
    rows.append("C1CCC1,0")
    workshop.write("smiles,active\n" + "\n".join(rows) + "\n", "mine.csv")
    data = "{use: smiles-csv, path: mine.csv, label_columns: [active]}"
    suite = workshop.write(
        f"bench: 1\nname: mine\nseeds: [1]\nmodel: {{hidden: 8}}\ntrain: {{epochs: 1}}\n"
        f"datasets:\n  Mine: {data}\nmethods:\n  ERM: {{baseline: erm}}\n"
    )
    done = workshop.command("run", suite.name, "--engine", "inline", "--data-dir", ".")
    assert "Rows of the data left out: Mine: 1, row 8 (line 9): RDKit cannot read the SMILES" in done.stdout
    (note,) = workshop.run_of("mine").datasets[0].notes
    assert note.startswith("1 molecule of 2 rows is there more than once, of which ")
