"""Deviations: the page in docs/ is what the components say, and both forms show every row."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.errors import UserError
from harness.hparams import HParam
from harness.reference import as_markdown, as_text, deviations, headline, renewed
from harness.reference.components import Deviation
from harness.registry.catalog import Catalog, Entry
from harness.registry.index import load_catalog
from harness.suite.settings import SECTIONS, TRAIN

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "deviations.md"
ROW = {"about": "a|b", "paper": "x_i * y", "public": "none's", "ours": "`a|b`", "switch": "mode: old"}
DEVIATION = Deviation(**ROW)
BUILT_IN = [entry for entry in load_catalog() if entry.plugin == "built-in"]
DEVIATING = [entry for entry in BUILT_IN if deviations(entry)]


@pytest.fixture
def entry(tmp_path: Path) -> Entry:
    file = tmp_path / "toy.py"
    file.write_text('"""Toy: an idea (Somebody, 2024).\\n\\nMore."""\n')
    (tmp_path / "toy.deviations.yaml").write_text(yaml.safe_dump([ROW]))
    hparams = {"mode": HParam("mode", "str", "new")}
    return Entry("baseline", "toy", "plugins.toy", "Toy", str(file), "built-in", "", hparams, "Says it.\n\nMore.")


def test_the_page_is_what_the_components_say() -> None:
    page = PAGE.read_text(encoding="utf-8")
    fresh = page == renewed(page, load_catalog())
    assert fresh, "the components' deviations have changed: run `make docs`"


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
    others = [replace(entry, name="other", plugin="theirs"), replace(entry, name="silent")]
    assert as_markdown(Catalog([entry, *others])) == as_markdown(Catalog([entry]))


def test_a_module_that_cannot_be_read_has_no_headline(entry: Entry, tmp_path: Path) -> None:
    assert headline(entry) == "Toy: an idea (Somebody, 2024)."
    assert headline(replace(entry, file=str(tmp_path / "gone.py"))) == ""
    (tmp_path / "toy.py").write_text("x = 1\n")
    assert headline(entry) == ""


def test_the_rows_are_those_of_the_file_that_bears_the_components_name(entry: Entry, tmp_path: Path) -> None:
    (tmp_path / "two_words.deviations.yaml").write_text("- {about: a, paper: b, public: c, ours: d}\n")
    assert deviations(entry) == [DEVIATION]
    found = deviations(replace(entry, name="two-words"))
    assert found == [Deviation("a", "b", "c", "d")]
    assert deviations(replace(entry, name="other")) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("about: a", "should be a valid array"),
        ("- a", "0: "),
        ("- {about: a, paper: b, public: c, our: d}", "0.ours: Field required"),
        ("- {about: a, paper: 1, public: c, ours: d}", "0.paper: Input should be a valid string"),
        ("- {about: 'a", "not plain YAML"),
    ],
)
def test_a_file_that_holds_no_rows_is_told(entry: Entry, tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "toy.deviations.yaml"
    path.write_text(text)
    with pytest.raises(UserError, match=re.escape(message)) as raised:
        deviations(entry)
    assert str(raised.value).startswith(str(path))


def test_the_file_on_the_page_for_authors_is_read(entry: Entry, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```yaml\n(- about: .+?)^```", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "my_way.deviations.yaml").write_text(block, encoding="utf-8")
    assert deviations(replace(entry, name="my-way"))


def test_each_file_of_deviations_belongs_to_a_component() -> None:
    files = {path.name for path in (ROOT / "plugins").rglob("*.deviations.yaml")}
    assert files == {f"{entry.name.replace('-', '_')}.deviations.yaml" for entry in DEVIATING}


def test_text_holds_every_part_that_is_not_empty() -> None:
    assert list(as_text([DEVIATION])) == [
        "  a|b",
        "    paper        x_i * y",
        "    public code  none's",
        "    ours         `a|b`",
        "    switch       mode: old",
    ]
    assert not any("switch" in line for line in as_text([replace(DEVIATION, switch="")]))


def settings(switch: str) -> dict[str, Any]:
    """The settings that a switch names, dotted; those without a value are None. Text in parentheses explains."""
    plain = re.sub(r"\s*\([^)]*\)", "", switch).replace(", or ", ", ")
    found: dict[str, Any] = {}
    for name, value in (yaml.safe_load("{" + plain + "}") or {}).items():
        found |= {f"{name}.{key}": item for key, item in value.items()} if isinstance(value, dict) else {name: value}
    return found


@pytest.mark.parametrize("entry", DEVIATING, ids=lambda entry: f"{entry.kind} {entry.name}")
def test_every_switch_names_settings_with_values_that_are_allowed_and_matter(entry: Entry) -> None:
    for row in deviations(entry):
        named = settings(row.switch)
        values = {**entry.defaults, **{name: value for name, value in named.items() if value is not None}}
        for name, value in named.items():
            head, _, rest = name.partition(".")
            declared = entry.hparams.get(name) or (TRAIN[rest] if head == "train" else None)
            if declared is None:
                assert (head in SECTIONS and rest) or name in ("bundle", "envs", "baseline"), name
            elif value not in (None, "WEIGHT"):
                declared.coerce(value)
                assert name not in entry.hparams or declared.is_active(values), f"{name} needs another setting"


@pytest.mark.parametrize("entry", DEVIATING, ids=lambda entry: f"{entry.kind} {entry.name}")
def test_every_row_says_something(entry: Entry) -> None:
    assert headline(entry).endswith((")", ").", "."))
    for row in deviations(entry):
        texts = (row.about, row.paper, row.public, row.ours)
        assert all(text.strip() for text in texts)
        assert not re.search(r"\s{2,}|/work|/home|TODO", " ".join(texts))


def test_methods_say_where_they_deviate() -> None:
    kinds = ("baseline", "decorrelator", "encoder", "quantifier")
    assert not [entry.name for entry in BUILT_IN if entry.kind in kinds and not deviations(entry)]
