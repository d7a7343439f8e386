"""What a hostile store may try, and what comes of it: a refusal, and nothing kept."""

from __future__ import annotations

import hashlib
import json
import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from exchange_kit import clean, give, other, take
from store_kit import fill, record_run, rewrite, stage

from harness.store import Store

Change = Callable[[dict[str, Any]], object]


@pytest.fixture
def team(store: Store) -> Store:
    """A store elsewhere with one artifact."""
    fill(store, stage())
    give(store, str(store.root.with_name("team")))
    return other(store, "team")


def forge(team: Store, change: Change) -> Path:
    """Change a description as somebody could who knows how its checksum is made."""
    return rewrite(team.artifact_folder(stage().key), change)


def refused(team: Store) -> str:
    """Why the artifact is refused; nothing of it must be left."""
    mine = other(team, "mine")
    done = take(mine, str(team.root))
    assert list(done.refused) == [stage().key[:12]]
    assert mine.artifact_keys() == []
    assert clean(mine)
    return done.refused[stage().key[:12]]


def entry(content: bytes) -> dict[str, Any]:
    return {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}


@pytest.mark.parametrize(
    "name",
    [
        *("../../escape.json", "/etc/escape.json", "a/b.json", "..", ".hidden.json", "meta.json", "c:\\x.json"),
        *("x\n.json", "", "x" * 300 + ".json"),
    ],
)
def test_names_that_lead_elsewhere_or_are_of_no_use(team: Store, name: str) -> None:
    forge(team, lambda data: data["files"].update({name: entry(b"{}")}))
    assert "cannot name a file" in refused(team)
    assert not list(team.root.parent.glob("escape*"))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda data: data["preimage"].update(seed=9), "another artifact"),
        (lambda data: data.update(key="0" * 64), "another artifact"),
        (lambda data: data.update(kind="weird"), "another artifact"),
        (lambda data: data.update(preimage=[]), "preimage"),
        (lambda data: data.update(title=["x"]), "title"),
        (lambda data: data.update(created="long ago"), "created"),
        (lambda data: data["files"]["info.json"].update(sha256=5), "no size or checksum"),
        (lambda data: data["files"]["info.json"].update(sha256="../" * 21 + "x"), "no size or checksum"),
        (lambda data: data.update(files=[]), "damaged"),
        (lambda data: data["files"]["info.json"].update(size=3), "bytes instead of 3"),
        (lambda data: data["files"]["info.json"].update(size=-1), "instead of -1"),
        (lambda data: data["files"]["info.json"].update(size="9"), "no size"),
    ],
)
def test_descriptions_that_are_not_true(team: Store, change: Change, why: str) -> None:
    forge(team, change)
    assert why in refused(team)


@pytest.mark.skipif(os.name != "posix", reason="needs symbolic links and pipes")
@pytest.mark.parametrize("what", ["link", "pipe", "folder"])
def test_what_is_no_plain_file(team: Store, what: str) -> None:
    path = team.artifact_folder(stage().key) / "info.json"
    content = path.read_bytes()
    path.unlink()
    if what == "link":
        secret = team.root.parent / "secret"
        secret.write_bytes(content)
        path.symlink_to(secret)
    elif what == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()
    told = refused(team)
    if what == "link":
        assert told == "info.json is no plain file; links are not followed"


@pytest.mark.skipif(os.name != "posix", reason="needs symbolic links")
@pytest.mark.timeout(60)
def test_links_that_lead_in_a_circle_end(team: Store) -> None:
    for name in ("ab", "cd", "ef"):
        (team.root / "artifacts" / name).symlink_to(team.root / "artifacts")
    mine = other(team, "mine")
    assert take(mine, str(team.root)).artifacts == 1
    assert clean(mine)


def test_a_record_that_is_none_is_left_out(team: Store) -> None:
    false = ('{"seconds": "long"}', '{"provenance": "none"}', '{"provenance": {"versions": [1]}}')
    for content in ("[" * 100_000, '{"seconds": NaN}', "[]", *false):
        team.record_path(stage().key).parent.mkdir(parents=True, exist_ok=True)
        team.record_path(stage().key).write_text(content)
        mine = other(team, f"mine{len(content)}")
        assert take(mine, str(team.root)).refused == {}
        assert mine.record(stage().key) == {}


def test_a_run_of_another_name_or_shape(team: Store) -> None:
    run = record_run(team, [stage()], "20260101-000000-toy-0001")
    record = (team.runs / run / "run.json").read_text()
    for content in (
        record.replace("-0001", "-0002"),
        "{",
        "[" * 100_000,
        json.dumps({**json.loads(record), "cells": [{"x": 1}]}),
    ):
        (team.runs / run / "run.json").write_text(content)
        mine = other(team, "mine")
        assert list(take(mine, str(team.root), (run,)).refused) == [f"run {run}"]
        assert list(mine.runs.glob("*")) == []
        assert list((mine.root / "tmp").glob("*")) == []


def test_a_run_that_is_damaged_here_is_not_said_to_be_copied(team: Store) -> None:
    run = record_run(team, [stage()], "20260101-000000-toy-0001")
    mine = other(team, "mine")
    (mine.runs / run).mkdir(parents=True)
    (mine.runs / run / "run.json").write_text("{")
    done = take(mine, str(team.root), (run,))
    assert done.runs == 0
    assert "not a readable run record" in done.refused[f"run {run}"]
    assert list((mine.root / "tmp").glob("*")) == []


def test_a_text_that_unpacks_to_a_gigabyte_is_not_read(team: Store) -> None:
    """Such as a file with a hole, or one in an archive: small where it is kept, and large in memory."""
    meta = team.artifact_folder(stage().key) / "meta.json"
    os.truncate(meta, 1 << 30)
    run = record_run(team, [stage()])
    os.truncate(team.runs / run / "results.json", 1 << 30)
    mine = other(team, "mine")
    tracemalloc.start()
    try:
        done = take(mine, str(team.root), (run,))
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()
    assert done.refused == {
        stage().key[:12]: "meta.json is larger than it may be",
        f"run {run}": "results.json is larger than it may be",
    }
    assert clean(mine)
