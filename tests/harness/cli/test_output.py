"""The ending of an output file chooses the format, or the file is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cli.output import chosen_format, require_folder_name
from harness.errors import UserError


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


def test_a_file_s_name_for_a_folder_is_refused(tmp_path: Path) -> None:
    """``bench export -o out.json`` made a folder of that name."""
    for name in ("out.json", "out.CSV", "out.parquet", "run.tar.gz"):
        with pytest.raises(UserError, match="this is the name of a file"):
            require_folder_name(tmp_path / name, "--output")
    (tmp_path / "there.json").mkdir()
    for name in ("there.json", "results", "results-v1.2"):
        require_folder_name(tmp_path / name, "--output")
