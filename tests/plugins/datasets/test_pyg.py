"""PyG datasets through their own process: what is read again when, what is never reused, and a run of the whole."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from pyg_kit import write_file
from safetensors.numpy import load_file

from harness.cli import main
from harness.errors import DataError
from harness.store import Store
from harness.store.maintenance import inspect, listing
from plugins.datasets import _pyg_cache, _pyg_extract
from plugins.datasets.pyg import PyG

own_load = pytest.mark.filterwarnings("ignore:Environment variable TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD")
ROOT = Path(__file__).resolve().parents[3]
SUITE = """
bench: 1
name: mine
protocol: equad
seeds: [1]
train: {epochs: 1}
datasets:
  Mine: {use: pyg, dataset: "mine.py:Mine", arguments: {bias: 2.0}}
methods:
  ERM: {baseline: erm}
"""


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store for each test, and one index of components for all."""
    monkeypatch.setenv("BENCH_CACHE", str(ROOT / ".pytest_cache" / "bench"))
    monkeypatch.setenv("BENCH_STORE", str(tmp_path / "store"))


@pytest.fixture
def children(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What would be read in a process of its own, one entry each; here in this process, for speed."""
    found: list[str] = []

    def run(command: list[str], **_: object) -> None:
        found.append(command[-1])
        sys.modules.pop("scale", None)
        _pyg_extract.main(command[-1])

    monkeypatch.setattr(_pyg_cache.subprocess, "run", run)
    return found


@own_load
def test_graphs_are_read_again_when_arguments_or_code_change_and_only_then(tmp_path, path, children):
    state = tmp_path / "pyg" / "Mine" / "processed" / "data.pt"
    state.parent.mkdir(parents=True)
    state.write_bytes(b"left by other arguments")

    def mean(**arguments: float) -> float:
        (file,) = PyG(dataset=f"{path}:Mine", arguments=arguments).files(tmp_path)
        return float(load_file(file)["x"].mean())

    first = mean(bias=0.0)
    assert 0.4 < first < 0.6
    assert mean(bias=0.0) == first
    PyG(dataset=f"{path}:Mine", arguments={"bias": 0.0}, split="size").declare(tmp_path)
    assert len(children) == 1
    assert mean(bias=2.0) > first + 0.8
    write_file(tmp_path, scale=3.25)  # of another length: Python tells old bytecode by size and second
    assert mean(bias=2.0) > first + 2.4
    assert len(children) == 3


@pytest.mark.parametrize("damage", [lambda data: data[:-9], lambda data: data[:-9] + b"?" + data[-8:], None])
def test_a_damaged_reading_is_noticed_put_aside_and_made_again(tmp_path, path, children, damage, caplog):
    dataset = PyG(dataset=f"{path}:small")
    (file,) = dataset.files(tmp_path)
    whole = file.read_bytes()
    file.unlink() if damage is None else file.write_bytes(damage(whole))
    assert any("graphs.safetensors" in problem for problem in map(str, inspect(Store())))
    assert dataset.files(tmp_path) == [file]
    assert file.read_bytes() == whole
    assert len(children) == 2
    assert "is damaged and will be made again" in caplog.text
    assert list(inspect(Store())) == []


@pytest.mark.usefixtures("children")
def test_what_is_read_stands_in_the_store_at_work(tmp_path, path):
    dataset = PyG(dataset=f"{path}:small")
    dataset.store = Store(tmp_path / "own")
    (file,) = dataset.files(tmp_path)
    assert file.is_relative_to(tmp_path / "own" / "artifacts")
    assert [info.title for info in listing(dataset.store)] == ["read pyg"]
    assert sorted(item.name for item in file.parent.iterdir()) == ["graphs.safetensors", "meta.json", "summary.json"]
    assert not (tmp_path / "store").exists()


@own_load
def test_contents_of_raw_files_count_and_their_times_do_not(tmp_path, path, children):
    raw = tmp_path / "pyg" / "Raw" / "raw" / "numbers.txt"
    raw.parent.mkdir(parents=True)
    raw.write_text("1\n")
    dataset = PyG(dataset=f"{path}:Raw")
    dataset.files(tmp_path)
    before = raw.stat()
    os.utime(raw, (1.0, 1.0))
    dataset.files(tmp_path)
    assert len(children) == 1, "a copied file has another time"
    raw.write_text("2\n")
    os.utime(raw, ns=(before.st_atime_ns, before.st_mtime_ns))
    dataset.files(tmp_path)
    assert len(children) == 2, "the same size and time, and other content"


def test_code_that_is_edited_while_it_runs_is_told_and_read_again(tmp_path, children):
    path = tmp_path / "hasty.py"
    edit = "from pathlib import Path\n{}\ndef hasty():\n    Path(__file__).write_text(EDITED)\n    return small()\n"
    edited = Path(write_file(tmp_path)).read_text() + "hasty = small\n"
    path.write_text(edited + edit.format(f"EDITED = {edited!r}"))
    with pytest.raises(DataError, match=f"changed while it was read: {path}"):
        PyG(dataset=f"{path}:hasty").declare(tmp_path)
    assert PyG(dataset=f"{path}:hasty").declare(tmp_path).task.num_classes == 2
    assert len(children) == 2


def test_a_folder_s_digest_is_that_of_all_below_it(tmp_path):
    (tmp_path / "raw" / "deep").mkdir(parents=True)
    file = tmp_path / "raw" / "deep" / "a.txt"
    file.write_text("1")
    first = _pyg_extract.content_digest(tmp_path / "raw")
    file.write_text("2")
    second = _pyg_extract.content_digest(tmp_path / "raw")
    file.rename(file.with_name("b.txt"))
    assert len({first, second, _pyg_extract.content_digest(tmp_path / "raw")}) == 3


def test_arguments_that_the_class_does_not_take(tmp_path, path):
    error = ask(tmp_path / "answer", f"{path}:small", tmp_path, arguments={"counts": 3})["error"]
    assert error.startswith(f"{path}:small: raised TypeError: ")
    assert "unexpected keyword argument 'counts'" in error
    assert "_pyg_extract" not in error


def test_the_reader_does_not_outlive_who_asked(tmp_path):
    """A parent that is killed can tell nobody; what it held open is closed all the same."""
    (tmp_path / "slow.py").write_text("import time\n\n\ndef graphs():\n    time.sleep(100)\n")
    code = "from pathlib import Path; from plugins.datasets.pyg import PyG; PyG(dataset='slow.py:graphs').files(Path())"
    parent = psutil.Popen([sys.executable, "-c", code], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)})
    while not (children := parent.children()):
        time.sleep(0.05)
        assert parent.poll() is None
    parent.kill()
    parent.wait()
    until = time.monotonic() + 30
    while _lives(children[0]) and time.monotonic() < until:
        time.sleep(0.05)
    assert not _lives(children[0])


def _lives(process: psutil.Process) -> bool:
    """One that has ended stays a zombie where nobody collects orphans, as in many containers."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.status() != psutil.STATUS_ZOMBIE
    return False


def test_a_class_that_ends_its_process_is_told(tmp_path):
    (tmp_path / "bad.py").write_text("import os\n\n\ndef leaves():\n    os._exit(3)\n")
    with pytest.raises(DataError, match=r"bad\.py:leaves: the process that reads it ended with code 3"):
        PyG(dataset=f"{tmp_path}/bad.py:leaves").files(tmp_path)


def test_another_process_takes_up_what_was_read(tmp_path, monkeypatch, capsys):
    """The graphs are read in a process of their own, and their key is the same in each that asks."""
    write_file(tmp_path)
    (tmp_path / "suite.yaml").write_text(SUITE)
    (tmp_path / "data").mkdir()
    monkeypatch.chdir(tmp_path)
    words = ["run", "suite.yaml", "--data-dir", "data", "--engine", "inline"]
    with pytest.raises(SystemExit) as ended:
        main(words)
    first = capsys.readouterr()
    assert not ended.value.code, first.err
    command = [sys.executable, "-c", "from harness.cli import main; main()", *words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    again = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert "3 stages run, 0 cached" in first.out + first.err
    assert "0 stages run, 3 cached" in again.stdout + again.stderr
    (row,) = [line for line in first.out.splitlines() if line.startswith("ERM")]
    assert row in again.stdout.splitlines()


def ask(folder: Path, target: str, root: Path, **more: object) -> dict:
    """What the reader answers, asked in this process."""
    folder.mkdir(exist_ok=True)
    request = {"target": target, "arguments": {}, "root": str(root), "fields": ["x", "edge_attr"]}
    request |= {"label": "y", "split_field": None, "split_argument": "split", "parts": [], "watch": [], **more}
    (folder / "request.json").write_text(json.dumps(request))
    _pyg_extract.main(str(folder / "request.json"))
    return json.loads((folder / "answer.json").read_text())


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    monkeypatch.delitem(sys.modules, "scale", raising=False)
    return write_file(tmp_path)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("broken", "broken: raised ValueError: my own fault ("),
        ("nothing", "nothing: there is no graph in it"),
        ("Missing", "there is no class or function 'Missing'"),
        ("SCALE", "there is no class or function 'SCALE'"),
    ],
)
def test_faults_of_the_users_code_are_told(tmp_path, path, name, message):
    assert message in ask(tmp_path / "answer", f"{path}:{name}", tmp_path)["error"]


def test_modules_that_are_not_there(tmp_path):
    assert "cannot be imported: No module named" in ask(tmp_path / "a", "no_such.module:Name", tmp_path)["error"]
    assert "there is no such file" in ask(tmp_path / "b", "/no/such.py:Name", tmp_path)["error"]


@own_load
def test_nothing_is_downloaded_and_raw_files_are_watched(tmp_path, path):
    root = tmp_path / "root"
    answer = ask(tmp_path / "answer", f"{path}:Raw", root)
    assert answer["error"].startswith(f"missing data file: {root}/raw/numbers.txt\nput it there, or let the class")
    (root / "raw").mkdir(parents=True, exist_ok=True)
    (root / "raw" / "numbers.txt").write_text("1\n")
    answer = ask(tmp_path / "answer", f"{path}:Raw", root)
    assert answer["summary"]["values"] == [1, 4]
    assert list(answer["data"]) == [f"{root}/raw/numbers.txt"]
    assert {Path(source).name for source in answer["code"]} >= {"mine.py", "scale.py"}
    assert not (root / "processed").exists()


@pytest.mark.parametrize("name", ["Rootless", "rootless"])
def test_a_class_that_names_no_root_gets_none(tmp_path, path, name):
    answer = ask(tmp_path / "answer", f"{path}:{name}", tmp_path / "data" / "root")
    assert answer["summary"]["graphs"] == 6
    assert answer["data"] == {}
    assert not (tmp_path / "data").exists()


def test_any_class_that_names_a_root_gets_it(tmp_path, path):
    root = tmp_path / "root"
    assert ask(tmp_path / "answer", f"{path}:Listed", root)["summary"]["values"] == [len(str(root))]
    own = ask(tmp_path / "other", f"{path}:Listed", root, arguments={"root": "abc"})
    assert own["summary"]["values"] == [3]


def test_pyg_s_own_classes_without_a_root(tmp_path):
    few = {"num_graphs": 3, "avg_num_nodes": 4, "avg_degree": 2, "num_channels": 2}
    answer = ask(tmp_path / "answer", "torch_geometric.datasets:FakeDataset", tmp_path, arguments=few)
    assert answer["summary"]["graphs"] == 3
    error = ask(tmp_path / "other", "torch_geometric.datasets:KarateClub", tmp_path)["error"]
    assert "graph 0: the label 'y' is int64 of shape (34,); expected one finite number, or those" in error


@own_load
def test_what_is_processed_is_read_where_there_is_nothing_raw(tmp_path, path):
    root = tmp_path / "root"
    (root / "raw").mkdir(parents=True)
    (root / "raw" / "numbers.txt").write_text("1\n")
    ask(tmp_path / "answer", f"{path}:Raw", root)
    made = tmp_path / "answer" / "processed" / "all"
    made.rename(root / "processed")
    (root / "raw" / "numbers.txt").unlink()
    answer = ask(tmp_path / "other", f"{path}:Raw", root, arguments={"bias": 9.0})
    assert list(answer["data"]) == [f"{root}/processed/data.pt"]
