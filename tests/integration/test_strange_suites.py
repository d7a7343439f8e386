"""A stranger's suite: its code is told before it runs, and is not run where --no-plugins says so."""

from __future__ import annotations

import importlib.metadata
import json
from pathlib import Path
from typing import Any

import pytest
from integration_kit import Workshop

from harness.errors import DataError
from harness.registry.discovery import NO_PLUGINS, plugins_off
from harness.registry.index import load_catalog

SUITE = """\
bench: 1
name: strange
seeds: [1]
plugins: [strange.py]
train: {epochs: 1}
datasets:
  Toy: {use: two-piece, num_per_class: [6, 6, 6]}
methods:
  ERM: {baseline: erm}
trackers: [strange]
"""
PLUGIN = """\
from pathlib import Path

from harness import Tracker, hookimpl
from ._strange_helper import TEXT

Path(__file__).with_name("ran").write_text(TEXT)


class Strange(Tracker):
    name = "strange"


@hookimpl
def bench_register(register):
    register(Strange)
"""
NAMED = """\
bench: 1
seeds: [1]
datasets:
  Toy: {use: pyg, dataset: "os:mkdir", arguments: {path: made}}
methods:
  ERM: {baseline: erm}
"""
PLAIN = SUITE.replace("trackers: [strange]\n", "")
CLUSTER = PLAIN.replace("plugins: [strange.py]\n", "cluster: {address: 'tcp://127.0.0.1:9'}\n")


@pytest.fixture
def strange(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the suite, its plugin file and what that imports, all of them new."""
    folder = tmp_path_factory.mktemp("strange")
    (folder / "suite.yaml").write_text(SUITE)
    (folder / "strange.py").write_text(f"{PLUGIN}# {folder}\n")
    (folder / "_strange_helper.py").write_text('TEXT = "x"\n')
    return folder


def test_plan_tells_of_code_before_it_runs(workshop: Workshop, strange: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before: list[bool] = []
    monkeypatch.setattr("harness.cli.suites.tell_code", lambda _: before.append((strange / "ran").exists()))
    workshop.command("plan", str(strange / "suite.yaml"))
    assert before == [False]
    assert (strange / "ran").exists()


@pytest.mark.parametrize("command", ["plan", "validate"])
def test_plugin_files_are_told(workshop: Workshop, strange: Path, command: str) -> None:
    done = workshop.command(command, str(strange / "suite.yaml"))
    assert done.stderr == f"code of this suite: plugin file: {strange / 'strange.py'}\n"
    found = json.loads(workshop.command(command, str(strange / "suite.yaml"), "--json").stdout)
    assert found["plugins"] == [str(strange / "strange.py")]


@pytest.mark.parametrize("way", ["option", "variable", "option first"])
def test_without_plugins_nothing_of_them_runs(workshop: Workshop, strange: Path, way: str) -> None:
    words = {"option": ("plan", "{}", "--no-plugins"), "variable": ("plan", "{}")}.get(
        way, ("--no-plugins", "plan", "{}")
    )
    given = [word.format(strange / "suite.yaml") for word in words]
    env = {NO_PLUGINS: "1"} if way == "variable" else {}
    done = workshop.command(*given, check=False, **env)
    assert done.returncode == 2
    assert f"plugin file: {strange / 'strange.py'}" in done.stderr
    assert "no tracker is called 'strange'" in done.stderr
    assert f"(not loaded, as --no-plugins asks: {strange / 'strange.py'})" in done.stderr
    assert not (strange / "ran").exists()
    assert not plugins_off(), "for this command alone"


def test_the_rest_of_a_suite_works_without_plugins(workshop: Workshop, strange: Path) -> None:
    (strange / "suite.yaml").write_text(PLAIN)
    done = workshop.command("plan", str(strange / "suite.yaml"), "--no-plugins")
    assert f"not loaded, as --no-plugins asks: {strange / 'strange.py'}" in done.stderr
    assert not (strange / "ran").exists()


class _Point:
    name, group, value, module, attr = "far", "equad_bench", "far_plugin", "far_plugin", ""
    dist = None


def test_installed_plugins_are_withheld_too(strange: Path, monkeypatch: pytest.MonkeyPatch, workshop: Workshop) -> None:
    (strange / "far_plugin.py").write_text((strange / "strange.py").read_text().replace("from ._", "from _"))
    monkeypatch.syspath_prepend(str(strange))
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: [_Point()] if group == "equad_bench" else [])
    monkeypatch.setenv(NO_PLUGINS, "1")
    assert load_catalog().withheld == ("far",)
    with monkeypatch.context() as alone:
        alone.setattr("harness.registry.discovery.built_in_sources", lambda: [])
        assert list(load_catalog()) == []
    assert not (strange / "ran").exists()
    assert "not loaded, as --no-plugins asks: far\n" in workshop.command("list", "encoders").stderr
    monkeypatch.setenv(NO_PLUGINS, "0")
    assert load_catalog().find("tracker", "strange") is not None
    assert (strange / "ran").exists()


def test_a_plugin_that_the_command_line_names_is_wanted(strange: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NO_PLUGINS, "1")
    found = load_catalog([strange / "strange.py"], suite_files=[strange / "strange.py"])
    assert found.find("tracker", "strange") is not None
    assert found.withheld == ()


def test_code_that_a_dataset_names_is_told_and_withheld(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []

    def extract(request: dict[str, Any], _: object) -> Any:
        ran.append(request["target"])
        raise DataError("it gives no graphs")

    monkeypatch.setattr("plugins.datasets.pyg.extract", extract)
    workshop.write(NAMED)
    done = workshop.command("validate", "suite.yaml", "--no-plugins", check=False)
    assert done.returncode == 2
    assert "dataset 'pyg' would run code that 'dataset' names, which --no-plugins forbids" in done.stderr
    assert ran == []
    done = workshop.command("validate", "suite.yaml", check=False)
    assert set(ran) == {"os:mkdir"}
    assert done.stderr.startswith("code of this suite: named by dataset 'pyg': os:mkdir\n")


def test_a_suites_cluster_is_told_and_withheld(workshop: Workshop) -> None:
    workshop.write(CLUSTER)
    assert (
        "code of this suite: for --engine dask alone: the cluster at tcp"
        in workshop.command("plan", "suite.yaml").stderr
    )
    words = ("run", "suite.yaml", "--engine", "dask", "--no-plugins")
    done = workshop.command(*words, check=False)
    assert done.returncode == 2
    assert "the suite's own 'cluster' is not used" in done.stderr


def test_names_in_messages_do_not_steer_the_terminal(workshop: Workshop) -> None:
    text = PLAIN.replace("plugins: [strange.py]\n", "")
    workshop.write(text.replace("baseline: erm", 'baseline: "\\e]0;x\\a\\e[2J\\u202e"'))
    done = workshop.command("validate", "suite.yaml", check=False)
    assert done.returncode == 2
    assert r"\u001b]0;x\u0007\u001b[2J\u202e" in done.stderr
    assert not {"\x1b", "\x07", "\u202e"} & set(done.stderr)
