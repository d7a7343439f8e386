"""What is there of a dataset's files, and checking them."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path

import pytest
from web_kit import sha256

from harness import DataError, Dataset, Declaration, Download, Features, Task
from harness.downloads.files import DataState, Verdict, advised, command, state_of, survey, verify
from harness.registry.catalog import Catalog
from harness.registry.index import load_catalog

FILES = ("set/a.csv", "set/b.csv.gz")


class Paper(Dataset):
    """Reads two files."""

    name = "paper"
    what: tuple[Download, ...] = ()

    def declare(self, data_dir: Path | None) -> Declaration:
        assert data_dir is not None
        if (data_dir / FILES[0]).read_bytes() == b"foreign":
            raise DataError("a.csv: not ours")
        return Declaration(Task("binary", 2), Features("numeric", (1,)))

    def files(self, data_dir: Path | None) -> list[Path]:
        assert data_dir is not None
        paths = [data_dir / name for name in FILES]
        for path in paths:
            if not path.is_file():
                raise DataError(f"missing data file: {path}")
        return paths

    def downloads(self, data_dir: Path | None) -> Sequence[Download]:  # noqa: ARG002
        return self.what


def paper(*downloads: Download) -> Paper:
    made = Paper()
    made.what = downloads
    return made


def fill(root: Path, a: bytes = b"1", b: bytes = gzip.compress(b"2" * 1000)) -> None:
    for name, content in zip(FILES, (a, b), strict=True):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)


def problems(verdict: Verdict) -> str:
    assert verdict.problems
    return "\n".join(verdict.problems)


def test_states(tmp_path: Path) -> None:
    download = Download("set", "http://example.org/set.zip", unpack="")
    missing = state_of(paper(download), {}, tmp_path)
    assert (missing.state, missing.fetchable) == ("missing", True)
    assert str(tmp_path / FILES[0]) in missing.reason
    assert not state_of(paper(Download("set")), {}, tmp_path).fetchable
    assert state_of(paper(), {}, tmp_path).state == "own files"
    fill(tmp_path)
    present = state_of(paper(download), {}, tmp_path)
    assert (present.state, len(present.files)) == ("present", 2)
    assert present.size == sum((tmp_path / name).stat().st_size for name in FILES)


def test_every_shipped_dataset_is_surveyed(tmp_path: Path) -> None:
    states = list(survey(load_catalog(), tmp_path))
    assert {state.state for state in states} <= {"generated", "missing", "own files"}
    listed = [(state.name, *state.params.values()) for state in states]
    assert len(set(listed)) == len(listed)
    assert ("ogb", "hiv") in listed
    assert all(state.downloads for state in states if state.state == "missing")


def test_a_plugin_that_fails_is_told_and_hides_no_other(tmp_path: Path) -> None:
    plugin = tmp_path / "faulty.py"
    plugin.write_text(
        "from harness import Dataset, hookimpl\n\n\nclass Faulty(Dataset):\n    '''Fails.'''\n\n    name = 'faulty'\n\n"
        "    def files(self, data_dir):\n        raise RuntimeError('no')\n\n\n"
        "@hookimpl\ndef bench_register(register):\n    register(Faulty)\n"
    )
    catalog: Catalog = load_catalog([plugin])
    found = {state.name: state for state in survey(catalog, tmp_path)}
    assert found["faulty"] == DataState("faulty", {}, "faulty", reason="RuntimeError: no")
    assert found["spmotif"].state == "generated"


def test_sound_files_without_digests(tmp_path: Path) -> None:
    fill(tmp_path)
    verdict = verify(paper(), {}, tmp_path)
    assert not verdict.problems
    assert set(verdict.files.values()) == {""}


def test_missing_files_are_a_problem(tmp_path: Path) -> None:
    assert FILES[0] in problems(verify(paper(), {}, tmp_path))


def test_empty_truncated_and_foreign_files_are_problems(tmp_path: Path) -> None:
    fill(tmp_path, a=b"")
    assert "empty" in problems(verify(paper(), {}, tmp_path))
    fill(tmp_path, b=gzip.compress(bytes(range(256)) * 50)[:-20])
    assert "truncated or damaged" in problems(verify(paper(), {}, tmp_path))
    fill(tmp_path, a=b"foreign")
    assert "not ours" in problems(verify(paper(), {}, tmp_path))


def test_digests_that_are_promised_or_tested(tmp_path: Path) -> None:
    fill(tmp_path)
    digest = sha256(b"1")
    assert verify(paper(Download(FILES[0], sha256=digest)), {}, tmp_path).files[str(tmp_path / FILES[0])] == "promised"
    assert (
        verify(paper(Download(FILES[0], tested={FILES[0]: digest})), {}, tmp_path).files[str(tmp_path / FILES[0])]
        == "tested"
    )
    for wrong in (Download(FILES[0], sha256="0" * 64), Download(FILES[0], tested={FILES[0]: "0" * 64})):
        told = problems(verify(paper(wrong), {}, tmp_path))
        assert str(tmp_path / FILES[0]) in told
        assert digest[:12] in told


def test_a_file_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path)

    def refuse(path: Path) -> str:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("harness.downloads.files.hash_file", refuse)
    assert "cannot be read: Permission denied" in problems(verify(paper(), {}, tmp_path))


def test_advice_names_the_command_and_the_folder(tmp_path: Path) -> None:
    download = Download("set", "http://example.org/set.zip", unpack="")
    told = advised(paper(download), {"of": ["a", "b c"]}, tmp_path, f"missing: {tmp_path / 'set'}\nby hand: so")
    assert told.splitlines() == [
        f"missing: {tmp_path / 'set'}",
        f'`bench data fetch paper --set \'of=["a", "b c"]\' --data-dir {tmp_path}` fetches it',
        "by hand: so",
        f"the data folder is {tmp_path}; --data-dir FOLDER or BENCH_DATA name another",
    ]
    assert "tells how to get it" in advised(paper(Download("set")), {}, tmp_path, "missing")
    fill(tmp_path)
    assert advised(paper(download), {}, tmp_path, "a.csv: not ours") == "a.csv: not ours"
    assert advised(paper(download), {}, None, "missing") == "missing"


def test_a_command_line_is_quoted() -> None:
    assert command("fetch", "ogb", {"dataset": "bace"}) == "bench data fetch ogb --set dataset=bace"
    assert command("verify", "x", {"path": "a b", "n": 3}) == "bench data verify x --set 'path=a b' --set n=3"


def test_a_command_line_names_another_folder_than_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert command("fetch", "ogb", {}, tmp_path) == f"bench data fetch ogb --data-dir {tmp_path}"
    monkeypatch.setenv("BENCH_DATA", str(tmp_path))
    assert command("fetch", "ogb", {}, tmp_path) == "bench data fetch ogb"
