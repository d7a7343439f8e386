"""Paths in a suite mean the same from every folder, and enter no key."""

from __future__ import annotations

from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest

from harness.cli.options import component
from harness.hparams import HParam
from harness.plan.components import Components
from harness.registry.catalog import Catalog, Entry
from harness.suite import find_suite
from harness.suite.components import located
from harness.suite.layers import Decision
from harness.suite.spec import ComponentSpec
from harness.suite.tree import Leaf, Place

HPARAMS = {name: HParam(name, kind, None) for name, kind in (("code", "str"), ("file", "str"), ("more", "list[str]"))}
TRAITS = {"names_code": ["code"], "names_files": ["file", "more"]}
ENTRY = Entry("dataset", "made", "m", "Made", "f", "p", "0", HPARAMS, traits=TRAITS)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a suite, with a file beside it, and one of that name in another folder."""
    for name in ("mine", "other"):
        (tmp_path / name / "rows").mkdir(parents=True)
        (tmp_path / name / "a.csv").touch()
    return tmp_path / "mine"


def absolute(suite: Path | str, line: int = 1, /, **values: Any) -> dict[str, Any]:
    place = Place(str(suite), line)
    return located(ENTRY, values, {name: Decision(Leaf(None, place), place) for name in values})


def test_code_starts_at_the_suite_s_folder_whatever_is_in_the_current_one(folder):
    with chdir(folder.parent / "other"):
        assert absolute(folder / "s.yaml", code="b.py:rings")["code"] == f"{folder}/b.py:rings"
        assert absolute("../mine/s.yaml", code="./b.py:rings")["code"] == f"{folder}/b.py:rings"
        assert absolute(folder / "s.yaml", code="/x/b.py:rings")["code"] == "/x/b.py:rings"
        assert absolute(folder / "s.yaml", code="torch_geometric.datasets:TUDataset")["code"][:15] == "torch_geometric"
        assert absolute("--set datasets.A.code=b.py:f", 0, code="b.py:f")["code"] == f"{folder.parent}/other/b.py:f"


def test_a_suite_behind_a_link_is_the_file_that_the_link_means(folder):
    """Code of the link's folder was taken, though runs are told apart by the file behind the link."""
    suite = folder / "s.yaml"
    suite.touch()
    (folder.parent / "other/link.yaml").symlink_to(suite)
    (folder.parent / "linked").symlink_to(folder)
    with chdir(folder.parent / "other"):
        assert find_suite("link.yaml") == find_suite("../linked/s.yaml") == suite
        assert find_suite("../mine/s.yaml") == Path("../mine/s.yaml"), "told as it was typed"


def test_data_beside_the_suite_is_taken_and_all_other_goes_by_the_data_folder(folder):
    with chdir(folder.parent / "other"):
        found = absolute(folder / "s.yaml", file="a.csv", more=["rows", "b.csv"])
        assert found == {"file": f"{folder}/a.csv", "more": [f"{folder}/rows", "b.csv"]}
        assert absolute(folder / "s.yaml", file="", more=[]) == {"file": "", "more": []}
        assert absolute(folder / "s.yaml", file="x" * 5000)["file"] == "x" * 5000


def test_what_a_command_names_starts_at_the_current_folder(folder):
    with chdir(folder):
        found = component(Catalog([ENTRY]), "dataset", "made", ["file=a.csv", "code=b.py:rings", "more=[c.csv]"])
    assert found.params == {"file": f"{folder}/a.csv", "code": f"{folder}/b.py:rings", "more": ["c.csv"]}


def test_keys_have_the_last_part_of_a_path():
    def key(**params: Any) -> dict[str, Any]:
        return Components(Catalog([ENTRY])).identity(ComponentSpec("dataset", "made", params))["params"]

    assert key(code="/x/b.py:rings", file="/y/a.csv", more=["/x/c", "d"]) == key(
        code="/elsewhere/b.py:rings", file="a.csv", more=["c", "/z/d"]
    )
    assert key(code="/x/b.py:rings") != key(code="/x/b.py:squares")
