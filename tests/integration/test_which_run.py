"""Two folders with a ``suite.yaml`` each and one store: each command takes the run of the file that it is given."""

from __future__ import annotations

import json

from integration_kit import TOY, Workshop

HEAD = TOY.split("methods:")[0].replace("name: toy\n", "").replace("[1, 2]", "[1]").replace("epochs: 2", "epochs: 1")


def test_a_suite_of_another_folder_is_never_taken(workshop: Workshop) -> None:
    """The latest run of any ``suite.yaml`` was shown, exported, compared and analysed, also for one that never ran."""
    for folder, text in (("a", "  ERM: {baseline: erm}\n"), ("b", "  IRM: {baseline: irm, envs: random(2)}\n")):
        (workshop.folder / folder).mkdir()
        (workshop.folder / folder / "toy_plugin.py").symlink_to(workshop.folder / "toy_plugin.py")
        workshop.write(f"{HEAD}methods:\n{text}", f"{folder}/suite.yaml")
    mine, other = (Workshop(workshop.folder / name, place=workshop.store) for name in "ab")
    other.command("run", "suite.yaml", "--engine", "inline")
    asked = (
        ["report", "suite.yaml"],
        ["report", "suite.yaml", "--html", "-o", "page.html"],
        ["export", "suite.yaml", "-o", "out", "--what", "results,archive"],
        ["compare", "suite.yaml", "../b/suite.yaml"],
        ["analyse", "suite.yaml", "groups"],
        ["runs", "suite.yaml"],
    )
    for words in asked:
        told = mine.command(*words, check=False)
        assert told.returncode == 2
        assert f"no run of the file {mine.folder / 'suite.yaml'} in " in told.stderr
    assert not list(mine.folder.glob("[op][ua]*"))
    mine.command("run", "suite.yaml", "--engine", "inline")
    for one, method in ((mine, "ERM"), (other, "IRM")):
        shown = json.loads(one.command("report", "suite.yaml", "--json").stdout)
        assert [row["method"] for row in shown["rows"]] == [method]
        (listed,) = json.loads(one.command("runs", "suite.yaml", "--json").stdout)["runs"]
        assert (listed["id"], listed["file"]) == (shown["run"], str(one.folder / "suite.yaml"))
    told = mine.command("report", "suite", check=False)
    assert told.returncode == 2
    assert "'suite' is the name of several suites with runs; give the file or the run: " in told.stderr
    (mine.folder / "suite.yaml").write_text("# another\n", encoding="utf-8")
    assert "note: changed since run " in mine.command("report", "suite.yaml").stderr
