"""The ending of an output file chooses the format, or the file is refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.cli.output import chosen_format, emit, table
from harness.errors import FileError, UserError


@pytest.mark.parametrize(
    ("style", "name", "expected"),
    [
        (None, None, "terminal"),
        ("latex", None, "latex"),
        (None, "t.json", "json"),
        (None, "t.tex", "latex"),
        (None, "t.MD", "markdown"),
        ("json", "t.json", "json"),
        ("terminal", "t.txt", "plain"),
        ("csv", "t.dat", "csv"),
        ("json", "suite.schema.json", "json"),
        ("markdown", "table", "markdown"),
        (None, "t.html", "html"),
    ],
)
def test_the_format_of_a_file(style: str | None, name: str | None, expected: str) -> None:
    assert chosen_format(style, None if name is None else Path(name), page=True) == expected


@pytest.mark.parametrize(
    ("style", "name", "told"),
    [
        (None, "t.jsn", r"^--output t\.jsn: the ending chooses the format: \.txt \(plain\), .*; or give --format$"),
        (None, "table", "the ending chooses the format"),
        (None, "t.html", r"\.json \(json\); or give --format$"),
        ("csv", "t.tex", r"^--output t\.tex: the ending \.tex means latex, and csv is asked for$"),
        ("terminal", "t.json", "means json, and plain is asked for"),
        ("plain", "t.html", "means html"),
    ],
)
def test_an_ending_that_means_another_format_or_none_is_refused(style: str | None, name: str, told: str) -> None:
    with pytest.raises(UserError, match=told):
        chosen_format(style, Path(name))


@pytest.mark.parametrize("style", ["csv", "html"])
def test_two_formats_are_refused(style: str) -> None:
    with pytest.raises(UserError, match=f"^--json and {style} are two formats: leave one out$"):
        chosen_format(style, None, json=True, page=True)
    assert chosen_format("json", None, json=True) == "json"


def test_a_file_that_is_written_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    emit("a table\n", tmp_path / "t.md")
    assert capsys.readouterr().out == f"{tmp_path}/t.md\n"
    emit("a table\n")
    assert capsys.readouterr().out == (tmp_path / "t.md").read_text() == "a table\n"


def test_a_file_in_the_place_of_a_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    with pytest.raises(FileError, match=rf"^cannot write {tmp_path}/a/b: {tmp_path}/a is a file, and not a folder$"):
        emit("text", tmp_path / "a" / "b")


def test_a_link_and_a_pipe_stay_what_they_are(tmp_path: Path) -> None:
    """They were replaced by a file: as root, ``-o /dev/null`` too."""
    (tmp_path / "paper").mkdir()
    link, pipe = tmp_path / "table.tex", tmp_path / "pipe"
    link.symlink_to(tmp_path / "paper" / "table.tex")
    emit("a table\n", link)
    assert link.is_symlink()
    assert (tmp_path / "paper" / "table.tex").read_text() == "a table\n"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        emit("a table\n", pipe)
        assert os.read(reader, 100) == b"a table\n"
    finally:
        os.close(reader)
    assert pipe.is_fifo()


def test_a_table_is_aligned_and_nothing_of_it_is_cut() -> None:
    lines = table(("name", "count"), [("a", "1"), ("long name", "1000")], {1})
    assert lines == ["name       count", "a              1", "long name   1000"]
