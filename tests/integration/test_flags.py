"""What encoders and environments have to say of their training reaches the reader of the table."""

from __future__ import annotations

from harness.report import make_report, render
from harness.store import Store
from harness.store.maintenance import listing

PLUGIN = """\
import numpy as np
from harness import hookimpl
from . import toy_plugin


class Plain(toy_plugin.Toy):
    name = "plain"

    def build(self, data_dir):
        raw = super().build(data_dir)
        for graphs in raw.splits.values():
            for graph in graphs:
                graph.x = np.ones_like(graph.x)
        return raw


@hookimpl
def bench_register(register):
    register(Plain)
"""
SUITE = """\
bench: 1
name: flags
plugins: [toy_plugin.py, plain_plugin.py]
seeds: [1]
model: {hidden: 8, layers: 2}
train: {epochs: 1, batch_size: 8}
datasets:
  Toy: {use: toy}
  Plain: {use: plain}
methods:
  DGI:
    encoder: {use: dgi, layers: 2, hidden: 8, snapshots: [1], batch_size: 8}
    quantifier: {use: svm, C: [1.0]}
    decorrelator: {use: eqn7, keep: 1}
  Clustered: {baseline: vrex, envs: kmeans(500)}
"""


def test_flags_are_kept_and_are_remarks_on_the_values_that_build_on_them_and_footnotes_of_the_table(workshop):
    workshop.write(PLUGIN, "plain_plugin.py")
    outcome = workshop.run(workshop.write(SUITE))
    store = Store(workshop.store)
    encoded = [item for item in listing(store) if item.kind == "encode"]
    flags = sorted(len(store.open(item.key).read_json("snapshots")["flags"]) for item in encoded)
    assert flags == [0, 1], "only features that are all alike are worth a flag"
    remarks = {(row.dataset, row.method): row.reason for row in outcome.results.rows if row.status == "ok"}
    assert remarks["Toy", "DGI"] == ""
    assert "negatives are other graphs' nodes" in remarks["Plain", "DGI"]
    assert "instead of 500" in remarks["Toy", "Clustered"]
    notes = [line for line in render(make_report(outcome.results), "plain").splitlines() if line.startswith("[")]
    assert any("DGI on Plain" in note and "negatives are other graphs' nodes" in note for note in notes), notes
