"""Fetching what is packed: archives become folders, gzip files become files, and damaged ones leave nothing."""

from __future__ import annotations

import gzip
import random
from pathlib import Path

import pytest
from web_kit import CONTENT, Page, Site, Story, content, left, refused, sha256, zipped

from harness.data import Download
from harness.downloads.fetch import fetch


def test_an_archive_becomes_a_folder(site: Site, tmp_path: Path) -> None:
    archive = zipped({"bace/raw/x.csv": "1\n", "bace/y.csv": "2\n", "__MACOSX/bace/y.csv": "no", "readme": "no"})
    download = Download("ogbg_molbace", site.url("bace.zip", Page(content=archive)), unpack="bace")
    assert fetch(download, tmp_path, Story())
    assert left(tmp_path) == {"ogbg_molbace/raw/x.csv", "ogbg_molbace/y.csv"}


@pytest.mark.parametrize(
    ("name", "text"), [("bace/../../escaped", "leads out of its folder"), ("\0", "a file without a name")]
)
def test_an_archive_that_is_refused_leaves_nothing(site: Site, tmp_path: Path, name: str, text: str) -> None:
    page = Page(content=zipped({"bace/x": "1", name: "2"}))
    download = Download("below/ogbg_molbace", site.url("bace.zip", page), unpack="bace")
    refused(download, tmp_path / "data", text, download.url or "")
    assert {path.name for path in tmp_path.rglob("*")} == {"data", "below"}


def test_ctrl_c_while_unpacking_keeps_the_archive(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    download = Download("set", site.url("s.zip", Page(content=zipped({"a": "1", "b": "2"}))), unpack="")

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("harness.downloads.fetch._copy", interrupt)
        with pytest.raises(KeyboardInterrupt):
            fetch(download, tmp_path, Story())
    assert left(tmp_path) == {"set.part", "set.part.json"}
    assert fetch(download, tmp_path, Story())
    assert left(tmp_path) == {"set/a", "set/b"}
    assert len(site.asked) == 1


def test_a_gzip_file_is_unpacked(site: Site, tmp_path: Path) -> None:
    packed = gzip.compress(CONTENT)
    page = Page(content=packed)
    download = Download("set/file.csv", site.url("f.csv.gz", page), size=len(packed), sha256=sha256(packed))
    fetch(download, tmp_path, Story())
    assert content(tmp_path) == CONTENT
    assert left(tmp_path) == {"set/file.csv"}
    assert not fetch(download, tmp_path, Story())
    kept = Download("kept.csv.gz", site.url("f.csv.gz"))
    fetch(kept, tmp_path, Story())
    assert (tmp_path / "kept.csv.gz").read_bytes() == packed


def test_a_gzip_file_that_the_server_calls_an_encoding_is_kept_and_resumed_as_it_was_sent(
    site: Site, tmp_path: Path
) -> None:
    """It was unpacked on its way, then once more, and the rest was asked for from a wrong place."""
    packed = gzip.compress(random.Random(1).randbytes(200_000))
    page = Page(content=packed, headers={"Content-Encoding": "x-gzip"}, cuts=[100_000])
    digest = {"size": len(packed), "sha256": sha256(packed)}
    fetch(Download("set/file.csv", site.url("f.csv.gz", page), **digest), tmp_path, Story())
    assert content(tmp_path) == gzip.decompress(packed)
    assert [header for _, header in site.asked] == [None, "bytes=98304-"]
    plain = Page(content=gzip.compress(CONTENT), headers={"Content-Encoding": "gzip"})
    fetch(Download("plain.csv", site.url("plain.csv", plain)), tmp_path, Story())
    assert (tmp_path / "plain.csv").read_bytes() == CONTENT


@pytest.mark.parametrize("sent", [CONTENT, gzip.compress(CONTENT)[:-9]], ids=["not gzip", "truncated"])
def test_a_damaged_gzip_file_leaves_nothing(site: Site, tmp_path: Path, sent: bytes) -> None:
    download = Download("set/file.csv", site.url("f.csv.gz", Page(content=sent)))
    refused(download, tmp_path, "damaged")
    assert left(tmp_path) == set()
