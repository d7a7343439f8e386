"""`--seeds`, `--epochs`, `--set`, `--datasets` and `--methods`."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import yaml
from suite_kit import HEAD, Load, row

Faults = Callable[..., list[str]]
TEXT = (
    HEAD
    + """train: {epochs: 9}
datasets:
  SP: {use: spmotif, bias: 0.6}
  SP-0.60: {use: spmotif, bias: 0.6, train: {epochs: 8}}
  Two (0.7, 0.9): {use: two-piece}
methods:
  ERM: {baseline: erm}
  "IRM, k=2": {baseline: {use: irm, tune: {penalty: [1, 10]}}, envs: random(2), train: {epochs: 7}}
  EQuAD: {encoder: mvgrl, quantifier: svm, decorrelator: {use: eqn7, tune: {gamma: [0.1, 0.5]}}}
  EQuAD v2: {like: EQuAD, decorrelator: reweighted-erm}
  Deep: {baseline: erm, matrix: {model.layers: [3, 5]}, tune: {train.epochs: [1, 2]}}
report: {reference: ERM}
"""
)


def test_seeds(load: Load, faults: Faults) -> None:
    assert load(TEXT, seeds="4,5").seeds == (4, 5)
    assert faults(TEXT, seeds="1,x") == ["--seeds 1,x: seeds are whole numbers, such as 1,2,3; found '1,x'"]
    assert faults(TEXT, seeds="1,1") == ["--seeds 1,1: a seed is given twice in 'seeds'"]
    assert "expected at least 0" in faults(TEXT, seeds="-1")[0]
    assert "found ''" in faults(TEXT, seeds="")[0]


def test_epochs_hold_everywhere(load: Load, faults: Faults) -> None:
    suite = load(TEXT, epochs=2)
    assert {c.train.epochs for row in suite.rows for c in row.configurations} == {2}
    assert [c.id for c in row(suite, "Deep, layers=3").configurations] == ["-"]
    assert faults(TEXT, epochs=0) == ["--epochs 0: 'epochs': expected at least 1, found 0"]


def test_without_overrides_each_level_keeps_its_epochs(load: Load) -> None:
    suite = load(TEXT)
    found = {(row.dataset, row.method): row.configurations[0].train.epochs for row in suite.rows}
    assert (found["SP", "ERM"], found["SP-0.60", "ERM"], found["SP-0.60", "IRM, k=2"]) == (9, 8, 7)


def test_a_value_is_the_whole_text(load: Load, faults: Faults) -> None:
    """``ERM #2`` was cut at the sign that begins a comment in YAML, and named the row ERM."""
    two = TEXT.replace("methods:\n", "methods:\n  'ERM #2': {baseline: erm}\n").replace(
        "  ERM: {b", "  '# 1': {baseline: erm}\n  ...: {baseline: erm}\n  --- x: {baseline: erm}\n  ERM: {b"
    )
    for label in ("ERM #2", "# 1", "...", "--- x"):
        assert load(two, sets=[f"report.reference={label}"]).report.reference == label
    assert load(two, sets=["report.reference='ERM #2'"]).report.reference == "ERM #2"
    assert faults(TEXT, sets=["train.epochs=5 # few"]) == [
        "--set train.epochs=5 # few: 'epochs': expected int, found '5 # few'"
    ]
    assert "expected int, found '2 # x'" in faults(TEXT, sets=["methods.IRM, k=2.envs='random(2 # x)'"])[0]


def test_set(load: Load) -> None:
    suite = load(
        TEXT,
        sets=[
            "train.lr=1e-2",
            "datasets.SP.bias=0.9",
            "datasets.SP-0.60.bias=0.8",
            "datasets.SP-0.60.train.epochs=3",
            "datasets.Two (0.7, 0.9).spurious=0.5",
            "methods.EQuAD.decorrelator.gamma=0.3",
            "methods.EQuAD.encoder.snapshots=[1, 2]",
            "methods.IRM, k=2.envs.k=4",
            "methods.EQuAD v2.quantifier=mlp",
            "seeds=5,6",
            "model.backbone=gcn",
            "report.published=equad-icml24",
            "report.reference=IRM, k=2",
            "report.statistics=true",
        ],
    )
    assert [d.component.params for d in suite.datasets] == [{"bias": 0.9}, {"bias": 0.8}, {"spurious": 0.5}]
    assert suite.seeds == (5, 6)
    assert vars(suite.report) == {"reference": "IRM, k=2", "published": "equad-icml24", "statistics": True}
    erm = row(suite, "ERM").configurations[0]
    assert (erm.train.lr, erm.model.backbone.name) == (0.01, "gcn")
    (equad,) = row(suite, "EQuAD").configurations
    assert equad.learner.params == {"gamma": 0.3}
    assert equad.pipeline is not None
    assert equad.pipeline.encoders[0].params == {"snapshots": [1, 2]}
    v2 = row(suite, "EQuAD v2").configurations[0]
    assert v2.pipeline is not None
    assert v2.pipeline.encoders[0].params == {"snapshots": [1, 2]}
    assert v2.pipeline.quantifier.name == "mlp"
    irm = row(suite, "IRM, k=2").configurations
    assert [c.environment.params for c in irm if c.environment] == [{"k": 4}, {"k": 4}]


def test_set_of_tuning(load: Load) -> None:
    suite = load(TEXT, sets=["methods.EQuAD.tune.decorrelator.gamma=[0.9]", "methods.ERM.tune.model.layers=[2, 3]"])
    assert [c.id for c in row(suite, "EQuAD").configurations] == ["gamma=0.9"]
    assert [c.id for c in row(suite, "ERM").configurations] == ["layers=2", "layers=3"]
    suite = load(TEXT, sets=["methods.EQuAD.decorrelator.tune.gamma=[0.9]"])
    assert [c.id for c in row(suite, "EQuAD").configurations] == ["gamma=0.9"]


def test_the_last_set_wins(load: Load) -> None:
    assert row(load(TEXT, sets=["train.lr=1", "train.lr=2"]), "ERM").configurations[0].train.lr == 2.0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("trian.lr=1", ["unknown key 'trian'", "did you mean 'train'"]),
        ("train.lrr=1", ["unknown key 'lrr' in 'train'", "did you mean 'lr'"]),
        ("train.lr=fast", ["expected float, found 'fast'"]),
        ("train.lr", ["expected KEY=VALUE"]),
        ("=1", ["expected KEY=VALUE"]),
        ("train..lr=1", ["expected KEY=VALUE"]),
        ("train=1", ["'train' is a table, found 1"]),
        ("train.lr=", ["found nothing"]),
        ("train.lr=[", ["not valid YAML"]),
        ("datasets.SPX.bias=1", ["no row of 'datasets' is called 'SPX'", "did you mean 'SP'", "SP-0.60"]),
        ("datasets.sp.bias=1", ["did you mean 'SP'"]),
        ("datasets.SP.bais=1", ["no hyperparameter 'bais'", "did you mean 'bias'"]),
        ("datasets.SP=5", ["found 5"]),
        ("methods.EQUAD.decorrelator.gamma=1", ["did you mean 'EQuAD'"]),
        ("methods.EQuAD.decorelator.gamma=1", ["unknown key 'decorelator'", "did you mean 'decorrelator'"]),
        ("methods.EQuAD.decorrelator.gama=1", ["no hyperparameter 'gama'"]),
        ("methods=1", ["'methods' is a table such as", "found 1"]),
        ("bench=2", ["cannot be set from the command line"]),
        ("include=[x.yaml]", ["cannot be set from the command line"]),
        ("plugins=x.py", ["cannot be set from the command line"]),
    ],
)
def test_faulty_sets(text: str, words: list[str], faults: Faults) -> None:
    found = [fault for fault in faults(TEXT, sets=[text]) if fault.startswith(f"--set {text}: ")]
    assert found
    for word in words:
        assert any(word in fault for fault in found), found


def test_globs_choose_rows_in_the_suites_order(load: Load) -> None:
    suite = load(TEXT, methods=["EQ*", "ERM"], datasets=["SP*"])
    assert suite.methods == ("ERM", "EQuAD", "EQuAD v2")
    assert [d.label for d in suite.datasets] == ["SP", "SP-0.60"]
    assert len(suite.rows) == 6
    assert load(TEXT, methods=["Deep"]).methods == ("Deep, layers=3", "Deep, layers=5")
    assert load(TEXT, methods=["EQuAD"]).methods == ("EQuAD",)
    assert load(TEXT, datasets=["Two (0.7, 0.9)"]).rows[0].dataset == "Two (0.7, 0.9)"


def test_a_glob_that_fits_nothing(faults: Faults) -> None:
    found = faults(TEXT, methods=["EQUAD", "ERM"], datasets=["sp"])
    assert found[0].startswith("--methods EQUAD: fits no row (did you mean 'EQuAD'?); there are: ERM")
    assert found[1].startswith("--datasets sp: fits no column (did you mean 'SP'?)")


def test_data_of_rows_left_out_are_not_looked_for(load: Load) -> None:
    text = TEXT.replace("methods:", "  Gone: {use: ogb, dataset: absent}\nmethods:")
    assert [d.label for d in load(text, datasets=["SP"]).datasets] == ["SP"]


def test_overrides_are_kept_as_text(load: Load) -> None:
    suite = load(TEXT, seeds="1", epochs=3, sets=["train.lr=1e-2"], methods=["ERM"])
    assert suite.overrides == ("--seeds 1", "--epochs 3", "--set train.lr=1e-2", "--methods ERM")
    assert load(TEXT).overrides == ()


def test_a_reference_that_is_left_out_is_no_reference(load: Load) -> None:
    assert load(TEXT, methods=["EQuAD"]).report.reference is None
    assert load(TEXT, methods=["ERM"]).report.reference == "ERM"


def test_quick_tries_every_row_in_small(load: Load) -> None:
    """There was no way to try a suite from end to end but to write a second, small one."""
    text = """bench: 1
seeds: [4, 5]
train: {epochs: 9}
datasets: {SP: {use: spmotif, num_per_class: [500, 20, 20]}, SP 2: spmotif}
methods:
  ERM: {baseline: erm, train: {epochs: 1}}
  EQuAD:
    encoder: {pool: {layers: [2, 3]}, snapshots: [5, 1]}
    quantifier: mlp
    decorrelator: {use: eqn7, tune: {gamma: [0.5, 0.1]}}
    matrix: {encoder: [mvgrl, graphcl]}
"""
    suite = load(text, quick=True)
    assert (suite.seeds, suite.methods) == ((4,), ("ERM", "EQuAD, mvgrl", "EQuAD, graphcl"))
    assert [dataset.component.params["num_per_class"] for dataset in suite.datasets] == [[30, 20, 20], [30, 30, 30]]
    assert all(len(row.configurations) == 1 and row.configurations[0].train.epochs == 2 for row in suite.rows)
    pipeline = row(suite, "EQuAD, graphcl").configurations[0].pipeline
    assert pipeline is not None
    (encoder,) = pipeline.encoders
    assert (encoder.params, pipeline.quantifier.params) == ({"layers": 2, "snapshots": [1]}, {"epochs": 2})
    assert pipeline.decorrelator.params["gamma"] == 0.5
    assert suite.overrides == ("--quick",)
    assert "seeds 1 (protocol " in str(suite.departures)
    again = load(yaml.safe_dump(suite.resolved, sort_keys=False))
    assert [row.configurations for row in again.rows] == [row.configurations for row in suite.rows]
    assert row(load(text, quick=True, epochs=3), "ERM").configurations[0].train.epochs == 3


def test_quick_reports_the_faults_of_sizes_as_ever(faults: Faults) -> None:
    text = f"{HEAD}datasets: {{SP: {{use: spmotif, num_per_class: [many]}}}}\nmethods: {{ERM: {{baseline: erm}}}}\n"
    assert faults(text, quick=True) == faults(text) != []
