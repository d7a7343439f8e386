"""Meta-tests: what there is in the code has a docstring, a place in the reference, and a test."""

from __future__ import annotations

import inspect
import re

import pytest
from docs_kit import ROOT
from typer.testing import CliRunner

import harness
import harness.graphs
import harness.nn
from harness import hooks
from harness.cli.main import app
from harness.reference import deviations, headline
from harness.reference.api import home, names
from harness.reference.commands import WIDTH, anchor, commands
from harness.reference.differences import PLURALS
from harness.reference.markdown import docstring, escaped, table
from harness.reference.pages import generated
from harness.reference.syntax import find
from harness.registry.index import load_catalog
from harness.suite.files import installed_suites
from harness.suite.schema import json_schema

CATALOG = load_catalog()
PAGES = generated(CATALOG, ROOT)
ENTRIES = [entry for entry in CATALOG if entry.plugin == "built-in"]
CITATION = re.compile(r"\b(?:19|20)\d\d\b")
OWN = {
    *("environment/base", "environment/domain", "environment/random", "environment/scaffold", "environment/size"),
    *("environment/kmeans", "analysis/runtime", "analysis/sensitivity"),
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
def test_each_hook_is_documented_with_its_signature_and_tested(name: str) -> None:
    given = inspect.signature(getattr(hooks, name))
    page = PAGES["reference/hooks.md"]
    assert f"## {name}\n\n```python\n{name}{given}\n```".replace("'", "") in page
    assert inspect.getdoc(getattr(hooks, name))
    implemented = re.compile(rf"@hookimpl\s+def {name}\(")
    assert any(implemented.search(path.read_text(encoding="utf-8")) for path in (ROOT / "tests").rglob("*.py"))


# The authors' API


@pytest.mark.parametrize("name", names())
def test_each_name_of_the_api_has_a_docstring_and_a_place(name: str) -> None:
    assert find(home(name), name).doc
    places = [page for address, page in PAGES.items() if f"## {name} {{ #{name} }}" in page and "/api/" in address]
    assert len(places) == 1
    assert f"#{name})" in PAGES["reference/api/index.md"]


def test_every_public_name_is_an_api_name() -> None:
    assert set(names()) == {*harness.__all__, *harness.graphs.__all__, *harness.nn.__all__} - {"__version__"}


def test_signatures_are_those_of_the_objects() -> None:
    """Read from the source, they say what Python says."""
    for name in ("hparam", "upstream", "did_you_mean", "cache_root"):
        given = inspect.signature(getattr(harness, name))
        shown = section(next(page for page in PAGES.values() if f"{{ #{name} }}" in page), name)
        assert set(re.findall(r"(\w+): ", shown.partition("```\n")[0])) == set(given.parameters), name


# Components


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: f"{entry.kind}/{entry.name}")
def test_each_component_has_a_docstring_with_a_citation_and_a_place(entry) -> None:
    assert headline(entry)
    assert entry.doc.strip()
    cited = CITATION.search(headline(entry) + entry.doc) or f"{entry.kind}/{entry.name}" in OWN
    assert cited, "name the paper and its year, or add it to OWN where there is none"
    told = section(PAGES[f"reference/components/{PLURALS[entry.kind]}.md"], entry.name)
    for declared in entry.hparams.values():
        assert re.search(rf"^\| `{declared.name}` \| .*`{re.escape(declared.type)}", told, re.MULTILINE)
        assert all(
            f"`{str(value).lower() if isinstance(value, bool) else value}`" in told for value in declared.search or ()
        )
    for row in deviations(entry):
        assert escaped(row["ours"]) in told


def test_own_components_are_there() -> None:
    assert {f"{entry.kind}/{entry.name}" for entry in ENTRIES} >= OWN


# Suites


def test_every_key_of_the_suite_language_is_explained() -> None:
    schema = json_schema(CATALOG)
    page = PAGES["reference/suite.md"]
    names = ("method", "model", "train", "select", "report", "cluster")
    for properties in (each["properties"] for each in [schema, *(schema["$defs"][name] for name in names)]):
        for name, each in properties.items():
            assert each.get("description"), name
            assert f"| `{name}` | " in page
    assert all(f"`suites/{name}.yaml`" in page for name in installed_suites())


# Commands


@pytest.mark.parametrize("name", [name for name, _ in commands()])
def test_each_command_is_documented_with_its_help(name: str) -> None:
    words = [*name.split()[1:], "--help"]
    printed = CliRunner().invoke(app, words, prog_name="bench", terminal_width=WIDTH, max_content_width=WIDTH)
    assert printed.exit_code == 0
    shown = section(PAGES["reference/cli.md"], anchor(name))
    assert printed.output.strip() in shown
    assert "\n  " in printed.output.partition("\n\n")[2]


def test_every_command_and_option_has_a_help() -> None:
    for name, context in commands():
        assert context.command.help, name
        silent = [each.name for each in context.command.params if not getattr(each, "help", None)]
        assert not silent, name


# Markdown


def test_a_docstring_becomes_markdown() -> None:
    text = """Say :func:`harness.hparam` and :class:`~a.B` of ``N < 2``, x < 3.

        loss = a * b

    Args:
        one, two: both,
            on two lines.

    Raises:
        UserError: never.
    """
    told = docstring(text, {"hparam": "x.md#hparam"})
    assert told == (
        "Say [`harness.hparam`](x.md#hparam) and `B` of ``N < 2``, x \\< 3.\n\n    loss = a * b\n\n"
        "**Arguments**\n\n- `one`, `two`: both,\n  on two lines.\n\n**Raises**\n\n- `UserError`: never."
    )


def test_bars_do_not_break_a_table() -> None:
    assert table(["a", "b"], [[escaped("x | y"), escaped("`p | q`")]]).splitlines()[2] == "| x \\| y | `p \\| q` |"
