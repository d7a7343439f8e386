"""What commands say: of options that are off, of runs, and as JSON. Without torch, in this process."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.cli import options
from harness.cli.main import main
from harness.cli.output import counted, tell_plugins
from harness.component import KINDS
from harness.errors import FileError, UserError
from harness.hparams import HParam
from harness.reference import PLURALS
from harness.registry.catalog import BrokenPlugin, Catalog, Entry
from harness.report import make_report, render
from harness.results.rows import RunResults
from harness.results.run_record import RunRecord
from harness.run.collect import collect
from harness.safe_io import size_text
from harness.store import Store

ROOT = Path(__file__).resolve().parents[3]
Bench = Callable[..., tuple[str, str]]
SUITE = """\
bench: 1
plugins: [broken.py]
seeds: 1
train: {epochz: 3}
datasets:
  Toy: {use: spmotif, bias: 7}
methods:
  ERM: {baseline: erm}
"""

HOSTILE = r'''
from harness import Dataset, hookimpl, hparam
from harness.errors import DataError


class Odd(Dataset):
    """Graphs \x1b[2J\x9b2J\u202e."""

    name = "odd"
    size: int = hparam(3, help="how \x1b[2J\u202e many")

    def declare(self, data_dir):
        raise DataError("no data \x1b[2J")


@hookimpl
def bench_register(register):
    register(Odd)
'''


HPARAMS = {"bias": HParam("bias", "float", 0.5), "name": HParam("name", "str", "")}
TOY = Catalog([Entry("dataset", "toy", "m", "Toy", "toy.py", "built-in", "0", HPARAMS)])


@pytest.fixture
def bench(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Bench:
    """Run a command on an empty store; gives what it printed to both streams."""
    monkeypatch.setenv("BENCH_STORE", str(store.root))
    monkeypatch.setenv("BENCH_CACHE", str(ROOT / ".pytest_cache" / "bench"))
    monkeypatch.delenv("BENCH_DATA", raising=False)
    monkeypatch.chdir(tmp_path)

    def run(*words: str, code: int = 0) -> tuple[str, str]:
        with pytest.raises(SystemExit) as ended:
            main(words)
        told = capsys.readouterr()
        assert int(ended.value.code or 0) == code, told.out + told.err
        return told.out, told.err

    return run


def record(name: str, **more: Any) -> RunRecord:
    """A run of a suite without cells."""
    results = RunResults(name.partition("/")[0], name, "equad", (1,), (), (), ())
    return RunRecord(name.replace("/", "-"), f"{results.suite}.yaml", results, (), {}, "2026-01-01", **more)


def save(store: Store, kept: RunRecord) -> None:
    folder = store.runs / kept.id
    folder.mkdir(parents=True)
    kept.save(folder)


def test_one_is_not_plural() -> None:
    assert [counted(number, "seed") for number in (0, 1, 2)] == ["0 seeds", "1 seed", "2 seeds"]


class TestOptions:
    """A value that cannot be used names its option, what was found and what is allowed."""

    def test_time_and_memory(self, bench: Bench) -> None:
        for words in (("--timeout", "5parsecs"), ("--timeout", "inf"), ("--timeout", "-1"), ("--memory", "3 apples")):
            told = bench("run", "quick", *words, code=2)[1]
            assert f"'{words[0]}': '{words[1]}' is no " in told

    def test_memory_is_told_as_it_is_given(self) -> None:
        assert [size_text(options.parse_bytes(text)) for text in ("1500M", "4G", "200M", "2GiB")] == [
            "1.5 GB",
            "4 GB",
            "200 MB",
            "2.15 GB",
        ]

    def test_a_data_folder_that_is_none(self, tmp_path: Path) -> None:
        (tmp_path / "data.csv").touch()
        for made in (True, False):
            with pytest.raises(UserError, match=r"data\.csv is a file; --data-dir or BENCH_DATA names it"):
                options.Sources(tmp_path / "data.csv").data_folder(made=made)
        gone = tmp_path / "gone"
        with pytest.raises(UserError, match="gone does not exist; --data-dir"):
            options.Sources(gone).data_folder()
        assert options.Sources(gone).data_folder(made=True) == gone, "fetching makes it"

    def test_a_hyperparameter_that_is_not_there(self) -> None:
        told = "--set bais=0.7: dataset 'toy' has no hyperparameter 'bais' (did you mean 'bias'?); it has: bias, name"
        with pytest.raises(UserError) as caught:
            options.component(TOY, "dataset", "toy", ["bais=0.7"])
        assert str(caught.value) == told
        with pytest.raises(UserError, match="--set bias: expected KEY=VALUE"):
            options.component(TOY, "dataset", "toy", ["bias"])

    def test_a_value_is_read_as_in_a_suite_and_whole(self) -> None:
        """`1e-3` was text and `yes` was true in these commands alone, and a value was cut at ` #`."""
        given = options.component(TOY, "dataset", "toy", ["bias=1e-3", "name=a #1"])
        assert given.params == {"bias": 0.001, "name": "a #1"}
        assert options.component(TOY, "dataset", "toy", ["name=yes"]).params == {"name": "yes"}


class TestInterrupted:
    """Ctrl-C: the command that goes on is the one that was given."""

    @pytest.fixture(autouse=True)
    def stop(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def stopped(*_: object) -> None:
            raise KeyboardInterrupt("ID")

        monkeypatch.setattr("harness.run.execute.execute", stopped)

    def test_all_options_are_kept(self, bench: Bench, tmp_path: Path) -> None:
        given = ["run", "quick", "--seeds", "1,2", "--methods", "ERM*", "--engine", "inline", "--debug"]
        told = bench(*given, code=130)[1].splitlines()[-1]
        again = "bench run quick --seeds 1,2 --methods 'ERM*' --engine inline --debug"
        assert told == f"interrupted; finished stages are kept: `{again}` goes on, `bench report ID` shows it"
        store = str(tmp_path / "my store")
        told = bench("run", "quick", "--store", store, code=130)[1].splitlines()[-1]
        assert f"`bench run quick --store '{store}'` goes on, `bench report ID --store '{store}'` shows" in told


class TestRuns:
    """``bench runs``."""

    def test_a_suite_without_runs_is_an_error_with_the_nearest(self, bench: Bench, store: Store) -> None:
        save(store, record("ablation/1"))
        assert "1 cell" not in bench("runs", "ablation")[0]
        told = bench("runs", "ablatoin", code=2)[1]
        assert "no run of 'ablatoin'" in told
        assert "did you mean 'ablation'" in told
        assert bench("runs", "ablation-1")[0] == bench("runs")[0]

    def test_a_run_whose_process_was_killed_is_not_going_on(self, bench: Bench, store: Store) -> None:
        save(store, replace(record("ablation/1"), status="running"))
        assert "interrupted" in bench("runs")[0]
        (run,) = json.loads(bench("runs", "--json")[0])["runs"]
        assert run["status"] == "interrupted"

    def test_runs_of_a_store_that_cannot_be_written_are_listed(
        self, bench: Bench, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        save(store, replace(record("ablation/1"), status="running"))
        (store.root / "leases").mkdir()
        (store.root / "leases" / "run-ablation-1.lock").touch()

        def refuse(path: Path) -> None:
            raise FileError(f"cannot write {path}: Permission denied")

        monkeypatch.setattr("harness.store.store.try_lock", refuse)
        assert "running" in bench("runs")[0]

    def test_what_there_is_begins_with_the_latest_suites_and_says_what_is_left_out(
        self, bench: Bench, store: Store
    ) -> None:
        for day in range(1, 8):
            name = f"suite{day % 3}"
            save(store, replace(record(f"{name}/x"), id=f"2026010{day}-000000-{name}-aaaa"))
        told = bench("report", "zzz", code=2)[1]
        assert "; there are: suite1, suite0, suite2, 20260107-000000-suite1-aaaa, 20260106" in told
        assert told.endswith("-aaaa and 2 more, see `bench runs`\n")

    def test_an_unknown_format_names_the_web_page(self, bench: Bench) -> None:
        assert bench("report", "x", "--format", "html", code=2)[1].endswith("json; for a web page: --html\n")
        assert "web page" not in bench("report", "x", "--checkpoint", "html", code=2)[1]

    def test_an_empty_store_has_none(self, bench: Bench) -> None:
        assert bench("runs")[0] == "no runs\n"
        assert "this store has no runs" in bench("runs", "quick", code=2)[1]

    @pytest.mark.parametrize(
        ("status", "told"),
        [
            ("interrupted", "The run was interrupted before its end."),
            ("running", "The run has not ended: it goes on, or was killed."),
            ("failed", None),
            ("finished", None),
        ],
    )
    def test_the_report_of_a_run_that_was_cut_short_says_so(self, store: Store, status: str, told: str | None) -> None:
        from harness.results.rows import DatasetFacts, MethodFacts

        kept = record("demo/1", status=status)
        results = replace(kept.results, datasets=(DatasetFacts("D"),), methods=("ERM",))
        results = replace(results, entries=(MethodFacts("D", "ERM", {"-": {}}),))
        text = render(make_report(collect(replace(kept, results=results), store)), "markdown")
        assert "1 of 1 cells lack values" in text
        assert (told or "The run") in text if told else "The run" not in text


class TestTextOfOthers:
    """What plugins and runs say of themselves cannot steer a terminal."""

    HIDDEN = ("\x1b", "\x9b", "\u202e")

    def harmless(self, *texts: str) -> None:
        for text in texts:
            assert "\\u001b[2J" in text or "\\u202e" in text
            assert not [sign for sign in self.HIDDEN if sign in text]

    def test_docstrings_and_help_texts(self, bench: Bench, tmp_path: Path) -> None:
        (tmp_path / "odd.py").write_text(HOSTILE)
        for words in (("list", "dataset"), ("describe", "odd")):
            self.harmless(bench(*words, "--plugin", "odd.py")[0], bench(*words, "--plugin", "odd.py", "--json")[0])

    def test_why_a_plugin_was_not_loaded(self, capsys: pytest.CaptureFixture[str]) -> None:
        tell_plugins(Catalog((), [BrokenPlugin("odd", "odd.py", "\x1b[2J\x9b2J")]))
        self.harmless(capsys.readouterr().err)

    def test_names_of_runs(self, bench: Bench, store: Store) -> None:
        kept = replace(record("demo/1"), started="\u202e")
        save(store, replace(kept, results=replace(kept.results, overrides=("\x1b[2J",))))
        self.harmless(bench("runs")[0], bench("runs", "--json")[0])


class TestValidate:
    """``bench validate``."""

    def write(self, folder: Path, text: str) -> None:
        (folder / "suite.yaml").write_text(text, encoding="utf-8")
        (folder / "broken.py").write_text("1 / 0\n", encoding="utf-8")

    def test_a_plugin_that_cannot_be_loaded_is_told_at_its_place_with_all_else(
        self, bench: Bench, tmp_path: Path
    ) -> None:
        self.write(tmp_path, SUITE)
        code, *told = bench("validate", "suite.yaml", code=2)[1].splitlines()
        assert code.startswith("code of this suite: plugin file: "), "told before it runs"
        assert told[0].startswith("error: suite.yaml:2:11: the plugin")
        assert "ZeroDivisionError" in told[0]
        assert told[1].startswith("suite.yaml:4:9: unknown key 'epochz' in 'train' (did you mean 'epochs'?)")
        assert told[2].startswith("suite.yaml:6:29: ")
        assert len(told) == 3
        self.write(tmp_path, SUITE.replace("broken.py", "gone.py"))
        told = bench("validate", "suite.yaml", code=2)[1].splitlines()
        assert told[0].startswith("error: suite.yaml:2:11: plugin file not found")
        assert len(told) == 3

    def test_as_json(self, bench: Bench, tmp_path: Path) -> None:
        self.write(tmp_path, SUITE)
        found = json.loads(bench("validate", "suite.yaml", "--json", code=2)[0])
        assert found["valid"] is False
        assert [problem["where"] for problem in found["problems"]] == [
            f"suite.yaml:{p}" for p in ("2:11", "4:9", "6:29")
        ]
        sound = SUITE.replace("plugins: [broken.py]", "name: toy").replace("z: 3", "s: 3")
        sound = sound.replace("bias: 7", "bias: 0.7")
        self.write(tmp_path, sound)
        found = json.loads(bench("validate", "suite.yaml", "--json")[0])
        assert (found["valid"], found["seeds"], found["cells"], found["problems"]) == (True, 1, 1, [])
        assert bench("validate", "suite.yaml")[0] == "suite.yaml: valid; 1 dataset, 1 method, 1 seed, 1 cell\n"
        assert json.loads(bench("validate", "gone.yaml", "--json", code=2)[0])["problems"][0]["where"] == ""


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_is_listed_by_its_name_and_its_plural(bench: Bench, kind: str) -> None:
    """``analysis`` lost its last letter and was no kind."""
    found = bench("list", kind)[0]
    assert found.startswith(f"{kind}:\n")
    assert bench("list", PLURALS[kind])[0] == found
    assert "no kind is called 'status'" in bench("list", "status", code=2)[1]


def test_a_hyperparameter_without_effect_is_told_as_such(bench: Bench) -> None:
    bench("new", "backbone", "plain-means")
    text = bench("describe", "plain-means", "--plugin", "plain_means.py")[0]
    assert text.partition("edge_features: bool")[2].splitlines()[1].strip() == "has no effect here"
