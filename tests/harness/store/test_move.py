"""Renames on file systems that are slow to tell the truth."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from store_kit import fill, fresh, stage

from harness.errors import FileError
from harness.store import Store
from harness.store.artifact import move

Replace = Callable[[Path, Path], None]


@pytest.fixture
def odd(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[int]]:
    """Renames that fail with these numbers first; with ``done`` they are done nevertheless."""

    def break_renames(*numbers: int, done: bool = False) -> list[int]:
        left, real = list(numbers), Path.replace

        def replace(self: Path, target: Path) -> Path:
            if left:
                number = left.pop(0)
                if done:
                    real(self, target)
                raise OSError(number, os.strerror(number), str(self))
            return real(self, target)

        monkeypatch.setattr(Path, "replace", replace)
        return left

    monkeypatch.setattr("harness.store.artifact.time.sleep", lambda _: None)
    return break_renames


@pytest.mark.parametrize("number", [errno.ESTALE, errno.EBUSY, errno.EEXIST, errno.ENOTEMPTY])
def test_a_rename_that_fails_for_a_while(store: Store, odd: Callable[..., list[int]], number: int) -> None:
    left = odd(number, number)
    fill(store, stage())
    assert left == []
    assert fresh(store).has(stage().key)


@pytest.mark.parametrize("number", [errno.ENOENT, errno.EIO, errno.ESTALE])
def test_a_rename_that_was_done_but_reported_as_failed(
    store: Store, odd: Callable[..., list[int]], number: int
) -> None:
    odd(number, done=True)
    fill(store, stage())
    assert fresh(store).has(stage().key)


def test_a_rename_that_never_works_is_told(store: Store, odd: Callable[..., list[int]]) -> None:
    odd(*[errno.ESTALE] * 20)
    with pytest.raises(FileError, match=r"cannot write .*(artifacts|places)"):
        fill(store, stage())
    assert list((store.root / "tmp").iterdir()) == []


def test_what_stands_there_is_told_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.store.artifact._PAUSES", (60.0,))
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").touch()
    with pytest.raises(OSError, match="not empty"):
        move(tmp_path / "one", tmp_path / "two")
