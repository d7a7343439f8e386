"""The documentation's examples are valid, load, run, and name only what is there."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from docs_kit import MOLECULES, PAGES, ROOT, Block, Desk, blocks, command_line, prose, read

from harness.errors import SuiteError
from harness.registry.catalog import Catalog
from harness.registry.discovery import load_one
from harness.results.record import load_record
from harness.results.rows import RunResults
from harness.suite import Overrides
from harness.suite.files import shipped
from harness.suite.models import json_schema
from harness.testing import check_component

SUITES = [block for block in blocks("yaml") if not block.saved_as]
"""Those that a page saves as a file are run by the commands of that page."""
PLUGINS = [block for block in blocks("python") if block.is_plugin]
SPANS = re.compile(r"`([^`\n]+)`")


def page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def named(block: Block) -> str:
    return block.name


@pytest.mark.parametrize("block", SUITES, ids=named)
def test_every_suite_is_valid(block: Block, desk: Desk) -> None:
    suite = desk.load(desk.write(block.text))
    assert suite.rows


@pytest.mark.parametrize("block", PLUGINS, ids=named)
def test_every_plugin_file_registers_a_component(block: Block, desk: Desk) -> None:
    found = [entry for entry in desk.catalog if Path(entry.file) == desk.folder / block.file]
    assert found
    assert all(entry.doc for entry in found)
    assert len([line for line in block.text.splitlines() if line.strip()]) <= 40
    assert all(len(line) <= 120 for line in block.text.splitlines())


def test_every_plugin_file_conforms(desk: Desk) -> None:
    """The examples pass the kit that the page describes."""
    files = {desk.folder / block.file for block in PLUGINS}
    reports = [check_component(load_one(entry)) for entry in desk.catalog if Path(entry.file) in files]
    assert len(reports) >= len(files)
    assert not [report.text() for report in reports if not report.passed]


def test_every_python_block_parses() -> None:
    for block in blocks("python"):
        compile(block.text, block.name, "exec")


def test_every_other_block_is_what_it_says() -> None:
    for block in blocks("toml"):
        assert tomllib.loads(block.text), block.name
    for block in blocks("csv"):
        assert MOLECULES.startswith(block.text.splitlines()[0]), block.name
    known = {"python", "yaml", "console", "text", "toml", "csv"}
    assert not [block.name for page in PAGES for block in read(page) if block.language not in known]


def test_the_readme_method_becomes_a_row(desk: Desk) -> None:
    (block,) = [block for block in blocks("yaml") if block.page.name == "README.md" and "vrex.py" in block.text]
    results = desk.run(block.text, Overrides(seeds="1", epochs=1))
    assert value_of(results, "My V-REx") is not None
    assert {data.fingerprint for data in results.datasets} == {
        data.fingerprint
        for one in load_record()
        if one.results.suite == "recorded-small"
        for data in one.results.datasets
    }


def test_the_plugin_suite_runs(desk: Desk) -> None:
    (block,) = [block for block in SUITES if "neighbours.py" in block.text]
    results = desk.run(block.text, Overrides())
    missing = [method for method in results.methods if value_of(results, method) is None]
    assert not missing


def test_the_suite_of_a_table_of_molecules_runs(desk: Desk) -> None:
    """Ten lines; every baseline that both tables of the paper have, on a small table."""
    (block,) = [block for block in SUITES if "domain_column" in block.text]
    assert len(block.text.splitlines()) <= 10
    assert "EQuAD, Eqn. 7" in {row.method for row in desk.load(desk.write(block.text)).rows}
    small = Overrides(seeds="1", epochs=1, sets=("model.hidden=8", "model.layers=2"), methods=("[!E]*", "E[!Q]*"))
    results = desk.run(block.text, small)
    assert len(results.methods) == 15
    assert not [method for method in results.methods if value_of(results, method) is None]


def value_of(results: RunResults, method: str) -> float | None:
    found = [row.value for row in results.rows if row.method == method and row.split == "test"]
    return found[0] if found else None


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_commands_in_the_text_exist(path: Path) -> None:
    for span in SPANS.findall(prose(path)):
        words = span.split()
        if words[0] == "bench" and len(words) > 1 and words[1][0].isalpha():
            assert words[1] in command_line().commands, span
        if words[0] == "make" and len(words) > 1:
            assert re.search(rf"^{words[1]}:", page("Makefile"), re.MULTILINE), span


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_links_lead_somewhere(path: Path) -> None:
    """Between pages of the site, and to their headings, the site's build looks as well."""
    targets = [path.parent / target for target in re.findall(r"\]\((?!https?:)([^)#]+)", prose(path))]
    missing = [target for target in targets if not target.exists()]
    generated = (ROOT / "docs" / "reference").resolve()
    assert not [target for target in missing if generated not in target.resolve().parents]


def test_numbers_and_pictures_of_the_readme_are_those_of_the_repository(desk: Desk) -> None:
    results, readme = page("docs/results/table1.md") + page("docs/results/small.md"), page("README.md")
    numbers = re.findall(r"\d+\.\d+ ± \d+\.\d+", readme)
    assert len(numbers) >= 12
    differences = {
        "0.11 ± 0.19",
        "0.00 ± 0.00",
        "13.59 ± 4.09",
        "18.59 ± 4.53",
    }  # to the row of the README's own method
    assert not [number for number in numbers if number not in results and number not in differences]
    pictures = re.findall(r"!\[.*?\]\((.*?)\)", readme)
    assert pictures
    assert all((ROOT / picture).stat().st_size < 200_000 for picture in pictures)
    assert desk.load(ROOT / "benchmarks" / "recorded" / "screens.yaml").name == "screens"


def test_every_key_of_the_suite_language_is_documented() -> None:
    spans = {word for span in SPANS.findall(prose(ROOT / "docs/suites.md")) for word in re.split(r"[^\w/-]+", span)}
    schema = json_schema(Catalog([]))
    tables = [schema, *(schema["$defs"][name] for name in ("method", "model", "train", "select", "report"))]
    keys = {*shipped("bundles"), *shipped("protocols"), *(key for table in tables for key in table["properties"])}
    assert keys <= spans


def test_the_table_of_defaults_is_that_of_the_protocol() -> None:
    protocol = yaml.safe_load(page("harness/protocols/equad.yaml").replace("1e-3", "0.001"))
    rows = re.findall(r"^\| (`(?:model|train|select)\..*?) \|.*\| (.+?) \|$", page("docs/suites.md"), re.MULTILINE)
    told = {}
    for keys, values in rows:
        names = [key.rpartition(".")[2] for key in SPANS.findall(keys)]
        texts = [values] if len(names) == 1 else values.split(", ")
        section = keys.split(".")[0].strip("`")
        assert len(names) == len(texts)
        told |= {(section, name): yaml.safe_load(text.strip("`")) for name, text in zip(names, texts, strict=True)}
    declared = {(s, name): value for s in ("model", "train", "select") for name, value in protocol[s].items()}
    assert set(told) == set(declared)
    for key, value in told.items():
        assert float(value) == declared[key] if isinstance(declared[key], float) else value == declared[key]


def settings_of(protocol: str, family: str) -> dict[str, Any]:
    """A protocol's settings for a family of datasets, flat."""
    text = page(f"harness/protocols/{protocol}.yaml")
    tree = yaml.safe_load(re.sub(r"\b(\d)e-", r"\1.0e-", text))
    layers = [
        layer.get(section, {}) for section in ("model", "train") for layer in (tree, tree["families"].get(family, {}))
    ]
    merged = {key: value for layer in layers for key, value in layer.items()}
    return {**merged, "seeds": tree["seeds"], "backbone": merged["backbone"]["use"], **merged["backbone"]}


@pytest.mark.parametrize("protocol", shipped("protocols"))
def test_the_table_of_protocols_is_that_of_their_files(protocol: str) -> None:
    lines = page("docs/suites.md").partition("### Protocols")[2].partition("\n\nWeight decay")[0].splitlines()
    table = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    column = table[0].index(f"`{protocol}`")
    told = {row[0]: row[column] for row in table[2:]}
    families = [settings_of(protocol, family) for family in ("synthetic", "drugood")]

    def by_family(say: Callable[[dict[str, Any]], object]) -> str:
        return "; ".join(dict.fromkeys(str(say(settings)) for settings in families))

    first = families[0]
    warmup = by_family(lambda s: s["warmup"])
    assert told == {
        "backbone": by_family(lambda s: s["backbone"].upper()),
        "flavour": f"`{by_family(lambda s: s['flavour'])}`",
        "layers": by_family(lambda s: s["layers"]),
        "hidden": by_family(lambda s: s["hidden"]),
        "dropout": by_family(lambda s: f"{s['dropout']:g}"),
        "edge features": by_family(lambda s: "yes" if s["edge_features"] else "no"),
        "readout": by_family(lambda s: s["readout"]),
        "hidden layers of the head": by_family(lambda s: s["head_layers"]),
        "epochs": by_family(lambda s: s["epochs"]) + (", `ogb` 100" if protocol == "equad" else ""),
        "patience after warm-up": f"{first['patience']} after {warmup}" if first["patience"] else "none",
        "batch size": by_family(lambda s: s["batch_size"]) + (", full ones only" if first["drop_last"] else ""),
        "optimizer": optimizer(first),
        "environments per batch": str(first["groups_per_batch"] or "–"),
        "seeds": f"1–{len(first['seeds'])}",
    }


def optimizer(settings: dict[str, Any]) -> str:
    """The optimizer as the table has it."""
    name = {"adam": "Adam", "adamw": "AdamW"}[settings["optimizer"]]
    rate = f"{settings['lr']:.0e}".replace("e-0", "e-")
    drop = f", a tenth from epoch {settings['lr_drop_epoch']}" if settings["lr_drop_epoch"] else ""
    return f"{name} {rate}{drop}"


def test_the_faults_shown_are_those_reported(desk: Desk) -> None:
    (block,) = [block for block in blocks("text") if "mine.yaml:" in block.text]
    path = desk.folder / "faulty.yaml"
    path.write_text(
        "bench: 1\nseeds: [1]\ndatasets:\n  SPMotif: {use: spmotif}\nmethods:\n"
        "  A: {baseline: {use: irm, penalti: 1}}\n  IRM: {baseline: irm}\n",
        encoding="utf-8",
    )
    with pytest.raises(SuiteError) as raised:
        desk.load(path)
    told = str(raised.value).replace(str(path), "mine.yaml").splitlines()
    for shown, found in zip(block.text.splitlines(), told, strict=True):
        assert found.startswith(shown.removesuffix("…"))


def test_the_load_errors_listed_are_those_of_the_code() -> None:
    code = "\n".join(file.read_text(encoding="utf-8") for file in (ROOT / "harness").rglob("*.py"))
    code = re.sub(r'"\s*\n\s*f?"', "", code)
    table = page("docs/plugins.md").partition("## When it does not load")[2]
    messages = [span for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE) for span in SPANS.findall(row)]
    assert len(messages) > 10
    for message in messages:
        for piece in re.split(r"Mine(?:\.\w+)?|'[^']*'|\d+|…|\w+Error| raised |baseline", message):
            assert piece.strip(" :,") in code, message
