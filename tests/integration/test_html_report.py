"""The HTML report of real runs: written by each run, and by ``bench report --html``."""

from __future__ import annotations

import json
import re
from pathlib import Path

from integration_kit import Workshop


def data_of(page: Path) -> dict:
    found = re.search(r'id="data">(.*?)</script>', page.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def test_a_run_leaves_a_page_and_a_cached_one_names_it(copied: Workshop, monkeypatch) -> None:
    outcome = copied.run(methods=["ERM"])
    assert outcome.page == outcome.folder / "report.html"
    data = data_of(outcome.page)
    assert data["trainings"][0]["parameters"] > 0
    assert ["train.epochs", "2"] in data["settings"][0]
    target = copied.folder / "out" / "mine.html"
    for words, path in (([], outcome.page), (["-o", str(target)], target)):
        assert copied.command("report", "suite.yaml", "--html", *words).stdout.strip() == str(path)
    assert "Results at the last epoch" in target.read_text(encoding="utf-8")
    refused = copied.command("report", "suite.yaml", "--html", "--json", check=False)
    assert refused.returncode == 2
    assert "--json and html are two formats" in refused.stderr
    drawn = []
    monkeypatch.setattr("harness.report.html.page.write_page", lambda *_: drawn.append(1))
    assert copied.run(methods=["ERM"]).page == outcome.page
    assert not drawn
    copied.run(methods=["ERM"], seeds="1")
    assert drawn
