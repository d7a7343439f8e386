"""Several processes at one store: what the dead leave is removed, and what the living write is not."""

from __future__ import annotations

import errno
import subprocess
import sys
from pathlib import Path

import pytest
from store_kit import fill, fresh, stage

from harness.store import Store, digest, sweep
from harness.store.leases import leftovers
from harness.store.maintenance import inspect

WRITER = """
import sys, time
from pathlib import Path
from harness.store import Stage
from harness.store import Store
root, key = sys.argv[1:]
stage = Stage(kind="train", key=key, place="train/x/y", preimage={"seed": 1})
with Store(Path(root)).create(stage) as draft:
    for part in range(20):
        draft.write_json(f"part{part}", list(range(1000)))
        time.sleep(0.005)
print("done", flush=True)
"""
KILLED = """
import os, sys
from pathlib import Path
from harness.store import Stage
from harness.store import Store
store = Store(Path(sys.argv[1]))
store.try_lease("ab")
with store.draft_folder("ab") as folder:
    (folder / "half").write_text("half")
    os._exit(9)
"""


@pytest.fixture
def no_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a network mount without a lock service."""
    fcntl = pytest.importorskip("fcntl")

    def unsupported(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", unsupported)


def killed(store: Store) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, str(store.root)], check=False)
    assert done.returncode == 9


def inside(store: Store, folder: str) -> list[Path]:
    return list((store.root / folder).glob("*"))


def test_two_processes_writing_one_key_leave_one_whole_artifact(store: Store) -> None:
    key = digest("both")
    command = [sys.executable, "-c", WRITER, str(store.root), key]
    writers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    for writer in writers:
        out, _ = writer.communicate(timeout=60)
        assert writer.returncode == 0
        assert out == "done\n"
    assert len(store.open(key).meta.files) == 20
    assert list(inspect(store)) == []
    assert list((store.root / "tmp").iterdir()) == []


def test_a_lease_excludes_others_until_released(store: Store) -> None:
    first = store.try_lease("k")
    assert first is not None
    assert store.try_lease("k") is None
    assert fresh(store).try_lease("k") is None
    other = store.try_lease("l")
    assert other is not None
    other.release()
    first.release()
    first.release()
    again = store.try_lease("k")
    assert again is not None
    with again:
        assert store.try_lease("k") is None
    assert list((store.root / "leases").iterdir()) == []


def test_drafts_and_locks_of_the_dead_go(store: Store) -> None:
    killed(store)
    assert inside(store, "tmp")
    assert len(list(leftovers(store.root))) == 1
    assert sweep(store.root) == 1
    assert inside(store, "tmp") == inside(store, "leases") == []


def test_what_is_being_written_stays(store: Store) -> None:
    lease = store.try_lease("ab")
    assert lease is not None
    with lease, store.draft_folder("ab") as folder:
        assert list(leftovers(store.root)) == []
        assert sweep(store.root) == 0
        assert folder.is_dir()
        assert fresh(store).try_lease("ab") is None
    assert inside(store, "tmp") == []


@pytest.mark.usefixtures("no_locks")
def test_without_locks_the_living_keep_their_drafts(store: Store) -> None:
    """Taking the lock of everyone, a start on such a mount removed what others were writing."""
    with store.create(stage()) as draft:
        for _ in range(2):
            fresh(store).require_writable()
        assert draft.folder.is_dir()
        draft.write_json("info", {})
    assert store.has(stage().key)
    assert inside(store, "tmp") == []


@pytest.mark.usefixtures("no_locks")
def test_without_locks_drafts_of_the_dead_stay(store: Store) -> None:
    killed(store)
    assert sweep(store.root) == 0, "nobody can tell whether its process lives"
    assert any(path.is_dir() for path in inside(store, "tmp"))


def test_who_looks_for_leftovers_never_takes_what_begins(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lock that somebody else has for a moment, because he looks for leftovers, is no lock of ours."""
    from harness.store import store as module

    (store.root / "tmp").mkdir(parents=True)
    real, taken = module.try_lock, []

    def faster(path: Path) -> object:
        """As if a sweeper had locked the file between its making and our lock, the first time."""
        if not taken:
            taken.append(path)
            return None
        return real(path)

    monkeypatch.setattr(module, "try_lock", faster)
    with store.draft_folder("ab") as folder:
        assert f"{folder.name}.lock" != taken[0].name
        assert sweep(store.root) == 0
        assert folder.is_dir()


def test_a_leftover_is_removed_under_its_lock(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise its name could be taken between the look and the removal."""
    from harness.store import leases as module

    path = store.root / "tmp" / "dead"
    path.mkdir(parents=True)
    real, locked = module.delete, []

    def delete(found: Path) -> None:
        if found == path:
            locked.append(module.try_lock(found.with_name(f"{found.name}.lock")) is None)
        real(found)

    monkeypatch.setattr(module, "delete", delete)
    assert sweep(store.root) == 1
    assert locked == [True]


@pytest.mark.parametrize("name", ["run-.lock", "run-...lock"])
def test_a_lock_whose_name_is_no_runs_takes_no_folder_away(store: Store, name: str) -> None:
    """``runs/`` and ``runs/..`` have no record of a run: they were taken for the folder of one that was cut short."""
    fill(store, stage())
    (store.runs / "20260101-000000-toy-0000").mkdir(parents=True)
    (store.root / "leases").mkdir(exist_ok=True)
    (store.root / "leases" / name).touch()
    sweep(store.root)
    assert inside(store, "runs")
    assert fresh(store).has(stage().key)
    assert inside(store, "leases") == []
