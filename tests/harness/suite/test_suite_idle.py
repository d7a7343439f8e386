"""Values without effect: refused where the suite writes them for rows that have no use for them, else left out."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from plugin_kit import entry
from suite_kit import BACKBONE, ENCODER, HEAD, ids, made_up_catalog, methods, number, only, row

from harness.hparams import HParam
from harness.registry.catalog import Catalog
from harness.suite.spec import ComponentSpec, Suite

VIEWS = ("ppr", "heat", "both")
BONDED = "datasets:\n  SP: {use: spmotif}\n  Bonded: {use: bonded}\n"


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    """The made-up catalog, with an encoder of several modes and data that have edge features."""
    more = [
        entry(
            "encoder",
            "modes",
            *ENCODER,
            HParam("views", "str", "ppr", choices=VIEWS),
            number("t", 5.0, active={"views": ("heat", "both")}),
            HParam("cuts", "list[str]", ["drop", "mask"], choices=("drop", "mask", "walk")),
            number("share", 0.2, active={"cuts": ("walk",)}),
            number("prior", 0.0, low=0.0),
            HParam("form", "str", "a", choices=("a", "b"), active={"prior": "> 0"}),
        ),
        entry("backbone", "edgy", *BACKBONE[:3], HParam("edge_features", "bool", False, active=EDGES)),
        entry("backbone", "blind", *BACKBONE[:3], HParam("edge_features", "bool", False, unused=True)),
        entry("dataset", "bonded", family="synthetic"),
        entry("dataset", "table", HParam("split", "str", "size"), HParam("column", "str", "s", active=COLUMN)),
        entry("analysis", "look", HParam("deep", "bool", False), number("depth", 1.0, active={"deep": (True,)})),
        entry("tracker", "log", HParam("send", "bool", False), HParam("to", "str", "me", active={"send": (True,)})),
    ]
    return Catalog([*made_up_catalog(), *more])


EDGES: Any = {"dataset": ("edge features",)}
COLUMN: Any = {"split": ("column",)}


def equad(name: str, encoder: str, more: str = "") -> str:
    return f"  {name}: {{encoder: {{use: modes, {encoder}}}, quantifier: svm, decorrelator: eqn7{more}}}\n"


def encoders(suite: Suite, method: str) -> list[dict[str, Any]]:
    """The encoders' values in each configuration."""
    pipelines = [configuration.pipeline for configuration in row(suite, method).configurations]
    return [dict(spec.params) for pipeline in pipelines if pipeline for spec in pipeline.encoders]


T = "encoder 'modes': 't' has no meaning with 'views: ppr'; it matters with 'views: heat' or 'views: both'"


@pytest.mark.parametrize(
    ("encoder", "fault"),
    [
        ("t: 3", f"6:33: {T}"),
        ("t: 3, pool: {layers: [2, 3]}", f"6:33: {T}"),
        ("pool: {t: [2, 3]}", f"6:40: {T}"),
        ("tune: {t: [2, 3]}", f"6:40: {T}"),
        (
            "share: 0.5",
            "6:33: encoder 'modes': 'share' has no meaning with 'cuts: [drop, mask]'; it matters with 'walk' in 'cuts'",
        ),
        ("form: b", "6:33: encoder 'modes': 'form' has no meaning with 'prior: 0.0'; it matters with 'prior' above 0"),
    ],
)
def test_a_value_that_no_row_uses_is_refused_where_it_stands(encoder: str, fault: str, faults: Any) -> None:
    assert faults(methods(equad("EQuAD", encoder))) == [fault]


@pytest.mark.parametrize("encoder", ["t: 5", "t: 3, views: heat", "share: 0.5, cuts: [walk]", "form: b, prior: 0.1"])
def test_a_default_and_a_value_that_matters_are_taken(encoder: str, load: Any) -> None:
    assert load(methods(equad("EQuAD", encoder))).rows


def test_what_a_copy_takes_over_is_left_out_and_what_it_writes_is_refused(load: Any, faults: Any) -> None:
    first = equad("A", "views: heat, t: 3")
    suite = load(methods(first + "  B: {like: A, encoder: {views: ppr}}\n"))
    assert encoders(suite, "A") == [{"t": 3.0, "views": "heat"}]
    assert encoders(suite, "B") == [{"views": "ppr"}]
    assert faults(methods(first + "  B: {like: A, encoder: {views: ppr, t: 4}}\n")) == [f"7:38: {T}"]


def test_axes_without_effect_in_part_of_the_grid_are_left_out_there(load: Any) -> None:
    suite = load(methods(equad("A", "tune: {views: [ppr, heat], t: [1, 2]}")))
    assert ids(suite, "A") == ["views=ppr", "t=1, views=heat", "t=2, views=heat"]
    pooled = load(methods(equad("A", "pool: {views: [ppr, heat], t: [1, 2]}")))
    assert encoders(pooled, "A") == [{"views": "heat", "t": 1.0}, {"views": "ppr"}, {"views": "heat", "t": 2.0}]


def test_a_matrix_may_not_name_rows_after_a_value_without_effect(load: Any, faults: Any) -> None:
    (fault,) = faults(methods(equad("A", "matrix: {views: [ppr, heat], t: [1, 5]}")))
    assert fault == f"6:62: {T}"
    suite = load(methods(equad("A", "t: 3, matrix: {views: [ppr, heat]}")))
    assert [encoders(suite, f"A, views={view}") for view in ("ppr", "heat")] == [
        [{"views": "ppr"}],
        [{"t": 3.0, "views": "heat"}],
    ]


def test_what_an_included_file_or_a_part_of_the_suite_says_need_not_concern_a_row(load: Any) -> None:
    fragment = "bench: 1\ntrain: {warmup: 5}\nmethods:\n" + equad("A", "views: heat, t: 3")
    own = f"include: [part.yaml]\n{methods('  A: {encoder: {views: ppr}}')}"
    suite = load(own, files={"part.yaml": fragment})
    assert encoders(suite, "A") == [{"views": "ppr"}]
    text = methods(
        equad("A", "views: ppr") + "  B: {like: A, encoder: {t: 3}}\n  C: {like: B, encoder: {views: heat}}\n"
    )
    assert encoders(load(text), "B") == [{"views": "ppr"}]
    assert encoders(load(text, methods=("B",)), "B") == [{"views": "ppr"}]


@pytest.mark.parametrize(
    ("train", "fault"),
    [
        ("warmup: 5", "'train': 'warmup' has no meaning with 'patience: 0'; it matters with 'patience' above 0"),
        (
            "lr_drop_epoch: 50",
            "'train': 'lr_drop_epoch' has no meaning with 'epochs: 50'; it matters with 'epochs' above 50",
        ),
        ("patience: 60", "'train': 'patience' has no meaning with 'epochs: 50'; it matters with 'epochs' above 60"),
        ("lr_drop_factor: 0.5", "'train': 'lr_drop_factor' has no meaning with 'lr_drop_epoch: 0'; it matters with "),
    ],
)
def test_training_settings(train: str, fault: str, faults: Any) -> None:
    (found,) = faults(f"train: {{{train}}}\n{methods('  ERM: {baseline: erm}')}")
    assert found.startswith(f"1:9: {fault}")
    (found,) = faults(methods("  ERM: {baseline: erm}"), sets=[f"train.{train.replace(': ', '=')}"])
    assert found == f"--set train.{train.replace(': ', '=')}: {found.partition(': ')[2]}"
    assert fault in found


def test_what_hinders_a_value_hinders_those_that_need_it(faults: Any) -> None:
    """``warmup`` was said to have no meaning with 'patience: 0' beside a patience of 60."""
    found = faults(f"train: {{epochs: 50, patience: 60, warmup: 5}}\n{methods('  ERM: {baseline: erm}')}")
    why = "has no meaning with 'epochs: 50'; it matters with 'epochs' above 60"
    assert [fault.partition(": ")[2] for fault in found] == [
        f"'train': '{name}' {why}" for name in ("patience", "warmup")
    ]


def test_a_setting_of_the_suite_that_one_row_uses_is_sound(load: Any) -> None:
    data = "datasets:\n  A: {use: spmotif, train: {patience: 9}}\n  B: {use: spmotif}\n"
    suite = load(f"train: {{warmup: 5}}\n{methods('  ERM: {baseline: erm}', data)}")
    assert "warmup" in suite.resolved["datasets"]["A"]["train"]
    assert suite.resolved["datasets"]["B"]["train"].get("warmup", 0) == 0


def test_a_short_trial_leaves_out_what_lies_beyond_it(load: Any) -> None:
    train = "{lr_drop_epoch: 30, lr_drop_factor: 0.5, patience: 20, warmup: 2}"
    text = f"train: {train}\n{methods('  ERM: {baseline: erm}')}"
    for trial in ({"epochs": 5}, {"sets": ["train.epochs=5"]}):
        written = load(text, **trial).resolved["datasets"]["SP"]["train"]
        assert written["epochs"] == 5
        assert not {"lr_drop_epoch", "patience", "warmup", "lr_drop_factor"} & set(written)


def test_environments_per_batch_and_environments_of_a_method_that_takes_none(load: Any, faults: Any) -> None:
    erm = "  ERM: {baseline: erm}\n"
    assert load(f"train: {{groups_per_batch: 2}}\n{methods(erm)}").rows
    (fault,) = faults(methods("  ERM: {baseline: erm, train: {groups_per_batch: 2}}\n"))
    assert fault == (
        "6:32: 'train': 'groups_per_batch' has no meaning with 'environments: none'; "
        "it matters with 'environments: fixed'"
    )
    (fault,) = faults(methods("  ERM: {baseline: erm, envs: random(2)}\n"))
    assert fault == "6:30: 'envs' has no meaning with baseline 'erm', which takes none"
    suite = load(methods("  '{baseline}': {envs: random(2), matrix: {baseline: [erm, irm]}}\n"))
    assert only(suite, "irm").environment == ComponentSpec("environment", "random", {"k": 2})
    assert "envs" not in suite.resolved["methods"]["erm"]


def test_edge_features_of_data_without_any(load: Any, faults: Any) -> None:
    edgy = "model: {backbone: edgy, edge_features: true}\n"
    erm = "  ERM: {baseline: erm}\n"
    (fault,) = faults(f"{edgy}{methods(erm)}")
    assert fault == "1:25: backbone 'edgy': 'edge_features' has no meaning with a dataset without edge features"
    suite = load(f"{edgy}{methods(erm, BONDED)}")
    assert "edge_features" not in only(suite, "ERM", "SP").model.backbone.params
    assert only(suite, "ERM", "Bonded").model.backbone.params["edge_features"] is True
    own = "  ERM: {baseline: erm, model: {backbone: blind, edge_features: true}}\n"
    assert faults(methods(own, BONDED)) == ["7:49: backbone 'blind': 'edge_features' has no effect here"]


def test_what_only_several_tasks_have(load: Any, faults: Any) -> None:
    average, erm = "train: {average_over: graphs}\n", "  ERM: {baseline: erm}\n"
    (fault,) = faults(f"{average}{methods(erm)}")
    assert fault == "1:9: 'train': 'average_over' has no meaning with a dataset without several tasks"
    suite = load(f"{average}{methods(erm, 'datasets: {SP: {use: spmotif}, Tox: {use: toxic}}' + chr(10))}")
    found = {name: only(suite, "ERM", name).train.average_over for name in ("SP", "Tox")}
    assert found == {"SP": "labels", "Tox": "graphs"}


def test_datasets_analyses_and_trackers(faults: Any) -> None:
    text = (
        f"{HEAD}datasets:\n  A: {{use: table, column: part}}\nmethods:\n  ERM: {{baseline: erm}}\n"
        "analyses:\n  L: {use: look, depth: 2}\ntrackers: [{use: log, to: you}]\n"
    )
    assert faults(text) == [
        "4:19: dataset 'table': 'column' has no meaning with 'split: size'; it matters with 'split: column'",
        "8:18: analysis 'look': 'depth' has no meaning with 'deep: false'; it matters with 'deep: true'",
        "9:23: tracker 'log': 'to' has no meaning with 'send: false'; it matters with 'send: true'",
    ]


def test_the_resolved_suite_is_sound_and_means_the_same(load: Any) -> None:
    text = "model: {backbone: edgy, edge_features: true}\ntrain: {lr_drop_epoch: 30}\n" + methods(
        equad("A", "views: heat, t: 3, tune: {share: [0.1, 0.3], cuts: [[walk]]}")
        + "  B: {like: A, encoder: {views: ppr, tune: {cuts: [[mask]]}}, train: {epochs: 20}}\n",
        BONDED,
    )
    suite = load(text)
    assert load(yaml.safe_dump(suite.resolved, sort_keys=False)).rows == suite.rows
    assert "share" not in str(suite.resolved["methods"]["B"])
    assert "edge_features" not in str(suite.resolved["datasets"]["SP"])
