"""The torch-free index: right, fast, rebuilt when its plugins change, and safe from what plugins do at import."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from plugin_kit import install, write_plugin

from harness.engine import supervisor
from harness.engine.contract import Job
from harness.engine.supervisor import prepare_fork_server
from harness.errors import UserError
from harness.plan.components import Components
from harness.registry import discovery as registry
from harness.registry import index, index_build
from harness.registry.catalog import Catalog
from harness.registry.discovery import load_one
from harness.registry.index import load_catalog
from harness.suite.spec import ComponentSpec


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty cache, and no built-in plugins: these tests bring their own."""
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(registry, "built_in_sources", list)
    monkeypatch.setattr(supervisor, "_PREPARED", [])
    return tmp_path / "cache" / "index"


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The modules that were imported to build entries, in order."""
    names: list[str] = []
    real = index_build.build

    def spy(sources: list[registry.Source], time_limit: float) -> object:
        names.extend(source.file.stem for source in sources)
        return real(sources, time_limit)

    monkeypatch.setattr(index_build, "build", spy)
    return names


def site(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder on the path where distributions can be installed."""
    (tmp_path / "site").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    return tmp_path / "site"


def names(catalog: Catalog) -> list[str]:
    return catalog.names("dataset")


def test_an_entry_tells_all_without_an_import(tmp_path: Path) -> None:
    path = write_plugin(tmp_path / "mine.py", "mine", size=7)
    entry = load_catalog([path]).get("dataset", "mine")
    assert (entry.qualname, entry.file, entry.plugin) == ("Made", str(path), str(path))
    assert entry.summary == "Graphs of mine."
    assert entry.defaults == {"size": 7}
    declared = entry.hparams["size"]
    assert (declared.type, declared.low, declared.search, declared.help) == ("int", 1, (1, 2), "how many")
    lists: dict[str, object] = {key: [] for key in ("listed", "names_code", "names_files", "oracle", "unused")}
    assert entry.traits == {**lists, "family": "", "probes": {}, "upstream": {}}
    assert len(entry.digest) == 64
    assert load_catalog([path]).get("dataset", "mine") == entry, "the same from the cache"


def test_traits_are_plain_and_in_order(tmp_path: Path) -> None:
    path = write_plugin(tmp_path / "mine.py", "mine")
    body = (
        "    family = 'ogb'\n    oracle = frozenset({'node_gt', 'base'})\n    traits = {'pages': (1, 2)}\n    size: int"
    )
    path.write_text(path.read_text().replace("    size: int", body))
    traits = load_catalog([path]).get("dataset", "mine").traits
    assert (traits["family"], traits["oracle"], traits["pages"]) == ("ogb", ["base", "node_gt"], [1, 2])


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("    size", "    family = print\n    size", "Made.family holds <"),
        ("    size", "    family = float('nan')\n    size", "Made.family holds nan; "),
        ("low=1", "high=float('inf')", "Made.size: 'high' holds inf; "),
    ],
)
def test_what_is_not_plain_is_told(tmp_path: Path, old: str, new: str, told: str) -> None:
    path = write_plugin(tmp_path / "mine.py", "mine")
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(UserError, match=re.escape(told)):
        load_catalog([path])


def test_editing_one_plugin_rebuilds_one_entry(tmp_path: Path, built: list[str]) -> None:
    files = [write_plugin(tmp_path / f"{name}.py", name) for name in ("a", "b", "c")]
    before = load_catalog(files)
    assert built == ["a", "b", "c"]
    load_catalog(files)
    assert built == ["a", "b", "c"]
    write_plugin(files[1], "b", size=4)
    after = load_catalog(files)
    assert built == ["a", "b", "c", "b"]
    changed = [entry.name for entry in after if entry != before.get("dataset", entry.name)]
    assert changed == ["b"]
    assert after.get("dataset", "b").digest != before.get("dataset", "b").digest
    files[0].touch()
    load_catalog(files)
    assert built == ["a", "b", "c", "b"], "bytes count, not times"


def test_editing_a_helper_rebuilds_what_imports_it(tmp_path: Path, built: list[str]) -> None:
    files = [
        write_plugin(tmp_path / "a.py", "a", imports="from .helper import VALUE\n"),
        write_plugin(tmp_path / "b.py", "b"),
    ]
    (tmp_path / "helper.py").write_text("VALUE = 1\n")
    before = load_catalog(files)
    (tmp_path / "helper.py").write_text("VALUE = 22\n")
    after = load_catalog(files)
    assert built == ["a", "b", "a"]
    assert before.get("dataset", "a").digest != after.get("dataset", "a").digest
    assert before.get("dataset", "b") == after.get("dataset", "b")


def test_a_comment_rebuilds_but_makes_nothing_stale(tmp_path: Path, built: list[str]) -> None:
    path = write_plugin(tmp_path / "a.py", "a")
    before = load_catalog([path])
    path.write_text(path.read_text() + "# a comment\n")
    after = load_catalog([path])
    assert built == ["a", "a"]
    assert before.get("dataset", "a") == after.get("dataset", "a")


def test_what_describes_plugins_counts(cache: Path, tmp_path: Path) -> None:
    load_catalog([write_plugin(tmp_path / "a.py", "a")])
    followed = {Path(file).name for record in cache.glob("*.json") for file in json.loads(record.read_text())["files"]}
    assert {"a.py", "data.py", "component.py", "hparams.py", "index_build.py", "prepare.py"} <= followed


def test_the_core_s_rooms_count_without_a_rebuild(
    tmp_path: Path, built: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_plugin(tmp_path / "a.py", "a")
    before = load_catalog([path])
    room = tmp_path / "room.py"
    room.write_text("X = 1\n")
    monkeypatch.setattr(index, "core_files", lambda _: [room])
    monkeypatch.setattr(index, "core_digest", lambda kind: f"{kind}: {room.read_text()}")
    digests = [before.get("dataset", "a").digest]
    for text in ("X = 1\n", "X = 1\n", "X = 2\n"):
        room.write_text(text)
        digests.append(load_catalog([path]).get("dataset", "a").digest)
    assert digests[0] != digests[1] == digests[2] != digests[3]
    assert built == ["a"]


BROKEN = {
    "raises": ("1 / 0", "ZeroDivisionError"),
    "leaves": ("import sys; sys.exit(2)", "SystemExit: 2"),
    "crashes": ("import os; os._exit(7)", r"ended the process that imports it.*exit code 7 \(something calls os._exit"),
    "dies": ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "SIGKILL"),
    "hangs": ("while True: pass", r"more than 1.5 s, at plugin_hangs\.py:4"),
    "odd": ("raise type('Odd', (BaseException,), {})('so')", r"importing it raised Odd: so \(plugin_odd\.py, line 4\)"),
    "prints": ("import os; os.write(1, b'{}'); print('{}'); 1 / 0", "ZeroDivisionError"),
    "unparsable": ("def (", r"SyntaxError.*plugin_unparsable\.py"),
}


@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
@pytest.mark.parametrize("forked", [False, True])
def test_broken_distributions_are_reported_and_the_others_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, built: list[str], forked: bool
) -> None:
    if forked:
        prepare_fork_server(Job.preload)
    folder = site(monkeypatch, tmp_path)
    for name, (text, _) in BROKEN.items():
        install(folder, f"dist-{name}", f"plugin_{name}")
        write_plugin(folder / f"plugin_{name}.py", name, imports=text)
    for name in ("a", "z"):
        install(folder, f"dist-{name}", f"plugin_{name}")
        write_plugin(folder / f"plugin_{name}.py", name, imports="print('{}')")
    monkeypatch.setattr(index, "TIME_LIMIT", 1.5)
    catalog = load_catalog()
    assert names(catalog) == ["a", "z"]
    reasons = {item.plugin.removeprefix("dist-"): item.reason for item in catalog.broken}
    assert reasons.keys() == BROKEN.keys()
    for name, (_, expected) in BROKEN.items():
        assert re.search(expected, reasons[name]), (name, reasons[name])
    assert "dist-raises" in catalog.unknown("dataset", "raises")
    del built[:]
    with pytest.raises(UserError, match=r"plugin dist-raises .*ZeroDivisionError"):
        load_catalog(strict=True)
    assert len(built) == len(BROKEN), "failures are tried again, what is sound is not"


def test_a_mended_plugin_loads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = site(monkeypatch, tmp_path)
    install(folder, "dist", "mended")
    write_plugin(folder / "mended.py", "mended", imports="1 / 0")
    assert len(load_catalog().broken) == 1
    write_plugin(folder / "mended.py", "mended")
    catalog = load_catalog()
    assert (names(catalog), catalog.broken) == (["mended"], ())
    assert catalog.get("dataset", "mended").plugin == "dist"


def test_a_named_file_that_cannot_be_loaded_is_an_error(tmp_path: Path) -> None:
    path = write_plugin(tmp_path / "mine.py", "mine", imports="import no_such_package_1")
    with pytest.raises(UserError, match=r"mine\.py cannot be loaded.*no_such_package_1"):
        load_catalog([path])
    with pytest.raises(UserError, match=r"plugin file not found: .*gone\.py"):
        load_catalog([tmp_path / "gone.py"])


def test_two_distributions_with_one_name_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = site(monkeypatch, tmp_path)
    for name in ("one", "two"):
        install(folder, f"dist-{name}", f"plugin_{name}")
        write_plugin(folder / f"plugin_{name}.py", "same")
    for _ in range(2):
        with pytest.raises(UserError, match=r"dataset 'same': dist-one .*plugin_one\.py.*dist-two .*plugin_two\.py"):
            load_catalog()


def test_classes_of_one_name_in_two_plugins_are_two_components(tmp_path: Path) -> None:
    """They are called Made in both files, and must not share a key."""
    files = [write_plugin(tmp_path / f"{name}.py", name) for name in ("a", "b")]
    catalog = load_catalog(files)
    one, two = (catalog.get("dataset", name) for name in ("a", "b"))
    assert one.digest != two.digest
    assert load_one(one).name == "a"
    assert load_one(two).name == "b"


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"files": {}, "content": [{}]}', '{"files": []}'])
def test_a_damaged_cache_is_built_again(cache: Path, tmp_path: Path, built: list[str], damage: str) -> None:
    path = write_plugin(tmp_path / "a.py", "a")
    before = load_catalog([path])
    for record in cache.glob("*.json"):
        record.write_text(damage)
    assert load_catalog([path]).get("dataset", "a") == before.get("dataset", "a")
    assert built == ["a", "a"]
    load_catalog([path])
    assert built == ["a", "a"]


def test_a_cache_that_cannot_be_written_only_costs_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "file"))
    path = write_plugin(tmp_path / "a.py", "a")
    for _ in range(2):
        caplog.clear()
        assert names(load_catalog([path])) == ["a"]
        (line,) = caplog.messages
        assert line.startswith(
            f"{tmp_path / 'file' / 'index'} cannot be written (Not a directory), so that every command "
        )


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="permissions do not stop root")
def test_a_cache_without_permission_only_costs_time(cache: Path, tmp_path: Path) -> None:
    cache.mkdir(parents=True)
    cache.chmod(stat.S_IRUSR)
    path = write_plugin(tmp_path / "a.py", "a")
    assert names(load_catalog([path])) == ["a"]


def test_concurrent_builds_leave_one_sound_cache(cache: Path, tmp_path: Path, built: list[str]) -> None:
    files = [write_plugin(tmp_path / f"{name}.py", name) for name in ("a", "b", "c")]
    code = (
        "import sys; from pathlib import Path; from harness.registry import discovery as d; d.built_in_sources = list\n"
        "from harness.registry.index import load_catalog\n"
        "print(load_catalog([Path(name) for name in sys.argv[1:]]).names('dataset'))"
    )
    command = [sys.executable, "-c", code, *map(str, files)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    for process in running:
        assert process.communicate(timeout=120)[0] == "['a', 'b', 'c']\n"
    load_catalog(files)
    assert built == []
    assert all(path.suffix == ".json" for path in cache.iterdir())


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment whose index of the built-in plugins is built."""
    env = {**os.environ, "BENCH_CACHE": str(tmp_path_factory.mktemp("cache"))}
    code = "from harness.registry.index import load_catalog; load_catalog(strict=True)"
    subprocess.run([sys.executable, "-c", code], env=env, check=True)
    return env


REPORT = """
import sys, time
from harness.registry.index import load_catalog
start = time.process_time()
catalog = load_catalog()
used = time.process_time() - start
print(used)
print([name for name in ("torch", "numpy", "sklearn", "pluggy", "subprocess") if name in sys.modules])
print([(entry.kind, entry.name, entry.digest) for entry in catalog])
"""


def test_our_own_plugins_all_load_and_the_warm_index_is_fast(warm: dict[str, str]) -> None:
    best, outputs = 9.0, set()
    for seed in ("0", "1", "random"):
        env = {**warm, "PYTHONHASHSEED": seed}
        done = subprocess.run([sys.executable, "-c", REPORT], env=env, capture_output=True, text=True, check=True)
        used, *rest = done.stdout.splitlines()
        best = min(best, float(used))
        outputs.add("\n".join(rest))
    (output,) = outputs
    assert output.startswith("[]\n")
    assert "('baseline', 'erm', '" in output
    assert best < 0.2, "seconds of processor time; the aim is 0.08 on an idle machine"


def test_an_orphaned_child_ends_itself(tmp_path: Path) -> None:
    """A plugin that hangs must not outlive a parent that was killed."""
    code = """
import sys
from pathlib import Path
from harness.registry.discovery import file_source
from harness.registry.index_build import build
build([file_source(Path(sys.argv[1]))], 60)
"""
    mark = tmp_path / "pid"
    hangs = f"import os, pathlib; pathlib.Path({str(mark)!r}).write_text(str(os.getpid()))\nwhile True: pass"
    parent = subprocess.Popen(
        [sys.executable, "-c", code, str(write_plugin(tmp_path / "a.py", "a", imports=hangs))], stderr=subprocess.PIPE
    )
    wait_until(lambda: mark.exists() and bool(mark.read_text()))
    parent.kill()
    parent.communicate()
    wait_until(lambda: not psutil.pid_exists(int(mark.read_text())))


def wait_until(true: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def test_a_default_that_is_computed_enters_the_digest_and_is_what_a_worker_gets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "mine.py"
    path.write_text(
        "import os\nfrom harness import Baseline, hookimpl, hparam\n"
        "class Mine(Baseline):\n    '''Mine.'''\n    name = 'mine'\n"
        "    weight: float = hparam(float(os.environ['WEIGHT']), help='weight')\n"
        "    def loss(self, batch):\n        return {'erm': self.risk(self(batch), batch).mean()}\n"
        "@hookimpl\ndef bench_register(register):\n    register(Mine)\n"
    )
    catalogs = []
    prepare_fork_server(Job.preload)  # which may run, with older variables
    for weight in ("1", "2"):
        monkeypatch.setenv("BENCH_CACHE", str(tmp_path / f"cache of {weight}"))
        monkeypatch.setenv("WEIGHT", weight)
        catalogs.append(load_catalog([path]))
    one, two = (catalog.get("baseline", "mine") for catalog in catalogs)
    assert one.digest != two.digest
    assert Components(catalogs[0]).reference(ComponentSpec("baseline", "mine", {}))["params"] == {"weight": 1.0}
