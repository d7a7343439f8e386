"""Trackers are told of a run and can neither change nor fail it."""

from __future__ import annotations

import json
import logging
import sys
import types

import pytest
from integration_kit import TOY

from harness.run import tracking

BAD = '''\
import time

from harness import Tracker, hookimpl, hparam


class Bad(Tracker):
    """Goes wrong at a chosen time."""

    name = "bad"
    when: str = hparam("cell", choices=["import", "start", "stage", "cell", "finish", "hang"])

    def _maybe(self, when):
        if self.when == when:
            raise RuntimeError(f"no server at {when}")

    def start(self, run):
        self._maybe("start")
        if self.when == "import":
            import no_such_package  # noqa: F401
        if self.when == "hang":
            time.sleep(60)

    def stage(self, stage):
        self._maybe("stage")

    def cell(self, cell):
        self._maybe("cell")

    def finish(self, table, status):
        self._maybe("finish")


@hookimpl
def bench_register(register):
    register(Bad)
'''
SHORT = TOY.partition("  EQuAD:")[0]
ONE = SHORT.partition("  IRM:")[0].replace("[1, 2]", "[1]")


@pytest.fixture(scope="module")
def bad(tmp_path_factory):
    """The plugin in one file for all tests, so that it is indexed once."""
    path = tmp_path_factory.mktemp("bad") / "bad.py"
    path.write_text(BAD, encoding="utf-8")
    return ONE.replace("[toy_plugin.py]", f"[toy_plugin.py, {path}]")


def log(outcome):
    return [json.loads(line) for line in (outcome.folder / "log.jsonl").read_text(encoding="utf-8").splitlines()]


def test_json_lines_tell_the_whole_run(workshop, values):
    outcome = workshop.run(workshop.write(SHORT + "trackers: [jsonl]\n"))
    lines = log(outcome)
    assert [lines[0]["event"], lines[-1]["event"]] == ["start", "finish"]
    assert lines[-1]["status"] == "finished"
    assert len(lines[-1]["table"]) == 2
    finished = [line["title"] for line in lines if line["event"] == "stage" and line["what"] == "finished"]
    assert finished == workshop.ran()
    cells = [line for line in lines if line["event"] == "cell"]
    assert {(cell["method"], cell["seed"]) for cell in cells} == {(m, s) for m in ("ERM", "IRM") for s in (1, 2)}
    assert len(cells) == 4
    for cell in cells:
        assert [row["epoch"] for row in cell["history"]] == [0, 1]
        assert {"accuracy/test/last", "accuracy/val/last"} <= set(cell["scores"])
        assert not cell["cached"]
    again = workshop.run(workshop.folder / "suite.yaml")
    assert all(cell["cached"] for cell in log(again) if cell["event"] == "cell")
    plain = workshop.run(workshop.write(SHORT))
    assert workshop.ran() == [], "a tracker changes no key"
    assert values(plain.results) == values(outcome.results)


def test_failed_cells_are_told_with_their_reason(workshop):
    suite = workshop.write(SHORT.replace("{baseline: erm}", "{baseline: {use: misbehave, how: raise}}"))
    outcome = workshop.run(suite, seeds="1", trackers=["jsonl"])
    cells = {c["method"]: c for c in log(outcome) if c["event"] == "cell"}
    assert cells["ERM"]["status"] == "failed"
    assert "no such thing" in cells["ERM"]["reason"]
    assert cells["IRM"]["status"] == "ok"


def test_a_tracker_that_fails_never_fails_the_run(workshop, bad, caplog):
    times = ("import", "start", "stage", "cell", "finish")
    trackers = [*(f"{{use: bad, when: {when}}}" for when in times), "jsonl"]
    with caplog.at_level(logging.WARNING):
        outcome = workshop.run(workshop.write(f"{bad}trackers: [{', '.join(trackers)}]\n"))
    assert outcome.exit_code == 0
    assert log(outcome)[-1]["event"] == "finish"
    told = [record.getMessage() for record in caplog.records if "tracker 'bad' is off" in record.getMessage()]
    assert len(told) == len(times)
    for text in ("no_such_package", *(f"no server at {when}" for when in times[1:])):
        assert sum(text in line for line in told) == 1


def test_a_tracker_that_hangs_is_left_behind(workshop, bad, caplog, monkeypatch):
    monkeypatch.setattr(tracking, "PATIENCE", 0.2)
    with caplog.at_level(logging.WARNING):
        outcome = workshop.run(workshop.write(bad + "trackers: {use: bad, when: hang}\n"))
    assert outcome.exit_code == 0
    assert "did not finish within" in caplog.text


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("[jsnl]", "no tracker is called 'jsnl' (did you mean 'jsonl'?)"),
        ("{use: jsonl, fil: x}", "has no hyperparameter 'fil' (did you mean 'file'?)"),
        ("[{file: x}]", "this tracker has no name"),
    ],
)
def test_wrong_trackers_are_told_with_their_place(workshop, written, message):
    suite = workshop.write(f"{SHORT}trackers: {written}\n")
    done = workshop.command("validate", str(suite), check=False)
    assert done.returncode == 2
    assert message in done.stderr + done.stdout
    assert "suite.yaml:12:" in done.stderr + done.stdout


def test_tensorboard_files_hold_the_curves(workshop):
    pytest.importorskip("tensorboardX")
    outcome = workshop.run(workshop.write(SHORT), seeds="1", trackers=["tensorboard"])
    folders = sorted(path.name for path in (outcome.folder / "tensorboard").iterdir())
    assert [name.rsplit("-", 1)[0] for name in folders] == ["Toy-ERM-1", "Toy-IRM-1"]
    tags = scalars(next((outcome.folder / "tensorboard").glob("Toy-ERM-1-*/events*")))
    assert {"score/accuracy/test/last", "score/accuracy/val/best_val"} <= set(tags)
    assert any(len(steps) == 2 and name.startswith("loss") for name, steps in tags.items())


def scalars(path):
    """Tag -> steps of an event file, read with tensorboardX's own protocol."""
    import struct

    from tensorboardX.proto.event_pb2 import Event

    data, found, place = path.read_bytes(), {}, 0
    while place < len(data):
        (length,) = struct.unpack_from("<Q", data, place)
        event = Event.FromString(data[place + 12 : place + 12 + length])
        for value in event.summary.value:
            found.setdefault(value.tag, []).append(event.step)
        place += 16 + length
    return found


class Record:
    """Stands for a tracking library: keeps every call."""

    def __init__(self):
        self.calls = []

    def __getattr__(self, name):
        def call(*words, **named):
            self.calls.append((name, words, named))
            return self

        return call

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None


def test_wandb_gets_configuration_curves_and_summary(workshop, monkeypatch):
    library = Record()
    library.summary = Record()
    monkeypatch.setitem(sys.modules, "wandb", library)
    workshop.run(workshop.write(SHORT + "trackers: {use: wandb, mode: offline, project: p}\n"), seeds="1")
    starts = [named for name, _, named in library.calls if name == "init"]
    assert [start["name"] for start in starts] == ["ERM on Toy, seed 1", "IRM on Toy, seed 1"]
    assert starts[0]["config"]["protocol"] == "equad"
    assert {start["mode"] for start in starts} == {"offline"}
    steps = [named["step"] for name, _, named in library.calls if name == "log"]
    assert steps == [0, 1, 0, 1]
    assert any("score/accuracy/test/last" in words[0] for name, words, _ in library.summary.calls if name == "update")


def test_mlflow_gets_parameters_metrics_and_status(workshop, monkeypatch):
    client = Record()
    client.info = types.SimpleNamespace(run_id="r1")
    client.experiment_id = "e1"
    entities = types.SimpleNamespace(Metric=lambda *a: a, Param=lambda *a: a)
    monkeypatch.setitem(sys.modules, "mlflow", types.SimpleNamespace(entities=entities))
    monkeypatch.setitem(sys.modules, "mlflow.tracking", types.SimpleNamespace(MlflowClient=lambda _: client))
    monkeypatch.setitem(sys.modules, "mlflow.entities", entities)
    suite = workshop.write(SHORT.replace("{baseline: erm}", "{baseline: {use: misbehave, how: raise}}"))
    workshop.run(suite, seeds="1", trackers=["mlflow"])
    logged = [named for name, _, named in client.calls if name == "log_batch"]
    assert ("method", "IRM") in [pair for call in logged for pair in call.get("params", ())]
    assert any(metric[0] == "score/accuracy/test/last" for call in logged for metric in call.get("metrics", ()))
    ends = [words[1] for name, words, _ in client.calls if name == "set_terminated"]
    assert sorted(ends) == ["FAILED", "FINISHED"]


def test_a_missing_library_is_one_line_with_the_extra(workshop, caplog, monkeypatch):
    names = ["tensorboard", "mlflow", "wandb"]
    for module in ("tensorboardX", "mlflow", "mlflow.tracking", "wandb"):
        monkeypatch.setitem(sys.modules, module, None)
    with caplog.at_level(logging.WARNING):
        outcome = workshop.run(workshop.write(ONE), trackers=names)
    assert outcome.exit_code == 0
    assert all(f"equad-bench[{name}]" in caplog.text for name in names)


def test_a_table_that_cannot_be_made_fails_no_run(workshop, bad, monkeypatch, caplog):
    def fail(_):
        raise RuntimeError("no table")

    monkeypatch.setattr(tracking, "_table", fail)
    outcome = workshop.run(workshop.write(bad + "trackers: {use: bad, when: finish}\n"))
    assert outcome.exit_code == 0
    assert "tracker 'bad' is off: RuntimeError: no table" in caplog.text


def test_trackers_are_told_the_end_although_the_analyses_are_interrupted(workshop, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("harness.run.execute.analyse", interrupt)
    with pytest.raises(KeyboardInterrupt):
        workshop.run(workshop.write(ONE + "trackers: [jsonl]\nanalyses: {Time: runtime}\n"))
    (file,) = workshop.store.glob("runs/*/log.jsonl")
    assert json.loads(file.read_text(encoding="utf-8").splitlines()[-1])["event"] == "finish"
