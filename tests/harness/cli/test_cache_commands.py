"""``bench cache gc``, ``verify --repair``, ``push`` and ``pull`` as they are typed."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from exchange_kit import other
from store_kit import fill, flip, record_run, stage, titles, use

from harness.cli.main import main
from harness.safe_io import size_text
from harness.store import Store
from harness.store.maintenance import listing

Bench = Callable[..., str]


@pytest.fixture
def bench(store: Store, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """Runs ``bench cache …`` on the store; gives what it printed, after checking its exit code."""
    monkeypatch.setenv("BENCH_STORE", str(store.root))

    def run(*words: str, code: int = 0) -> str:
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as ended:
            main(["cache", *words])
        assert int(ended.value.code or 0) == code, out.getvalue() + err.getvalue()
        return out.getvalue() + err.getvalue()

    return run


@pytest.fixture
def three(store: Store) -> Store:
    for seed in (1, 2, 3):
        fill(store, stage(seed))
        use(store, stage(seed), seed)
    return store


def test_gc_tells_and_does_nothing_without_yes(three: Store, bench: Bench) -> None:
    told = bench("gc", "--older-than", "30d")
    assert "would remove 3 artifacts and 0 leftovers" in told
    assert "nothing has been removed; --yes does it" in told
    assert "train ERM, seed 1" in told
    assert titles(three) == ["1", "2", "3"]
    assert "would remove 0 artifacts" in bench("gc")


def test_gc_with_yes(three: Store, bench: Bench) -> None:
    size = listing(three)[0].size
    told = bench("gc", "--max-size", str(2 * size), "--yes")
    assert told.splitlines()[-1] == (
        f"removed 1 artifact and 0 leftovers, {size_text(size)}; artifacts then take {size_text(2 * size)}"
    )
    assert titles(three) == ["2", "3"]
    data = json.loads(bench("gc", "--older-than", "1h", "--json"))
    assert (len(data["artifacts"]), data["removed"], data["bytes_before"]) == (2, False, 2 * size)
    assert json.loads(bench("gc", "--older-than", "1h", "--json", "-y"))["removed"] is True
    assert titles(three) == []


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--older-than", "-1"), "is no time; write 90 (seconds), 15m, 2h or 30d"),
        (("--older-than", "soon"), "is no time; write 90 (seconds), 15m, 2h or 30d"),
        (("--max-size", "big"), "--max-size"),
        (("--unreachable-from", "nosuch"), "nosuch"),
    ],
)
def test_gc_options_that_make_no_sense(bench: Bench, words: tuple[str, ...], text: str) -> None:
    assert text in bench("gc", *words, code=2)


def test_gc_keeps_what_suites_need(three: Store, bench: Bench) -> None:
    assert "would remove 3 artifacts" in bench("gc", "--unreachable-from", "quick")
    assert len(titles(three)) == 3


def test_verify_tells_and_repairs(three: Store, bench: Bench) -> None:
    assert bench("verify") == "3 artifacts are sound, 0 problems\n"
    flip(three.artifact_folder(stage(1).key) / "info.json")
    (three.artifact_folder(stage(2).key) / "meta.json").write_text("{", encoding="utf-8")
    (three.root / "tmp" / "dead").mkdir()
    told = bench("verify", code=1)
    assert (
        f"{stage(1).key[:12]}: the artifact of 'train ERM, seed 1' is damaged (info.json: its checksum differs)" in told
    )
    assert told.count(stage(2).key[:12]) == 1
    assert "1 artifact is sound, 2 problems" in told
    assert "--repair puts" in told
    assert bench("verify", code=1) == told, "it changes nothing"
    data = json.loads(bench("verify", "--json", code=1))
    assert (data["sound"], len(data["problems"]), data["repaired"]) == (1, 2, 0)
    mended = bench("verify", "--repair")
    assert "put aside" in mended
    assert "1 leftover of dead processes removed" in mended
    assert bench("verify") == "1 artifact is sound, 0 problems\n"
    assert list((three.root / "tmp").iterdir()) == []


def test_the_parts_of_the_size_sum_to_it(three: Store, bench: Bench) -> None:
    record_run(three, [stage(1)])
    (three.root / "debris").mkdir()
    (three.root / "debris" / "left").write_bytes(b"x" * 1000)
    found = json.loads(bench("size", "--json"))
    assert sum(kind["bytes"] for kind in found["kinds"].values()) + found["other"] == found["bytes"]
    assert found["other"] >= 1000
    told = bench("size")
    assert "3 artifacts" in told
    assert "runs, records, leftovers" in told


def test_verify_says_what_it_could_not_repair(three: Store, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    flip(three.artifact_folder(stage(1).key) / "info.json")

    def refuse(*_: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(Path, "rename", refuse)
    assert "not repaired: cannot write" in bench("verify", "--repair", code=1)


def test_push_and_pull(three: Store, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    run = record_run(three, [stage(1)])
    team = str(three.root.with_name("team"))
    assert f"pushed 1 artifact and 1 run, 93 B to {team}" in bench("push", team, run)
    assert f"pushed 2 artifacts, 186 B to {team}; 1 artifact already there" in bench("push", team)
    mine = other(three, "mine")
    monkeypatch.setenv("BENCH_STORE", str(mine.root))
    assert f"pulled 1 artifact and 1 run, 93 B from {team}" in bench("pull", team, run)
    flip(other(three, "team").artifact_folder(stage(2).key) / "info.json")
    told = bench("pull", team, code=1)
    assert f"{stage(2).key[:12]}: refused: info.json: content differs from what was written" in told
    assert "pulled 1 artifact, 93 B from" in told
    data = json.loads(bench("pull", team, "--json", code=1))
    assert (data["artifacts"], data["present"], list(data["refused"])) == (0, 2, [stage(2).key[:12]])
    assert "a run of this store may be named too" in bench("push", team, "nosuch", code=2)
    assert "cannot use nosuch://x" in bench("push", "nosuch://x", code=2)


def test_a_source_that_is_not_there_is_no_empty_one(bench: Bench, store: Store, tmp_path: Path) -> None:
    for away in (str(tmp_path / "nowhere"), (tmp_path / "nowhere").as_uri(), "memory://nowhere/bench"):
        assert f"there is no store at {away}" in bench("pull", away, code=2)
    assert list(tmp_path.iterdir()) == [], "nothing is made, here or there"
    (tmp_path / "empty").mkdir()
    assert "pulled 0 artifacts" in bench("pull", str(tmp_path / "empty"))
    assert store.artifact_keys() == []
