"""What a suite builds upon: include, like, bundles."""

from __future__ import annotations

from typing import Any

from suite_kit import DATA, EQUAD, HEAD, IRM, Load, ids, learners, methods, only

from harness.suite.methods import MAX_COPIES
from harness.suite.spec import ComponentSpec


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

    def test_a_long_chain(self, load: Load, faults: Any) -> None:
        def chain(length: int) -> str:
            copies = "".join(f"  M{n}: {{like: M{n - 1}}}\n" for n in range(length, 0, -1))
            return methods(copies + "  M0: {baseline: erm}\n")

        assert only(load(chain(MAX_COPIES), methods=["M200"]), "M200").learner.name == "erm"
        assert "'like' copies more than 200 methods" in faults(chain(1000))[0]


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
