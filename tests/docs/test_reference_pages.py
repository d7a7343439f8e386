"""Meta-tests: what there is in the code has a docstring, a place in the reference, and a test."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import griffe
import pytest
import site_hooks
from docs_kit import ROOT, command_line

from harness import hooks
from harness.reference import components, deviations, headline, suites
from harness.reference.components import PLURALS, escaped, prose, table
from harness.registry.index import load_catalog
from harness.suite.models import json_schema

CATALOG = load_catalog()
PAGES = components.pages(CATALOG)
SUITE_PAGE = suites.page(CATALOG)
SOURCE: Any = griffe.load("harness", search_paths=[ROOT], resolve_aliases=True)
ENTRIES = [entry for entry in CATALOG if entry.plugin == "built-in"]
CITATION = re.compile(r"\b(?:19|20)\d\d\b")
OWN = {
    *("environment/base", "environment/domain", "environment/random", "environment/scaffold", "environment/size"),
    *("environment/kmeans", "quantifier/oracle", "decorrelator/balanced-sampler"),
    *("analysis/curves", "analysis/runtime", "analysis/sensitivity"),
    *(f"tracker/{name}" for name in ("jsonl", "tensorboard", "mlflow", "wandb")),
}
"""Components that come from no paper."""


def section(page: str, anchor_name: str) -> str:
    """A section of a page, from its heading with this anchor to the next."""
    return page.partition(f"{{ #{anchor_name} }}\n")[2].partition("\n## ")[0]


# Hooks


def specifications() -> list[str]:
    return [name for name, value in vars(hooks).items() if hasattr(value, f"{hooks.PROJECT}_spec")]


@pytest.mark.parametrize("name", specifications())
def test_each_hook_is_documented_and_tested(name: str, site: Path) -> None:
    assert SOURCE["hooks"][name].docstring
    assert f'id="harness.hooks.{name}"' in read(site, "hooks")
    implemented = re.compile(rf"@hookimpl\s+def {name}\(")
    assert any(implemented.search(path.read_text(encoding="utf-8")) for path in (ROOT / "tests").rglob("*.py"))


# The authors' API


def read(site: Path, name: str) -> str:
    return (site / "reference" / f"{name}.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("module", site_hooks.API)
def test_each_name_of_the_api_has_a_docstring_and_a_place(module: str, site: Path) -> None:
    page = read(site, f"api/{module}")
    for name in site_hooks.api_names(module):
        assert SOURCE[f"{module}.{name}".removeprefix("harness.")].docstring, name
        assert f'id="{module}.{name}"' in page, name


def test_references_in_docstrings_become_links(site: Path) -> None:
    page = read(site, "api/harness")
    assert not re.search(r":(?:func|meth|class|attr|mod|data):<code>", page)
    assert re.search(r'<a class="[^"]*autorefs[^>]* href="#harness\.upstream">', page)


# Components


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: f"{entry.kind}/{entry.name}")
def test_each_component_has_a_docstring_with_a_citation_and_a_place(entry) -> None:
    assert headline(entry)
    assert entry.doc.strip()
    cited = CITATION.search(headline(entry) + entry.doc) or f"{entry.kind}/{entry.name}" in OWN
    assert cited, "name the paper and its year, or add it to OWN where there is none"
    told = section(PAGES[f"components/{PLURALS[entry.kind]}.md"], entry.name)
    for declared in entry.hparams.values():
        assert re.search(rf"^\| `{declared.name}` \| .*`{re.escape(declared.type)}", told, re.MULTILINE)
        assert all(
            f"`{str(value).lower() if isinstance(value, bool) else value}`" in told for value in declared.search or ()
        )
    for row in deviations(entry):
        assert escaped(row.ours) in told


def test_own_components_are_there() -> None:
    assert {f"{entry.kind}/{entry.name}" for entry in ENTRIES} >= OWN


# Suites


def test_every_key_of_the_suite_language_is_explained() -> None:
    schema = json_schema(CATALOG)
    page = SUITE_PAGE
    names = ("method", "model", "train", "select", "report", "cluster")
    for properties in (each["properties"] for each in [schema, *(schema["$defs"][name] for name in names)]):
        for name, each in properties.items():
            assert each.get("description"), name
            assert f"| `{name}` | " in page


# Commands


def every_command(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    yield name, command
    for word, inner in getattr(command, "commands", {}).items():
        yield from every_command(inner, f"{name} {word}")


COMMANDS = list(every_command(command_line(), "bench"))


@pytest.mark.parametrize(("name", "command"), COMMANDS, ids=[name for name, _ in COMMANDS])
def test_each_command_and_option_has_a_help_and_a_place(name: str, command: Any, site: Path) -> None:
    assert command.help
    assert not [parameter.name for parameter in command.params if not parameter.help]
    page = read(site, "cli")
    anchor = name.replace(" ", "-") if name != "bench" else "command-line"
    told = unescape(page.partition(f'id="{anchor}"')[2].partition(" id=")[0])
    assert all(option in told for parameter in command.params for option in parameter.opts if option[0] == "-")
    words = " ".join(re.sub(r"<.*?>", "", told).split())
    assert all(" ".join(parameter.help.replace("`", "").split()) in words for parameter in command.params)


@pytest.mark.parametrize(("name", "command"), COMMANDS, ids=[name for name, _ in COMMANDS])
def test_each_command_has_an_example_that_it_takes(name: str, command: Any) -> None:
    words = shlex.split(site_hooks.EXAMPLES[name])
    assert words[: name.count(" ") + 1] == name.split()
    if not hasattr(command, "commands"):
        command.make_context(name, words[name.count(" ") + 1 :])


# Markdown


def test_a_docstring_is_markdown_without_tags() -> None:
    assert prose("\nOf ``N < 2``, x < 3.\n\n    a < b\n") == "Of ``N < 2``, x \\< 3.\n\n    a < b"


def test_bars_do_not_break_a_table() -> None:
    assert table(["a", "b"], [[escaped("x | y"), escaped("`p | q`")]]).splitlines()[2] == "| x \\| y | `p \\| q` |"
