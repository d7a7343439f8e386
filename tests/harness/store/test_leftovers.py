"""What dead processes leave is removed, and what living ones write is not."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
from store_kit import fill, fresh, stage

from harness.store.leftovers import draft_name, leftovers, sweep
from harness.store.store import Store

KILLED = """
import os, sys
from pathlib import Path
from harness.store.stage import Stage
from harness.store.store import Store
import harness.store.store
store = Store(Path(sys.argv[1]))
if sys.argv[2] == "record":
    harness.store.store.move = lambda *_: os._exit(9)
    store.keep_record("ab", {"seconds": 1})
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


def killed(store: Store, where: str) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, str(store.root), where], check=False)
    assert done.returncode == 9


def inside(store: Store, folder: str) -> list[Path]:
    return list((store.root / folder).glob("*"))


@pytest.mark.parametrize("where", ["draft", "record"])
def test_drafts_small_files_and_locks_of_the_dead_go(store: Store, where: str) -> None:
    killed(store, where)
    assert inside(store, "tmp")
    assert len(list(leftovers(store.root))) == 1
    assert sweep(store.root) == 1
    assert inside(store, "tmp") == inside(store, "leases") == []
    assert store.record("ab") == {}


def test_what_is_being_written_stays(store: Store) -> None:
    lease = store.try_lease("ab")
    assert lease is not None
    with lease, store.draft_folder("ab") as folder:
        assert list(leftovers(store.root)) == []
        assert fresh(store).sweep() == 0
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
def test_without_locks_drafts_of_the_dead_go(store: Store) -> None:
    killed(store, "draft")
    foreign = store.root / "tmp" / "ab-elsewhere-1-000000000000"
    foreign.mkdir()
    assert sweep(store.root) == 1
    assert inside(store, "tmp") == [foreign], "nobody can tell whether a process of another machine lives"
    os.utime(foreign, (1, 1))
    assert sweep(store.root) == 1
    assert inside(store, "tmp") == []


def test_a_name_tells_who_writes(store: Store) -> None:
    fill(store, stage())
    label, host, pid, _ = draft_name("ab").rsplit("-", 3)
    assert (label, pid) == ("ab", str(os.getpid()))
    assert host


def test_who_looks_for_leftovers_never_takes_what_begins(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lock that somebody else has for a moment, because he looks for leftovers, is no lock of ours."""
    from harness.store import leftovers as module

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
        assert fresh(store).sweep() == 0
        assert folder.is_dir()


def test_a_leftover_is_removed_under_its_lock(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise its name could be taken between the look and the removal."""
    from harness.store import leftovers as module

    path = store.root / "tmp" / "dead"
    path.mkdir(parents=True)
    real, locked = module.delete, []

    def delete(found: Path) -> None:
        locked.append(module.try_lock(found.with_name(f"{found.name}.lock")) is None)
        real(found)

    monkeypatch.setattr(module, "delete", delete)
    assert sweep(store.root) == 1
    assert locked == [True]


def test_the_probe_of_a_start_is_not_taken_for_a_leftover(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Path.touch

    def touch(self: Path) -> None:
        real(self)
        monkeypatch.setattr(Path, "touch", real)
        fresh(store).require_writable()

    monkeypatch.setattr(Path, "touch", touch)
    store.require_writable()
    assert inside(store, "tmp") == []


@pytest.mark.parametrize("name", ["run-.lock", "run-...lock"])
def test_a_lock_whose_name_is_no_runs_takes_no_folder_away(store: Store, name: str) -> None:
    """``runs/`` and ``runs/..`` have no record of a run: they were taken for the folder of one that was cut short."""
    fill(store, stage())
    (store.runs / "20260101-000000-toy-0000").mkdir(parents=True)
    (store.root / "leases").mkdir(exist_ok=True)
    (store.root / "leases" / name).touch()
    store.sweep()
    assert inside(store, "runs")
    assert fresh(store).has(stage().key)
    assert inside(store, "leases") == []
