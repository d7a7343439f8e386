"""Servers and archives made to harm: other schemes, sizes that are none, endless bodies, bombs, headers that lie."""

from __future__ import annotations

import gzip
import io
import struct
import tarfile
import zipfile
from pathlib import Path

import pytest
from web_kit import Page, Site, Story, refused, wanted, zipped

from harness.downloads import transfer
from harness.downloads import unpack as unpacking
from harness.downloads.fetch import fetch
from harness.downloads.transfer import Unreachable, check_address
from harness.downloads.unpack import gunzip, unpack
from harness.errors import DataError, DiskFullError


@pytest.mark.parametrize(
    "target", ["file:///etc/hostname", "ftp://127.0.0.1/x", "data:,x", "gopher://x/", "//", "http://"]
)
def test_a_redirect_leads_to_the_web_alone(site: Site, tmp_path: Path, target: str) -> None:
    refused(wanted(site.url("away", Page(leads_to=target))), tmp_path)


def test_redirects_in_a_circle_end(site: Site, tmp_path: Path) -> None:
    refused(wanted(site.url("round", Page(leads_to=site.url("round")))), tmp_path)


@pytest.mark.parametrize("text", ["9" * 5000, "-1", "1e9", "x"])
def test_a_size_that_is_none_is_refused(site: Site, tmp_path: Path, text: str) -> None:
    refused(wanted(site.url("x", Page(length=False, headers={"Content-Length": text}))), tmp_path)


def test_a_huge_size_is_no_room(site: Site, tmp_path: Path) -> None:
    page = Page(length=False, headers={"Content-Length": str(10**18)})
    with pytest.raises(DiskFullError, match="no room"):
        fetch(wanted(site.url("x", page)), tmp_path, Story())


def test_a_body_without_end(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "MOST_BYTES", 100_000)
    refused(wanted(site.url("x", Page(length=False))), tmp_path, "sends more than the 100000 bytes")
    assert not list(tmp_path.rglob("*.part")), "nothing of it is kept"


def test_a_body_without_a_size_leaves_room_on_the_disk(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer, "_LOOK", 1000)
    monkeypatch.setattr(transfer, "_SPARE", 10**18)
    with pytest.raises(DiskFullError, match="no room"):
        fetch(wanted(site.url("x", Page(length=False))), tmp_path, Story())


def test_what_a_server_says_of_itself_goes_nowhere(site: Site, tmp_path: Path) -> None:
    page = Page(etag=None, headers={"Last-Modified": "\x1b[31m"}, cuts=[100])
    assert fetch(wanted(site.url("x", page)), tmp_path, Story()).path.read_bytes() == page.content


def test_a_gzip_bomb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacking, "_SMALL", 10**5)
    (tmp_path / "x.gz").write_bytes(gzip.compress(bytes(10**7)))
    with pytest.raises(DataError, match="plausible"):
        gunzip(tmp_path / "x.gz", tmp_path / "x")
    assert (tmp_path / "x").stat().st_size < 3 * 10**6


def packed(folder: Path, content: bytes) -> Path:
    path = folder / "archive"
    path.write_bytes(content)
    return path


def header(name: str, size: int, kind: bytes = tarfile.REGTYPE) -> bytes:
    info = tarfile.TarInfo(name)
    info.size, info.type = size, kind
    return info.tobuf(tarfile.GNU_FORMAT)


@pytest.mark.parametrize("kind", [tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE, tarfile.GNUTYPE_LONGLINK, tarfile.XGLTYPE])
def test_a_tar_header_without_end_is_not_read(tmp_path: Path, kind: bytes) -> None:
    """Python reads a header of the length that it claims into memory: gigabytes, from a small archive."""
    bomb = gzip.compress(header("x", 10**9, kind) + bytes(2 * 10**7))
    with pytest.raises(DataError, match="implausible size"):
        unpack(packed(tmp_path, bomb), "", tmp_path / "out")


def test_a_tar_of_ever_more_bytes_is_not_listed_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacking, "_SMALL", 10**6)
    bomb = gzip.compress((header("x", 10**7) + bytes(10**7)) + bytes(1024))
    with pytest.raises(DataError, match="plausible"):
        unpack(packed(tmp_path, bomb), "", tmp_path / "out")


@pytest.mark.parametrize("made", ["tar", "zip"])
def test_too_many_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: str) -> None:
    monkeypatch.setattr(unpacking, "MOST_FILES", 50)
    names = [f"f{n}" for n in range(60)]
    content = b"".join(header(name, 0) for name in names) + bytes(1024)
    with pytest.raises(DataError, match="more than 50 files"):
        unpack(packed(tmp_path, content if made == "tar" else zipped(dict.fromkeys(names, ""))), "", tmp_path / "out")


@pytest.mark.timeout(20)
def test_a_tar_whose_sizes_lead_back_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacking, "MOST_FILES", 1000)
    block = bytearray(header("x", 0))
    block[124:136] = b"\xff" + struct.pack(">q", -512).rjust(11, b"\xff")
    block[148:156] = b"        "
    block[148:156] = b"%06o\0 " % sum(block)
    with pytest.raises(DataError):
        unpack(packed(tmp_path, bytes(block) * 2 + bytes(1024)), "", tmp_path / "out")


@pytest.mark.parametrize("name", ["a\x1b[2Jb", "a\nb", "a\u202eb", "a\x00b", "a\x7f"])
def test_names_that_are_not_printable(tmp_path: Path, name: str) -> None:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as opened:
        opened.addfile(tarfile.TarInfo(name), io.BytesIO())
    archives = [made.getvalue()] if "\0" not in name else []
    for content in [*archives, zipped({name.replace("\0", "\x01"): "1"})]:
        with pytest.raises(DataError) as caught:
            unpack(packed(tmp_path, content), "", tmp_path / "out")
        assert str(caught.value).isprintable()
        assert not (tmp_path / "out").exists()


def test_a_zip_that_says_less_than_it_holds(tmp_path: Path) -> None:
    content = bytearray(zipped({"x": bytes(100_000)}))
    place = content.rindex(b"PK\x01\x02") + 24
    content[place : place + 4] = struct.pack("<I", 10)
    with pytest.raises(DataError):
        unpack(packed(tmp_path, bytes(content)), "", tmp_path / "out")


def test_files_that_lie_over_each_other_in_a_zip_count_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacking, "_SMALL", 10**5)
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as opened:
        opened.writestr("x", bytes(90_000))
        first = opened.infolist()[0]
        for number in range(20):
            other = zipfile.ZipInfo(f"y{number}")
            for name in ("compress_type", "CRC", "compress_size", "file_size", "header_offset", "flag_bits"):
                setattr(other, name, getattr(first, name))
            opened.filelist.append(other)
        opened._didModify = True
    with pytest.raises(DataError, match="plausible"):
        unpack(packed(tmp_path, made.getvalue()), "", tmp_path / "out")


def test_an_address_that_is_none() -> None:
    for url in ("file:///etc/passwd", "http://", "http://\u0430.example/", "jar:x", ""):
        with pytest.raises(Unreachable):
            check_address(url)
