"""Deviations: the page in docs/ is what the components say, and both forms show every row."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from harness.catalog import Catalog, Entry
from harness.errors import UserError
from harness.hparams import HParam
from harness.index import load_catalog
from harness.reference import MARKER, as_markdown, as_text, deviations, headline, main, renewed
from harness.suite.settings import SECTIONS, TRAIN

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "deviations.md"
ROW = {"about": "a|b", "paper": "x_i * y", "public": "none's", "ours": "`a|b`", "switch": "mode: old"}
BUILT_IN = [entry for entry in load_catalog() if entry.plugin == "built-in"]
DECLARING = [entry for entry in BUILT_IN if deviations(entry)]


@pytest.fixture
def entry(tmp_path: Path) -> Entry:
    file = tmp_path / "toy.py"
    file.write_text('"""Toy: an idea (Somebody, 2024).\\n\\nMore."""\n')
    hparams = {"mode": HParam("mode", "str", "new")}
    traits = {"deviations": [ROW]}
    return Entry(
        "baseline", "toy", "plugins.toy", "Toy", str(file), "built-in", "", hparams, "Says it.\n\nMore.", traits
    )


def test_the_page_is_what_the_components_say() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == renewed(page, load_catalog()), "the components have changed: run `make docs`"


def test_the_command_renews_a_page(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text(f"# Head\n\n{MARKER}\nstale\n", encoding="utf-8")
    main([str(path)])
    told = path.read_text(encoding="utf-8")
    assert told.startswith(f"# Head\n\n{MARKER}\n\n## Baselines\n")
    assert "stale" not in told


def test_a_page_without_a_marker_is_left_alone() -> None:
    with pytest.raises(UserError, match="no line"):
        renewed("# Head\n", Catalog([]))


def test_a_component_is_a_section_with_its_source_and_a_table(entry: Entry) -> None:
    assert as_markdown(Catalog([entry])) == (
        "## Baselines\n\n### toy\n\n[plugins/toy.py](../plugins/toy.py): Toy: an idea (Somebody, 2024).\n\nSays it.\n\n"
        "| | paper | public code | ours | switch |\n| --- | --- | --- | --- | --- |\n"
        "| a\\|b | x_i \\* y | none's | `a\\|b` | `mode: old` |\n"
    )


def test_others_components_and_those_without_rows_are_left_out(entry: Entry) -> None:
    others = [replace(entry, name="other", plugin="theirs"), replace(entry, name="silent", traits={})]
    assert as_markdown(Catalog([entry, *others])) == as_markdown(Catalog([entry]))


def test_a_module_that_cannot_be_read_has_no_headline(entry: Entry, tmp_path: Path) -> None:
    assert headline(entry) == "Toy: an idea (Somebody, 2024)."
    assert headline(replace(entry, file=str(tmp_path / "gone.py"))) == ""
    (tmp_path / "toy.py").write_text("x = 1\n")
    assert headline(entry) == ""


@pytest.mark.parametrize("width", [60, 80, 120])
def test_text_holds_every_word_within_the_width(width: int) -> None:
    for each in DECLARING:
        rows = deviations(each)
        lines = as_text(rows, width)
        assert max(map(len, lines)) <= width
        told = " ".join(" ".join(lines).split())
        for row in rows:
            for part in ("about", "paper", "public", "ours", "switch"):
                assert " ".join(row[part].split()) in told


def test_an_empty_part_has_no_line() -> None:
    assert not any("switch" in line for line in as_text([{**ROW, "switch": ""}], 80))


@pytest.mark.parametrize("entry", DECLARING, ids=lambda entry: f"{entry.kind} {entry.name}")
def test_every_switch_is_a_setting_with_a_value_that_is_allowed(entry: Entry) -> None:
    """A switch is YAML as a suite has it: hyperparameters of the component, or dotted settings of the suite."""
    for row in deviations(entry):
        for name, value in (yaml.safe_load("{" + row["switch"] + "}") or {}).items():
            head, dot, rest = name.partition(".")
            if name in entry.hparams:
                assert value == "WEIGHT" or entry.hparams[name].coerce(value) is not ...
            elif dot and head == "train":
                TRAIN[rest].coerce(value)
            else:
                assert (dot and head in SECTIONS) or name in ("bundle", "envs", "baseline"), name


@pytest.mark.parametrize("entry", DECLARING, ids=lambda entry: f"{entry.kind} {entry.name}")
def test_every_row_says_something(entry: Entry) -> None:
    assert headline(entry).endswith((")", ").", "."))
    for row in deviations(entry):
        assert all(row[part].strip() for part in ("about", "paper", "public", "ours"))
        assert not re.search(r"\s{2,}|/work|/home|TODO", " ".join(row.values()))


def test_methods_say_where_they_deviate() -> None:
    kinds = ("baseline", "decorrelator", "encoder", "quantifier")
    assert not [entry.name for entry in BUILT_IN if entry.kind in kinds and not deviations(entry)]
