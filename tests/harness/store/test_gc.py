"""What may go from a store: by age, size and need, and never what someone holds."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from store_kit import fill, fresh, record_run, stage, titles, truncate, use

from harness.store import Store, claim_run, digest
from harness.store.leases import running
from harness.store.maintenance import Garbage, choose, keys_of_stage, listing, remove


def collect(store: Store, **rules: object) -> Garbage:
    return remove(store, choose(store, **rules))  # type: ignore[arg-type]


@pytest.fixture
def three(store: Store) -> Store:
    """Three artifacts of equal size, the first used least recently."""
    for seed in (1, 2, 3):
        fill(store, stage(seed))
        use(store, stage(seed), seed)
    return store


def test_without_rules_leftovers_go_alone(store: Store) -> None:
    fill(store, stage(1))
    truncate(fill(store, stage(2)) / "info.json")
    assert not store.has(stage(2).key)
    (store.root / "tmp" / "dead").mkdir()
    assert len(choose(store).leftovers) == 2
    removed = collect(store)
    assert (removed.artifacts, len(removed.leftovers)) == ((), 2)
    assert list((store.root / "debris").iterdir()) == list((store.root / "tmp").iterdir()) == []
    assert store.has(stage(1).key)


def test_choosing_removes_nothing(three: Store) -> None:
    choice = choose(three, older_than=60)
    assert len(choice.artifacts) == 3
    assert choice.size == choice.total == sum(info.size for info in choice.artifacts) > 0
    assert titles(three) == ["1", "2", "3"]


def test_by_age(three: Store) -> None:
    three.open(stage(2).key)
    assert len(collect(three, older_than=60).artifacts) == 2
    assert titles(three) == ["2"], "opening counts as use"
    assert len(three.preimages(stage().place)) == 1


def test_by_size_the_least_recently_used_go_first(three: Store) -> None:
    size = listing(three)[0].size
    assert choose(three, max_size=3 * size).artifacts == ()
    use(three, stage(1), 9)
    collect(three, max_size=2 * size)
    assert titles(three) == ["1", "3"]
    collect(three, max_size=2 * size - 1)
    assert titles(three) == ["1"]
    collect(three, max_size=0)
    assert titles(three) == []


def test_several_rules_must_all_allow_it(three: Store) -> None:
    use(three, stage(2), 2**33)
    collect(three, older_than=60, keep={stage(1).key})
    assert titles(three) == ["1", "2"]
    collect(three, max_size=0, keep={stage(2).key})
    assert titles(three) == ["2"]


def test_what_is_needed_keeps_tiers_and_analyses(store: Store) -> None:
    data = stage(1, place="prepare/toy")
    for key in keys_of_stage(data.key):
        with store.create(data, key=key) as draft:
            draft.write_json("info", {})
    analysis, foreign = (
        replace(stage(), kind="analyse", key=digest({"train": key}), preimage={"train": key}, title=f"of {number}")
        for number, key in enumerate((data.key, digest("gone")))
    )
    fill(store, analysis)
    fill(store, foreign)
    removed = collect(store, keep={data.key})
    assert [info.title for info in removed.artifacts] == ["of 1"]
    assert len(listing(store)) == 4


def test_a_run_that_is_going_on_keeps_what_it_needs(three: Store) -> None:
    with claim_run(three, "toy") as run:
        record_run(three, [stage(1)], run)
        assert running(fresh(three)) == {run}
        choice = choose(fresh(three), max_size=0)
        assert choice.in_use == 1
        remove(three, choice)
        assert titles(three) == ["1"]
    assert running(three) == set()
    assert list((three.root / "leases").iterdir()) == []
    collect(three, max_size=0)
    assert titles(three) == []


def test_a_run_that_began_after_the_choice_keeps_what_it_needs(three: Store) -> None:
    choice = choose(three, max_size=0)
    with claim_run(three, "toy") as run:
        record_run(three, [stage(2)], run)
        assert remove(three, choice).in_use == 1
    assert titles(three) == ["2"]


def test_what_is_leased_or_was_opened_since_stays(three: Store) -> None:
    choice = choose(three, max_size=0)
    lease = three.try_lease(stage(1).key)
    assert lease is not None
    three.open(stage(2).key)
    with lease:
        removed = remove(fresh(three), choice)
    assert (len(removed.artifacts), removed.in_use) == (1, 2)
    assert titles(three) == ["1", "2"]


HOLDER = """
import sys, time
from pathlib import Path
from harness.store import claim_run
from harness.store import Store
with claim_run(Store(Path(sys.argv[1])), "toy") as name:
    print(name, flush=True)
    time.sleep(60)
"""


@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
def test_a_killed_run_keeps_nothing(three: Store) -> None:
    words = [sys.executable, "-c", HOLDER, str(three.root)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        name = holder.stdout.readline().strip()
        assert running(three) == {name}
        holder.kill()
    assert running(three) == set()


def test_without_locks_a_running_run_is_still_known(three: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    fcntl = pytest.importorskip("fcntl")

    def unsupported(*_: object) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "flock", unsupported)
    with claim_run(three, "toy") as run:
        for _ in range(2):
            assert running(fresh(three)) == {run}, "asking does not take its mark away"
    assert running(three) == set()


def test_a_reader_of_what_is_collected_meets_no_half(three: Store) -> None:
    artifact = three.open(stage(1).key)
    use(three, stage(1), 1)
    collect(three, max_size=0)
    assert not Path(artifact.folder).exists()
    assert not three.has(stage(1).key)
    fill(three, stage(1))
    assert three.open(stage(1).key).read_json("info") == {"value": 1}


def test_a_run_that_ends_before_it_has_a_record_leaves_no_folder(store: Store) -> None:
    with pytest.raises(KeyboardInterrupt), claim_run(store, "toy") as name:  # noqa: PT012
        store.new_run(name)
        raise KeyboardInterrupt
    assert list(store.runs.iterdir()) == []


def test_an_artifact_that_goes_while_the_store_is_listed(three: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process may collect it between the look at its description and the look at its folder."""
    real = Store.meta

    def meta(self: Store, key: str) -> object:
        found = real(self, key)
        if key == stage(2).key:
            shutil.rmtree(self.artifact_folder(key))
        return found

    monkeypatch.setattr(Store, "meta", meta)
    assert titles(three) == ["1", "3"]
