"""The protocols: what each says for each family of datasets, that suites can choose them, and who wins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from suite_kit import Load, only

import harness
from harness.plan.datasets import Declarations
from harness.registry.index import load_catalog
from harness.suite import load_suite

FOLDER = Path(harness.__file__).parent / "protocols"
NAMES = ["ciga", "drugood", "equad", "gala", "good"]
DATA = "datasets: {S: {use: spmotif}, O: {use: ogb}, M: {use: toxic}, D: {use: drugood}}\n"
METHODS = "methods: {ERM: {baseline: erm}}\n"

MOLECULES = {"backbone": "gin", "layers": 4, "hidden": 128, "dropout": 0.5, "readout": "sum", "edge_features": True}
GOOD = {
    "backbone": "gin",
    "flavour": "ogb",
    "layers": 3,
    "hidden": 300,
    "dropout": 0.5,
    "readout": "mean",
    "head_layers": 0,
    "epochs": 200,
    "batch_size": 32,
    "eval_batch_size": 256,
    "optimizer": "adam",
    "lr": 1e-3,
    "lr_drop_epoch": 150,
    "lr_drop_factor": 0.1,
    "drop_last": True,
    "patience": 0,
    "groups_per_batch": 0,
}
DRUGOOD = {
    "backbone": "gin",
    "flavour": "ogb",
    "layers": 4,
    "hidden": 128,
    "dropout": 0.1,
    "readout": "sum",
    "head_layers": 0,
    "epochs": 50,
    "batch_size": 128,
    "optimizer": "adamw",
    "lr": 1e-4,
    "weight_decay": 0.0,
    "lr_drop_epoch": 0,
    "patience": 0,
    "groups_per_batch": 4,
    "drop_last": False,
}
CIGA = {
    "flavour": "ogb",
    "head_layers": 1,
    "epochs": 400,
    "patience": 5,
    "warmup": 20,
    "optimizer": "adam",
    "lr": 1e-3,
    "weight_decay": 0.0,
    "groups_per_batch": 0,
    "drop_last": False,
}
GALA = {**CIGA, "backbone": "gin", "batch_size": 128}
SMALL = {"layers": 3, "hidden": 32, "dropout": 0.0, "readout": "mean", "edge_features": False}
EQUAD = {
    "backbone": "gin",
    "flavour": "equad",
    "layers": 3,
    "dropout": 0.0,
    "readout": "sum",
    "head_layers": 2,
    "edge_features": False,
    "batch_size": 32,
    "optimizer": "adam",
    "lr": 1e-3,
    "patience": 0,
    "lr_drop_epoch": 0,
    "groups_per_batch": 0,
    "drop_last": False,
}
EXPECTED: dict[tuple[str, str], dict[str, Any]] = {
    ("equad", "S"): {**EQUAD, "hidden": 32, "epochs": 50},
    ("equad", "O"): {**EQUAD, "hidden": 128, "epochs": 100},
    ("equad", "M"): {**EQUAD, "hidden": 128, "epochs": 50},
    ("equad", "D"): {**EQUAD, "hidden": 128, "epochs": 50},
    ("gala", "S"): {**GALA, **SMALL, "warmup": 100},
    ("ciga", "S"): {**CIGA, **SMALL, "backbone": "gcn", "batch_size": 32},
    ("good", "S"): {**GOOD, "edge_features": False},
    ("drugood", "S"): {**DRUGOOD, "edge_features": False},
    **{("gala", label): {**GALA, **MOLECULES, "warmup": 20} for label in "OMD"},
    **{("ciga", label): {**CIGA, **MOLECULES, "batch_size": 128} for label in "OMD"},
    **{("good", label): {**GOOD, "edge_features": True} for label in "OMD"},
    **{("drugood", label): {**DRUGOOD, "edge_features": True} for label in "OMD"},
}
SEEDS = {"gala": (1, 2, 3, 4, 5), "ciga": (1, 2, 3, 4, 5)}


@pytest.mark.parametrize(("protocol", "label"), EXPECTED)
def test_each_family(protocol: str, label: str, load: Load) -> None:
    suite = load(f"bench: 1\nprotocol: {protocol}\n{DATA}{METHODS}")
    configuration = only(suite, "ERM", label)
    model = configuration.model
    found = {
        "backbone": model.backbone.name,
        "readout": model.readout,
        "head_layers": model.head_layers,
        **model.backbone.params,
        **vars(configuration.train),
    }
    expected = EXPECTED[protocol, label]
    assert {name: found[name] for name in expected} == expected
    assert (suite.protocol, suite.seeds) == (protocol, SEEDS.get(protocol, (1, 2, 3)))
    select = suite.rows[0].select
    assert (select.checkpoint, select.config, select.split) == ("best-val", "mean-val", "auto")


def test_the_suite_wins_over_the_protocols_family(load: Load) -> None:
    text = f"bench: 1\nprotocol: ciga\ntrain: {{patience: 0, optimizer: adamw}}\nmodel: {{hidden: 8}}\n{DATA}"
    suite = load(text + "methods: {A: {baseline: erm}, B: {baseline: erm, model: {backbone: gin}}}\n")
    for label in "SD":
        train, model = only(suite, "A", label).train, only(suite, "A", label).model
        assert (train.patience, train.optimizer, train.warmup, model.backbone.params["hidden"]) == (0, "adamw", 20, 8)
    assert only(suite, "A", "S").model.backbone.name == "gcn"
    assert only(suite, "B", "S").model.backbone.name == "gin"


def test_another_name_is_refused_with_all_that_there_are(faults: Any) -> None:
    found, *_ = faults(f"bench: 1\nseeds: 1\nprotocol: gala2\n{DATA}{METHODS}")
    assert "did you mean 'gala'" in found
    assert f"there are: {', '.join(NAMES)}" in found


@pytest.mark.parametrize("name", NAMES)
def test_each_is_sound_with_the_real_components(name: str, tmp_path: Path) -> None:
    catalog = load_catalog()
    facts = Declarations(catalog, None, lambda _: "")
    path = tmp_path / "suite.yaml"
    path.write_text(f"bench: 1\nprotocol: {name}\ndatasets: {{S: {{use: spmotif}}, T: {{use: two-piece}}}}\n{METHODS}")
    suite = load_suite(path, catalog, facts.declare)
    assert len(suite.rows) == 2
    for row in suite.rows:
        backbone = row.configurations[0].model.backbone
        assert set(backbone.params) <= set(catalog.get("backbone", backbone.name).hparams)


@pytest.mark.parametrize("name", NAMES)
def test_each_says_where_its_values_come_from(name: str) -> None:
    text = (FOLDER / f"{name}.yaml").read_text(encoding="utf-8")
    head = " ".join(line.removeprefix("# ") for line in text.splitlines() if line.startswith("#"))
    assert head.startswith("The protocol of ")
    assert "Our choices" in head or "not stated in the paper" in head
    assert f"name: {name}\n" in text
