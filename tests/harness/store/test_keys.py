"""Canonical JSON, keys, differences between preimages, file digests."""

from __future__ import annotations

import hashlib
import json
import math
import os
import subprocess
import sys
import time
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import DataError
from harness.store import canonical, difference, digest, file_digest


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (0.1, np.float64(0.1)),
        (3, np.int64(3)),
        (1, 1.0),
        (0.0, -0.0),
        (True, np.bool_(True)),
        ([1, 2], (1, 2)),
        ([1, 2], np.array([1, 2])),
        ([0.5, 2.0], torch.tensor([0.5, 2.0])),
        ({"a": 1, "b": 2}, OrderedDict([("b", 2), ("a", 1)])),
        ({1, 2, 3}, frozenset({3, 2, 1})),
    ],
)
def test_equal_values_have_equal_keys(one: object, other: object) -> None:
    assert digest({"v": one}) == digest({"v": other})


@pytest.mark.parametrize(("one", "other"), [(1, True), (0, False), (1, "1"), (0.1, 0.2), (None, "null"), ([], {})])
def test_different_values_have_different_keys(one: object, other: object) -> None:
    assert digest({"v": one}) != digest({"v": other})


@pytest.mark.parametrize("value", [math.nan, math.inf, np.float64("nan"), Path("x"), b"x", object(), {1: 2}])
def test_a_value_without_a_canonical_form_is_refused_with_its_place(value: object) -> None:
    with pytest.raises(ValueError, match=r"train\.lr"):
        canonical({"train": {"lr": value}})


def test_equal_storage_does_not_matter() -> None:
    whole = torch.arange(6.0)
    assert digest(whole[::2]) == digest(torch.tensor([0.0, 2.0, 4.0]))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=50, deadline=None)
@given(json_values)
def test_a_round_trip_through_json_keeps_the_key(value: object) -> None:
    assert digest(json.loads(json.dumps(value))) == digest(value)
    assert digest(json.loads(canonical(value))) == digest(value)


@settings(max_examples=50, deadline=None)
@given(json_values)
def test_nothing_differs_from_itself(value: object) -> None:
    assert difference(value, value) == []


@settings(max_examples=50, deadline=None)
@given(json_values, json_values)
def test_a_difference_is_told_exactly_when_the_keys_differ(old: object, new: object) -> None:
    assert bool(difference(old, new)) == (digest(old) != digest(new))


def test_a_nested_boolean_is_not_a_number() -> None:
    assert difference([False, False], [False, 0]) == ["value: [false, false] -> [false, 0]"]
    assert difference({"on": {"x": [True]}}, {"on": {"x": [1]}}) == ["on.x: [true] -> [1]"]


def test_the_hash_seed_does_not_change_a_key() -> None:
    code = "from harness.store import digest; print(digest({'tasks': {'binary', 'x', 'y'}, 'b': {'a': 1}}))"
    keys = set()
    for seed in ("0", "1", "random"):
        env = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
        keys.add(done.stdout)
    assert len(keys) == 1


A, B = "a" * 64, "b" * 64


def test_differences_are_told_in_words() -> None:
    def learner(source: str, **params: object) -> dict[str, object]:
        return {"kind": "baseline", "name": "erm", "source": source, "params": params}

    old = {
        "learner": learner(A),
        "train": {"epochs": 50},
        "files": {"BACE.csv": A},
        "inputs": {"dataset": A},
        "seed": 1,
    }
    new = {
        "learner": learner(B, penalty=1),
        "train": {"epochs": 25},
        "files": {"BACE.csv": B},
        "inputs": {"dataset": B},
    }
    assert difference(old, new) == [
        "files.BACE.csv changed",
        "inputs.dataset changed",
        "erm.penalty: default -> 1",
        "source of baseline erm changed",
        "seed: 1 -> nothing",
        "train.epochs: 50 -> 25",
    ]


def test_another_component_is_one_line() -> None:
    old = {"backbone": {"kind": "backbone", "name": "gin", "source": A, "params": {"layers": 3}}}
    new = {"backbone": {"kind": "backbone", "name": "gcn", "source": B, "params": {}}}
    assert difference(old, new) == ["backbone: backbone gin -> backbone gcn"]


def test_lists_of_components_are_compared_by_position() -> None:
    def pool(hidden: int) -> dict[str, object]:
        return {"kind": "encoder", "name": "mvgrl", "source": A, "params": {"hidden": hidden}}

    assert difference({"pool": [pool(32)]}, {"pool": [pool(64)]}) == ["mvgrl.hidden: 32 -> 64"]


def test_files_are_told_by_name_and_lists_of_keys_by_position() -> None:
    old = {"files": [{"name": "a.csv", "sha256": A}, {"name": "b.csv", "sha256": A}], "quantify": [A, A]}
    new = {"files": [{"name": "a.csv", "sha256": A}, {"name": "b.csv", "sha256": B}], "quantify": [A, B]}
    assert difference(old, new) == ["files.b.csv.sha256 changed", "quantify.2 changed"]


def settle(path: Path) -> None:
    """Give a file times old enough to be remembered; its change time cannot be set, so wait it out."""
    os.utime(path, (1, 1))
    while time.time_ns() - path.stat().st_ctime_ns <= 2_000_000_000:
        time.sleep(0.05)


def test_a_file_digest_is_remembered_until_the_file_changes(tmp_path: Path) -> None:
    path, memo = tmp_path / "data.csv", dict[str, object]()
    path.write_bytes(b"one")
    assert file_digest(path, memo) == hashlib.sha256(b"one").hexdigest()
    assert memo == {}, "a file this young may change within its time stamp"
    settle(path)
    file_digest(path, memo)
    memo[str(path)][-1] = "remembered"
    assert file_digest(path, memo) == "remembered"
    path.write_bytes(b"two")
    os.utime(path, (1, 1))
    assert file_digest(path, memo) == hashlib.sha256(b"two").hexdigest(), "same size and modification time"


def test_a_missing_file_or_a_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no file .*gone\.csv"):
        file_digest(tmp_path / "gone.csv")
    with pytest.raises(DataError, match=str(tmp_path)):
        file_digest(tmp_path)
