"""Environments that are inferred: planned as stages, shared between methods, renewed when the network changes."""

import pytest

from harness.errors import UserError

SUITE = """\
bench: 1
name: inferred
plugins: [toy_plugin.py]
seeds: [1]
model: {hidden: 8, layers: 2}
train: {epochs: 2, batch_size: 8}
datasets:
  Toy: {use: toy}
methods:
  EIIL: {baseline: eiil, envs: {use: eiil, ref_epochs: 1}}
  IRM on EIIL: {baseline: irm, envs: {use: eiil, ref_epochs: 1}}
  MoleOOD: {baseline: moleood, envs: moleood(3)}
  IRM on clusters: {baseline: irm, envs: {use: kmeans, k: 2, ref_epochs: 1}}
  IRM by size: {baseline: irm, envs: size(2)}
"""


def annotated(workshop):
    return sorted(title for title in workshop.ran() if title.startswith("annotate"))


def test_they_run_share_a_reference_and_are_renewed_with_the_network(workshop):
    workshop.run(workshop.write(SUITE))
    ran = workshop.ran()
    assert len([title for title in ran if title.startswith("train erm")]) == 1, "one reference for EIIL and k-means"
    assert len(annotated(workshop)) == 4, "EIIL's split is made once for two methods"
    assert all(row.value is not None for row in workshop.run_of("inferred").rows)

    workshop.run(workshop.write(SUITE.replace("layers: 2", "layers: 1")))
    assert [title.split(" on ")[0] for title in annotated(workshop)] == [
        "annotate eiil (ref_epochs=1)",
        "annotate kmeans (ref_epochs=1)",
        "annotate moleood (k=3)",
    ], "sizes do not depend on the network"

    workshop.run(workshop.write(SUITE.replace("batch_size: 8}", "batch_size: 8, patience: 1}")))
    assert not any("moleood" in title for title in annotated(workshop)), "patience is not the inference's"


LONE = """\
import torch
from harness import Environment, hookimpl

class Lone(Environment):
    \"\"\"All graphs in one environment, which shows when it is asked.\"\"\"
    name = "lone"
    def assign(self, train, oracle, upstream):
        return torch.zeros(len(train), dtype=torch.int64)

@hookimpl
def bench_register(register):
    register(Lone)
"""


def test_one_environment_is_a_term_of_irm_and_refused_where_environments_are_compared(workshop):
    workshop.write(LONE, "lone.py")
    text = SUITE.partition("methods:")[0].replace("[toy_plugin.py]", "[toy_plugin.py, lone.py]")
    rows = (
        "methods:\n  ERM: {baseline: erm}\n  IRM: {baseline: irm, envs: lone}\n  V-REx: {baseline: vrex, envs: lone}\n"
    )
    outcome = workshop.run(workshop.write(text + rows))
    assert outcome.exit_code == 1
    told = [failure.reason for failure in outcome.record.failures.values() if failure.status != "skipped"]
    assert told == ["'vrex' compares environments and needs two or more; these training graphs have one"]
    with pytest.raises(UserError, match=r"\(vrex\) compares environments, and environment 'random' gives one"):
        workshop.open(workshop.write(SUITE.replace("irm, envs: size(2)", "vrex, envs: random(1)")))


def test_moleood_needs_environments_that_bring_expected_losses(workshop):
    text = SUITE.replace("envs: moleood(3)", "envs: random(2)")
    with pytest.raises(UserError, match="expected_risk; these do: moleood"):
        workshop.open(workshop.write(text))


def test_scaffolds_are_not_applicable_where_a_dataset_has_none(workshop):
    text = SUITE.replace("envs: size(2)", "envs: scaffold(2)")
    (found,) = workshop.open(workshop.write(text)).suite.unsupported
    assert (found.method, found.component) == ("IRM by size", "environment 'scaffold'")
    assert found.reason.startswith("reads the grouping scaffold, which ")


MOLECULES = """\
bench: 1
name: molecular
seeds: [1]
model: {hidden: 8, layers: 2}
train: {epochs: 2, batch_size: 8}
datasets:
  Rings: {use: smiles-csv, path: rings.csv, scaffolds: true, fragments: brics}
methods:
  MoleOOD: {baseline: moleood, envs: moleood(2)}
  Graph only: {baseline: {use: moleood, substructures: none}, envs: moleood(2)}
  IRM: {baseline: irm, envs: scaffold(3)}
  ERM: {baseline: erm}
"""


def test_fragments_and_scaffolds_reach_who_reads_them(workshop):
    rows = [f"C1{'C' * (size % 12 + 1)}C1OC(=O){'C' * (size % 4 + 1)},{size % 2}\n" for size in range(60)]
    table = workshop.folder / "rings.csv"
    table.write_text("smiles,y\n" + "".join(rows), encoding="utf-8")
    suite = workshop.write(MOLECULES.replace("rings.csv", str(table)))
    outcome = workshop.run(suite)
    assert not outcome.record.failures  # its test split holds one class
    session, parameters, environments = workshop.open(suite), {}, {}
    for cell in session.plan.cells:
        info = session.store.open(cell.train).read_json("info")
        parameters[cell.method], environments[cell.method] = info["parameters"], info["environments"]
    assert parameters["Graph only"] == parameters["ERM"] == parameters["IRM"]
    assert parameters["MoleOOD"] > 1.5 * parameters["ERM"], "a second network for the fragments"
    assert environments["IRM"] == 3


STRANGE = """\
import torch
from harness import Environment, hookimpl


class Sparse(Environment):
    name = "sparse"

    def assign(self, train, oracle, upstream):
        ids = torch.zeros(len(train), dtype=torch.int64)
        ids[0] = 10**9
        return ids


class Beyond(Environment):
    name = "beyond"
    per_batch = True

    def num_environments(self):
        return 2

    def assign_batch(self, batch):
        return torch.full((batch.num_graphs,), 2)


@hookimpl
def bench_register(register):
    register(Sparse)
    register(Beyond)
"""


def test_ids_are_checked_before_anything_is_made_as_large_as_they_are(workshop):
    (workshop.folder / "strange.py").write_text(STRANGE, encoding="utf-8")
    text = SUITE.partition("methods:")[0].replace("toy_plugin.py", "toy_plugin.py, strange.py")
    methods = "methods:\n  Sparse: {baseline: irm, envs: sparse}\n  Beyond: {baseline: irm, envs: beyond}\n"
    workshop.run(workshop.write(text + methods))
    reasons = {row.method: row.reason for row in workshop.run_of("inferred").rows}
    assert "environment 'sparse', assign: 2 environments have ids up to 1000000000" in reasons["Sparse"]
    assert "environment 'beyond', assign_batch: there are ids from " in reasons["Beyond"]
