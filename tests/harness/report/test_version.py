"""The edition of a dataset: in the header of its column, in the caption and in every row of every format."""

import csv
import io
import json

import pytest
from results_kit import build_run

from harness.report import RENDERERS, make_report, render, to_json
from harness.results.rows import DatasetFacts

EDITION = "ChEMBL 29, file c3b1d45b"


@pytest.fixture
def report():
    """One dataset with an edition, one without."""
    datasets = (DatasetFacts("EC50", version=EDITION, variant="LBAP core"), DatasetFacts("Rings"))
    return make_report(build_run({"ERM": {"EC50": [0.5] * 3, "Rings": [0.5] * 3}}, datasets=datasets))


def test_header_names_the_edition_where_there_is_one(report):
    assert report.sections[0].main.header == ("Method", f"EC50 ({EDITION})", "Rings")


def test_caption_names_the_edition_before_the_variant(report):
    assert "Data: ChEMBL 29, file c3b1d45b, LBAP core (EC50)." in report.sections[0].main.notes


@pytest.mark.parametrize("style", [name for name in RENDERERS if name not in ("csv", "json")])
def test_every_format_shows_it_in_header_and_caption(style, report):
    assert render(report, style).count(EDITION) == 2


def test_rows_carry_it(report):
    expected = {"EC50": EDITION, "Rings": ""}
    assert {row["dataset"]: row["version"] for row in to_json(report)["rows"]} == expected
    assert {row["dataset"]: row["version"] for row in json.loads(render(report, "json"))["rows"]} == expected
    rows = csv.DictReader(io.StringIO(render(report, "csv")))
    assert {row["dataset"]: row["version"] for row in rows} == expected
