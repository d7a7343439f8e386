"""What a stage hands to the next: the chosen checkpoint's outputs, and what an environment provides beside ids."""

from pathlib import Path

import pytest
import torch

SUITE = """\
bench: 1
name: chain
plugins: [toy_plugin.py, chain_plugin.py]
seeds: [1]
model: {hidden: 8, layers: 2}
train: {epochs: 2, batch_size: 8, lr: 0.05}
datasets:
  Toy: {use: toy, own_env: false}
methods:
"""
HERE = Path(__file__).resolve().parent


@pytest.fixture
def shop(workshop):
    """The workshop with this file's plugin, and a way to run methods and look at their cells."""
    (workshop.folder / "chain_plugin.py").write_text((HERE / "chain_plugin.py").read_text(encoding="utf-8"))

    def run(methods, **changes):
        text = SUITE + methods
        for old, new in changes.items():
            text = text.replace(old, new)
        suite = workshop.write(text)
        outcome = workshop.run(suite)
        session = workshop.open(suite)
        return outcome, session, {cell.method: cell for cell in session.plan.cells}

    return run


def test_a_stage_gets_the_outputs_of_the_checkpoint_it_asks_for(shop):
    outcome, session, cells = shop(
        "  ERM: {baseline: erm, train: {epochs: 6}}\n"
        "  Best: {baseline: student}\n"
        "  Last: {baseline: {use: student, rule: last}}\n"
        "  Alone: {baseline: {use: student, mode: alone}}\n"
    )
    assert outcome.exit_code == 0, outcome.record.failures
    predictions = session.store.open(cells["ERM"].train).tensors("predictions")
    checkpoints = session.store.open(cells["ERM"].train).read_json("checkpoints")
    assert checkpoints["best@val"]["epoch"] != checkpoints["last"]["epoch"], "the two rules must differ here"

    def seen(method):
        return session.store.open(cells[method].train).tensors("weights-last")["seen"]

    torch.testing.assert_close(seen("Best"), predictions["best@val/train"])
    torch.testing.assert_close(seen("Last"), predictions["last/train"])
    assert not torch.allclose(seen("Best"), seen("Last"))
    assert not seen("Alone").any()
    assert session.plan.stages[cells["Alone"].train].payload.upstream == {}
    trainings = [s for s in session.plan.stages.values() if s.kind == "train"]
    assert len(trainings) == 4, "the students' assistant is the ERM of the table"


def test_annotations_reach_the_learner_in_the_order_of_the_training_graphs(shop):
    outcome, session, cells = shop("  W: {baseline: weighing}\n")
    assert outcome.exit_code == 0, outcome.record.failures
    seen = session.store.open(cells["W"].train).tensors("weights-last")["seen"]
    n = len(seen)
    assert torch.equal(seen, torch.stack([torch.arange(n) / 2, torch.arange(n) * 2 // n], 1))


def test_an_environment_must_keep_its_promise(shop):
    wrong = ("missing", "more", "short", "ids")
    outcome, *_ = shop("".join(f"  {w}: {{baseline: weighing, envs: {{use: halves, wrong: {w}}}}}\n" for w in wrong))
    assert outcome.exit_code == 1
    reasons = [failure.reason for failure in outcome.record.failures.values() if failure.status == "failed"]
    assert len(reasons) == len(wrong)
    promise = "must give one row per training graph of each of its 'provides' (rows, weight)"
    assert all(promise in reason for reason in reasons)


def test_environments_per_batch_through_the_engine(shop):
    """24 graphs in two halves: three batches of three graphs each; plain methods share their trainings."""
    methods = "  ERM: {baseline: erm}\n  W: {baseline: weighing}\n"
    _, _, plain = shop(methods)
    outcome, session, cells = shop(methods, **{"batch_size: 8,": "batch_size: 7, groups_per_batch: 2,"})
    assert outcome.exit_code == 0, outcome.record.failures
    weights = session.store.open(cells["W"].train).tensors("weights-last")
    assert weights["sizes"].tolist() == [3, 3]
    assert int(weights["steps"]) == 2 * (24 // 7)
    _, _, grouped = shop(methods, **{"batch_size: 8,": "batch_size: 8, groups_per_batch: 2,"})
    assert grouped["ERM"].train == plain["ERM"].train
    assert grouped["W"].train != plain["W"].train
