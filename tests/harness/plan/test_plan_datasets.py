"""Datasets at planning: values without meaning are refused, and any mapping may name the splits."""

from __future__ import annotations

from dataclasses import asdict
from types import MappingProxyType
from typing import Any

import pytest

from harness.data import Declaration, Features, Task
from harness.errors import DataError
from harness.plan.datasets import Declarations
from harness.registry.index import load_catalog
from harness.suite.spec import ComponentSpec


def declare(name: str, **params: Any) -> None:
    Declarations(load_catalog(), None, lambda _: "").declare(ComponentSpec("dataset", name, params))


@pytest.mark.parametrize(
    ("name", "params", "words"),
    [
        (
            "smiles-csv",
            {"split_column": "part"},
            "'split_column' has no meaning with 'split: scaffold'; it matters with ",
        ),
        (
            "smiles-csv",
            {"split": "column", "shares": [0.5, 0.25, 0.25]},
            "'shares' has no meaning with 'split: column'",
        ),
        (
            "pyg",
            {"split_field": "part"},
            "'split_field' has no meaning with 'split: auto'; it matters with 'split: field'",
        ),
        (
            "tu",
            {"index_folder": "mine"},
            "'index_folder' has no meaning with 'split: size'; it matters with 'split: files'",
        ),
        (
            "drugood",
            {"path": "/a.json", "measure": "ki"},
            "'measure' has no meaning with 'path: /a.json'; it matters with no",
        ),
    ],
)
def test_a_value_without_meaning_is_refused(name: str, params: dict[str, Any], words: str) -> None:
    with pytest.raises(DataError, match=f"dataset '{name}': ") as caught:
        declare(name, **params)
    assert words in str(caught.value)


def test_a_default_written_out_and_a_value_that_matters_are_taken() -> None:
    declare("two-piece", invariant=0.8)
    with pytest.raises(DataError, match="'path' is not given"):
        declare("smiles-csv", split_column="split", split="random", shares=[0.5, 0.25, 0.25])


def test_a_declaration_can_be_shown_whatever_mapping_names_its_splits() -> None:
    roles = MappingProxyType({"train": "train", "ood_val": "val", "ood_test": "test"})
    declared = Declaration(Task("binary", 2), Features("numeric", (1,)), splits=roles, default_val="ood_val")
    assert list(asdict(declared)["splits"]) == ["train", "ood_val", "ood_test"]
