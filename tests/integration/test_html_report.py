"""The HTML report of real runs: written by each run, and by ``bench report --html``."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from integration_kit import ROOT, TOY, Workshop

from harness.cli import main

SUITE = TOY.partition("  IRM")[0]


def data_of(page: Path) -> dict:
    found = re.search(r'id="data">(.*?)</script>', page.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def test_a_run_leaves_a_page_and_a_cached_one_names_it(workshop: Workshop, monkeypatch) -> None:
    workshop.write(SUITE)
    outcome = workshop.run()
    assert outcome.page == outcome.folder / "report.html"
    data = data_of(outcome.page)
    assert data["trainings"][0]["parameters"] > 0
    assert ["train.epochs", "2"] in data["settings"][0]
    drawn = []
    monkeypatch.setattr("harness.report.html.page.write_page", lambda *_: drawn.append(1))
    again = workshop.run()
    assert again.page == outcome.page
    assert not drawn
    workshop.run(seeds="1")
    assert drawn


def test_the_command(workshop: Workshop, monkeypatch, capsys) -> None:
    workshop.write(SUITE)
    outcome = workshop.run()
    monkeypatch.setenv("BENCH_STORE", str(workshop.store))
    target = workshop.folder / "out" / "mine.html"
    for words, path in (([], outcome.page), (["-o", str(target)], target)):
        with pytest.raises(SystemExit) as ended:
            main(["report", "toy", "--html", *words])
        assert not ended.value.code
        assert capsys.readouterr().out.strip() == str(path)
    assert "Results at the last epoch" in target.read_text(encoding="utf-8")
    with pytest.raises(SystemExit) as ended:
        main(["report", "toy", "--html", "--json"])
    assert ended.value.code == 2
    assert "--html is a format of its own" in capsys.readouterr().err


def test_the_command_imports_neither_torch_nor_a_plotting_library(workshop: Workshop) -> None:
    workshop.write(SUITE)
    workshop.run()
    code = (
        "import sys; from harness.cli import main\n"
        "try: main(['report', 'toy', '--html', '--no-statistics'])\n"
        "except SystemExit: pass\n"
        "print(sorted({'torch', 'numpy', 'scipy', 'pandas', 'matplotlib'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "BENCH_STORE": str(workshop.store)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_an_interrupted_run_leaves_a_page_too(workshop: Workshop) -> None:
    workshop.write(SUITE)
    session = workshop.open()

    def interrupted(event) -> None:
        if event.kind == "finished" and event.stage.kind == "score":
            raise KeyboardInterrupt

    from harness.engine import EngineOptions
    from harness.run.execute import execute

    with pytest.raises(KeyboardInterrupt):
        execute(session, EngineOptions("inline"), interrupted)
    (page,) = workshop.store.glob("runs/*/report.html")
    assert "interrupted" in page.read_text(encoding="utf-8")
    assert "1 not run yet" in page.read_text(encoding="utf-8")
