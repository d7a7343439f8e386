"""A quantifier that declares oracle fields is handed these, and its row says so."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from integration_kit import Workshop

from harness.report import make_report, render
from harness.run.execute import RunOutcome

PLUGIN = """
import numpy as np
from harness import Fitted, Quantifier, hookimpl

class ByMotif(Quantifier):
    name = "by-motif"
    oracle = frozenset({"motif", "base"})

    def fit(self, embeddings, labels, num_classes):
        assert embeddings.dtype == np.float64 and embeddings.shape == (len(labels), 2)
        return Fitted(lambda rows: np.eye(num_classes)[rows[:, 1].astype(int)])

class ByNodes(ByMotif):
    name = "by-nodes"
    oracle = frozenset({"node_gt"})

@hookimpl
def bench_register(register):
    register(ByMotif)
    register(ByNodes)
"""
SUITE = """\
bench: 1
name: votes
plugins: [readers.py]
seeds: [1]
model: {hidden: 8, layers: 2}
train: {epochs: 1}
datasets:
  SPMotif: {use: spmotif, bias: 0.6, num_per_class: [50, 10, 5]}
methods:
  Counted:
    encoder: {use: dgi, layers: 2, hidden: 8, snapshots: [1]}
    quantifier: oracle
    decorrelator: reweighted-erm
  Motif: {like: Counted, quantifier: by-motif}
  Nodes: {like: Counted, quantifier: by-nodes}
  Embeddings: {like: Counted, quantifier: svm}
"""


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Workshop, RunOutcome]:
    workshop = Workshop(tmp_path_factory.mktemp("votes"))
    Path(workshop.folder / "readers.py").write_text(PLUGIN, encoding="utf-8")
    return workshop, workshop.run(workshop.write(SUITE))


def quantified(workshop: Workshop, name: str):
    """What the quantifier's stage wrote, and the keys of the dataset's open and oracle parts."""
    session = workshop.open()
    stages = {s.payload.quantifier["name"]: s for s in session.plan.stages.values() if s.kind == "quantify"}
    payload = stages[name].payload
    return [session.store.open(key) for key in (stages[name].key, payload.data, payload.oracle)]


def test_votes_are_the_frequencies_of_the_training_graphs(ran) -> None:
    found, data, oracle = quantified(ran[0], "oracle")
    y, base = (part.tensors("train")[name].numpy() for part, name in ((data, "y"), (oracle, "base")))
    expected = [[np.mean(y[base == b] == c) for c in range(3)] for b in base]
    np.testing.assert_allclose(found.tensors("probabilities")["probabilities"].numpy()[0], expected, rtol=1e-6)
    assert 0.4 < np.mean(y == base) < 0.8
    table = dict(zip(base, expected, strict=True))
    y, base = (part.tensors("val")[name].numpy() for part, name in ((data, "y"), (oracle, "base")))
    hits = np.mean([np.argmax(table[b]) for b in base] == y)
    assert found.read_json("candidates")[0]["scores"]["val"] == pytest.approx(hits)


def test_columns_are_in_the_order_of_the_fields_names(ran) -> None:
    (candidate,) = quantified(ran[0], "by-motif")[0].read_json("candidates")
    assert (candidate["train_score"], candidate["scores"]["val"]) == (1.0, 1.0)  # the motif is the label


def test_a_field_that_is_no_number_per_graph_is_refused_by_name(ran) -> None:
    (row,) = {(row.status, row.reason) for row in ran[1].results.rows if row.method == "Nodes"}
    assert row[0] == "skipped"  # its training, since the quantifier failed
    assert "a quantifier reads oracle fields with one number per graph; 'node_gt' is none" in row[1]


def test_rows_are_flagged_and_not_ranked(ran) -> None:
    opened = {row.method: row.oracle for row in ran[1].results.rows}
    fields = {"Counted": ("base",), "Motif": ("base", "motif"), "Nodes": ("node_gt",), "Embeddings": ()}
    assert opened == fields
    text = render(make_report(ran[1].results), "plain")
    assert "‡: oracle information, not ranked" in text
    assert [line.split()[0] for line in text.splitlines() if "‡" in line][:-1] == [*fields][:-1]
