"""The stored artifact that a stage is compared with, also where very many are stored at its place."""

from __future__ import annotations

from typing import Any, cast

import pytest

from harness.plan.status import Nearest
from harness.store import Stage, Store, digest

OLD, NEW = digest("old code"), digest("new code")


class Stored:
    """A store with these preimages at every place; counts how often it is read."""

    def __init__(self, preimages: list[dict[str, Any]]) -> None:
        self.preimages_there, self.reads = preimages, 0

    def preimages(self, place: str, among: set[str]) -> list[tuple[str, Any]]:
        del place, among
        self.reads += 1
        return [(digest(preimage), preimage) for preimage in self.preimages_there]


def preimage(seed: int, lr: float, source: str = OLD, **settings: Any) -> dict[str, Any]:
    return {"learner": {"name": "erm", "source": source}, "train": {"lr": lr, "epochs": 5, **settings}, "seed": seed}


def find(stored: Stored, wanted: dict[str, Any]) -> Any:
    return Nearest(cast("Store", stored), set()).find(Stage("train", digest(wanted), "train/data/erm", wanted))


@pytest.fixture
def stored() -> Stored:
    return Stored([preimage(seed, lr / 100) for lr in range(1, 21) for seed in range(1, 6)])


def test_other_code_is_compared_with_the_same_cell(stored: Stored) -> None:
    assert find(stored, preimage(3, 0.07, NEW)) == preimage(3, 0.07)


def test_a_setting_that_was_the_same_for_all_is_compared_with_the_same_cell(stored: Stored) -> None:
    assert find(stored, preimage(3, 0.07, epochs=9)) == preimage(3, 0.07)
    assert find(stored, preimage(3, 0.07, NEW, patience=2)) == preimage(3, 0.07)


def test_a_new_value_is_compared_with_what_is_the_same_otherwise(stored: Stored) -> None:
    assert find(stored, preimage(9, 0.07))["train"] == preimage(9, 0.07)["train"]
    assert find(stored, preimage(2, 0.5))["seed"] == 2


def test_whatever_differs_something_is_found(stored: Stored) -> None:
    assert find(stored, {"learner": {"name": "other"}}) in stored.preimages_there


def test_nothing_stored_is_nothing_found_and_a_place_is_read_once() -> None:
    empty = Stored([])
    finder = Nearest(cast("Store", empty), set())
    for seed in range(3):
        assert finder.find(Stage("train", str(seed), "place", preimage(seed, 0.1))) is None
    assert empty.reads == 1
