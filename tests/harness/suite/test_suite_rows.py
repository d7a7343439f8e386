"""Several values at once: matrix makes rows, tune makes configurations, budget bounds them."""

from __future__ import annotations

from typing import Any

import pytest
from suite_kit import EQUAD, IRM, Load, ids, methods, only, row

from harness.suite.spec import ComponentSpec


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

    def test_no_row_is_named_after_a_value_that_another_axis_replaces(self, faults: Any) -> None:
        axes = "{model.layers: [1, 2], model.backbone: [{use: gin, layers: 9}, gcn]}"
        assert faults(methods(f"  A: {{baseline: erm, matrix: {axes}}}\n")) == [
            "6:70: 'model.layers' is decided twice (here and in the matrix); keep one"
        ]

    @pytest.mark.parametrize("view", ["x" * 190, "a\\nb"])
    def test_a_row_has_a_name_with_which_the_run_s_suite_can_be_read(self, view: str, faults: Any) -> None:
        """``bench analyse`` and ``reproduce`` refused the suite that the run had kept."""
        axes = f'matrix: {{encoder.views: ["{view}", b], encoder.lr: [0.125, 0.25]}}'
        (fault,) = faults(methods(EQUAD.replace("svm", f"svm, {axes}")))
        assert fault.startswith("6:3: the matrix gives a row a name of more than 200 characters, or of some that ")

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

    def test_an_axis_without_effect_is_refused(self, faults: Any) -> None:
        text = methods("  A: {baseline: {use: ciga, tune: {hinge: [1, 2]}}}\n")
        hint = "has no meaning with 'variant: v1'; it matters with 'variant: v2'"
        assert faults(text) == [f"6:36: baseline 'ciga': 'hinge' {hint}"]

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

    def test_a_budget_may_be_written_as_any_whole_number(self, load: Load) -> None:
        text = methods(self.BUDGET)
        assert load(f"budget: 3e0\n{text}").rows == load(f"budget: 3\n{text}").rows

    def test_null_lifts_a_budget(self, load: Load) -> None:
        assert len(ids(load("budget: null\n" + methods(self.BUDGET)), "B")) == 12

    def test_a_draw_depends_on_names_and_values_alone(self, load: Load) -> None:
        suite = load("budget: 3\n" + methods(self.BUDGET))
        swapped = load(
            "budget: 3\n"
            + methods(
                "  Renamed: {tune: {train.lr: [0.1, 0.2, 0.3], model.layers: [1, 2, 3, 4]}, baseline: erm}\n" + IRM
            )
        )
        assert ids(suite, "B") == ids(swapped, "Renamed")


def test_what_differs_from_the_protocol_is_kept_with_each_row(load: Load) -> None:
    text = methods(
        "  A: {baseline: erm}\n  B: {baseline: erm, train: {epochs: 7}, tune: {model.layers: [2, 3]}}\n"
        "  C: {baseline: erm, model: {backbone: gcn}}\n"
    )
    suite = load(f"{text}train: {{epochs: 6}}\nmodel: {{layers: 3, hidden: 16}}\n")
    fewer = ("hidden 16 (protocol 32)", "epochs 6 (protocol 50)")
    assert suite.departures == ("seeds 1 (protocol 3)",)
    assert row(suite, "A").departures == fewer
    assert row(suite, "B").departures == (fewer[0], "epochs 7 (protocol 50)")
    assert row(suite, "C").departures == ("backbone gcn (protocol gin)", *fewer)
    whole = load(methods("  A: {baseline: erm}\n").replace("[1]", "[1, 2, 4]"))
    assert whole.departures == row(whole, "A").departures == ()
