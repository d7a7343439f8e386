"""The store: complete or absent, verified, shared, and explained."""

from __future__ import annotations

import errno
import json
import logging
import os
import pickle
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from harness.artifact import MissingArtifact, strict, writing
from harness.errors import UserError
from harness.keys import digest
from harness.stage import Failure, Stage
from harness.store import DiskFullError, Store, StoreError


def stage(seed: int = 1, place: str = "train/two-piece/erm", **preimage: object) -> Stage:
    content = {"seed": seed, **preimage}
    return Stage(kind="train", key=digest(content), place=place, preimage=content, title=f"train ERM, seed {seed}")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def fill(store: Store, made: Stage, value: object = 1) -> Path:
    with store.create(made, provenance={"torch": "2"}) as draft:
        draft.write_json("info", {"value": value})
        draft.write_tensors("weights", {"w": torch.arange(4.0)})
    return store.artifact_folder(made.key)


def fresh(store: Store) -> Store:
    """The store as another process would see it."""
    return Store(store.root)


def test_what_is_written_is_read_back(store: Store) -> None:
    made = stage()
    assert not store.has(made.key)
    fill(store, made)
    assert store.has(made.key)
    artifact = store.open(made.key)
    assert artifact.read_json("info") == {"value": 1}
    assert torch.equal(artifact.tensors("weights")["w"], torch.arange(4.0))
    assert artifact.path("weights").name == "weights.safetensors"
    meta = artifact.meta
    assert (meta.key, meta.kind, meta.place, meta.title) == (made.key, "train", made.place, made.title)
    assert meta.preimage == made.preimage
    assert meta.provenance == {"torch": "2"}
    assert set(meta.files) == {"info.json", "weights.safetensors"}


def test_an_unknown_file_of_an_artifact_is_told(store: Store) -> None:
    fill(store, stage())
    with pytest.raises(KeyError, match=r"no file 'gone'.*info\.json"):
        store.open(stage().key).path("gone")


def test_views_and_shared_tensors_are_written_in_full(store: Store) -> None:
    whole = torch.arange(6.0)
    with store.create(stage()) as draft:
        draft.write_tensors("t", {"view": whole[::2], "same": whole, "again": whole, "grad": whole.requires_grad_()})
    read = store.open(stage().key).tensors("t")
    assert torch.equal(read["view"], torch.tensor([0.0, 2.0, 4.0]))
    assert torch.equal(read["again"], torch.arange(6.0))


def test_writing_into_a_loaded_tensor_leaves_the_artifact_alone(store: Store) -> None:
    fill(store, stage())
    store.open(stage().key).tensors("weights")["w"].fill_(9.0)
    assert torch.equal(store.open(stage().key).tensors("weights")["w"], torch.arange(4.0))
    assert store.verify() == []


def test_json_is_strict(store: Store) -> None:
    with store.create(stage()) as draft:
        draft.write_json(
            "a", {"nan": float("nan"), "np": np.float32("inf"), "list": np.array([1.0, np.nan]), "t": (1,)}
        )
    text = store.open(stage().key).path("a").read_text()

    def refuse(name: str) -> None:
        raise AssertionError(name)

    assert json.loads(text, parse_constant=refuse) == {"nan": None, "np": None, "list": [1.0, None], "t": [1]}


def test_strict_json_keeps_what_json_can_say() -> None:
    assert strict({1: True, "p": Path("x"), "s": {2, 1}, "n": np.int64(3)}) == {
        "1": True,
        "p": "x",
        "s": [1, 2],
        "n": 3,
    }


@pytest.mark.parametrize("name", ["../x", "a/b", ".hidden", "meta.json", "a\\b"])
def test_a_file_cannot_leave_its_artifact(store: Store, name: str) -> None:
    with store.create(stage()) as draft, pytest.raises(ValueError, match="cannot name"):
        draft.path(name)


def test_an_exception_leaves_nothing(store: Store) -> None:
    with pytest.raises(TypeError, match="not JSON serializable"), store.create(stage()) as draft:
        draft.write_json("info", object())
    assert not store.has(stage().key)
    assert list((store.root / "tmp").iterdir()) == []


def test_the_first_artifact_of_a_key_stays(store: Store) -> None:
    fill(store, stage(), value="first")
    fill(fresh(store), stage(), value="second")
    assert store.open(stage().key).read_json("info") == {"value": "first"}
    assert list((store.root / "tmp").iterdir()) == []


def test_outputs_are_committed_in_the_order_of_writing(store: Store) -> None:
    made = stage(place="prepare/two-piece")
    sealed = digest({"tier": "sealed", "of": made.key})
    with store.create(made, key=sealed) as draft:
        draft.write_json("info", "sealed")
    assert store.has(sealed)
    assert not store.has(made.key)
    assert store.preimages(made.place) == [], "the place is told by the stage's own key alone"
    fill(store, made)
    assert [key for key, _ in store.preimages(made.place)] == [made.key]


WRITER = """
import sys, time
from pathlib import Path
from harness.stage import Stage
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
    assert store.verify() == []
    assert list((store.root / "tmp").iterdir()) == []


@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
def test_a_killed_writer_leaves_only_a_draft_that_the_next_start_removes(store: Store) -> None:
    key = digest("killed")
    with start_writer(store.root, key, 10) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        assert len(list((store.root / "tmp").iterdir())) == 2
        assert store.sweep() == 0, "its writer lives"
        writer.send_signal(signal.SIGKILL)
    assert not store.has(key)
    store.require_writable()
    assert list((store.root / "tmp").iterdir()) == []
    with start_writer(store.root, key, 0) as again:
        again.communicate(timeout=60)
    assert store.has(key)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-3])


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("name", ["info.json", "weights.safetensors", "meta.json"])
@pytest.mark.parametrize("harm", [truncate, Path.unlink])
def test_a_truncated_or_lost_file_makes_the_artifact_absent(
    store: Store, name: str, harm: object, caplog: pytest.LogCaptureFixture
) -> None:
    folder = fill(store, stage())
    assert store.has(stage().key)
    harm(folder / name)  # type: ignore[operator]
    with caplog.at_level(logging.WARNING):
        assert not store.has(stage().key)
    assert "damaged" in caplog.text
    assert not folder.exists()
    assert store.preimages(stage().place) == []
    fill(store, stage(), value="again")
    assert store.open(stage().key).read_json("info") == {"value": "again"}


@pytest.mark.parametrize("read", [lambda a: a.read_json("info"), lambda a: a.tensors("weights")])
def test_a_flipped_bit_is_found_on_first_read(store: Store, read: object, caplog: pytest.LogCaptureFixture) -> None:
    folder = fill(store, stage())
    flip(folder / "info.json")
    flip(folder / "weights.safetensors")
    artifact = fresh(store).open(stage().key)
    with caplog.at_level(logging.WARNING), pytest.raises(MissingArtifact, match=r"seed 1.*checksum") as caught:
        read(artifact)  # type: ignore[operator]
    assert caught.value.key == stage().key
    assert "damaged" in caplog.text
    assert not store.has(stage().key)


def test_a_file_is_hashed_once_per_process(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(store, stage())
    fresh(store).open(stage().key).read_json("info")

    def refuse(path: Path) -> str:
        raise AssertionError(path)

    monkeypatch.setattr("harness.artifact.hash_file", refuse)
    assert fresh(store).open(stage().key).read_json("info") == {"value": 1}


def test_a_folder_without_description_is_debris(store: Store) -> None:
    folder = store.artifact_folder(stage().key)
    folder.mkdir(parents=True)
    (folder / "info.json").write_text("{}")
    assert not store.has(stage().key)
    fill(store, stage())
    assert store.has(stage().key)


def test_a_missing_artifact_survives_pickling() -> None:
    error = pickle.loads(pickle.dumps(MissingArtifact("k", "gone")))
    assert (error.key, str(error)) == ("k", "gone")


def test_failures_are_kept_until_the_stage_succeeds(store: Store) -> None:
    made = stage()
    assert store.failure(made.key) is None
    failure = Failure("failed", "ValueError: no", "Traceback")
    store.record_failure(made.key, failure, made)
    assert fresh(store).failure(made.key) == failure
    fill(store, made)
    assert store.failure(made.key) is None
    store.record_failure(made.key, failure, made)
    store.clear_failure(made.key)
    store.clear_failure(made.key)
    assert store.failure(made.key) is None


@pytest.mark.parametrize("status", ["timeout", "memory", "killed", "disk", "skipped"])
def test_what_is_not_a_result_is_not_stored(store: Store, status: str) -> None:
    store.record_failure(stage().key, Failure(status, "x"), stage())
    assert store.failure(stage().key) is None


def test_preimages_are_found_by_place(store: Store) -> None:
    fill(store, stage(1))
    fill(store, stage(2))
    fill(store, stage(3, place="train/spmotif/erm"))
    assert [preimage["seed"] for _, preimage in fresh(store).preimages("train/two-piece/erm")] == [1, 2]
    assert store.preimages("train/none/erm") == []


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


def test_records_and_timings(store: Store) -> None:
    store.record_run(stage(1), {"seconds": 1.5, "memory": 10})
    store.record_run(stage(2), {"seconds": 2.5})
    store.record_run(stage(3), {})
    with (store.root / "timings.jsonl").open("a") as stream:
        stream.write("torn lin\n")
    assert fresh(store).record(stage(1).key) == {"seconds": 1.5, "memory": 10}
    assert store.record("unknown") == {}
    assert store.timings() == [("train/two-piece/erm", 1.5), ("train/two-piece/erm", 2.5)]


def test_runs_get_folders_of_their_own(store: Store) -> None:
    one, two = store.new_run("my suite/№1"), store.new_run("my suite/№1")
    assert one != two
    assert one.parent == two.parent == store.runs
    assert "my-suite-" in one.name


def test_file_digests_are_remembered_in_the_store(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "data.csv"
    path.write_text("x")
    monkeypatch.setattr("harness.keys._SETTLED_NS", -1)
    expected = store.file_digest(path)

    def refuse(path: Path) -> str:
        raise AssertionError(path)

    monkeypatch.setattr("harness.keys.hash_file", refuse)
    assert fresh(store).file_digest(path) == expected


def test_listing_and_size(store: Store) -> None:
    assert store.list() == ()
    assert store.size() == 0
    fill(store, stage(1))
    fill(store, stage(2))
    infos = store.list()
    assert [info.title for info in infos] == ["train ERM, seed 1", "train ERM, seed 2"]
    assert 0 < sum(info.size for info in infos) < store.size()


def test_verify_tells_and_puts_aside(store: Store) -> None:
    flip(fill(store, stage(1)) / "info.json")
    truncate(fill(store, stage(2)) / "meta.json")
    (fill(store, stage(3)) / "extra").touch()
    problems = store.verify()
    assert len(problems) == 3
    assert any("seed 1" in line and "info.json" in line for line in problems)
    assert any("'extra'" in line for line in problems)
    assert [info.title for info in store.list()] == ["train ERM, seed 3"]


def age(store: Store, made: Stage) -> None:
    os.utime(store.artifact_folder(made.key), (1, 1))


def test_gc_removes_debris_alone_by_default(store: Store) -> None:
    fill(store, stage(1))
    truncate(fill(store, stage(2)) / "info.json")
    assert not store.has(stage(2).key)
    (store.root / "tmp" / "dead").mkdir()
    assert store.gc(dry_run=True).debris == 1
    removed = store.gc()
    assert (removed.artifacts, removed.debris) == ((), 2)
    assert list((store.root / "debris").iterdir()) == list((store.root / "tmp").iterdir()) == []
    assert store.has(stage(1).key)


def test_gc_removes_what_all_given_conditions_condemn(store: Store) -> None:
    for seed in (1, 2, 3):
        fill(store, stage(seed))
    age(store, stage(1))
    age(store, stage(2))
    keep = {stage(1).key}
    assert [i.title for i in store.gc(keep=keep, unused_for=60, dry_run=True).artifacts] == ["train ERM, seed 2"]
    assert store.has(stage(2).key)
    removed = store.gc(keep=keep, unused_for=60)
    assert removed.size == sum(info.size for info in removed.artifacts) > 0
    assert [info.title for info in store.list()] == ["train ERM, seed 1", "train ERM, seed 3"]
    assert len(store.preimages(stage().place)) == 2
    store.open(stage(1).key)
    assert store.gc(unused_for=60).artifacts == (), "opening counts as use"
    assert len(store.gc(keep=()).artifacts) == 2


def test_a_store_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=str(tmp_path / "file")):
        Store(tmp_path / "file")
    with pytest.raises(UserError, match=str(tmp_path / "file")):
        Store(tmp_path / "file" / "below").require_writable()


@pytest.fixture
def read_only(store: Store, monkeypatch: pytest.MonkeyPatch) -> Store:
    """Make new files and folders impossible, as on a read-only mount (permissions do not stop root)."""
    real = os.open

    def mkdir(path: object, *_: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system", str(path))

    def open_(path: object, flags: int, *args: object, **kwargs: object) -> int:
        if flags & (os.O_CREAT | os.O_WRONLY | os.O_RDWR):
            raise OSError(errno.EROFS, "Read-only file system", str(path))
        return real(path, flags, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "mkdir", mkdir)
    monkeypatch.setattr(os, "open", open_)
    return store


def test_a_read_only_store_can_be_read_but_not_written(read_only: Store) -> None:
    store = read_only
    with pytest.raises(StoreError, match=r"cannot write .*store.*Read-only"):
        store.require_writable()
    with pytest.raises(StoreError, match="Read-only"), store.create(stage()):
        pass
    with pytest.raises(StoreError, match="Read-only"):
        store.try_lease("k")
    assert not store.has(stage().key)
    assert store.list() == ()


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="permissions do not stop root")
def test_a_store_without_permission_is_refused(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o555)
    with pytest.raises(StoreError, match="closed"):
        Store(tmp_path / "closed").require_writable()


def test_a_full_disk_is_told_and_leaves_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", full)
        with pytest.raises(DiskFullError, match=r"disk is full.*info\.json"):
            fill(store, stage())
    assert not store.has(stage().key)
    assert list((store.root / "tmp").iterdir()) == []
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", lambda *_, **__: None)
        with pytest.raises(DiskFullError), writing(Path("x")):
            full()


@pytest.mark.skipif(sys.platform != "linux", reason="needs RLIMIT_FSIZE")
def test_tensors_that_do_not_fit_are_a_full_disk(store: Store) -> None:
    code = """
import resource, signal, sys
from pathlib import Path
import torch
from harness.stage import Stage
from harness.store import DiskFullError, Store
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
stage = Stage(kind="train", key="ab", place="p", preimage={})
try:
    with Store(Path(sys.argv[1])).create(stage) as draft:
        draft.write_tensors("w", {"w": torch.zeros(100000)})
except DiskFullError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code, str(store.root)], capture_output=True, text=True, check=True)
    assert "the disk is full" in done.stdout
    assert list((store.root / "tmp").iterdir()) == []


def test_the_default_root(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("BENCH_STORE", raising=False)
    monkeypatch.delenv("BENCH_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert Store().root == tmp_path / "equad-bench" / "store"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Store().root == tmp_path / ".cache" / "equad-bench" / "store"
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "c"))
    assert Store().root == tmp_path / "c" / "store"
    monkeypatch.setenv("BENCH_STORE", str(tmp_path / "s"))
    assert Store().root == tmp_path / "s"


def test_the_store_reads_json_without_torch(store: Store) -> None:
    fill(store, stage())
    code = (
        "import sys; from pathlib import Path; from harness.store import Store\n"
        "artifact = Store(Path(sys.argv[1])).open(sys.argv[2]); artifact.read_json('info')\n"
        "print([name for name in ('torch', 'numpy', 'safetensors') if name in sys.modules])"
    )
    command = [sys.executable, "-c", code, str(store.root), stage().key]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "[]\n"


def test_has_is_fast(store: Store) -> None:
    stages = [stage(seed) for seed in range(50)]
    for made in stages:
        with store.create(made) as draft:
            draft.write_json("info", 1)
    other = fresh(store)
    start = time.perf_counter()
    assert all(other.has(made.key) for made in stages for _ in range(4))
    assert time.perf_counter() - start < 1.0
