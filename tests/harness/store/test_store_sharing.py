"""Several processes at one store: writers, killed ones, leases."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from store_kit import fresh

from harness.store import Store, digest, sweep
from harness.store.maintenance import inspect

WRITER = """
import sys, time
from pathlib import Path
from harness.store import Stage
from harness.store import Store
root, key, pause = sys.argv[1], sys.argv[2], float(sys.argv[3])
stage = Stage(kind="train", key=key, place="train/x/y", preimage={"seed": 1})
with Store(Path(root)).create(stage) as draft:
    for part in range(20):
        draft.write_json(f"part{part}", list(range(1000)))
        print(part, flush=True)
        time.sleep(pause)
print("done", flush=True)
"""


def start_writer(root: Path, key: str, pause: float) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(root), key, str(pause)], stdout=subprocess.PIPE, text=True
    )


def test_two_processes_writing_one_key_leave_one_whole_artifact(store: Store) -> None:
    key = digest("both")
    writers = [start_writer(store.root, key, 0.005) for _ in range(3)]
    for writer in writers:
        out, _ = writer.communicate(timeout=60)
        assert writer.returncode == 0
        assert out.endswith("done\n")
    assert len(store.open(key).meta.files) == 20
    assert list(inspect(store)) == []
    assert list((store.root / "tmp").iterdir()) == []


@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
def test_a_killed_writer_leaves_only_a_draft_that_the_next_start_removes(store: Store) -> None:
    key = digest("killed")
    with start_writer(store.root, key, 10) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        assert len(list((store.root / "tmp").iterdir())) == 2
        assert sweep(store.root) == 0, "its writer lives"
        writer.send_signal(signal.SIGKILL)
    assert not store.has(key)
    store.require_writable()
    assert list((store.root / "tmp").iterdir()) == []
    with start_writer(store.root, key, 0) as again:
        again.communicate(timeout=60)
    assert store.has(key)


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


HOLDER = """
import sys, time
from pathlib import Path
from harness.store import Store
lease = Store(Path(sys.argv[1])).try_lease("k")
print(lease is not None, flush=True)
time.sleep(60)
"""


@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
def test_a_lease_ends_with_its_process(store: Store) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(store.root)], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "True\n"
        assert store.try_lease("k") is None
        holder.send_signal(signal.SIGKILL)
    lease = store.try_lease("k")
    assert lease is not None
    lease.release()


def test_a_lease_is_granted_where_the_file_system_has_no_locks(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    fcntl = pytest.importorskip("fcntl")

    def unsupported(*_: object) -> None:
        raise OSError(errno.ENOLCK, "no locks available")

    monkeypatch.setattr(fcntl, "flock", unsupported)
    lease = store.try_lease("k")
    assert lease is not None
    lease.release()
