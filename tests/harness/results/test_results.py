"""The flat table and the identity of its cells: long form, strict JSON, CSV, and a round trip through a file."""

import csv
import io
import json
import math
import os
import subprocess
import sys
from dataclasses import fields, replace

import pytest

from harness.analysis import MeasuredCell
from harness.errors import DataError
from harness.plan.build import Cell
from harness.results.rows import CellId, DatasetFacts, MethodFacts, ResultRow, RunResults, rows_to_csv
from harness.results.run_record import CellRecord
from harness.safe_io import json_text, parse_json, write_text
from harness.suite.spec import SelectSettings
from harness.tracker import TrackedCell

ROW = ResultRow(
    "D", "M", "penalty=1", 1, "test", "accuracy", "best@val", 0.5, hyperparameters={"baseline.penalty": 1.0}
)
RUN = RunResults(
    suite="s",
    run="r1",
    protocol="equad",
    seeds=(1, 2),
    datasets=(DatasetFacts("D", notes=("a note",)),),
    methods=("M",),
    entries=(MethodFacts("D", "M", {"penalty=1": {"baseline.penalty": 1.0}}, SelectSettings(split="val")),),
    rows=(ROW, replace(ROW, seed=2, value=None, status="failed", reason="boom", oracle=("base",))),
    overrides=("--epochs 3",),
)


def test_a_run_survives_its_file(tmp_path):
    path = tmp_path / "deep" / "results.json"
    RUN.save(path)
    assert RunResults.load(path) == RUN
    assert [item.name for item in path.parent.iterdir()] == ["results.json"]


def test_the_file_is_strict_json_also_with_nan_inside(tmp_path):
    run = RUN.with_rows([replace(ROW, seconds=math.nan, hyperparameters={"x": math.inf})])
    run.save(tmp_path / "results.json")
    text = (tmp_path / "results.json").read_text()
    assert parse_json(text)["rows"][0]["seconds"] is None
    assert "NaN" not in text
    assert "Infinity" not in text


def test_fields_of_a_later_version_are_ignored(tmp_path):
    data = parse_json(json_text(RUN))
    data["new"] = data["rows"][0]["new"] = data["datasets"][0]["new"] = 1
    write_text(tmp_path / "results.json", json_text(data))
    assert RunResults.load(tmp_path / "results.json") == RUN


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"rows": [NaN]}'])
def test_a_foreign_file_is_refused_by_name(tmp_path, text):
    (tmp_path / "results.json").write_text(text)
    with pytest.raises(DataError, match=r"results\.json: not a readable results file"):
        RunResults.load(tmp_path / "results.json")


def test_a_value_that_is_not_finite_is_undefined():
    row = replace(ROW, value=math.nan)
    assert (row.value, row.status, row.reason) == (None, "undefined", "not a finite number")


@pytest.mark.parametrize(("value", "status"), [(None, "ok"), (0.5, "failed"), (0.5, "odd")])
def test_value_and_status_must_agree(value, status):
    with pytest.raises(ValueError, match="status"):
        replace(ROW, value=value, status=status)


def test_csv_keeps_awkward_text():
    row = replace(ROW, method='a,"b"\nc', value=None, status="failed", traceback="line 1\nline 2")
    (read,) = csv.DictReader(io.StringIO(rows_to_csv([row])))
    assert (read["method"], read["traceback"], read["value"]) == (row.method, row.traceback, "")
    assert json.loads(read["hyperparameters"]) == {"baseline.penalty": 1.0}
    assert read["selected"] == "false"


def test_bare_nan_is_never_written_or_read():
    assert json_text([math.nan, 1.0], indent=None) == "[null, 1.0]\n"
    with pytest.raises(ValueError, match="NaN is not JSON"):
        parse_json("[NaN]")


def test_results_selection_and_report_import_no_torch():
    code = "import sys, harness.results.rows, harness.results.selection, harness.report; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_a_written_file_may_be_read_by_whom_the_umask_lets(tmp_path):
    before = os.umask(0o027)
    try:
        write_text(tmp_path / "new" / "report.html", "text")
    finally:
        os.umask(before)
    assert (tmp_path / "new" / "report.html").stat().st_mode & 0o777 == 0o640
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["report.html"]


@pytest.mark.parametrize("form", [Cell, CellRecord, ResultRow, MeasuredCell, TrackedCell])
def test_whatever_holds_a_cell_begins_with_its_identity(form: type[CellId]) -> None:
    assert issubclass(form, CellId)
    assert [item.name for item in fields(form)][:4] == [item.name for item in fields(CellId)]


def test_a_cell_is_named_with_its_configuration_where_there_are_several() -> None:
    assert CellId("Toy", "ERM", "-", 1).name == "ERM on Toy, seed 1"
    assert CellId("Toy", "IRM", "penalty=1", 2).name == "IRM (penalty=1) on Toy, seed 2"
    assert CellId("Toy", "IRM", "penalty=1", 2).coordinates == ("Toy", "IRM", "penalty=1", 2)
