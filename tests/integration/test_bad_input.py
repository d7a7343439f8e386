"""What a user can mend ends with a message and exit code 2, before anything is trained."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from integration_kit import TOY, Ended, Workshop

from harness.store import Store
from harness.store.maintenance import listing

SCREEN = 25
MOLECULES = """\
bench: 1
name: molecules
seeds: [1]
model: {hidden: 4, layers: 1}
train: {epochs: 1}
datasets:
  BACE: {use: ogb, dataset: bace}
methods:
  ERM: {baseline: erm}
"""
NEEDY = """\
from harness import Baseline, hookimpl


class Needy(Baseline):
    name = "needy"
    tasks = ("multitask",)

    def loss(self, batch):
        return {"erm": self.risk(self(batch), batch).mean()}


@hookimpl
def bench_register(register):
    register(Needy)
"""


@pytest.fixture
def bench(workshop: Workshop) -> Callable[..., Ended]:
    return partial(workshop.command, check=False)


def refused(workshop: Workshop, done: Ended, *texts: str) -> None:
    """The message is short and says everything it should; nothing has been trained."""
    told = done.stderr
    assert done.returncode == 2, told
    assert "Traceback" not in told
    assert len(told.splitlines()) <= SCREEN, told
    progress, mark, told = f"\n{told}".partition("\nerror: ")
    assert mark, progress
    for text in texts:
        assert text in told, told
    trained = [a.kind for a in listing(Store(workshop.store))] if workshop.store.is_dir() else []
    assert not set(trained) - {"prepare"}


@pytest.mark.parametrize(
    ("old", "new", "line", "column", "texts"),
    [
        ("seeds:", "sedes:", 4, 1, ("sedes", "seeds")),
        ("baseline: erm", "baseline: ermm", 10, None, ("ermm", "did you mean 'erm'")),
        ("epochs: 2", "epochs: two", 6, None, ("epochs", "two")),
        ("keep: 2", "keep: many", 15, None, ("keep", "many")),
        ("  ERM: {baseline: erm}", "  IRM: {baseline: erm}", 11, 3, ("IRM", "first given at suite.yaml:10:3")),
        ("seeds: [1, 2]", "seeds: []", 4, None, ("seeds",)),
        ("{use: eqn7, keep: 2}", "{use: eqn7, tune: {gama: [1.0, 2.0]}}", 15, None, ("gama", "did you mean 'gamma'")),
    ],
    ids=[
        "unknown key",
        "unknown component",
        "ill-typed value of the harness",
        "ill-typed value of a component",
        "duplicate key",
        "empty seeds",
        "tune on a name the component lacks",
    ],
)
def test_a_fault_in_a_suite_is_told_with_its_place(workshop: Workshop, bench, old, new, line, column, texts) -> None:
    assert TOY.count(old) == 1
    workshop.write(TOY.replace(old, new))
    done = bench("run", "suite.yaml", "--engine", "inline")
    refused(workshop, done, *texts)
    place = re.search(r"suite\.yaml:(\d+):(\d+)", done.stderr)
    assert place is not None, done.stderr
    assert int(place[1]) == line, done.stderr
    assert column is None or int(place[2]) == column, done.stderr


def test_empty_methods(workshop: Workshop, bench) -> None:
    workshop.write(TOY.split("methods:")[0] + "methods: {}\n")
    refused(workshop, bench("run", "suite.yaml"), "suite.yaml:9:", "methods")


def test_an_unknown_suite_and_an_unknown_option_value(workshop: Workshop, bench) -> None:
    refused(workshop, bench("run", "quik"), "quik", "did you mean 'quick'")
    refused(workshop, bench("run", "suite.yaml", "--set", "train.epoch=3"), "--set", "epoch", "epochs")
    refused(workshop, bench("run", "suite.yaml", "--engine", "inlin"), "inlin", "did you mean 'inline'")
    refused(workshop, bench("run", "suite.yaml", "--methods", "Nothing*"), "Nothing*")
    refused(workshop, bench("run", "suite.yaml", "--seeds", "one"), "--seeds", "one")


def test_a_method_that_needs_environments_where_there_are_none(workshop: Workshop, bench) -> None:
    text = TOY.replace("{use: toy}", "{use: toy, own_env: false}").replace(
        "{baseline: irm, envs: random(2)}", "{baseline: irm}"
    )
    workshop.write(text)
    refused(workshop, bench("run", "suite.yaml"), "suite.yaml:11:", "envs", "Toy", "IRM")


def test_a_task_that_a_method_does_not_support(workshop: Workshop, bench) -> None:
    workshop.write(NEEDY, "needy.py")
    text = TOY.replace("[toy_plugin.py]", "[toy_plugin.py, needy.py]") + "  Needy: {baseline: needy}\n"
    workshop.write(text + "strict: true\n")
    refused(workshop, bench("run", "suite.yaml"), "suite.yaml:16:", "needy", "binary", "multitask")
    workshop.write(text)
    who, what = "baseline 'needy'", "supports multitask tasks; dataset 'Toy' is binary"
    reason = f"{who} {what}"
    assert f"n/a: Needy on Toy: {reason}" in workshop.command("plan", "suite.yaml").stdout
    assert f"n/a: Needy on Toy: {reason}" in workshop.command("validate", "suite.yaml").stdout
    chosen = ("--quick", "--engine", "inline", "--methods", "ERM", "--methods", "Needy")
    table = workshop.command("run", "suite.yaml", *chosen).stdout
    assert re.search(r"Needy .* n/a \[?1", table)
    assert f"n/a: {what}" in table
    (run,) = (workshop.store / "runs").iterdir()
    told = json.loads(workshop.command("report", run.name, "--json").stdout)
    assert told["unsupported"] == [{"dataset": "Toy", "method": "Needy", "component": who, "reason": what}]
    assert what in (run / "report.html").read_text().replace("&#39;", "'")


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("import no_such_module_at_all\n", "no_such_module_at_all"),
        ("def broken(:\n", "SyntaxError: invalid syntax"),
        ("x = 1\n", "broken.py"),
    ],
    ids=["import error", "syntax error", "registers nothing"],
)
def test_a_plugin_file_that_cannot_be_loaded(workshop: Workshop, bench, source, text) -> None:
    workshop.write(source, "broken.py")
    workshop.write(TOY.replace("[toy_plugin.py]", "[toy_plugin.py, broken.py]"))
    refused(workshop, bench("run", "suite.yaml"), "broken.py", text)


def test_a_plugin_file_that_is_not_there(workshop: Workshop, bench) -> None:
    workshop.write(TOY.replace("[toy_plugin.py]", "[toy_plugn.py]"))
    refused(workshop, bench("run", "suite.yaml"), "toy_plugn.py")


LONG = "a" * 300


@pytest.mark.parametrize("key", ["plugins", "include"])
@pytest.mark.parametrize(
    ("name", "text"), [(LONG, "cannot be read (File name too long)"), ("pipe", "not a regular file")]
)
def test_a_file_that_the_system_refuses(workshop: Workshop, bench, key: str, name: str, text: str) -> None:
    os.mkfifo(workshop.folder / "pipe.py")
    workshop.write(f"bench: 1\n{key}: [{name}.py]\n")
    refused(workshop, bench("validate", "suite.yaml"), "suite.yaml:2:", text)


@pytest.mark.parametrize("command", ["run", "plan", "report", "check", "export"])
def test_a_name_that_the_system_refuses(workshop: Workshop, bench, command: str) -> None:
    more = ["-o", "x.md"] if command == "export" else []
    refused(workshop, bench(command, f"{LONG}.py", *more), "File name too long")


def test_missing_data_says_what_to_put_where(workshop: Workshop, bench) -> None:
    workshop.write(MOLECULES)
    refused(workshop, bench("run", "suite.yaml"), "--data-dir", "BENCH_DATA", "ogbg_molbace", "moleculenet")
    refused(workshop, bench("run", "suite.yaml", "--data-dir", "nowhere"), "nowhere")
    empty = workshop.folder / "data"
    empty.mkdir()
    told = bench("run", "suite.yaml", "--data-dir", str(empty))
    refused(workshop, told, str(empty / "ogbg_molbace"), str(empty / "moleculenet" / "bace.csv"), "unpack")
    (empty / "ogbg_molbace" / "raw").mkdir(parents=True)
    refused(workshop, bench("run", "suite.yaml", "--data-dir", str(empty)), str(empty / "ogbg_molbace" / "raw"))


@pytest.fixture
def ogb(workshop: Workshop, data_dir: Path) -> Path:
    """A copy of a real data folder, to damage."""
    source = data_dir / "ogbg_molbace"
    if not source.is_dir():
        pytest.skip(f"no {source}")
    return Path(shutil.copytree(source, workshop.folder / "data" / "ogbg_molbace"))


def halved(path: Path) -> None:
    """As an interrupted download leaves it."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def of_another_set(path: Path) -> None:
    with gzip.open(path, "wt") as stream:
        stream.write("this,is\nsomething,else\n")


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("raw/edge.csv.gz", halved),
        ("raw/node-feat.csv.gz", of_another_set),
        ("split/scaffold/train.csv.gz", lambda path: path.write_bytes(b"")),
        ("raw/edge.csv.gz", lambda path: path.write_bytes(b"<html>404</html>")),
    ],
    ids=["truncated", "foreign", "no byte", "not gzip"],
)
def test_a_damaged_data_file(workshop: Workshop, bench, ogb: Path, damage, name) -> None:
    workshop.write(MOLECULES)
    damage(ogb / name)
    refused(workshop, bench("run", "suite.yaml", "--engine", "inline", "--data-dir", str(ogb.parent)), str(ogb / name))


def test_data_without_permission(workshop: Workshop, bench, ogb: Path) -> None:
    workshop.write(MOLECULES)
    ogb.parent.chmod(0)
    try:
        if any(ogb.parent.glob("*")):
            pytest.skip("permissions do not bind this user (root)")
        refused(workshop, bench("run", "suite.yaml", "--data-dir", str(ogb.parent)), str(ogb.parent), "ermission")
    finally:
        ogb.parent.chmod(0o755)


def test_a_store_that_cannot_be_written(workshop: Workshop, bench) -> None:
    below = workshop.folder / "suite.yaml" / "store"
    refused(workshop, bench("run", "suite.yaml", "--store", str(below)), str(below))


def test_what_is_wrong_with_data_found_while_building_them_is_told_before_any_training(
    workshop: Workshop, bench
) -> None:
    """Also by worker processes, with a sound dataset beside; and it is not kept: the mended dataset is built."""
    data = workshop.write("not a number", "shift.txt")
    both = TOY.replace("{use: toy}", f"{{use: toy}}\n  Broken: {{use: toy, refuse_text: true, file: {data}}}")
    workshop.write(both)
    for engine in ("processes", "inline"):
        told = bench("run", "suite.yaml", "--engine", engine)
        refused(workshop, told, "Broken", str(data), "write one number")
    assert not list((workshop.store / "runs").glob("*/run.json")), "what is refused leaves no record"
    data.write_text("0.25", encoding="utf-8")
    workshop.command("run", "suite.yaml", "--engine", "inline", "--methods", "ERM")


def test_a_dataset_that_breaks_takes_only_its_own_cells(workshop: Workshop) -> None:
    """An error of the plugin is no fault of the user's data: the other datasets are run."""
    data = workshop.write("not a number", "shift.txt")
    suite = workshop.write(TOY.replace("{use: toy}", f"{{use: toy}}\n  Broken: {{use: toy, file: {data}}}"))
    outcome = workshop.run(suite, methods=["ERM"])
    assert outcome.exit_code == 1
    status = {(row.dataset, row.status) for row in outcome.results.rows}
    assert status == {("Toy", "ok"), ("Broken", "skipped")}
    assert all("ValueError" in row.reason for row in outcome.results.rows if row.dataset == "Broken")
    kinds = [(kind, title) for kind, _, title in workshop.events if kind in ("failed", "skipped")]
    assert len(kinds) == len(set(kinds)) == 5


def test_the_command_itself(workshop: Workshop) -> None:
    workshop.write(TOY.replace("baseline: erm", "baseline: ermm"))
    done = workshop.command("run", "suite.yaml", check=False, apart=True)
    refused(workshop, done, "suite.yaml:10:", "did you mean 'erm'")
    assert done.stdout == ""
