"""Split rules: sizes, completeness, stability, and errors instead of empty splits."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from harness.errors import DataError
from plugins.datasets._splits import index_files, index_split, named_shares, random_split, share_counts, size_split

TENTHS = {"train": 0.1, "val": 0.1, "test": 0.8}
FIXED = {"train": [0, 1, 2, 3, 4, 6, 7, 8], "val": [5], "test": [9]}


def test_each_split_gets_its_own_share():
    split = random_split(100, TENTHS, 0)
    assert {name: len(rows) for name, rows in split.items()} == {"train": 10, "val": 10, "test": 80}
    assert sorted(row for rows in split.values() for row in rows) == list(range(100))


def test_seven_graphs_leave_no_split_empty():
    assert share_counts(7, TENTHS) == {"train": 1, "val": 1, "test": 5}
    with pytest.raises(DataError, match=r"leaves val without a graph \(7 rows for the shares train 0.05"):
        random_split(7, {"train": 0.05, "val": 0.05, "test": 0.9}, 0)


@pytest.mark.parametrize("count", range(10, 200, 7))
def test_counts_are_within_one_of_the_share(count: int):
    for name, size in share_counts(count, {"train": 1 / 3, "val": 0.29, "test": 2 / 3 - 0.29}).items():
        assert abs(size - {"train": 1 / 3, "val": 0.29, "test": 2 / 3 - 0.29}[name] * count) < 1, name


def test_a_share_that_is_a_whole_number_of_rows_is_exact():
    assert share_counts(100, {"train": 0.29, "val": 0.14, "test": 0.57}) == {"train": 29, "val": 14, "test": 57}


def test_the_order_is_fixed_for_good():
    """Raw PCG64 words do not change between NumPy versions: these rows are part of the format."""
    assert random_split(10, {"train": 0.8, "val": 0.1, "test": 0.1}, 0) == FIXED
    assert random_split(10, {"train": 0.8, "val": 0.1, "test": 0.1}, 1) != FIXED


def test_global_random_state_is_neither_read_nor_moved():
    np.random.seed(1)
    random.seed(1)
    before = np.random.get_state()[1].tolist(), random.getstate()
    first = random_split(50, TENTHS, 3)
    assert (np.random.get_state()[1].tolist(), random.getstate()) == before
    np.random.seed(2)
    assert random_split(50, TENTHS, 3) == first


def test_larger_graphs_come_later_and_equal_ones_stay_together():
    sizes = [9, 5, 5, 7, 5, 8, 7, 6, 30, 20]
    split = size_split(sizes, {"train": 0.6, "val": 0.2, "test": 0.2})
    assert split == {"train": [1, 2, 3, 4, 6, 7], "val": [0, 5], "test": [8, 9]}


def test_a_cut_lies_at_the_nearest_size():
    assert size_split([1, 1, 1, 1, 2, 2, 3], {"train": 0.5, "val": 0.25, "test": 0.25}) == {
        "train": [0, 1, 2, 3],
        "val": [4, 5],
        "test": [6],
    }


@pytest.mark.parametrize("sizes", [[4] * 10, [4] * 9 + [5]])
def test_sizes_that_cannot_be_split_are_refused(sizes: list[int]):
    with pytest.raises(DataError, match="graphs of one size stay together"):
        size_split(sizes, {"train": 0.8, "val": 0.1, "test": 0.1})


@pytest.mark.parametrize("values", [[0.5, 0.5], [0.8, 0.2, 0.0], [0.8, 0.1, 0.2], [1.2, -0.1, -0.1]])
def test_shares_are_checked(values: list[float]):
    with pytest.raises(DataError, match=r"'shares'.*three positive shares"):
        named_shares(values, "mine")


def write(folder: Path, **texts: str) -> Path:
    for name, text in {"train": "0\n2\n", "val": "1\n", "test": "3\n", **texts}.items():
        (folder / f"{name}_idx.txt").write_text(text)
    return folder


def read(folder: Path) -> dict[str, list[int]]:
    return index_split(index_files(folder), 5, "set 'mine'")


def test_index_files_are_read_whatever_their_line_ends(tmp_path: Path):
    write(tmp_path, train="2\r\n0\r\n\r\n", val="\ufeff1")
    assert read(tmp_path) == {"train": [0, 2], "val": [1], "test": [3]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1.0\n", "line 1: found '1.0'"),
        ("-1\n", "line 1: found '-1'"),
        ("4\n5\n", "line 2: found '5', but expected one of the rows 0..4 of set 'mine'"),
        ("4\n4\n", "line 2: found '4'"),
        ("0\n", "row 0 is also in the split 'train'"),
        ("\n", "no row number in it"),
        ("", "empty"),
        ("²\n", "line 1: found '²'"),
        ("9" * 30, "line 1: found"),
    ],
)
def test_bad_index_files_are_refused(tmp_path: Path, text: str, message: str):
    with pytest.raises(DataError, match=message):
        read(write(tmp_path, val=text))


def test_a_missing_index_file_is_named(tmp_path: Path):
    (write(tmp_path) / "val_idx.txt").unlink()
    with pytest.raises(DataError, match=r"missing data file: .*val_idx\.txt"):
        read(tmp_path)
