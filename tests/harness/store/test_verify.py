"""Verifying a store changes nothing; repairing it puts aside what is damaged and says so."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from store_kit import fill, flip, fresh, stage, truncate

from harness.store import Failure, Meta, Store
from harness.store.artifact import META
from harness.store.maintenance import inspect

Harm = Callable[[Path], object]


def blank(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


@pytest.mark.parametrize("name", ["info.json", "weights.safetensors", META])
@pytest.mark.parametrize("harm", [flip, truncate, blank, Path.unlink])
def test_damage_is_told_and_repaired(store: Store, name: str, harm: Harm) -> None:
    fill(store, stage(2))
    folder = fill(store, stage())
    harm(folder / name)
    before = sorted(store.root.rglob("*"))
    (problem,) = inspect(fresh(store))
    assert stage().key[:12] in str(problem)
    assert name in str(problem)
    assert sorted(store.root.rglob("*")) == before, "looking changes nothing"
    problem.mend(store)
    assert list(inspect(store)) == []
    assert not store.has(stage().key)
    assert store.has(stage(2).key)


def test_any_flipped_bit_of_a_description_is_found(store: Store) -> None:
    """Also one in a title or a preimage, which no other check would meet."""
    path = fill(store, stage()) / META
    whole, drawn = path.read_bytes().rstrip(), random.Random(0)
    for position in drawn.sample(range(len(whole)), 60):
        content = bytearray(whole)
        content[position] ^= 1 << drawn.randrange(8)
        path.write_bytes(content)
        with pytest.raises(ValueError):  # noqa: PT011 - decoding, parsing and comparing raise different ones
            Meta.read(path.parent)
        assert len(list(inspect(fresh(store)))) == 1, bytes(content)


def test_a_run_whose_record_cannot_be_read_is_put_aside(store: Store) -> None:
    (store.runs / "broken").mkdir(parents=True)
    (store.runs / "broken" / "run.json").write_text("{")
    (problem,) = inspect(store)
    assert "run broken" in str(problem)
    problem.mend(store)
    assert list(inspect(store)) == []


def test_a_damaged_failure_is_none(store: Store) -> None:
    store.record_failure("f" * 64, Failure("failed", "why"), stage())
    path = store.failure_path("f" * 64)
    path.write_text(path.read_text().replace('"reason"', '"reasoo"'))
    assert fresh(store).failure("f" * 64) is None


def test_an_artifact_that_is_put_there_while_it_is_looked_for_is_not_damaged(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look at its description and the look at its folder another process may commit it."""
    folder = fill(store, stage())
    hidden = folder.with_name("hidden")
    folder.rename(hidden)
    real = Path.is_dir

    def is_dir(self: Path) -> bool:
        if self == folder and hidden.exists():
            hidden.rename(folder)
        return real(self)

    monkeypatch.setattr(Path, "is_dir", is_dir)
    assert fresh(store).has(stage().key)
    assert not (store.root / "debris").exists()
