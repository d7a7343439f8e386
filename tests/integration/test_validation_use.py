"""The mark † says which trainings validation labels shape: shuffled labels move no other row at its last epoch."""

from __future__ import annotations

import pytest
from integration_kit import Workshop
from safetensors.numpy import load_file

from harness.report import make_report, render
from harness.run.execute import RunOutcome
from harness.suite.settings import LAST

PLUGIN = """\
import numpy as np
from harness import Baseline, hookimpl, upstream
from . import toy_plugin


class Shuffled(toy_plugin.Toy):
    name = "shuffled"

    def build(self, data_dir):
        raw = super().build(data_dir)
        labels = np.random.default_rng(1).permutation([graph.y for graph in raw.splits["val"]])
        for graph, label in zip(raw.splits["val"], labels, strict=True):
            graph.y = int(label)
        return raw


class Pupil(Baseline):
    name = "pupil"
    upstream = {"teacher": upstream("baseline", "gala", checkpoint="last", warmup_epochs=0)}

    def loss(self, batch):
        taught = self.upstream_outputs["teacher"].logits[batch.index]
        return {"erm": (self(batch) - taught).square().mean()}


class Listener(Baseline):
    name = "listener"

    def optimizers(self):
        self.adam = self.make_optimizer(self.parameters())
        return [self.adam]

    def on_epoch_end(self, validation_score):
        self.adam.param_groups[0]["lr"] *= validation_score


class Eavesdropper(Listener):
    name = "eavesdropper"
    on_epoch_end = Baseline.on_epoch_end

    def build(self):
        super().build()
        self.on_epoch_end = lambda score: Listener.on_epoch_end(self, score)


class Exploding(Baseline):
    name = "exploding"

    def on_epoch_start(self, train):
        if self.epoch:
            next(self.parameters()).data.fill_(float("inf"))


class Heir(Pupil):
    name = "heir"
    upstream = {"teacher": upstream("baseline", "exploding", checkpoint="last")}


@hookimpl
def bench_register(register):
    for component in (Shuffled, Pupil, Listener, Eavesdropper, Exploding, Heir):
        register(component)
"""
SUITE = """\
bench: 1
name: used
plugins: [toy_plugin.py, more_plugin.py]
seeds: [1]
model: {hidden: 8, layers: 2}
train: {epochs: 6, batch_size: 8, lr: 1e-2}
select: {checkpoint: last}
datasets:
  Plain: {use: toy}
  Shuffled: {use: shuffled}
methods:
  ERM: {baseline: erm}
  Patient: {baseline: erm, train: {patience: 1}}
  Too patient: {baseline: erm, train: {patience: 4, warmup: 2}}
  GALA: {baseline: {use: gala, warmup_epochs: 0}}
  GALA, either: {baseline: {use: gala, warmup_epochs: 0, tune: {assistant_checkpoint: [last, best-val]}}}
  EIIL: {baseline: eiil, envs: {use: eiil, steps: 20}}
  EIIL, best: {baseline: eiil, envs: {use: eiil, steps: 20, ref_checkpoint: best-val, ref_epochs: null}}
  Clusters: {baseline: vrex, envs: kmeans(2)}
  Clusters, best: {baseline: vrex, envs: {use: kmeans, ref_checkpoint: best-val, ref_epochs: null}}
  EQuAD:
    encoder: {use: mvgrl, layers: 2, hidden: 8, snapshots: [1, 3], batch_size: 8}
    quantifier: {use: svm, C: [0.1, 10.0]}
    decorrelator: {use: eqn7, keep: 1}
  Pupil: {baseline: pupil}
  Listener: {baseline: listener}
  Eavesdropper: {baseline: eavesdropper}
"""
EITHER = "GALA, either"
SHAPED = {
    *("Patient", "GALA", "EIIL, best", "Clusters, best", "EQuAD", "Pupil", "Listener"),
    f"{EITHER}: assistant_checkpoint=best-val",
}
FREE = {"ERM", "Too patient", "EIIL", "Clusters", "Eavesdropper", f"{EITHER}: assistant_checkpoint=last"}


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Workshop, RunOutcome]:
    workshop = Workshop.toy(tmp_path_factory.mktemp("used"), SUITE)
    workshop.write(PLUGIN, "more_plugin.py")
    outcome = workshop.run()
    assert outcome.exit_code == 0, outcome.record.failures
    return workshop, outcome


def test_no_checkpoint_that_validation_chose_stands_in_for_the_last(ran: tuple[Workshop, RunOutcome]) -> None:
    workshop, _ = ran
    methods = "Exploding: {baseline: exploding}\n  Heir: {baseline: heir}\n"
    suite = workshop.write(SUITE.partition("  ERM:")[0] + f"  {methods}", "heir.yaml")
    rows = {(row.method, row.checkpoint): row for row in workshop.run(suite).results.rows if row.dataset == "Plain"}
    assert rows["Exploding", "best@val"].status == "ok", "there is one that might"
    assert rows["Heir", LAST].status == "diverged"
    assert "no last checkpoint" in rows["Heir", LAST].reason


def name(method: str, configuration: str) -> str:
    return method if configuration == "-" else f"{method}: {configuration}"


def test_shuffled_validation_labels_move_the_marked_trainings_and_no_other(ran: tuple[Workshop, RunOutcome]) -> None:
    workshop, _ = ran
    session = workshop.open()
    last: dict[str, list[bytes]] = {}
    for cell in session.plan.cells:
        found = load_file(session.store.open(cell.train).path("predictions"))
        last.setdefault(name(cell.method, cell.configuration.id), []).append(found[f"{LAST}/test"].tobytes())
    assert {row for row, (plain, shuffled) in last.items() if plain != shuffled} == SHAPED
    assert last.keys() == SHAPED | FREE


def test_results_rows_captions_and_pages_say_it(ran: tuple[Workshop, RunOutcome]) -> None:
    _, outcome = ran
    marked = {name(row.method, row.config_id) for row in outcome.results.rows if row.uses_validation_labels}
    assert marked == SHAPED
    report = make_report(outcome.results)
    shown = {row.method for row in report.sections[0].table.rows if row.uses_validation_labels}
    assert shown - {EITHER} == SHAPED - {f"{EITHER}: assistant_checkpoint=best-val"}
    assert "\nGALA †" in render(report, "plain")
    assert "\nEIIL  " in render(report, "plain")
