"""Fetching: resumed, checked, alone, and never half a file under its final name."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from web_kit import CONTENT, Page, Site, Story, content, left, refused, sha256, wanted

from harness.downloads import transfer
from harness.downloads.fetch import fetch
from harness.errors import DataError, DiskFullError, UserError
from harness.safe_io import size_text

ROOT = Path(__file__).resolve().parents[3]


def test_a_file_comes_whole_and_leaves_nothing_else(site: Site, tmp_path: Path) -> None:
    download = wanted(site.url("f", Page()), size=len(CONTENT), sha256=sha256(CONTENT))
    assert fetch(download, tmp_path, Story())
    assert content(tmp_path) == CONTENT
    assert left(tmp_path) == {"set/file.csv"}
    assert not fetch(download, tmp_path, Story())
    assert len(site.asked) == 1


def test_a_transfer_that_breaks_off_goes_on_where_it_ended(site: Site, tmp_path: Path) -> None:
    url = site.url("f", Page(cuts=[100_000, 200_000]))
    story = Story()
    fetch(wanted(url, sha256=sha256(CONTENT)), tmp_path, story)
    assert content(tmp_path) == CONTENT
    assert [header for _, header in site.asked] == [None, "bytes=98304-", "bytes=294912-"]
    assert story.starts == ["0", "98.3 kB", "295 kB"]
    assert "trying again" in story.texts[1]


def test_progress_sets_the_count_of_attempts_back(site: Site, tmp_path: Path) -> None:
    url = site.url("f", Page(cuts=[10_000] * 8))
    fetch(wanted(url), tmp_path, Story())
    assert content(tmp_path) == CONTENT
    assert len(site.asked) == 9 > transfer._ATTEMPTS


def test_a_later_fetch_goes_on_with_the_part(site: Site, tmp_path: Path) -> None:
    url = site.url("f", Page(cuts=[100_000, 0, 0, 0]))
    told = refused(wanted(url), tmp_path, url, "98.3 kB are kept")
    assert "early" in told
    assert "set/file.csv.part" in left(tmp_path)
    site.pages["f"].cuts.clear()
    site.asked.clear()
    fetch(wanted(url), tmp_path, Story())
    assert content(tmp_path) == CONTENT
    assert site.asked == [("f", "bytes=98304-")]
    assert left(tmp_path) == {"set/file.csv"}


@pytest.mark.parametrize("etag", ['"two"', None], ids=["another tag", "no tag"])
def test_another_file_at_the_address_is_fetched_from_its_start(site: Site, tmp_path: Path, etag: str | None) -> None:
    url = site.url("f", Page(cuts=[100_000, 0, 0, 0], etag='"one"' if etag else None))
    assert ("are kept" in refused(wanted(url), tmp_path)) == bool(etag)
    site.pages["f"] = Page(content=b"new" * 100_000, etag=etag)
    fetch(wanted(url), tmp_path, Story())
    assert content(tmp_path) == b"new" * 100_000


def test_a_server_that_ignores_ranges_sends_the_whole_file(site: Site, tmp_path: Path) -> None:
    url = site.url("f", Page(cuts=[100_000], ranges=False))
    story = Story()
    fetch(wanted(url, sha256=sha256(CONTENT)), tmp_path, story)
    assert content(tmp_path) == CONTENT
    assert story.starts == ["0", "0"]


def test_a_server_that_always_breaks_off_is_given_up(site: Site, tmp_path: Path) -> None:
    url = site.url("f", Page(cuts=[100_000] * 50, ranges=False))
    refused(wanted(url), tmp_path, "early")
    assert len(site.asked) < 10


def test_a_part_that_is_longer_than_the_file_is_dropped(site: Site, tmp_path: Path) -> None:
    url = site.url("f", Page(cuts=[400_000, 0, 0, 0], etag=None))
    refused(wanted(url), tmp_path)
    site.pages["f"] = Page(content=CONTENT[:1000], etag=None)
    fetch(wanted(url), tmp_path, Story())
    assert content(tmp_path) == CONTENT[:1000]


def test_a_wrong_digest_is_refused_and_forgotten(site: Site, tmp_path: Path) -> None:
    url = site.url("f", Page())
    refused(wanted(url, sha256="0" * 64), tmp_path, sha256(CONTENT), "0" * 64, url)
    assert left(tmp_path) == set()


@pytest.mark.parametrize("length", [True, False])
def test_a_wrong_size_is_refused(site: Site, tmp_path: Path, length: bool) -> None:
    url = site.url("f", Page(length=length))
    refused(wanted(url, size=1000), tmp_path, "1000")


def test_an_empty_file_and_a_web_page_are_refused(site: Site, tmp_path: Path) -> None:
    refused(wanted(site.url("empty", Page(content=b""))), tmp_path, "empty file")
    page = Page(content=b"<html>log in</html>", headers={"Content-Type": "text/html; charset=utf-8"})
    refused(wanted(site.url("login", page)), tmp_path, "web page")


def test_a_missing_address_is_not_tried_again(site: Site, tmp_path: Path) -> None:
    url = site.url("nothing")
    refused(wanted(url, how="Ask the authors."), tmp_path, "404", url, "Ask the authors.")
    assert len(site.asked) == 1


def test_a_busy_server_is_tried_again(site: Site, tmp_path: Path) -> None:
    url = site.url("f", Page(status=[503, 500]))
    assert fetch(wanted(url), tmp_path, Story())
    assert len(site.asked) == 3


def test_a_server_that_falls_silent(site: Site, tmp_path: Path) -> None:
    url = site.url("f", Page(stall=1.5))
    refused(wanted(url), tmp_path, "timed out")


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    site = Site()
    url = site.url("f")
    site.close()
    refused(wanted(url), tmp_path, url, "connection")


def test_no_network_names_the_place_and_the_address(tmp_path: Path) -> None:
    url = "http://no-such-host.invalid/f.csv"
    refused(wanted(url), tmp_path, url, "no-such-host.invalid failed")


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "ftp://127.0.0.1/f",
        "data:text/plain,x",
        "http:///f",
        "http://[::1/f",
        "f.csv",
    ],
)
def test_other_addresses_are_refused(tmp_path: Path, url: str) -> None:
    refused(wanted(url), tmp_path, url)


def test_offline_and_by_hand_use_no_network(site: Site, tmp_path: Path) -> None:
    url = site.url("f", Page())
    with pytest.raises(DataError) as caught:
        fetch(wanted(url), tmp_path, Story(), offline=True)
    for text in ("--offline", url, str(tmp_path / "set" / "file.csv")):
        assert text in str(caught.value)
    refused(wanted(None, how="Sign in at example.org."), tmp_path, "Sign in at example.org.")
    assert not site.asked
    assert left(tmp_path) == set()


def test_ctrl_c_keeps_what_has_arrived(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    url = site.url("f", Page(cuts=[100_000]))
    with monkeypatch.context() as patch:
        patch.setattr("harness.downloads.transfer.time.sleep", interrupt)
        with pytest.raises(KeyboardInterrupt):
            fetch(wanted(url), tmp_path, Story())
    kept = (tmp_path / "set" / "file.csv.part").stat().st_size
    assert left(tmp_path) == {"set/file.csv.part", "set/file.csv.part.json"}
    story = Story()
    fetch(wanted(url), tmp_path, story)
    assert content(tmp_path) == CONTENT
    assert story.starts == [size_text(kept)]


def test_several_fetches_at_once_fetch_once(site: Site, tmp_path: Path) -> None:
    url = site.url("f", Page(stall=0.3))
    code = (
        "import sys; from pathlib import Path; from harness.data import Download\n"
        "from harness.downloads.fetch import fetch\n"
        "print(fetch(Download('set/file.csv', sys.argv[1]), Path(sys.argv[2]), lambda text: None))"
    )
    words = [sys.executable, "-c", code, url, str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    both = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment) for _ in range(3)]
    told = sorted(process.communicate(timeout=60)[0].strip() for process in both)
    assert told == ["False", "False", "True"]
    assert len(site.asked) == 1
    assert (tmp_path / "set" / "file.csv").read_bytes() == CONTENT
    assert left(tmp_path) == {"set/file.csv"}


def test_a_killed_fetch_is_no_obstacle(site: Site, tmp_path: Path) -> None:
    url = site.url("f", Page(stall=30))
    code = (
        "import sys; from pathlib import Path; from harness.data import Download\n"
        "from harness.downloads.fetch import fetch\n"
        "fetch(Download('set/file.csv', sys.argv[1]), Path(sys.argv[2]), lambda text: None)"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen([sys.executable, "-c", code, url, str(tmp_path)], env=environment)
    part = tmp_path / "set" / "file.csv.part"
    for _ in range(600):
        if part.exists() and part.stat().st_size > 0:
            break
        threading.Event().wait(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "set" / "file.csv").exists()
    site.pages["f"].stall = 0
    fetch(wanted(url), tmp_path, Story())
    assert content(tmp_path) == CONTENT
    assert left(tmp_path) == {"set/file.csv"}


class Full:
    """A file on a disk that is full after so many bytes."""

    def __init__(self, stream: object, room: int) -> None:
        self._stream, self._room = stream, room

    def write(self, block: bytes) -> None:
        if len(block) > self._room:
            raise OSError(errno.ENOSPC, "No space left on device")
        self._room -= len(block)
        self._stream.write(block)  # type: ignore[attr-defined]

    def __enter__(self) -> Full:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()  # type: ignore[attr-defined]


def test_a_full_disk_is_told_once_and_the_part_is_kept(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, opened = site.url("f", Page()), Path.open

    def open_full(path: Path, mode: str = "r", *more: object, **named: object) -> object:
        stream = opened(path, mode, *more, **named)  # type: ignore[call-overload]
        return Full(stream, 200_000) if path.suffix == ".part" and mode == "wb" else stream

    monkeypatch.setattr(Path, "open", open_full)
    with pytest.raises(DiskFullError, match="the disk is full: cannot write") as caught:
        fetch(wanted(url), tmp_path, Story())
    assert caught.value.exit_code == 2
    assert len(site.asked) == 1
    monkeypatch.setattr(Path, "open", opened)
    fetch(wanted(url), tmp_path, Story())
    assert content(tmp_path) == CONTENT
    assert site.asked[1][1] is not None


def test_a_folder_that_cannot_be_written(site: Site, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"cannot write .*--data-dir"):
        fetch(wanted(site.url("f", Page())), tmp_path / "file", Story())
    assert not site.asked


def test_what_lies_there_is_not_overwritten(site: Site, tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    target = tmp_path / "set" / "file.csv"
    target.write_bytes(b"")
    url = site.url("f", Page())
    with pytest.raises(DataError, match="delete it"):
        fetch(wanted(url), tmp_path, Story())
    target.write_bytes(b"mine")
    with pytest.raises(DataError, match="delete it"):
        fetch(wanted(url, size=len(CONTENT)), tmp_path, Story())
    assert not fetch(wanted(url), tmp_path, Story())
    with pytest.raises(DataError, match="folder is expected"):
        fetch(wanted(url, unpack=""), tmp_path, Story())
    target.unlink()
    target.mkdir()
    with pytest.raises(DataError, match="file is expected"):
        fetch(wanted(url), tmp_path, Story())
    assert not site.asked


def test_the_mark_beside_a_part_may_be_damaged(site: Site, tmp_path: Path) -> None:
    url = site.url("f", Page(cuts=[100_000, 0, 0, 0]))
    refused(wanted(url), tmp_path)
    (tmp_path / "set" / "file.csv.part.json").write_text("{")
    fetch(wanted(url), tmp_path, Story())
    assert content(tmp_path) == CONTENT


@pytest.mark.parametrize("target", ["file:///etc/hostname", "ftp://127.0.0.1/x", "data:,x", "http://", "round"])
def test_a_redirect_leads_to_the_web_and_not_in_a_circle(site: Site, tmp_path: Path, target: str) -> None:
    refused(wanted(site.url("round", Page(leads_to=site.url("round") if target == "round" else target))), tmp_path)
    moved = site.url("moved", Page(leads_to=site.url("f", Page())))
    fetch(wanted(moved), tmp_path, Story())
    assert content(tmp_path) == CONTENT


def test_what_a_server_says_of_itself_goes_nowhere(site: Site, tmp_path: Path) -> None:
    fetch(wanted(site.url("x", Page(etag=None, headers={"Last-Modified": "\x1b[31m"}, cuts=[100]))), tmp_path, Story())
    assert content(tmp_path) == CONTENT
