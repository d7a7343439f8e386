"""What a dataset hands over is checked before it is packed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from harness import DataError, Declaration, Features, RawDataset, RawGraph, Task
from harness.stages.prepare import check, split_tiers

DECLARED = Declaration(Task("binary", 2), Features("numeric", (1,)), environments=2)


def built(env: Any) -> RawDataset:
    def graphs(last: Any) -> list[RawGraph]:
        nothing = np.zeros((2, 0), dtype=np.int64)
        return [RawGraph(np.ones((1, 1), np.float32), nothing, 0, env=value) for value in (0, -1, last)]

    return RawDataset({"train": graphs(env), "val": graphs(7), "test": graphs(0)})


@pytest.mark.parametrize("env", [0.5, True, "1", None, -2, 2, np.float32(1)])
def test_environments_that_are_no_ids_are_refused(env):
    with pytest.raises(
        DataError, match=r"split 'train', graph 2: its environment is .*\(in training to 1, as declared\)"
    ):
        check(DECLARED, built(env))


def test_environments_of_other_splits_may_be_others():
    raw = built(np.int64(1))
    check(DECLARED, raw)
    assert split_tiers(DECLARED, raw)["open"]["val"]["env"].tolist() == [0, -1, 7]
