"""The Python API: what a notebook does, in a running event loop, and a network of one's own beside the others."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from integration_kit import Workshop

from harness import notebook as bench
from harness.errors import UserError
from harness.notebook import Run, SuiteHandle
from harness.plan.status import survey
from harness.run.custom_network import FLAG
from harness.training import loop

ROOT = Path(__file__).resolve().parents[2]


class Net(torch.nn.Module):
    """Mean of the features, then a line. The second feature column is ignored by whoever asks for fewer inputs."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.line = torch.nn.Linear(inputs, outputs)

    def forward(self, batch: Any) -> torch.Tensor:
        assert batch.y is None or self.training, "no labels where predictions are made"
        total = torch.zeros(batch.num_graphs, batch.x.shape[1]).index_add(0, batch.batch, batch.x)
        return self.line(total)


def make(info: Any) -> Net:
    return Net(info.node_features.sizes[0], info.task.outputs)


@pytest.fixture
def suite(workshop: Workshop) -> SuiteHandle:
    return bench.open_suite(workshop.folder / "suite.yaml", methods=["ERM", "IRM"], store=workshop.store)


def states(suite: SuiteHandle) -> set[str]:
    return {status.state for status in survey(suite.session.plan, suite.session.store, ())}


def artifacts(workshop: Workshop) -> set[str]:
    return {path.name for path in workshop.store.glob("artifacts/*/*")}


def test_a_suite_is_planned_and_run_in_a_running_event_loop(suite: SuiteHandle) -> None:
    assert [(cell["method"], cell["seed"]) for cell in suite.cells] == [("ERM", 1), ("ERM", 2), ("IRM", 1), ("IRM", 2)]
    assert states(suite) == {"new"}

    async def work() -> Run:
        return suite.run()

    run = asyncio.run(work())
    assert states(suite) == {"cached"}
    assert {row["status"] for row in run.rows()} == {"ok"}
    assert [row["method"] for row in json.loads(run.table("json"))["rows"]] == ["ERM", "IRM"]
    assert "ERM" in run.table()
    assert repr(run) == run.table()
    assert run._repr_markdown_().startswith(run.table("markdown")[:20])
    assert bench.latest("toy", store=suite.session.store.root).rows() == run.rows()


def test_the_latest_run_is_one_of_the_very_file(suite: SuiteHandle, workshop: Workshop) -> None:
    """It was the latest run of the suite's name, which a suite in another file may have."""
    suite.run_cell(method="ERM", seed=1)
    (workshop.folder / "other.yaml").write_text((workshop.folder / "suite.yaml").read_text(), encoding="utf-8")
    with pytest.raises(UserError, match=f"no run of the file {workshop.folder / 'other.yaml'} in "):
        bench.latest(workshop.folder / "other.yaml", store=workshop.store)
    assert bench.latest(workshop.folder / "suite.yaml", store=workshop.store).rows()


def test_results_are_a_frame_where_pandas_is(suite: SuiteHandle, monkeypatch: pytest.MonkeyPatch) -> None:
    pandas = pytest.importorskip("pandas")
    run = suite.run_cell(method="ERM", seed=2)
    frame = run.frame()
    assert isinstance(frame, pandas.DataFrame)
    assert frame.to_dict("records")[0]["method"] == "ERM"
    assert set(frame.seed) == {2}
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(UserError, match=r"equad-bench\[notebook\]"):
        run.frame()
    assert run.rows()


def test_a_data_folder_that_is_not_there_is_named_as_given(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="nowhere does not exist; data_dir names it"):
        bench.open_suite("quick", data_dir=tmp_path / "nowhere")


def test_a_cell_is_named_by_what_it_has(suite: SuiteHandle) -> None:
    with pytest.raises(UserError, match=r"a cell has no 'datset' \(did you mean 'dataset'\?\); it has: id, dataset, "):
        suite.run_cell(datset="Toy")


def test_one_cell_runs_alone_and_only_one(suite: SuiteHandle, capsys: Any) -> None:
    run = suite.run_cell(suite.cells[2]["id"], progress=True)
    assert {(row["method"], row["seed"]) for row in run.rows()} == {("IRM", 1)}
    assert "seeds 2 (protocol 3)" not in run.table(), "the caption counted the suite's seeds"
    assert "finished: train IRM on Toy, seed 1" in capsys.readouterr().out
    store = suite.session.store
    stored = [stage.title for key, stage in suite.session.plan.stages.items() if stage.trains and store.has(key)]
    assert stored == ["train IRM on Toy, seed 1"]
    with pytest.raises(UserError, match="2 cells fit "):
        suite.run_cell(method="ERM")
    with pytest.raises(UserError, match="0 cells fit "):
        suite.run_cell(method="CIGA")


def test_a_network_of_ones_own_is_a_row_and_leaves_nothing(suite: SuiteHandle, workshop: Workshop) -> None:
    run = suite.run()
    before = artifacts(workshop)
    more = run.evaluate("Mine", make)
    mine = [row for row in more.rows() if row["method"] == "Mine"]
    others = [row for row in more.rows() if row["method"] != "Mine"]
    assert others == run.rows()
    places = {(row["seed"], row["split"], row["checkpoint"]) for row in others}
    assert {(row["seed"], row["split"], row["checkpoint"]) for row in mine} == places
    assert all(row["status"] == "ok" and row["reason"] == FLAG for row in mine)
    assert all(row["key"] == row["cell"] == "" for row in mine)
    assert FLAG in more.table()
    assert artifacts(workshop) == before
    assert more.evaluate("Mine too", make).results.methods == ("ERM", "IRM", "Mine", "Mine too")
    again = [row for row in run.evaluate("Mine", make).rows() if row["method"] == "Mine"]
    assert [row["value"] for row in again] == [row["value"] for row in mine]  # the seeds are the suite's
    with pytest.raises(UserError, match="has a method 'ERM'"):
        run.evaluate("ERM", make)


def test_it_trains_as_the_suite_says(suite: SuiteHandle, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    real = loop.fit

    def fit(learner: Any, data: Any, settings: Any, *, seed: int) -> Any:
        seen.append((settings.epochs, settings.batch_size, seed, learner.network.line.weight.sum().item()))
        return real(learner, data, settings, seed=seed)

    monkeypatch.setattr("harness.stages.train.fit", fit)
    suite.evaluate("Mine", make)
    assert [(epochs, size, seed) for epochs, size, seed, _ in seen] == [(2, 8, 1), (2, 8, 2)]
    assert seen[0][3] != seen[1][3]  # each seed has its own start
    seen.clear()
    more = suite.evaluate("Copied", Net(3, 2))
    assert seen[0][3] == seen[1][3]
    assert "every seed starts from the weights given" in more.table()


def test_a_function_that_gives_one_network_for_all_seeds_does_not_train_it_on(suite: SuiteHandle) -> None:
    network = Net(3, 2)
    before = network.line.weight.clone()
    suite.evaluate("Goes on", lambda _: network)
    assert torch.equal(network.line.weight, before)


def test_a_trained_network_is_taken_as_it_is(suite: SuiteHandle) -> None:
    network = Net(3, 2)
    with torch.no_grad():
        network.line.weight.zero_()
        network.line.bias.copy_(torch.tensor([1.0, 0.0]))  # the first class, always
    more = suite.evaluate("Constant", network, trained=True)
    rows = [row for row in more.rows() if row["method"] == "Constant" and row["split"] == "test"]
    values = {row["value"] for row in rows if row["seed"] == 1}
    assert len(values) == 1
    assert 0.0 < values.pop() < 1.0
    assert {row["status"] for row in rows if row["seed"] == 2} == {"skipped"}
    assert FLAG in more.table()
    assert torch.equal(network.line.bias, torch.tensor([1.0, 0.0]))


def test_a_network_that_does_not_fit_is_told(suite: SuiteHandle) -> None:
    with pytest.raises(UserError, match=r"logits of shape \(\d+, 2\) for \d+ graphs, not \(\d+, 5\)"):
        suite.evaluate("Wide", Net(3, 5))
    with pytest.raises(UserError, match="a function that makes one, not int"):
        suite.evaluate("Number", 3)  # type: ignore[arg-type]
    with pytest.raises(UserError, match=r"must be a torch\.nn\.Module, not int"):
        suite.evaluate("Makes a number", lambda _: 3)  # type: ignore[arg-type,return-value]
    called = suite.evaluate("Called", torch.nn.Linear(3, 2), call=lambda net, batch: net(batch.x[batch.ptr[:-1]]))
    assert {row["status"] for row in called.rows() if row["method"] == "Called"} == {"ok"}


def test_an_interrupt_ends_the_run_and_keeps_what_is_finished(
    suite: SuiteHandle, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = loop.fit

    def fit(*given: Any, seed: int) -> Any:
        if seed == 2:
            raise KeyboardInterrupt
        return real(*given, seed=seed)

    monkeypatch.setattr("harness.stages.train.fit", fit)
    with pytest.raises(KeyboardInterrupt):
        suite.run()
    assert states(suite) == {"cached", "new"}
    monkeypatch.undo()
    assert {row["status"] for row in suite.run().rows()} == {"ok"}


def test_the_page_runs_as_it_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every block of docs/notebooks.md, one after the other; the data made smaller."""
    monkeypatch.setenv("BENCH_STORE", str(tmp_path / "store"))
    page = (ROOT / "docs" / "notebooks.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(blocks) >= 4
    small = '"quick", sets=["datasets.Two-piece (0.7, 0.9), small.num_per_class=[24, 8, 8]"],'
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block.replace('"quick",', small), "docs/notebooks.md", "exec"), names)
    assert names["beside"].results.methods[-1] == "Mine"
    assert names["done"].results.methods[-1] == "Mine, trained"
