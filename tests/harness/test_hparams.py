"""Hyperparameters: tables, on a class and through a suite's schema, and conditions under which one matters."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import pytest

from harness import Dataset, hparam
from harness.component import KINDS, Component
from harness.errors import UserError
from harness.hparams import HParam, effective
from harness.suite.models import BESIDE
from harness.suite.spec import MODEL
from harness.suite.validation import value_schema

if TYPE_CHECKING:
    from decimal import Decimal


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
    assert HParam.from_json(json.loads(json.dumps(asdict(declared)))) == declared
    assert value_schema(declared) == {"type": "object", "default": {}, "description": "anything"}


def test_other_tables_are_refused():
    with pytest.raises(TypeError, match=r"or dict\[str, Any\], not"):
        type("Odd", (Dataset,), {"name": "odd", "__annotations__": {"x": dict[str, int]}, "x": hparam({})})


class Modes(Dataset):
    """Hyperparameters of which each matters under a condition."""

    name = "modes"
    unused = frozenset({"inherited"})
    mode: str = hparam("a", choices=["a", "b"])
    cuts: list[str] = hparam(["x"], choices=["x", "y", "z"])
    steps: int = hparam(0, low=0)
    most: int | None = hparam(None)
    of_mode: int = hparam(0, active={"mode": ["b"]})
    of_cuts: int = hparam(0, active={"cuts": ["y", "z"]})
    of_steps: int = hparam(0, active={"steps": "> 0"})
    of_most: int = hparam(0, active={"most": "> $steps"})
    of_data: int = hparam(0, active={"dataset": ["edge features"]})
    inherited: int = hparam(0)
    one: int = hparam(5, active={"two": ["many"]})
    two: str = hparam("many", active={"one": "> 1"})


@pytest.mark.parametrize(
    ("given", "name", "text"),
    [
        ({}, "of_mode", "'of_mode' has no meaning with 'mode: a'; it matters with 'mode: b'"),
        ({"mode": "b"}, "of_mode", None),
        ({}, "of_cuts", "'of_cuts' has no meaning with 'cuts: [x]'; it matters with 'y' in 'cuts' or 'z' in 'cuts'"),
        ({"cuts": ["x", "z"]}, "of_cuts", None),
        ({}, "of_steps", "'of_steps' has no meaning with 'steps: 0'; it matters with 'steps' above 0"),
        ({"steps": 1}, "of_steps", None),
        ({}, "of_most", "'of_most' has no meaning with no 'most'; it matters with 'most' above 0"),
        ({"most": 2, "steps": 2}, "of_most", "'of_most' has no meaning with 'most: 2'; it matters with 'most' above 2"),
        ({"most": 3, "steps": 2}, "of_most", None),
        ({"dataset": []}, "of_data", "'of_data' has no meaning with a dataset without edge features"),
        ({"dataset": ["edge features"]}, "of_data", None),
        ({}, "of_data", None),
        ({}, "inherited", "'inherited' has no effect here"),
    ],
)
def test_when_a_hyperparameter_matters(given: dict[str, Any], name: str, text: str | None) -> None:
    values = {**given, name: 7}
    facts = {key: values.pop(key) for key in list(values) if key == "dataset"}
    declared = {key: HParam.from_json(json.loads(json.dumps(asdict(one)))) for key, one in Modes.hparams.items()}
    kept, idle = effective(declared, values, facts)
    assert {key: why.text for key, why in idle.items()} == ({} if text is None else {name: text})
    assert kept == {key: value for key, value in values.items() if key not in idle}


def test_of_two_that_make_each_other_idle_one_stays() -> None:
    kept, idle = effective(Modes.hparams, {"one": 1, "two": "single"})
    assert (kept, set(idle)) == ({"two": "single"}, {"one"})
    kept, idle = effective(Modes.hparams, {"one": 1, "two": "many"})
    assert (kept, set(idle)) == ({"one": 1}, {"two"})


@pytest.mark.parametrize("active", [{"mood": ["b"]}, {"mode": ">0"}, {"mode": "b"}])
def test_a_condition_that_cannot_be_read_is_refused(active: Any) -> None:
    with pytest.raises(TypeError, match="'active'"):
        type("Wrong", (Modes,), {"more": hparam(1, active=active), "__annotations__": {"more": int}})


@pytest.mark.parametrize("value", [7, property(id)])
def test_a_plain_value_in_place_of_an_inherited_hyperparameter_is_refused(value: Any) -> None:
    """The inherited default held, and nobody was told."""
    with pytest.raises(TypeError, match=r"Mine\.steps: an inherited hyperparameter is changed by `steps: int = hparam"):
        type("Mine", (Modes,), {"steps": value})
    again = type("Mine", (Modes,), {"steps": hparam(7), "__annotations__": {"steps": int}})
    assert again().steps == 7


def test_other_attributes_may_have_types_that_are_there_for_type_checkers_alone() -> None:
    class Noting(Modes):
        name = "noting"
        kept: Decimal | None = None
        size: int | None = hparam(None)

    assert (Noting.hparams["size"].type, Noting.hparams["size"].optional) == ("int", True)


def test_another_default_keeps_the_inherited_type() -> None:
    again = type("Mine", (Modes,), {"most": hparam(3)})
    assert again.hparams["most"].type == "int"
    assert again(most=None).most is None


def test_hyperparameters_of_a_class_that_is_no_component_are_refused() -> None:
    """The component had none of them, and where it took the value it met a mark of the declaration."""

    class Shared:
        rate: float = hparam(0.1)

    with pytest.raises(TypeError, match=r"Shared\.rate: only a component declares hyperparameters; derive Shared"):
        type("Mine", (Shared, Modes), {})


def test_a_component_that_changes_its_list_changes_no_other() -> None:
    Modes().cuts.append("z")
    assert Modes().cuts == ["x"]


@pytest.mark.parametrize("name", ["kind", "name", "values", "hparams"])
def test_a_name_of_every_component_is_refused(name):
    with pytest.raises(TypeError, match="this name is taken, by the base class"):
        type("Mine", (Dataset,), {name: hparam(1, help="x"), "__annotations__": {name: int}})


@pytest.mark.parametrize("kind", KINDS)
def test_a_key_that_suites_have_beside_the_values_of_a_kind_is_refused(kind):
    """An encoder's ``pool`` was read as the pool, and a backbone's ``readout`` as the suite's."""
    keys = {"use", *BESIDE.get(kind, ()), *(["backbone", *MODEL] if kind == "backbone" else [])}
    for key in keys:
        with pytest.raises(TypeError, match=f"{key}: this name is taken, by .* a key of suites"):
            type("Mine", (Component,), {"kind": kind, key: hparam(1), "__annotations__": {key: int}})
