"""Hyperparameters that are tables: what they take, on a class and through a suite's schema."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness import Dataset, hparam
from harness.errors import UserError
from harness.hparams import HParam
from harness.suite.schema import value


class Tabled(Dataset):
    """A component with a table."""

    name = "tabled"
    arguments: dict[str, Any] = hparam({}, help="anything")


def test_a_table_takes_json_values_and_nothing_else():
    given = {"name": "x", "sizes": [1, 2.5], "deep": {"flag": True, "none": None}}
    assert Tabled(arguments=given).arguments == given
    assert Tabled().arguments == {}
    for wrong in ("x", [1], {1: 2}, {"a": float("nan")}, {"a": {1, 2}}, None):
        with pytest.raises(UserError, match="'arguments': expected"):
            Tabled(arguments=wrong)


def test_a_table_survives_the_index_and_is_an_object_in_the_schema():
    declared = Tabled.hparams["arguments"]
    assert declared.type == "dict"
    assert HParam.from_json(json.loads(json.dumps(declared.to_json()))) == declared
    assert value(declared) == {"type": "object", "default": {}, "description": "anything"}


def test_other_tables_are_refused():
    with pytest.raises(TypeError, match=r"or dict\[str, Any\], not"):
        type("Odd", (Dataset,), {"name": "odd", "__annotations__": {"x": dict[str, int]}, "x": hparam({})})
