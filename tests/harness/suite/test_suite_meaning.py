"""What a suite means: layers, include, like, bundles, matrix, pool, tune, budget, environments."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import yaml
from conftest import DATA, EQUAD, HEAD, Load, methods

from harness.spec import ComponentSpec, Configuration, Row, SelectSettings, Suite

Faults = Callable[..., list[str]]
IRM = "  IRM: {baseline: {use: irm, tune: {penalty: [0.1, 1, 10]}}, envs: random(2)}\n"


def row(suite: Suite, method: str, dataset: str | None = None) -> Row:
    """The row of a method (on the first dataset)."""
    return next(r for r in suite.rows if r.method == method and dataset in (None, r.dataset))


def only(suite: Suite, method: str, dataset: str | None = None) -> Configuration:
    """The single configuration of a row."""
    (configuration,) = row(suite, method, dataset).configurations
    return configuration


def learners(suite: Suite, method: str) -> list[dict[str, object]]:
    """The learner's values in each configuration."""
    return [dict(configuration.learner.params) for configuration in row(suite, method).configurations]


def ids(suite: Suite, method: str) -> list[str]:
    """The configurations' names."""
    return [configuration.id for configuration in row(suite, method).configurations]


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
        data = "datasets: {S: {use: spmotif}, M: {use: molecules}, T: {use: toxic}, D: {use: drugood}}\n"
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


class TestInclude:
    """Fragments: later keys win, methods and datasets merge by name."""

    def test_merging(self, load: Load) -> None:
        files = {
            "common/a.yaml": "seeds: [7]\ntrain: {epochs: 5, lr: 0.5}\n" + DATA + "methods:\n" + EQUAD + IRM,
            "common/b.yaml": "train: {epochs: 6}\n",
        }
        suite = load(
            "bench: 1\ninclude: [common/a.yaml, common/b.yaml]\n"
            "datasets: {SP: {bias: 0.9}, Two: {use: two-piece}}\n"
            "methods: {EQuAD: {decorrelator: {gamma: 0.1}}, ERM: {baseline: erm}}\n",
            files=files,
        )
        assert suite.seeds == (7,)
        assert suite.methods == ("EQuAD", "IRM", "ERM")
        assert suite.dataset("SP").component.params == {"bias": 0.9}
        assert [d.label for d in suite.datasets] == ["SP", "Two"]
        assert (only(suite, "ERM").train.epochs, only(suite, "ERM").train.lr) == (6, 0.5)
        assert only(suite, "EQuAD").learner == ComponentSpec("decorrelator", "eqn7", {"gamma": 0.1})

    def test_fragments_include_fragments_relative_to_themselves(self, load: Load) -> None:
        files = {"x/a.yaml": "include: y/b.yaml\n", "x/y/b.yaml": "methods: {ERM: {baseline: erm}}\n"}
        assert load(HEAD + DATA + "include: x/a.yaml\n", files=files).methods == ("ERM",)

    def test_installed_fragments_are_found_from_anywhere(self, load: Load) -> None:
        assert "CIGAv1" in load(HEAD + DATA + "include: [common/baselines.yaml]\n").methods

    def test_a_method_with_like_starts_afresh(self, load: Load) -> None:
        files = {"a.yaml": "methods:\n" + EQUAD + "  Z: {baseline: erm}\n"}
        suite = load(HEAD + DATA + "include: a.yaml\nmethods: {Z: {like: EQuAD}}\n", files=files)
        assert only(suite, "Z").pipeline is not None


class TestLike:
    """A part given with `use` or as a name is replaced, anything else merges."""

    def test_parts_replace_or_merge(self, load: Load) -> None:
        suite = load(
            methods(
                "  A: {encoder: {use: mvgrl, layers: 2, hidden: 8}, quantifier: {use: svm, C: [1]},"
                " decorrelator: eqn7, train: {lr: 0.1, epochs: 3}}\n"
                "  B: {like: A, encoder: {layers: 4}, quantifier: mlp, train: {lr: 0.2}}\n"
                "  C: {like: B, encoder: {use: mvgrl, lr: 0.5}}\n"
            )
        )
        b, c = only(suite, "B"), only(suite, "C")
        assert b.pipeline is not None
        assert c.pipeline is not None
        assert b.pipeline.encoders[0].params == {"layers": 4, "hidden": 8}
        assert b.pipeline.quantifier == ComponentSpec("quantifier", "mlp", {})
        assert (b.train.lr, b.train.epochs) == (0.2, 3)
        assert c.pipeline.encoders[0].params == {"lr": 0.5}
        assert c.pipeline.quantifier.name == "mlp"

    def test_order_does_not_matter(self, load: Load) -> None:
        suite = load(methods("  B: {like: A, baseline: {penalty: 2}}\n" + IRM.replace("IRM:", "A:")))
        assert only(suite, "B").learner.params == {"penalty": 2.0}

    def test_a_value_ends_tuning_and_tuning_ends_a_value(self, load: Load) -> None:
        suite = load(
            methods(
                IRM
                + "  Fixed: {like: IRM, baseline: {penalty: 5}}\n"
                + "  Tuned: {like: Fixed, tune: {baseline.penalty: [1, 2]}}\n"
                + "  Swept: {like: IRM, matrix: {baseline.penalty: [3]}}\n"
            )
        )
        assert learners(suite, "Fixed") == [{"penalty": 5.0}]
        assert learners(suite, "Tuned") == [{"penalty": 1.0}, {"penalty": 2.0}]
        assert learners(suite, "Swept, penalty=3") == [{"penalty": 3.0}]

    def test_a_replaced_part_takes_its_tuning_with_it(self, load: Load) -> None:
        suite = load(methods(IRM + "  B: {like: IRM, baseline: {use: irm}}\n"))
        assert ids(suite, "B") == ["-"]

    def test_a_pipeline_gives_way_to_a_baseline_and_back(self, load: Load) -> None:
        suite = load(
            methods(
                "  A: {encoder: mvgrl, quantifier: svm, decorrelator: {use: eqn7, tune: default}, train: {lr: 0.1}}\n"
                "  B: {like: A, baseline: erm}\n"
                "  C: {like: B, encoder: mvgrl, quantifier: svm, decorrelator: eqn7}\n"
            )
        )
        assert only(suite, "B").learner.name == "erm"
        assert only(suite, "B").train.lr == 0.1
        assert only(suite, "C").learner.name == "eqn7"

    def test_a_long_chain(self, load: Load) -> None:
        chain = "".join(f"  M{n}: {{like: M{n - 1}}}\n" for n in range(1999, 0, -1))
        suite = load(methods(chain + "  M0: {baseline: erm}\n"), methods=["M1999"])
        assert only(suite, "M1999").learner.name == "erm"


class TestBundles:
    """Bundles are laid under the method."""

    def test_a_bundle_with_changes(self, load: Load) -> None:
        suite = load(methods("  A: {bundle: equad/paper, decorrelator: {gamma: 0.1}, encoder: {hidden: 16}}\n"))
        pipeline = only(suite, "A").pipeline
        assert pipeline is not None
        assert len(pipeline.encoders) == 3
        assert {spec.params["hidden"] for spec in pipeline.encoders} == {16}
        assert pipeline.quantifier.params == {"C": [10.0, 1000.0]}
        assert pipeline.decorrelator.params["gamma"] == 0.1

    def test_the_papers_pool(self, load: Load) -> None:
        pipeline = only(load(methods("  A: {bundle: equad/paper}\n")), "A").pipeline
        assert pipeline is not None
        assert sum(len(spec.params["snapshots"]) for spec in pipeline.encoders) == 18


class TestMatrix:
    """Each combination is a row of its own."""

    def test_rows_and_labels(self, load: Load) -> None:
        suite = load(
            methods(
                "  EQuAD:\n    encoder: mvgrl\n"
                "    matrix: {quantifier: [svm, mlp], decorrelator: [eqn7, reweighted-erm]}\n"
                "  'ERM, {layers} layers': {baseline: erm, matrix: {model.layers: [3, 5], train.lr: [0.1]}}\n"
                "  G: {baseline: erm, matrix: {model.backbone: [gin, {use: gcn, layers: 2}]}}\n"
            )
        )
        assert suite.methods == (
            "EQuAD, svm, eqn7",
            "EQuAD, svm, reweighted-erm",
            "EQuAD, mlp, eqn7",
            "EQuAD, mlp, reweighted-erm",
            "ERM, 3 layers, lr=0.1",
            "ERM, 5 layers, lr=0.1",
            "G, gin",
            "G, gcn",
        )
        assert only(suite, "EQuAD, mlp, eqn7").learner.name == "eqn7"
        assert only(suite, "ERM, 5 layers, lr=0.1").model.backbone.params["layers"] == 5
        assert only(suite, "G, gcn").model.backbone.params["layers"] == 2
        assert ids(suite, "G, gcn") == ["-"]

    def test_values_of_one_component_are_told_apart(self, load: Load) -> None:
        suite = load(
            methods(
                "  A: {baseline: irm, matrix: {envs: [random(2), random(4)]}}\n"
                "  B: {encoder: mvgrl, decorrelator: eqn7,"
                " matrix: {quantifier: [{use: svm, C: [1]}, {use: svm, C: [10, 100]}]}}\n"
            )
        )
        assert suite.methods == ("A, random(2)", "A, random(4)", "B, svm(C=[1])", "B, svm(C=[10, 100])")

    def test_a_swept_part_shares_values_and_tuning(self, load: Load) -> None:
        suite = load(
            methods(
                "  A:\n    encoder: {layers: 2}\n    quantifier: svm\n    decorrelator: {tune: {gamma: [0.1, 0.2]}}\n"
                "    matrix: {encoder: [mvgrl, graphcl], decorrelator: [eqn7, reweighted-erm]}\n"
            )
        )
        found = row(suite, "A, graphcl, reweighted-erm").configurations
        assert [c.id for c in found] == ["gamma=0.1", "gamma=0.2"]
        assert found[0].pipeline is not None
        assert found[0].pipeline.encoders == (ComponentSpec("encoder", "graphcl", {"layers": 2}),)

    def test_like_copies_before_the_matrix(self, load: Load) -> None:
        suite = load(
            methods(
                "  'A, {quantifier}': {encoder: mvgrl, decorrelator: eqn7, matrix: {quantifier: [svm, mlp]}}\n"
                "  'B, {quantifier}': {like: 'A, {quantifier}', encoder: graphcl}\n"
                "  C: {like: 'A, {quantifier}', quantifier: svm}\n"
            )
        )
        assert suite.methods == ("A, svm", "A, mlp", "B, svm", "B, mlp", "C")


class TestTune:
    """Tuned values, the class's search spaces, and the budget."""

    def test_paths_of_every_kind(self, load: Load) -> None:
        suite = load(
            methods(
                "  A:\n    encoder: {use: mvgrl, pool: {layers: [2, 3]}}\n    quantifier: svm\n    decorrelator: eqn7\n"
                "    tune: {model.layers: [3, 5], train.lr: [1e-3], encoder.hidden: [8], quantifier.C: [[1], [2, 3]],"
                " model.readout: [mean]}\n"
                "  B: {baseline: irm, envs: {use: random, tune: {k: [2, 3]}}}\n"
            )
        )
        a = row(suite, "A").configurations
        assert a[0].id == "hidden=8, layers=3, readout=mean, C=[1], lr=0.001"
        assert len(a) == 4
        assert a[3].model.backbone.params["layers"] == 5
        assert a[0].model.readout == "mean"
        assert a[0].pipeline is not None
        assert [s.params for s in a[0].pipeline.encoders] == [{"hidden": 8, "layers": n} for n in (2, 3)]
        assert a[1].pipeline is not None
        assert a[1].pipeline.quantifier.params == {"C": [2.0, 3.0]}
        assert [c.environment.params for c in row(suite, "B").configurations if c.environment] == [{"k": 2}, {"k": 3}]

    def test_paths_that_end_alike_are_named_in_full(self, load: Load) -> None:
        text = EQUAD.replace("eqn7}", "eqn7, tune: {model.layers: [3], encoder.layers: [2]}}")
        assert ids(load(methods(text)), "EQuAD") == ["encoder.layers=2, model.layers=3"]

    def test_equal_configurations_collapse(self, load: Load) -> None:
        suite = load(methods("  A: {baseline: {use: irm, tune: {penalty: [1, 10, 1.0, 1e1]}}, envs: random(2)}\n"))
        assert ids(suite, "A") == ["penalty=1", "penalty=10"]

    def test_names_tell_near_values_apart(self, load: Load) -> None:
        suite = load(methods("  A: {baseline: erm, tune: {train.lr: [0.1, 0.1000000001]}}\n"))
        assert len(set(ids(suite, "A"))) == 2

    def test_the_classes_own_search(self, load: Load) -> None:
        suite = load(
            methods(
                "  A: {encoder: mvgrl, quantifier: svm, decorrelator: {use: eqn7, gamma: 0.2, tune: default}}\n"
                "  B: {encoder: mvgrl, quantifier: svm, decorrelator: {use: eqn7, weighting: single, tune: default}}\n"
                "  C: {encoder: mvgrl, quantifier: svm, decorrelator: {use: eqn7, tune: {gamma: default}}}\n"
                "  D: {baseline: irm, envs: random(2), tune: default}\n"
                "  E: {baseline: {use: irm, tune: default}, envs: random(2), tune: {model.layers: [3, 5]}}\n"
            )
        )
        assert row(suite, "A").tuned == ("decorrelator.strength", "decorrelator.tau")
        assert row(suite, "B").tuned == ("decorrelator.gamma", "decorrelator.strength")
        assert ids(suite, "C") == ["gamma=0.7", "gamma=0.5", "gamma=0.1"]
        assert ids(suite, "D") == ["penalty=0.1", "penalty=1", "penalty=10"]
        assert len(ids(suite, "E")) == 6

    def test_a_class_axis_is_left_out_where_another_axis_makes_it_idle(self, load: Load) -> None:
        suite = load(methods("  A: {baseline: {use: ciga, contrast: 2, tune: default}}\n"))
        assert ids(suite, "A") == ["variant=v1", "hinge=0.5, variant=v2", "hinge=1, variant=v2"]

    def test_an_idle_value_that_was_asked_for_is_listed(self, load: Load) -> None:
        suite = load(methods("  A: {baseline: {use: ciga, tune: {hinge: [1, 2]}}}\n"))
        assert ids(suite, "A") == ["hinge=1", "hinge=2"]

    BUDGET = (
        "  A: {baseline: {use: irm, tune: {penalty: [1, 2, 3, 4, 5, 6, 7]}}, envs: random(2)}\n"
        "  B: {baseline: erm, tune: {model.layers: [1, 2, 3, 4], train.lr: [0.1, 0.2, 0.3]}}\n"
        "  C: {baseline: erm, tune: {model.layers: [1, 2]}}\n"
    )

    def test_a_budget_draws_as_many_for_every_tuned_method(self, load: Load) -> None:
        suite = load("budget: 3\n" + methods(self.BUDGET))
        assert {r.method: len(r.configurations) for r in suite.rows} == {"A": 3, "B": 3, "C": 2}
        assert ids(suite, "A")[0] == "penalty=1"
        assert ids(suite, "B")[0] == "layers=1, lr=0.1"
        whole = ids(load(methods(self.BUDGET)), "B")
        drawn = ids(suite, "B")
        assert [name for name in whole if name in drawn] == drawn

    def test_a_draw_depends_on_names_and_values_alone(self, load: Load) -> None:
        suite = load("budget: 3\n" + methods(self.BUDGET))
        swapped = load(
            "budget: 3\n"
            + methods(
                "  Renamed: {tune: {train.lr: [0.1, 0.2, 0.3], model.layers: [1, 2, 3, 4]}, baseline: erm}\n" + IRM
            )
        )
        assert ids(suite, "B") == ids(swapped, "Renamed")


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

    def test_a_learner_that_infers_its_own_needs_none(self, load: Load) -> None:
        assert only(load(methods("  A: {baseline: eiil}\n")), "A").environment is None


@pytest.mark.parametrize(
    ("written", "seeds"),
    [("0", (0,)), ("[3, 1]", (3, 1)), ("0,1,2", (0, 1, 2)), ('"0, 1"', (0, 1)), ("'7'", (7,))],
)
def test_seeds(written: str, seeds: tuple[int, ...], load: Load) -> None:
    assert load(f"bench: 1\nseeds: {written}\n{DATA}methods: {{ERM: {{baseline: erm}}}}\n").seeds == seeds


def test_the_name_is_the_files_by_default(load: Load) -> None:
    assert load(methods("  ERM: {baseline: erm}\n")).name == "suite"


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
