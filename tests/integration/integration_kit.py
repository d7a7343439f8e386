"""Running suites in tests: an index shared by all tests, a store for each."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

import pytest

from harness.cli.main import main
from harness.engine import EngineOptions
from harness.engine.contract import Job
from harness.engine.supervisor import prepare_fork_server
from harness.results.rows import RunResults
from harness.run.collect import collect
from harness.run.execute import RunOutcome, execute
from harness.run.find import find_run
from harness.run.session import Options, Session, open_session
from harness.store import Store
from harness.suite import Overrides

Ended = subprocess.CompletedProcess[str]
HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]

TOY = """\
bench: 1
name: toy
plugins: [toy_plugin.py]
seeds: [1, 2]
model: {hidden: 8, layers: 2}
train: {epochs: 2, batch_size: 8}
datasets:
  Toy: {use: toy}
methods:
  ERM: {baseline: erm}
  IRM: {baseline: irm, envs: random(2)}
  EQuAD:
    encoder: {use: mvgrl, layers: 2, hidden: 8, snapshots: [1, 2], batch_size: 8}
    quantifier: {use: svm, C: [1.0]}
    decorrelator: {use: eqn7, keep: 2}
"""


@pytest.fixture(scope="session", autouse=True)
def index_cache() -> None:
    """Keep the index of components between tests, away from the user's own, and read plugins in forks, as a run does.

    A fresh Python for each of their files would load torch anew.
    """
    os.environ.setdefault("BENCH_CACHE", str(ROOT / ".pytest_cache" / "bench"))
    prepare_fork_server(Job.preload)


@dataclass
class Workshop:
    """A folder with a suite, a store (its own, unless one is given), and ways to run it."""

    folder: Path
    events: list[tuple[str, str, str]] = field(default_factory=list)
    place: Path | None = None

    @property
    def store(self) -> Path:
        return self.place or self.folder / "store"

    @classmethod
    def toy(cls, folder: Path, text: str = TOY) -> Workshop:
        """One with a suite, the toy suite unless another is given, and the toy plugin."""
        made = cls(folder)
        made.write(text)
        (folder / "toy_plugin.py").symlink_to(HERE / "toy_plugin.py")  # one file for all tests, indexed once
        return made

    def copy(self, folder: Path) -> Workshop:
        """The same folder elsewhere, to be changed."""
        return Workshop(shutil.copytree(self.folder, folder, symlinks=True))

    def write(self, text: str, name: str = "suite.yaml") -> Path:
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def open(self, suite: Path | None = None, **overrides: object) -> Session:
        options = Options(store=self.store, overrides=Overrides(**overrides))  # type: ignore[arg-type]
        return open_session(str(suite or self.folder / "suite.yaml"), options)

    def run(self, suite: Path | None = None, engine: EngineOptions | None = None, **overrides: object) -> RunOutcome:
        self.events.clear()
        session = self.open(suite, **overrides)
        observe = lambda event: self.events.append((event.kind, event.stage.kind, event.stage.title))  # noqa: E731
        return execute(session, engine or EngineOptions("inline"), observe)

    def run_of(self, name: str) -> RunResults:
        """What the store holds of the latest run of a suite."""
        store = Store(self.store)
        return collect(find_run(name, store), store)

    def ran(self) -> list[str]:
        """Titles of the stages that the last run executed."""
        return [title for kind, _, title in self.events if kind == "finished"]

    def command(self, *words: str, check: bool = True, apart: bool = False, **env: str) -> Ended:
        """The command line: in this process, which has loaded what it needs, or in one of its own."""
        done = self._apart(words, env) if apart else self._here(words, env)
        if check and done.returncode != 0:
            raise AssertionError(f"exit {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done

    def _apart(self, words: Sequence[str], env: Mapping[str, str]) -> Ended:
        given = self.environment(**env)
        return subprocess.run(
            command_line(*words), cwd=self.folder, env=given, capture_output=True, text=True, check=False
        )

    def _here(self, words: Sequence[str], env: Mapping[str, str]) -> Ended:
        told, asides = io.StringIO(), io.StringIO()
        with (
            mock.patch.dict(os.environ, self.environment(**env), clear=True),
            chdir(self.folder),
            redirect_stdout(told),
            redirect_stderr(asides),
            pytest.raises(SystemExit) as ended,
        ):
            main(words)
        return subprocess.CompletedProcess(words, int(ended.value.code or 0), told.getvalue(), asides.getvalue())

    def environment(self, **more: str) -> dict[str, str]:
        known = {name: value for name, value in os.environ.items() if name != "BENCH_DATA"}
        return {**known, "PYTHONPATH": str(ROOT), "BENCH_STORE": str(self.store), **more}


def command_line(*words: str) -> list[str]:
    return [sys.executable, "-c", "from harness.cli import main; main()", *words]


def stored(session: Session) -> dict[str, dict[str, str]]:
    """Checksums of the files of every artifact that a plan names."""
    keys = [key for stage in session.plan.stages.values() for key in (stage.key, *stage.outputs)]
    metas = {key: session.store.open(key).meta for key in keys if session.store.has(key)}
    return {key: {name: item["sha256"] for name, item in meta.files.items()} for key, meta in metas.items()}


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    """A folder with the toy suite and its plugin."""
    return Workshop.toy(tmp_path)


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    """A workshop whose toy suite has been run, for all tests: to be read, or copied."""
    workshop = Workshop.toy(tmp_path_factory.mktemp("made"))
    assert workshop.run().exit_code == 0
    return workshop


@pytest.fixture
def copied(made: Workshop, tmp_path: Path) -> Workshop:
    """The same, to be changed."""
    return made.copy(tmp_path / "copy")


@pytest.fixture
def bench(workshop: Workshop) -> Callable[..., str]:
    """Runs a command in this process; gives what it printed, after checking its exit code."""

    def call(*words: str, code: int = 0) -> str:
        done = workshop.command(*words, check=False)
        assert done.returncode == code, done.stderr
        return done.stderr if code else done.stdout

    return call


@pytest.fixture
def values() -> Callable[[RunResults], dict[tuple[object, ...], object]]:
    """The numbers of a run, by cell, split and checkpoint."""

    def numbers(results: RunResults) -> dict[tuple[object, ...], object]:
        return {
            (r.dataset, r.method, r.config_id, r.seed, r.split, r.checkpoint): (r.value, r.status) for r in results.rows
        }

    return numbers
