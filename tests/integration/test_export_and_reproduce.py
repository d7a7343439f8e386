"""Exports that can be run again, and cells that come out the same."""

from __future__ import annotations

import json
import shutil
import sys
import tarfile
from contextlib import chdir
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
import yaml
from integration_kit import ROOT, TOY, Workshop

from harness.engine.provenance import versions
from harness.results.rows import RunResults
from harness.results.run_record import RunRecord
from harness.run.export import Export
from harness.store import Store

HELPER = "WEIGHT = 2.0\n"
PLUGIN = '''\
from ._weights import WEIGHT
from harness import Baseline, hookimpl


class Heavy(Baseline):
    """ERM, twice."""

    name = "heavy"

    def loss(self, batch):
        return {"erm": WEIGHT * self.risk(self(batch), batch).mean()}


@hookimpl
def bench_register(register):
    register(Heavy)
'''
TUNED = """\
bench: 1
name: tuned
plugins: [toy_plugin.py, heavy.py]
seeds: [1, 2]
model: {hidden: 8, layers: 2}
train: {epochs: 2, batch_size: 8}
datasets:
  Toy: {use: toy, envs: random(2)}
methods:
  Heavy: {baseline: heavy, tune: {model.layers: [1, 2], train.lr: [1e-3, 1e-2]}}
  IRM: {baseline: {use: irm, tune: {penalty: [1, 100]}}, envs: random(2)}
  V-REx: {baseline: vrex, tune: {envs.k: [2, 3]}}
"""

NAMED = """\
import runpy, sys
from pathlib import Path
from harness import hookimpl, hparam
from .toy_plugin import Toy


class Named(Toy):
    name = "named"
    names_code = ("code",)
    names_files = ("file",)
    code: str = hparam("", help="file.py:NAME of a function that gives the seed")

    @property
    def place(self):
        return Path(self.code.rpartition(":")[0])

    def files(self, data_dir):
        return [self.place, *super().files(data_dir)]

    def build(self, data_dir):
        sys.path.append(str(self.place.parent))
        sys.modules.pop("number_of_named", None)
        self.seed = runpy.run_path(str(self.place))[self.code.rpartition(":")[2]]()
        sys.path.pop()
        return super().build(data_dir)


@hookimpl
def bench_register(register):
    register(Named)
"""
NAMING = """\
bench: 1
name: naming
plugins: [../toy_plugin.py, ../named.py]
seeds: [1]
model: {hidden: 8, layers: 2}
train: {epochs: 1, batch_size: 8}
datasets:
  Named: {use: named, code: "mine.py:seed", file: shift.txt}
methods:
  ERM: {baseline: erm}
"""


@pytest.fixture
def project(workshop):
    """A folder with a suite, code and a data file; in the current folder lie others of their names."""
    (workshop.folder / "named.py").write_text(NAMED, encoding="utf-8")
    folder = workshop.folder / "project"
    folder.mkdir()
    (folder / "suite.yaml").write_text(NAMING, encoding="utf-8")
    for place, number in ((folder, 5), (workshop.folder, 6)):
        (place / "mine.py").write_text("from number_of_named import N\n\n\ndef seed():\n    return N\n")
        (place / "number_of_named.py").write_text(f"N = {number}\n")
        (place / "shift.txt").write_text(f"{number}\n")
    return folder


def heavy(workshop):
    workshop.write(PLUGIN, "heavy.py")
    workshop.write(HELPER, "_weights.py")


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    """A workshop with a search that was run, and the run."""
    made = Workshop.toy(tmp_path_factory.mktemp("tuned"), TUNED)
    heavy(made)
    return made, made.run()


def test_selected_configurations_are_a_suite_that_gives_the_same_numbers(tuned):
    workshop, outcome = tuned
    workshop.command("export", "tuned", "-o", "selected", "--what", "suite")
    (path,) = (workshop.folder / "selected").glob("selected-*.yaml")
    suite = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert {name for name, method in suite["methods"].items() if "tune" in method} == {"V-REx"}
    again = workshop.run(path)
    assert workshop.ran() == []  # every training of it was part of the search

    def chosen(results, only_selected):
        return {
            (r.method, r.seed, r.split, r.checkpoint): r.value
            for r in results.rows
            if r.checkpoint == "best@val" and (r.selected or not only_selected)
        }

    assert chosen(again.results, False) == chosen(outcome.results, True)


def test_the_archive_runs_where_nothing_else_is(tuned, tmp_path, values):
    workshop = Workshop(shutil.copytree(tuned[0].folder, tmp_path / "copy"))
    outcome = workshop.run()
    workshop.command("export", outcome.record.id, "-o", "archive", "--what", "archive")
    (packed,) = (workshop.folder / "archive").glob("*.tar.gz")
    with tarfile.open(packed) as archive:
        archive.extractall(tmp_path / "elsewhere", filter="data")
    (top,) = (tmp_path / "elsewhere").iterdir()
    assert {path.name for path in top.iterdir()} == {
        *("suite.yaml", "results.csv", "results.json", "run.json", "environment.txt", "README.txt", "plugins")
    }
    for name in ("heavy.py", "_weights.py", "toy_plugin.py"):
        (workshop.folder / name).unlink()
    assert values(workshop.run(top / "suite.yaml").results) == values(tuned[1].results)
    assert workshop.ran() == []  # the keys do not depend on where the plugins lie


def test_a_plugin_of_the_command_line_is_part_of_what_a_run_keeps(workshop):
    """Its archive and its cells named components that nothing said where to find."""
    workshop.write(TOY.replace("plugins: [toy_plugin.py]\n", ""))
    narrow = ("--plugin", "toy_plugin.py", "--methods", "ERM", "--seeds", "1", "--engine", "inline")
    workshop.command("run", "suite.yaml", *narrow)
    workshop.command("export", "toy", "-o", "out", "--what", "archive")
    (packed,) = (workshop.folder / "out").glob("*.tar.gz")
    with tarfile.open(packed) as archive:
        archive.extractall(workshop.folder, filter="data")
    (workshop.folder / "toy_plugin.py").unlink()
    again = workshop.run(workshop.folder / packed.name.removesuffix(".tar.gz") / "suite.yaml")
    assert (again.exit_code, workshop.ran()) == (0, [])


def test_parquet_has_every_row_or_names_the_extra(tuned):
    workshop, outcome = tuned
    done = workshop.command("export", "tuned", "-o", "tables", "--what", "results,parquet", check=False)
    try:
        from pyarrow import parquet
    except ImportError:
        assert done.returncode == 2
        assert "equad-bench[parquet]" in done.stderr
        assert not (workshop.folder / "tables").exists()
    else:
        assert parquet.read_table(workshop.folder / "tables" / "results.parquet").num_rows == len(outcome.results.rows)


def test_a_cell_is_reproduced_bit_for_bit_without_touching_the_store(workshop):
    outcome = workshop.run(workshop.write(TOY), seeds="1", methods=["EQuAD"])
    store, key = Store(workshop.store), outcome.record.cells[0].train
    old = {"provenance": {"device": "A GPU", "versions": {**outcome.record.provenance["versions"], "torch": "0.1"}}}
    store.keep_record(key, store.record(key) | old)  # as if this run had found it cached
    before = sorted(str(path) for path in workshop.store.rglob("*") if path.is_file() and "index" not in str(path))
    (cell,) = outcome.record.cells
    found = json.loads(workshop.command("reproduce", cell.id, "--engine", "inline", "--json").stdout)
    assert found["identical"]
    assert found["same_logits"]
    assert found["same_key"]
    assert len(found["scores"]) == 4
    assert found["versions"] == {"device": ["A GPU", "cpu"], "torch": ["0.1", versions()["torch"]]}
    after = sorted(str(path) for path in workshop.store.rglob("*") if path.is_file() and "index" not in str(path))
    assert after == before
    wrong = cell.id[:-1] + ("0" if cell.id[-1] != "0" else "1")
    done = workshop.command("reproduce", wrong, check=False)
    assert done.returncode == 2
    assert cell.id in done.stderr


def test_other_code_is_told_and_counts_as_not_reproduced(workshop):
    heavy(workshop)
    suite = workshop.write(TUNED.replace(", tune: {model.layers: [1, 2], train.lr: [1e-3, 1e-2]}", ""))
    outcome = workshop.run(suite, seeds="1", methods=["Heavy"])
    (cell,) = outcome.record.cells
    workshop.write("WEIGHT = -3.0\n", "_weights.py")
    done = workshop.command("reproduce", cell.id, "--engine", "inline", check=False)
    assert done.returncode == 1
    assert "source of baseline heavy changed" in done.stdout
    assert done.stdout.strip().endswith("identical: false")


def test_files_that_a_suite_names_are_its_own_from_every_folder(workshop, project, tmp_path_factory, values):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    with chdir(workshop.folder):
        first = workshop.run(Path("project/suite.yaml"))
    tree = yaml.safe_load((workshop.store / "runs" / first.record.id / "suite.yaml").read_text(encoding="utf-8"))
    assert tree["datasets"]["Named"]["code"] == f"{project}/mine.py:seed"
    assert tree["datasets"]["Named"]["file"] == f"{project}/shift.txt"
    with chdir(elsewhere):
        workshop.run(project / "suite.yaml")
        assert workshop.ran() == []
    (cell,) = first.record.cells
    found = json.loads(workshop.command("reproduce", cell.id, "--engine", "inline", "--json").stdout)
    assert found["identical"]
    assert found["same_key"]

    code, data = first.record.provenance["named"]
    assert (code["code"], list(code["files"])) == (True, ["mine.py", "number_of_named.py"])
    assert data["files"] == {"shift.txt": sha256(b"5\n").hexdigest()}
    workshop.command("export", "naming", "-o", "out", "--what", "archive")
    with tarfile.open(next((workshop.folder / "out").glob("*.tar.gz"))) as archive:
        archive.extractall(elsewhere, filter="data")
    (top,) = elsewhere.iterdir()
    (project / "shift.txt").rename(top / "shift.txt")
    shutil.rmtree(project)
    assert values(workshop.run(top / "suite.yaml").results) == values(first.results)
    assert workshop.ran() == []


def test_no_export_names_a_place_of_this_machine(workshop, project, tmp_path_factory):
    """Suite, command line, files that datasets name, tracebacks: all had absolute paths."""
    away = tmp_path_factory.mktemp("away") / "shift 2.txt"
    away.write_text("2\n", encoding="utf-8")
    suite = project / "suite.yaml"
    more = "  Raises: {baseline: misbehave}\n"
    suite.write_text(
        NAMING.replace("methods:", '  Away: {use: named, code: "mine.py:seed", file: shift.txt}\nmethods:') + more,
        encoding="utf-8",
    )
    told = workshop.command("run", str(suite), "--set", f"datasets.Away.file={away}", "--engine", "inline", check=False)
    assert told.returncode == 1, told.stderr
    workshop.command("export", "naming", "-o", "out", "--what", "results,archive,suite,predictions,checkpoints")
    (packed,) = (workshop.folder / "out").glob("*.tar.gz")
    with tarfile.open(packed) as archive:
        archive.extractall(workshop.folder / "out", filter="data")
    packed.unlink()
    files = {path: path.read_bytes() for path in (workshop.folder / "out").rglob("*") if path.is_file()}
    places = [ROOT, workshop.folder, away.parent, workshop.folder.resolve(), Path.home(), sys.prefix]
    for path, data in files.items():
        assert not [place for place in places if str(place).encode() in data], path
    (top,) = (path.parent for path in files if path.name == "README.txt")
    record = RunRecord.load(top)
    assert record.suite_path == "suite.yaml"
    beside = {"suite.yaml", "mine.py", "number_of_named.py", "shift.txt", "../named.py", "../toy_plugin.py"}
    assert set(record.suite_files) == beside | {f"../../{away.parent.name}/shift 2.txt"}
    far = replace(record, suite_path="/a/b/suite.yaml", suite_files={"../../c/d/shift.txt": "0", "../x.py": "1"})
    export = Export(far, (), Store(workshop.store), top)
    assert json.loads(export.texts()["run.json"])["suite_files"] == {"shift.txt": "0", "../x.py": "1"}
    commit = record.provenance["repository"]
    assert f", commit {commit['commit']}" in (top / "README.txt").read_text(encoding="utf-8")
    (failed,) = {row.traceback for row in RunResults.load(top / "results.json").rows if row.method == "Raises"}
    assert 'File "toy_plugin.py", line' in failed


def test_code_that_has_changed_since_the_run_is_not_archived_as_what_ran(workshop, project):
    workshop.run(project / "suite.yaml")
    (project / "number_of_named.py").write_text("N = 7\n")
    done = workshop.command("export", "naming", "-o", "out", "--what", "archive", check=False)
    assert done.returncode == 2
    assert f"{project}/number_of_named.py has changed since the run" in done.stderr
    (project / "shift.txt").write_text("8\n")
    told = workshop.command("report", "project/suite.yaml").stderr
    assert told.rstrip().endswith(": number_of_named.py, shift.txt"), "and neither the suite nor mine.py"
    assert not list((workshop.folder / "out").glob("*.tar.gz"))


def test_code_that_a_dataset_names_is_told(workshop, project):
    told = workshop.command("plan", "project/suite.yaml").stderr
    assert f"named by dataset 'named': {project}/mine.py:seed" in told
