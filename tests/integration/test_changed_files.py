"""Files that change between planning and running: what is stored under a key is what its digests say."""

from __future__ import annotations

import hashlib
import os
import random
import tarfile
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from integration_kit import Workshop, stored

from harness.engine import EngineOptions
from harness.engine.cluster import Profile
from harness.errors import BenchError, DataError
from harness.notebook import SuiteHandle, open_suite
from harness.registry.importing import reader
from harness.run.execute import RunOutcome, execute
from harness.run.session import Options, open_session
from harness.store import Store
from harness.suite import Overrides

SUITE = """\
bench: 1
name: changing
plugins: [toy_plugin.py, CODE/editor.py, CODE/scaled.py]
seeds: [1]
model: {hidden: 8, layers: 2}
train: {epochs: 1, batch_size: 8}
datasets:
  Toy: {use: toy}
methods:
  Editor: {baseline: editor}
  Scaled: {baseline: scaled}
"""
EDITOR = '''\
from pathlib import Path
from harness import Baseline, hookimpl

class Editor(Baseline):
    """ERM that edits its neighbours while it trains."""

    name = "editor"

    def on_fit_start(self, train):
        folder = Path(__file__).parent
        for name in ("parts/scale.py", "lazy.py", "scaled.py"):
            text = (folder / name).read_text()
            (folder / name).write_text(text.replace("2.0", "3.0"))

    def loss(self, batch):
        return {"erm": self.risk(self(batch), batch).mean()}

@hookimpl
def bench_register(register):
    register(Editor)
'''
SCALED = '''\
from harness import Baseline, hookimpl
from .parts.scale import SCALE

OWN = 2.0

class Scaled(Baseline):
    """ERM whose loss is scaled by numbers from three files."""

    name = "scaled"

    def loss(self, batch):
        from .lazy import LAZY

        return {"erm": OWN * SCALE * LAZY * self.risk(self(batch), batch).mean()}

@hookimpl
def bench_register(register):
    register(Scaled)
'''
FILES = {"editor.py": EDITOR, "scaled.py": SCALED, "parts/scale.py": "SCALE = 2.0\n", "lazy.py": "LAZY = 2.0\n"}


@dataclass
class Changing:
    """A suite whose first method edits the plugin of the second, which is in ``code``, while it trains."""

    workshop: Workshop
    code: Path

    def write(self, *edited: str) -> None:
        """Write all files, these with other numbers."""
        for name, text in FILES.items():
            (self.code / name).write_text(text.replace("2.0", "3.0") if name in edited else text, encoding="utf-8")

    def predictions(self, store: str = "store") -> bytes:
        """The stored predictions of the second method under the key that is planned now."""
        (cell,) = self.workshop.open(methods=["Scaled"]).plan.cells
        return Store(self.workshop.folder / store).open(cell.train).path("predictions").read_bytes()

    def notebook(self, store: str = "store") -> SuiteHandle:
        """The second method in a notebook."""
        folder = self.workshop.folder
        return open_suite(folder / "suite.yaml", methods=["Scaled"], store=folder / store)


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for all tests, so that its plugins are indexed once."""
    folder = tmp_path_factory.mktemp("code")
    (folder / "parts").mkdir()  # without __init__.py
    return folder


@pytest.fixture
def changing(workshop: Workshop, code: Path) -> Changing:
    made = Changing(workshop, code)
    made.write()
    workshop.write(SUITE.replace("CODE", str(code)))
    return made


ENGINES = ("inline", "processes", "dask")


def engine(name: str) -> EngineOptions:
    if name != "dask":
        return EngineOptions(name, jobs=1)
    pytest.importorskip("distributed", reason="needs the extra `cluster`")
    return EngineOptions(name, jobs=1, cluster=Profile("local", workers=1))


@pytest.mark.parametrize("name", ENGINES)
def test_a_plugin_edited_while_another_trains_runs_and_is_archived_as_it_was_planned(
    changing: Changing, name: str
) -> None:
    workshop = changing.workshop
    outcome = workshop.run(engine=engine(name))
    assert outcome.exit_code == 0
    assert "3.0" in (changing.code / "lazy.py").read_text(), "the edit was made"
    workshop.command("export", "changing", "-o", "out", "--what", "archive")
    (packed,) = (workshop.folder / "out").glob("*.tar.gz")
    with tarfile.open(packed) as archive:
        texts = {
            member.partition("/")[2]: archive.extractfile(member).read().decode()  # type: ignore[union-attr]
            for member in archive.getnames()
        }
    for file in ("scaled.py", "parts/scale.py", "lazy.py"):
        assert texts[f"plugins/03/{file}"] == FILES[file] != (changing.code / file).read_text()
    changing.write()
    changing.notebook("another").run()
    assert changing.predictions() == changing.predictions("another")
    workshop.run(methods=["Scaled"])
    assert workshop.ran() == []


def test_an_archive_of_code_that_is_not_kept_is_refused(changing: Changing) -> None:
    workshop = changing.workshop
    outcome = workshop.run(methods=["Scaled"])
    (outcome.folder / "code.json").unlink()
    done = workshop.command("export", "changing", "-o", "out", "--what", "archive", check=False)
    assert done.returncode == 2
    assert "does not keep the plugin" in done.stderr


def test_a_notebook_loads_an_edited_plugin_anew_with_its_helpers(changing: Changing) -> None:
    changing.notebook().run()
    before = changing.predictions()
    changing.write("parts/scale.py", "lazy.py")
    changing.notebook().run()
    changing.notebook("another").run(jobs=1)
    assert changing.predictions() != before
    assert changing.predictions() == changing.predictions("another"), "as a process that has loaded nothing before"


@pytest.mark.parametrize("jobs", [None, 1])
def test_what_is_not_kept_as_planned_stops_and_is_no_stored_failure(changing: Changing, jobs: int | None) -> None:
    suite = changing.notebook()
    changing.write("lazy.py")
    reader().contents.clear()  # as where the plugin had not been loaded before
    assert {(row["status"], row["reason"]) for row in suite.run(jobs=jobs).rows()} == {
        ("failed", f"changed since it was planned: {changing.code / 'lazy.py'}")
    }
    changing.write()
    assert {row["status"] for row in suite.run().rows()} == {"ok"}


@dataclass
class Edits:
    """Writes other numbers into files at random moments, each file whole; ``texts`` has all contents by SHA-256."""

    files: dict[Path, str]
    rng: random.Random
    texts: dict[str, str] = field(default_factory=dict)
    ended: threading.Event = field(default_factory=threading.Event)

    def write(self, path: Path, text: str) -> None:
        self.texts[hashlib.sha256(text.encode()).hexdigest()] = text
        part = path.with_suffix(".part")
        part.write_text(text, encoding="utf-8")
        part.replace(path)

    def go_on(self) -> None:
        while not self.ended.wait(self.rng.uniform(0.0, 0.5)):
            path = self.rng.choices(list(self.files), [8] * (len(self.files) - 1) + [1])[0]  # data are rarely written
            self.write(path, self.files[path].replace("2.0", self.rng.choice(("2.0", "3.0", "4.0"))))


@pytest.mark.parametrize("seed", range(int(os.environ.get("BENCH_EDITING_RUNS", "1"))))
def test_what_is_stored_is_what_a_fresh_run_of_its_key_gives(changing: Changing, seed: int) -> None:
    """Whatever is edited whenever; ``BENCH_EDITING_RUNS`` makes it a longer campaign."""
    workshop, number = changing.workshop, changing.workshop.folder / "number.txt"
    workshop.write((workshop.folder / "suite.yaml").read_text().replace("use: toy", f"use: toy, file: {number}"))
    files = {changing.code / name: text for name, text in FILES.items() if name != "editor.py"}
    edits = Edits({**files, number: "2.0"}, random.Random(seed))
    for path, text in edits.files.items():
        edits.write(path, text)
    thread = threading.Thread(target=edits.go_on)
    thread.start()
    try:
        for _ in range(20):
            with suppress(BenchError):
                session = workshop.open(methods=["Scaled"], seeds="1,2")
                execute(session, EngineOptions(jobs=2), lambda _: None)
                if all(session.store.has(cell.score) for cell in session.plan.cells):
                    break
    finally:
        edits.ended.set()
        thread.join()
    planned = session.catalog.get("baseline", "scaled").files
    for name, digest in planned.items():
        edits.write(changing.code / name, edits.texts[digest])
    prepared = next(stage for stage in session.plan.stages.values() if stage.kind == "prepare")
    edits.write(number, edits.texts[prepared.preimage["files"][0]["sha256"]])
    options = Options(store=workshop.folder / "another", overrides=Overrides(methods=["Scaled"], seeds="1,2"))
    fresh = open_session(str(workshop.folder / "suite.yaml"), options)
    execute(fresh, EngineOptions("inline"), lambda _: None)
    assert len(stored(session)) == 7
    assert stored(session) == stored(fresh)


MUTABLE = '''\
from pathlib import Path
from .toy_plugin import Toy
from harness import hookimpl

class Mutable(Toy):
    """A toy set that edits the files of others while it is built."""

    name = "mutable"

    def build(self, data_dir):
        for name, text in {"table.csv": "smiles,label\\nCCO,1\\n" * 9, "named.py": "COUNT = 31"}.items():
            path = data_dir / name
            if path.exists():
                path.write_text(text + path.read_text().removeprefix("COUNT = 30"))
        return super().build(data_dir)

@hookimpl
def bench_register(register):
    register(Mutable)
'''
NAMED = """COUNT = 30
import torch
from torch_geometric.data import Data

def graphs():
    edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    return [Data(x=torch.rand(3, 2), edge_index=edges, y=torch.tensor([row % 2])) for row in range(COUNT)]
"""
TABLE = "smiles,label\n" + "".join(f"{'C' * (1 + row)}O,{row % 2}\n" for row in range(20))
DATA = """\
bench: 1
name: data
plugins: [mutable.py]
seeds: [1]
model: {hidden: 8, layers: 1}
train: {epochs: 1}
datasets:
  First: {use: mutable}
  Second: SECOND
methods:
  ERM: {baseline: erm}
"""
SECONDS = {
    "table.csv": (TABLE, "{use: smiles-csv, path: table.csv, split: random}"),
    "named.py": (NAMED, "{use: pyg, dataset: 'PATH:graphs'}"),
}


def run_data(workshop: Workshop, name: str) -> RunOutcome:
    options = Options(store=workshop.store, data_dir=workshop.folder)
    session = open_session(str(workshop.folder / "suite.yaml"), options)
    return execute(session, engine(name), lambda _: None)


@pytest.mark.parametrize(("name", "file"), [("inline", "table.csv"), ("processes", "named.py")])
def test_data_that_change_while_another_set_is_built_stop_the_run(workshop: Workshop, file: str, name: str) -> None:
    text, component = SECONDS[file]
    path = workshop.write(text, file)
    workshop.write(MUTABLE, "mutable.py")
    workshop.write(DATA.replace("SECOND", component.replace("PATH", str(path))))
    with pytest.raises(DataError, match=r"cannot prepare Second: changed since it was planned: .*" + file):
        run_data(workshop, name)
    assert not list((workshop.store / "runs").iterdir()), "a run that is refused leaves no record"
    assert path.read_text() != text
    path.write_text(text, encoding="utf-8")
    assert not run_data(workshop, "inline").record.failures
