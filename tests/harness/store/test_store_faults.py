"""Damage, debris, read-only stores and full disks."""

from __future__ import annotations

import errno
import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from store_kit import fill, flip, fresh, stage, truncate

from harness.errors import DiskFullError, FileError, UserError
from harness.store import MissingArtifact, Store
from harness.store.artifact import writing
from harness.store.maintenance import inspect, listing


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
    with caplog.at_level(logging.WARNING), pytest.raises(MissingArtifact, match=r"seed 1.*checksum"):
        read(artifact)  # type: ignore[operator]
    assert "damaged" in caplog.text
    assert not store.has(stage().key)


def test_a_file_is_hashed_once_per_process(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(store, stage())
    fresh(store).open(stage().key).read_json("info")

    def refuse(path: Path) -> str:
        raise AssertionError(path)

    monkeypatch.setattr("harness.store.artifact.hash_file", refuse)
    assert fresh(store).open(stage().key).read_json("info") == {"value": 1}


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
    with pytest.raises(FileError, match=r"cannot write .*store.*Read-only"):
        store.require_writable()
    with pytest.raises(FileError, match="Read-only"), store.create(stage()):
        pass
    with pytest.raises(FileError, match="Read-only"):
        store.try_lease("k")
    assert not store.has(stage().key)
    assert listing(store) == ()


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="permissions do not stop root")
def test_a_store_without_permission_is_refused(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o555)
    with pytest.raises(FileError, match="closed"):
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
from harness.store import Stage
from harness.errors import DiskFullError
from harness.store import Store
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


def test_an_artifact_is_never_without_its_place(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk may become full between the two: the entry comes first, as one without an artifact does no harm."""

    def full(*_: object) -> None:
        raise DiskFullError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(Store, "index", full)
        with pytest.raises(DiskFullError):
            fill(store, stage())
    assert not store.has(stage().key)
    with monkeypatch.context() as patch:
        patch.setattr(Store, "_commit", full)
        with pytest.raises(DiskFullError):
            fill(store, stage())
    assert store.preimages(stage().place) == []
    assert list(inspect(store)) == []
