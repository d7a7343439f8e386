"""What a suite means: layers of settings, environments, seeds, names, and the resolved tree."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from suite_kit import DATA, HEAD, Load, declare, ids, methods, only, row

from harness.errors import SuiteError, UserError
from harness.registry.catalog import Catalog
from harness.suite import load_suite
from harness.suite.spec import ComponentSpec, Row, SelectSettings, Suite


def test_the_example_of_the_design(load: Load) -> None:
    suite = load(
        """
bench: 1
name: ablation
protocol: equad
seeds: [1, 2, 3]
model: {backbone: gin, layers: 3, hidden: 32}
train: {epochs: 50, batch_size: 32, lr: 1e-3}
select: {checkpoint: best-val, config: mean-val}
datasets:
  SPMotif-0.60: {use: spmotif, bias: 0.60}
  Two-piece (0.8, 0.9): {use: two-piece, invariant: 0.8, spurious: 0.9, train: {epochs: 30}}
methods:
  ERM: {baseline: erm}
  IRM: {baseline: {use: irm, tune: {penalty: [0.1, 1, 10]}}, envs: random(2)}
  EQuAD:
    encoder: {use: mvgrl, pool: {layers: [2, 3], hidden: [32, 64]}, snapshots: [20, 40, 60]}
    quantifier: svm
    decorrelator: {use: eqn7, tune: {gamma: [0.1, 0.5], strength: [0.01, 0.1]}}
  EQuAD, GraphCL encoder: {like: EQuAD, encoder: graphcl}
  EQuAD, reweighted ERM: {like: EQuAD, decorrelator: {use: reweighted-erm, tune: default}}
report: {reference: ERM, published: equad-icml24}
"""
    )
    assert (suite.name, suite.protocol, suite.seeds) == ("ablation", "equad", (1, 2, 3))
    assert [(r.dataset, r.method) for r in suite.rows[4:6]] == [
        ("SPMotif-0.60", "EQuAD, reweighted ERM"),
        ("Two-piece (0.8, 0.9)", "ERM"),
    ]
    assert suite.dataset("SPMotif-0.60").component == ComponentSpec("dataset", "spmotif", {"bias": 0.6})
    assert only(suite, "ERM").train.epochs == 50
    assert only(suite, "ERM", "Two-piece (0.8, 0.9)").train.epochs == 30
    assert ids(suite, "IRM") == ["penalty=0.1", "penalty=1", "penalty=10"]
    assert row(suite, "IRM").configurations[0].environment == ComponentSpec("environment", "random", {"k": 2})
    assert row(suite, "IRM").tuned == ("baseline.penalty",)
    equad = row(suite, "EQuAD").configurations
    assert [c.values for c in equad[:2]] == [
        {"decorrelator.gamma": 0.1, "decorrelator.strength": 0.01},
        {"decorrelator.gamma": 0.1, "decorrelator.strength": 0.1},
    ]
    assert equad[0].id == "gamma=0.1, strength=0.01"
    assert equad[0].pipeline is not None
    assert equad[0].learner == equad[0].pipeline.decorrelator
    assert [dict(spec.params) for spec in equad[0].pipeline.encoders] == [
        {"hidden": hidden, "layers": layers, "snapshots": [20, 40, 60]} for hidden in (32, 64) for layers in (2, 3)
    ]
    graphcl = row(suite, "EQuAD, GraphCL encoder").configurations
    assert graphcl[0].pipeline is not None
    assert graphcl[0].pipeline.encoders == (ComponentSpec("encoder", "graphcl", {}),)
    assert len(graphcl) == 4
    assert row(suite, "EQuAD, reweighted ERM").tuned == ("decorrelator.gamma", "decorrelator.tau")
    assert (suite.report.reference, suite.report.published) == ("ERM", "equad-icml24")


def test_only_given_values_are_in_a_component_in_their_types(load: Load) -> None:
    suite = load(methods("  A: {baseline: {use: irm, penalty: 3}, envs: random}\n"))
    params = only(suite, "A").learner.params
    assert params == {"penalty": 3.0}
    assert isinstance(params["penalty"], float)
    assert only(suite, "A").environment == ComponentSpec("environment", "random", {})


class TestLayers:
    """Protocol, its family, the suite, the dataset, the method: the later wins."""

    def test_protocol_defaults_and_families(self, load: Load) -> None:
        data = "datasets: {S: {use: spmotif}, M: {use: ogb}, T: {use: toxic}, D: {use: drugood}}\n"
        suite = load("bench: 1\n" + data + "methods: {ERM: {baseline: erm}}\n")
        assert suite.seeds == (1, 2, 3)
        found = {r.dataset: r.configurations[0] for r in suite.rows}
        widths = {name: (c.model.backbone.params["hidden"], c.train.epochs) for name, c in found.items()}
        assert widths == {"S": (32, 50), "M": (128, 100), "T": (128, 50), "D": (128, 50)}
        first = found["S"]
        assert first.model.backbone.name == "gin"
        assert first.model.backbone.params["flavour"] == "equad"
        assert (first.model.readout, first.model.head_layers, first.train.lr) == ("sum", 2, 1e-3)
        assert suite.rows[0].select == SelectSettings("best-val", "mean-val", "auto")

    def test_the_method_wins_over_the_dataset_over_the_suite(self, load: Load) -> None:
        suite = load(
            HEAD
            + "train: {lr: 1, epochs: 1, batch_size: 1}\nselect: {checkpoint: last}\n"
            + "datasets: {S: {use: spmotif, train: {lr: 2, epochs: 2}, select: {checkpoint: best-val}}}\n"
            + "methods: {A: {baseline: erm, train: {lr: 3}, select: {config: oracle}}}\n"
        )
        train = only(suite, "A").train
        assert (train.lr, train.epochs, train.batch_size) == (3.0, 2, 1)
        assert suite.rows[0].select == SelectSettings("best-val", "oracle", "auto")

    def test_another_backbone_keeps_shared_settings_and_drops_the_other_ones_own(self, load: Load) -> None:
        suite = load(methods("  A: {baseline: erm, model: {backbone: gcn, layers: 5}}\n"))
        backbone = only(suite, "A").model.backbone
        assert backbone.name == "gcn"
        assert "flavour" not in backbone.params
        assert (backbone.params["layers"], backbone.params["hidden"]) == (5, 32)

    def test_a_backbone_in_full_wins_over_flat_settings_below(self, load: Load) -> None:
        suite = load(methods("  A: {baseline: erm, model: {backbone: {use: gin, layers: 7}}}\n"))
        assert only(suite, "A").model.backbone.params["layers"] == 7

    def test_a_flat_setting_wins_over_a_backbone_in_full_below(self, load: Load) -> None:
        suite = load(methods("  A: {baseline: erm, model: {flavour: ogb}}\n"))
        assert only(suite, "A").model.backbone.params["flavour"] == "ogb"


class TestEnvironments:
    """Who supplies environments."""

    DRUG = "datasets:\n  D: {use: drugood}\n"

    def test_the_datasets_own_are_the_default(self, load: Load) -> None:
        suite = load(methods("  A: {baseline: irm}\n  B: {baseline: erm}\n", self.DRUG))
        assert only(suite, "A").environment == ComponentSpec("environment", "domain", {})
        assert only(suite, "B").environment is None

    def test_method_over_dataset(self, load: Load) -> None:
        data = "datasets:\n  S: {use: spmotif, envs: random(3)}\n"
        suite = load(methods("  A: {baseline: irm}\n  B: {baseline: irm, envs: base}\n  C: {baseline: erm}\n", data))
        assert only(suite, "A").environment == ComponentSpec("environment", "random", {"k": 3})
        assert only(suite, "B").environment == ComponentSpec("environment", "base", {})
        assert only(suite, "C").environment is None

    def test_a_learners_default_holds_where_nothing_is_written(self, load: Load) -> None:
        """Also over the dataset's: a method that infers environments does so on all datasets."""
        data = "datasets:\n  S: {use: spmotif, envs: random(2)}\n  D: {use: drugood}\n"
        text = "  A: {baseline: inferring}\n  B: {baseline: inferring, envs: random(4)}\n"
        text += "  C: {baseline: irm}\n"
        suite = load(methods(text, data))
        found = {(r.method, r.dataset): r.configurations[0].environment for r in suite.rows}
        for dataset in "SD":
            assert found["A", dataset] == ComponentSpec("environment", "latent", {"k": 3})
            assert found["B", dataset] == ComponentSpec("environment", "random", {"k": 4})
        assert found["C", "S"] == ComponentSpec("environment", "random", {"k": 2})

    def test_what_is_provided_may_be_needed(self, load: Load) -> None:
        text = "  A: {baseline: weighing}\n  B: {baseline: demanding, envs: latent-too}\n"
        suite = load(methods(text, self.DRUG))
        assert [only(suite, name).environment.name for name in "AB"] == ["latent", "latent-too"]  # type: ignore[union-attr]

    def test_a_learner_that_infers_its_own_needs_none(self, load: Load) -> None:
        assert only(load(methods("  A: {baseline: eiil}\n")), "A").environment is None


@pytest.mark.parametrize(
    ("written", "seeds"),
    [("0", (0,)), ("[3, 1]", (3, 1)), ("0,1,2", (0, 1, 2)), ('"0, 1"', (0, 1)), ("'7'", (7,)), ("[1e1, 2.0]", (10, 2))],
)
def test_seeds(written: str, seeds: tuple[int, ...], load: Load) -> None:
    """A float would be another key."""
    found = load(f"bench: 1\nseeds: {written}\n{DATA}methods: {{ERM: {{baseline: erm}}}}\n").seeds
    assert repr(found) == repr(seeds)


def test_the_name_is_the_files_by_default(load: Load) -> None:
    assert load(methods("  ERM: {baseline: erm}\n")).name == "suite"


@pytest.mark.parametrize(("stem", "name"), [("süite 1", "s-ite 1"), ("b+", "b-"), ("日本", "suite")])
def test_a_default_name_is_a_name(catalog: Catalog, tmp_path: Path, stem: str, name: str) -> None:
    path = tmp_path / f"{stem}.yaml"
    path.write_text(methods("  ERM: {baseline: erm}\n"), encoding="utf-8")
    assert load_suite(path, catalog, declare).name == name


def test_a_name_of_numbers_is_a_name(load: Load) -> None:
    suite = load(HEAD + "datasets: {0.9: {use: spmotif}}\nmethods: {1: {baseline: erm}}\n")
    assert (suite.rows[0].dataset, suite.rows[0].method) == ("0.9", "1")


REORDERED = (
    """
bench: 1
train: {lr: 1e-3, epochs: 5}
seeds: [1, 2]
datasets:
  S: {use: spmotif, bias: 0.9, variant: clean}
  T: {use: two-piece, spurious: 0.7, invariant: 0.8}
methods:
  IRM: {baseline: {use: irm, tune: {penalty: [1, 10]}}, envs: random(2), tune: {train.lr: [0.1], model.layers: [3, 5]}}
  EQuAD:
    encoder: {use: mvgrl, pool: {layers: [2, 3], hidden: [8, 16]}, snapshots: [1, 2]}
    quantifier: {use: svm, C: [1]}
    decorrelator: {use: eqn7, tune: {gamma: [0.1, 0.5], strength: [0.01, 0.1]}}
""",
    """
# The same with other comments and another order.
methods:
  EQuAD:
    decorrelator: {tune: {strength: [0.01, 1e-1], gamma: [0.1, 0.5]}, use: eqn7}
    quantifier: {C: [1.0], use: svm}
    encoder: {snapshots: [1, 2], pool: {hidden: [16, 8], layers: [3, 2]}, use: mvgrl}
  IRM:
    tune: {model.layers: [3, 5], baseline.penalty: [1.0, 1e1], train.lr: [1e-1]}
    envs: {use: random, k: 2}
    baseline: irm
datasets:
  T: {invariant: 0.8, spurious: 7e-1, use: two-piece}
  S: {variant: clean, bias: 0.90, use: spmotif}
seeds: [1, 2]
train: {epochs: 5.0, lr: 0.001}
bench: 1
""",
)


def test_the_order_of_keys_changes_no_configuration(load: Load) -> None:
    first, second = (load(text) for text in REORDERED)

    def by_name(suite: Suite) -> dict[tuple[str, str], Row]:
        return {(r.dataset, r.method): r for r in suite.rows}

    assert by_name(first) == by_name(second)
    assert {d.label: d for d in first.datasets} == {d.label: d for d in second.datasets}
    for name, found in by_name(first).items():
        assert repr(found.configurations) == repr(by_name(second)[name].configurations)


def test_the_resolved_tree_is_a_suite_of_its_own(load: Load) -> None:
    files = {"mine.py": "x = 1\n", "part.yaml": "methods: {ERM: {baseline: erm}}\n"}
    text = (
        "include: part.yaml\nplugins: [mine.py]\nbudget: 3\nreport: {reference: ERM}\n"
        + REORDERED[0].lstrip()
        + "  Like: {like: EQuAD, decorrelator: {use: reweighted-erm, tune: default},"
        + " matrix: {encoder: [mvgrl, graphcl]}}\n"
        + "  All: {bundle: equad/paper, tune: default, train: {batch_size: 8}, model: {backbone: gcn}}\n"
        + "  Some: {like: All, tune: {train.epochs: [1, 2]}}\n"
        + "  Inferring: {baseline: inferring, tune: {envs.k: [2, 5]}}\n"
    )
    for epochs in (None, 4):
        suite = load(text, files=files, epochs=epochs)
        again = load(yaml.safe_dump(dict(suite.resolved), sort_keys=False))
        assert (again.rows, again.seeds, again.datasets, again.methods, again.plugins, again.report) == (
            suite.rows,
            suite.seeds,
            suite.datasets,
            suite.methods,
            suite.plugins,
            suite.report,
        )


def test_errors_are_for_the_user() -> None:
    assert issubclass(SuiteError, UserError)
    assert SuiteError([]).exit_code == 2
