"""OGB's scaffold split: its rule, its order, and what it says of lopsided groups."""

from __future__ import annotations

import pytest
from rdkit import Chem

from harness.errors import DataError
from plugins.datasets._scaffold import scaffold, scaffold_split


def test_groups_stay_together_and_fill_train_then_validation_then_test():
    names = ["a"] * 5 + ["b"] * 3 + ["c", "d"]
    split = scaffold_split(dict(enumerate(names)), 10)
    assert split.rows == {"train": list(range(8)), "val": [9], "test": [8]}
    assert (split.groups, split.largest, split.warnings) == (4, 5, [])


def test_of_equal_groups_the_later_one_comes_first():
    split = scaffold_split({row: str(row) for row in range(10)}, 10)
    assert split.rows == {"train": list(range(2, 10)), "val": [1], "test": [0]}


def test_or_the_one_of_the_smaller_smiles_whatever_the_order_of_rows():
    names = [str(row) for row in range(10)]
    for order in (names, names[::-1]):
        split = scaffold_split(dict(enumerate(order)), 10, ties="smiles")
        assert {part: {order[row] for row in rows} for part, rows in split.rows.items()} == {
            "train": set("01234567"),
            "val": {"8"},
            "test": {"9"},
        }


def test_a_group_that_does_not_fit_moves_on():
    names = ["a"] * 14 + ["b"] * 3 + ["c"] * 2 + ["d"]
    split = scaffold_split(dict(enumerate(names)), 20)
    assert split.rows == {"train": [*range(14), 17, 18], "val": [14, 15, 16], "test": [19]}


def test_every_row_is_in_exactly_one_split():
    split = scaffold_split({row: str(row % 37) for row in range(0, 300, 3)}, 100)
    assert sorted(row for rows in split.rows.values() for row in rows) == list(range(0, 300, 3))


def test_unreadable_rows_count_as_test_molecules():
    """Their share is kept free, as OGB's index files have them."""
    split = scaffold_split({row: str(row) for row in range(19)}, 20)
    assert {name: len(rows) for name, rows in split.rows.items()} == {"train": 16, "val": 2, "test": 1}


def test_a_large_group_of_molecules_without_rings_is_fine_in_train():
    names = [""] * 60 + [str(i) for i in range(40)]
    split = scaffold_split(dict(enumerate(names)), 100)
    assert {name: len(rows) for name, rows in split.rows.items()} == {"train": 80, "val": 10, "test": 10}
    assert set(range(60)) < set(split.rows["train"])
    assert split.warnings == []


def test_a_group_larger_than_its_split_is_told():
    names = ["a"] * 70 + [""] * 15 + [str(i) for i in range(15)]
    split = scaffold_split(dict(enumerate(names)), 100)
    assert {name: len(rows) for name, rows in split.rows.items()} == {"train": 80, "val": 15, "test": 5}
    (warning,) = split.warnings
    assert warning.startswith("the empty scaffold (molecules without rings) has 15 of 100 molecules")
    assert "10 % meant for val" in warning


def test_a_group_that_leaves_a_split_empty_is_refused_with_its_name():
    names = [""] * 85 + [str(i) for i in range(15)]
    with pytest.raises(DataError, match=r"test without a molecule .* the empty scaffold .* has 85 of 100"):
        scaffold_split(dict(enumerate(names)), 100)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_an_empty_split_is_refused(count):
    with pytest.raises(DataError, match="without a molecule"):
        scaffold_split({row: str(row) for row in range(count)}, count)


def test_no_molecule_at_all_is_refused():
    with pytest.raises(DataError, match="train and val and test"):
        scaffold_split({}, 3)


@pytest.mark.parametrize(("smiles", "expected"), [("CCO", ""), ("CCc1ccccc1", "c1ccccc1"), ("[Na+]", "")])
def test_scaffolds(smiles, expected):
    assert scaffold(Chem.MolFromSmiles(smiles)) == expected


def test_scaffolds_keep_chirality():
    assert "@" in scaffold(Chem.MolFromSmiles("C1C[C@H]2CC[C@@H]1C2"))
