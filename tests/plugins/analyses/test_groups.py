"""The worst group, by hand: each seed's own, of the environments that are large enough."""

from functools import partial

import numpy as np
import pytest

from harness.analysis import MeasuredCell, Study
from harness.data import Task
from harness.results.rows import RunResults
from plugins.analyses.groups import Groups

ENV = np.array([0] * 4 + [1] * 4 + [2])
SIZES = np.array([5, 5, 9, 9] * 2 + [5])
BASE = np.array([0, 0, 0, 2, 1, 0, 0, 1, 1])
RIGHT = {1: [1, 1, 1, 1, 1, 0, 0, 0, 0], 2: [0, 0, 1, 1, 1, 1, 1, 0, 0]}


def read_field(fields, name, _split):
    return fields.get(name)


@pytest.fixture
def rows():
    cells = []
    for seed, right in RIGHT.items():
        fields = {
            "y": np.zeros(9),
            "env": ENV,
            "num_nodes": SIZES,
            "base": BASE,
            "logits": np.eye(2)[1 - np.array(right)],
        }
        roles = {"train": "train", "val": "val", "test": "test"}
        read = partial(read_field, fields)
        cells.append(MeasuredCell("Set", "M", "c", seed, Task("binary", 2), roles, "val", read=read))
    study = Study("Groups", RunResults("s", "r", "p", (1, 2), (), ("M",), ()), tuple(cells))
    found = Groups(smallest=2, quartiles=2).present(study)
    return {row[3]: row[4:6] for row in found.rows}


def test_the_worst_group_is_each_seeds_own(rows):
    assert rows["environment 0"] == (4, pytest.approx(75))
    assert rows["environment 1"] == (4, pytest.approx(50))
    assert rows["worst environment"] == (None, pytest.approx((25 + 50) / 2))
    assert rows["worst size group"] == (None, pytest.approx((50 + 40) / 2))


def test_pooled_environments_are_not_the_worst(rows):
    assert rows["1 small environments"] == (1, 0)


def test_whole_and_worst_come_first(rows):
    assert list(rows)[:3] == ["all", "worst environment", "worst size group"]


def test_groups_by_the_base(rows):
    """All labels are 0: the base agrees on rows 0, 1, 2, 5 and 6, of which the seeds have 3 and 3 right."""
    assert rows["base agrees"] == (5, pytest.approx(60))
    assert rows["base differs"] == (4, pytest.approx((50 + 50) / 2))
    assert rows["base 2"] == (1, pytest.approx(100))
