"""``docs/results`` shows the record as its files have it, and two of its cells come out again."""

from __future__ import annotations

import importlib
import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from harness.engine import EngineOptions
from harness.graphs import Batch
from harness.results.record import load_record
from harness.run.execute import execute
from harness.run.session import Options, open_session
from harness.suite.overrides import Overrides
from plugins.datasets._shapes import ladder, tree, wheel

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs" / "results").glob("*.md"))
ROUNDING = 0.05
"""Fraction by which another processor's rounding may move a score of some hundred graphs."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_tables_are_what_the_record_has(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    text = page.read_text(encoding="utf-8")
    assert importlib.import_module("record").with_tables(text) == text


def test_fewer_edges_are_the_hubs_and_the_random_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks" / "recorded"))
    shifts = importlib.import_module("spmotif_shifts")
    star = batch_of(6, [(leaf, 0) for leaf in range(1, 6)])
    assert shifts.capped(star, 2).edge_index.T.tolist() == [[1, 0], [2, 0]]

    house = [(0, 1), (0, 3), (1, 2), (2, 3), (1, 4), (2, 4)]
    for number, base in enumerate((tree(2, 3), ladder(8), wheel(15))):
        joint, noise = (2, base.nodes), {(3, 9), (4, base.nodes), (5, base.nodes + 3)}
        pairs = base.pairs | {(base.nodes + one, base.nodes + other) for one, other in house} | {joint} | noise
        for both_ways in (False, True):
            batch = batch_of(base.nodes + 5, [*pairs, *((v, u) for u, v in pairs if both_ways)])
            ((found, _, extra),) = shifts.random_pairs(batch)
            assert (found, set(extra)) == (number, noise)
            kept = {tuple(sorted(edge)) for edge in shifts.without_noise(batch, [1, 1, 1]).edge_index.T.tolist()}
            assert kept == pairs - set(extra[1:])


def batch_of(nodes: int, edges: list[tuple[int, int]]) -> Batch:
    source, target = torch.tensor(sorted(edges, key=lambda edge: edge[1])).T
    return Batch(
        x=torch.ones(nodes, 1),
        edge_index=torch.stack([source, target]),
        batch=torch.zeros(nodes, dtype=torch.long),
        ptr=torch.tensor([0, nodes]),
        indptr=torch.bincount(target + 1, minlength=nodes + 1).cumsum(0),
        index=torch.zeros(1, dtype=torch.long),
    )


def test_numbers_of_the_readme_stand_in_their_rows_of_a_recorded_table() -> None:
    headline = (ROOT / "README.md").read_text(encoding="utf-8").partition("## What it measures")[2].partition("```")[0]
    page = (ROOT / "docs" / "results" / "table1.md").read_text(encoding="utf-8")
    table = "".join(re.findall("<!-- record: .*?<!-- /record -->", page, re.DOTALL))
    number = r"\d\d\.\d\d ± \d+\.\d\d"
    rows = {row[0].strip(): row[1] for row in re.findall(r"^\|([^|]+)\|(.*)$", headline, re.MULTILINE)}
    ours = [(name, value) for name, row in rows.items() for value in re.findall(rf"(?<!\(){number}", row)]
    assert len(ours) == 9
    recorded = {
        (name, value)
        for name in rows
        for row in re.findall(rf"^\| {name}(?: †)? \|.*$", table, re.MULTILINE)
        for value in re.findall(number, row)
    }
    assert [pair for pair in ours if pair not in recorded] == []


def test_two_recorded_cells_come_out_again(tmp_path: Path) -> None:
    recorded = next(one for one in load_record() if one.results.suite == "recorded-figures").results
    overrides = Overrides(datasets=("SPMotif*",), methods=("ERM",), seeds="1,2")
    suite = str(ROOT / "benchmarks" / "recorded" / "figures.yaml")
    session = open_session(suite, Options(tmp_path, overrides=overrides))
    session = replace(session, suite=replace(session.suite, analyses=()))
    found = execute(session, EngineOptions(), lambda _: None).results
    theirs = {(row.coordinates, row.split, row.checkpoint): row.value for row in recorded.rows}
    (data,) = found.datasets
    assert data.fingerprint == recorded.dataset(data.label).fingerprint
    assert len({row.cell for row in found.rows}) == 2
    for row in found.rows:
        assert row.value == pytest.approx(theirs[row.coordinates, row.split, row.checkpoint], abs=ROUNDING)
