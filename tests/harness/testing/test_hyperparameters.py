"""Which settings the kit compares to see the effect of a hyperparameter."""

from __future__ import annotations

import pytest

from harness import Baseline, hparam
from harness.errors import UserError
from harness.testing.hyperparameters import effects_as_declared, idle_pairs, pairs


class Many(Baseline):
    """One hyperparameter of each kind."""

    name = "many"
    probes = {"schedule": {"mode": "b", "schedule": 7}, "*": {"width": 4}}
    unused = frozenset({"inherited"})
    flag: bool = hparam(False)
    mode: str = hparam("a", choices=["a", "b", "c"])
    rate: float = hparam(0.5, low=0.0, high=1.0)
    searched: float = hparam(0.1, search=[0.1, 1.0, 2.0])
    width: int = hparam(32, low=1)
    maybe: int | None = hparam(None, low=1)
    epochs: list[int] = hparam([1, 2])
    names: list[str] = hparam(["x", "y"], choices=["x", "y"])
    inner: float = hparam(1.0, active={"mode": ["c"]})
    innermost: bool = hparam(False, active={"inner": [3.0]})
    schedule: int = hparam(0, low=0)
    text: str = hparam("free")
    inherited: int = hparam(0)


BASE = Many.probes["*"]


def values(name: str) -> tuple[object, list[object]]:
    compared = pairs(Many, name, BASE)
    assert len({repr(one) for one, _ in compared}) == 1
    return compared[0][0][name], [two[name] for _, two in compared]


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        ("flag", False, [True]),
        ("mode", "a", ["b", "c"]),
        ("rate", 0.5, [1.0, 0.25, 0.0]),
        ("searched", 0.1, [1.0, 2.0]),
        ("width", 4, [5, 12, 2, 1]),
        ("maybe", None, [1, 2, 3]),
        ("epochs", [1, 2], [[1], [2, 4]]),
        ("names", ["x", "y"], [["x"], ["y"]]),
    ],
)
def test_second_values(name: str, first: object, second: list[object]) -> None:
    assert values(name) == (first, second)


def test_modes_are_set_so_that_a_hyperparameter_is_active() -> None:
    (one, two), *_ = pairs(Many, "innermost", BASE)
    assert one == {"width": 4, "mode": "c", "inner": 3.0, "innermost": False}
    assert two == {**one, "innermost": True}


def test_a_probe_is_compared_with_the_default_in_its_own_settings() -> None:
    assert pairs(Many, "schedule", BASE) == [
        ({"width": 4, "mode": "b", "schedule": 0}, {"width": 4, "mode": "b", "schedule": 7})
    ]


def told(differ) -> dict[str, str]:
    """The texts on missing effects, by hyperparameter."""
    texts = effects_as_declared(Many, BASE, differ, ["searched"])
    return {text.split("'")[1]: text for text in texts if "says that it does not" not in text}


def test_what_is_told() -> None:
    found = told(lambda one, two: False)
    assert set(found) == set(Many.hparams) - {"searched", "inherited"}
    assert "no second value to try" in found["text"]
    assert found["mode"].startswith("'mode': b and c gives what a gives;")
    assert set(told(lambda one, two: True)) == {"text"}


def test_every_choice_must_show_but_of_other_values_one_is_enough() -> None:
    found = told(lambda one, two: two.get("mode") != "b" and two.get("width") != 5)
    assert found["mode"].startswith("'mode': b gives what a gives;")
    assert "width" not in found


def test_a_refused_value_counts_as_a_change_only_of_choices() -> None:
    def differ(one, two):
        raise UserError("not here")

    found = told(differ)
    assert "mode" not in found
    assert "rate" in found


def test_where_a_hyperparameter_is_declared_idle_nothing_may_change() -> None:
    class Modes(Many):
        name = "modes"
        steps: int = hparam(0, low=0)
        first: float = hparam(1.0, active={"steps": "> 0"})
        of_x: int = hparam(1, active={"names": ["x"]})

    hindered = {name: [one for one, _ in idle_pairs(Modes, name, BASE)] for name in Modes.hparams}
    assert hindered["inherited"] == [{"width": 4, "inherited": 0}]
    assert hindered["inner"] == [{"width": 4, "mode": "a", "inner": 1.0}]
    assert hindered["first"] == [{"width": 4, "steps": 0, "first": 1.0}]
    assert hindered["of_x"] == [{"width": 4, "names": ["y"], "of_x": 1}]
    assert not any(hindered[name] for name in ("flag", "mode", "rate", "schedule"))
    changed = [text for text in effects_as_declared(Modes, BASE, lambda one, two: True) if "says" in text]
    assert [text.split("'")[1] for text in changed] == ["inner", "innermost", "inherited", "first", "of_x"]
    assert "'inner' matters with {'width': 4, 'mode': 'a', 'inner': 1.0}" in changed[0]
