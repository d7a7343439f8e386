"""Archives: taken in part, and refused where they lead out, link, lie or burst."""

from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import Path

import pytest
from web_kit import zipped

from harness.downloads import fetch as unpacking
from harness.downloads.fetch import gunzip, unpack
from harness.errors import DataError


def archive(folder: Path, content: bytes) -> Path:
    path = folder / "archive.part"
    path.write_bytes(content)
    return path


def tarred(*members: tuple[tarfile.TarInfo, bytes], mode: str = "w:gz") -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode=mode) as opened:  # type: ignore[call-overload]
        for info, content in members:
            info.size = len(content)
            opened.addfile(info, io.BytesIO(content))
    return made.getvalue()


def names(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_one_folder_of_a_zip(tmp_path: Path) -> None:
    path = archive(tmp_path, zipped({"a/b/x": "1", "a/b/c/y": "2", "a/z": "3", "ab/w": "4"}))
    unpack(path, "a/b", tmp_path / "out")
    assert names(tmp_path / "out") == {"x", "c/y"}


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz", "w:bz2"])
def test_tar_archives(tmp_path: Path, mode: str) -> None:
    made = tarred((tarfile.TarInfo("s/x"), b"1"), (tarfile.TarInfo("s/y"), b""), mode=mode)
    unpack(archive(tmp_path, made), "s", tmp_path / "out")
    assert names(tmp_path / "out") == {"x", "y"}
    assert (tmp_path / "out" / "x").read_bytes() == b"1"


@pytest.mark.parametrize("name", ["../x", "/x", "s/../../x", "..\\x", "C:/x", "s/..", "C:x"])
def test_paths_that_lead_out(tmp_path: Path, name: str) -> None:
    for made in (zipped({"s/good": "1", name: "2"}), tarred((tarfile.TarInfo(name), b"2"))):
        with pytest.raises(DataError, match="leads out"):
            unpack(archive(tmp_path, made), "", tmp_path / "out")
        assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE])
def test_links_and_devices_in_a_tar(tmp_path: Path, kind: bytes) -> None:
    info = tarfile.TarInfo("s/link")
    info.type, info.linkname = kind, "../../x"
    with pytest.raises(DataError, match="link or a device"):
        unpack(archive(tmp_path, tarred((info, b""))), "s", tmp_path / "out")


def test_of_two_members_of_one_name_the_last_holds(tmp_path: Path) -> None:
    """As tar and zip unpack an archive to which a file was added again; it was told as a file in a folder's place."""
    made = tarred((tarfile.TarInfo("s/x"), b"old"), (tarfile.TarInfo("s/./x"), b"new"))
    unpack(archive(tmp_path, made), "s", tmp_path / "out")
    assert (tmp_path / "out" / "x").read_bytes() == b"new"


def test_an_archive_without_the_folder_says_what_it_holds(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no files in 'bace'; it holds: molbace"):
        unpack(archive(tmp_path, zipped({"molbace/x": "1"})), "bace", tmp_path / "out")


@pytest.mark.parametrize("content", [b"<html>", b"", b"PK\x03\x04 and so on", b"\x1f\x8b\x08 and so on"])
def test_what_is_no_archive(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(DataError):
        unpack(archive(tmp_path, content), "", tmp_path / "out")


def test_damage_is_told(tmp_path: Path) -> None:
    made = bytearray(zipped({"x": bytes(range(256)) * 50}))
    for at in range(60, 120):
        made[at] ^= 255
    with pytest.raises(DataError, match="damaged"):
        unpack(archive(tmp_path, bytes(made)), "", tmp_path / "out")
    with pytest.raises(DataError, match=r"damaged|neither"):
        unpack(archive(tmp_path, tarred((tarfile.TarInfo("x"), bytes(100_000)))[:-200]), "", tmp_path / "out2")


def test_a_member_that_is_longer_than_it_says(tmp_path: Path) -> None:
    """A zip whose headers give a smaller size than its content has."""
    made = zipped({"x": bytes(5000)}).replace((5000).to_bytes(4, "little"), (1000).to_bytes(4, "little"))
    with pytest.raises(DataError):
        unpack(archive(tmp_path, made), "", tmp_path / "out")


def test_what_would_burst_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacking, "_SMALL", 10**5)
    with pytest.raises(DataError, match="plausible"):
        unpack(archive(tmp_path, zipped({"x": bytes(10**7)})), "", tmp_path / "out")
    with pytest.raises(DataError, match="plausible"):
        gunzip(archive(tmp_path, gzip.compress(bytes(10**7))), tmp_path / "x")
    assert (tmp_path / "x").stat().st_size < 3 * 10**6
