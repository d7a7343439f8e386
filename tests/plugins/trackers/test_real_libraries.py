"""The trackers with the libraries themselves; each skips where its library is not installed."""

from __future__ import annotations

import threading

import psutil
import pytest

from harness import TrackedCell, TrackedRun
from harness.registry.discovery import load_one
from harness.registry.index import load_catalog


@pytest.fixture(scope="module")
def components():
    return {(entry.kind, entry.name): load_one(entry) for entry in load_catalog() if entry.kind == "tracker"}


@pytest.fixture
def run(tmp_path):
    return TrackedRun("run-1", "tiny", "equad", (1,), tmp_path)


def cells():
    common = {"dataset": "Toy", "method": "ERM", "config_id": "-", "seed": 1}
    history = [{"epoch": epoch, "loss": 1.0 / (epoch + 1), "score": {"val": 0.5, "late": None}} for epoch in range(2)]
    scores = {"accuracy/test/best@val": 0.75, "accuracy/test/last": 0.5}
    yield TrackedCell(id="c1", **common, hyperparameters={"learner.rate": 0.1}, history=history, scores=scores)
    yield TrackedCell(id="c2", **common | {"seed": 2}, status="failed", reason="ValueError: no such thing")


def follow(tracker, run):
    """All of a run in a thread, as the harness does it."""
    problems = []

    def work():
        try:
            tracker.start(run)
            for cell in cells():
                tracker.cell(cell)
            tracker.finish([], "failed")
        except Exception as error:
            problems.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    if problems:
        raise problems[0]


@pytest.mark.filterwarnings("ignore:.*file:FutureWarning")
def test_mlflow_holds_the_cells(components, run, tmp_path, monkeypatch):
    pytest.importorskip("mlflow", reason="needs the extra `mlflow`")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # making a database takes some seconds
    uri = (tmp_path / "mlruns").as_uri()
    follow(components["tracker", "mlflow"](uri=uri), run)
    from mlflow.tracking import MlflowClient

    client = MlflowClient(uri)
    experiment = client.get_experiment_by_name("tiny")
    done, failed = sorted(client.search_runs([experiment.experiment_id]), key=lambda found: found.data.params["seed"])
    assert (done.info.status, failed.info.status) == ("FINISHED", "FAILED")
    assert done.data.params == {
        "dataset": "Toy",
        "method": "ERM",
        "seed": "1",
        "protocol": "equad",
        "learner.rate": "0.1",
    }
    assert done.data.metrics["score/accuracy/test/best_val"] == 0.75
    assert [point.value for point in client.get_metric_history(done.info.run_id, "loss")] == [1.0, 0.5]
    assert failed.data.tags["bench.status"] == "failed"


def test_wandb_leaves_a_run_per_cell_and_no_process(components, run, tmp_path, capfd):
    pytest.importorskip("wandb", reason="needs the extra `wandb`")
    before = set(psutil.Process().children(recursive=True))
    follow(components["tracker", "wandb"](mode="offline"), run)
    files = list((tmp_path / "wandb").glob("offline-run-*/*.wandb"))
    assert len(files) == 2
    assert all(file.stat().st_size > 0 for file in files)
    assert capfd.readouterr() == ("", ""), "the screen is the run's own"
    left = set(psutil.Process().children(recursive=True)) - before
    assert not psutil.wait_procs(left, timeout=10)[1]
