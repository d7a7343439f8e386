"""Copies between stores: complete, checked, only what is missing."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import uuid
from pathlib import Path

import fsspec
import pytest
from exchange_kit import clean, contents, give, other, take
from fsspec import AbstractFileSystem
from store_kit import fill, flip, fresh, stage
from test_collecting import record_run

from harness.errors import UserError
from harness.run.find import find_run
from harness.store.artifact import META
from harness.store.exchange import open_target
from harness.store.objects import Objects
from harness.store.stage import Failure
from harness.store.store import Store


@pytest.fixture
def memory() -> str:
    """The URL of an object store of fsspec's own."""
    return f"memory://{uuid.uuid4().hex}/bench"


@pytest.fixture(params=["folder", "file", "memory"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where copies go: a folder, its URL, an object store."""
    if request.param == "memory":
        return str(request.getfixturevalue("memory"))
    return f"{'file://' if request.param == 'file' else ''}{tmp_path / 'team'}"


@pytest.fixture
def two(store: Store) -> Store:
    for seed in (1, 2):
        fill(store, stage(seed))
        store.record_run(stage(seed), {"seconds": 1.5})
    return store


def test_there_and_back(two: Store, target: str) -> None:
    pushed = give(two, target)
    assert (pushed.artifacts, pushed.present, pushed.refused) == (2, 0, {})
    assert pushed.bytes > 100
    back = other(two)
    back.record_failure(stage(1).key, Failure("failed", "here"), stage(1))
    pulled = take(back, target)
    assert (pulled.artifacts, pulled.refused) == (2, {})
    assert contents(back) == contents(two)
    assert clean(back)
    assert back.open(stage(1).key).tensors("weights")["w"].tolist() == [0, 1, 2, 3]
    assert back.record(stage(1).key) == {"seconds": 1.5}
    assert back.timings() == [], "how long it took elsewhere says nothing of this machine"
    assert len(back.preimages(stage().place)) == 2
    assert back.failure(stage(1).key) is None


def test_only_what_is_missing_is_copied(two: Store, target: str) -> None:
    give(two, target)
    fill(two, stage(3))
    again = give(two, target)
    assert (again.artifacts, again.present) == (1, 2)
    back = other(two)
    fill(back, stage(1), value="mine")
    pulled = take(back, target)
    assert (pulled.artifacts, pulled.present) == (2, 1)
    assert back.open(stage(1).key).read_json("info") == {"value": "mine"}


def test_a_run_brings_what_it_is_made_of(two: Store, target: str) -> None:
    run = record_run(two, [stage(1)])
    for name in ("suite.yaml", "results.json", "code.json"):
        (two.runs / run / name).write_text("{}")
    give(two, target, (run,))
    back = other(two)
    source = open_target(target, back)
    assert source.runs() == [run]
    assert source.present([stage(1).key, "0" * 64]) == {stage(1).key}
    from exchange_kit import quiet

    from harness.store.exchange import pull

    done = pull(back, source, set(), [run], quiet)
    assert (done.artifacts, done.runs) == (1, 1)
    assert find_run("toy", back).id == run
    assert (back.runs / run / "code.json").read_text() == "{}"
    done = pull(back, source, set(), [run], quiet)
    assert (done.artifacts, done.present, done.runs) == (0, 1, 0), "it was there"
    assert give(two, target, (run,)).runs == 0
    assert pull(back, source, set(), ["none", "../x"], quiet).refused.keys() == {"run none", "run ../x"}


def test_a_run_that_has_changed_is_sent_again(two: Store, memory: str) -> None:
    run = record_run(two, [stage(1)])
    for name in ("suite.yaml", "results.json"):
        (two.runs / run / name).write_text("{}")
    give(two, memory, (run,))
    (two.runs / run / "suite.yaml").write_text("[]")
    assert give(two, memory, (run,)).runs == 1
    with open_target(memory, two).run_file(run, "suite.yaml") as stream:
        assert stream.read() == b"[]"


def test_a_damaged_artifact_is_not_pushed(two: Store, target: str) -> None:
    flip(two.artifact_folder(stage(1).key) / "info.json")
    done = give(fresh(two), target)
    assert list(done.refused) == [stage(1).key[:12]]
    assert "info.json" in str(done.refused)
    assert open_target(target, two).keys() == [stage(2).key]


def test_a_damaged_artifact_elsewhere_is_refused_and_stays_there(two: Store) -> None:
    give(two, str(two.root.with_name("team")))
    team = other(two, "team")
    flip(team.artifact_folder(stage(1).key) / "weights.safetensors")
    before = contents(team)
    back = other(two)
    done = take(back, str(team.root))
    assert done.refused == {stage(1).key[:12]: "weights.safetensors: content differs from what was written"}
    assert clean(back)
    assert back.artifact_keys() == [stage(2).key]
    assert contents(team) == before, "a source is only read"
    fill(team, stage(1))


def test_an_interrupted_upload_goes_on(two: Store, memory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The description comes last; what has arrived is not sent again."""
    sent: list[str] = []
    cut = [True]
    real = Objects._send

    def send(self: Objects, path: Path, target: str, moved: object, *, again: bool = True) -> None:
        if path.name == "meta.json" and cut[0]:
            raise KeyboardInterrupt
        if self._size(target) is None:
            sent.append(path.name)
        real(self, path, target, moved, again=again)  # type: ignore[arg-type]

    monkeypatch.setattr(Objects, "_send", send)
    with pytest.raises(KeyboardInterrupt):
        give(two, memory)
    assert open_target(memory, two).keys() == []
    assert "info.json" in sent
    sent.clear()
    cut[0] = False
    give(two, memory)
    assert sorted(sent)[-2:] == ["meta.json", "meta.json"]
    assert "info.json" not in sent
    assert len(open_target(memory, two).keys()) == 2


def test_a_half_uploaded_file_is_sent_again(two: Store, memory: str) -> None:
    give(two, memory)
    filesystem = fsspec.filesystem("memory")
    root = memory.removeprefix("memory:/")
    for path in filesystem.find(root):
        if "/blobs/" in path:
            filesystem.pipe_file(path, b"half")
        elif "/artifacts/" in path:
            filesystem.rm_file(path)
    give(two, memory)
    back = other(two)
    assert take(back, memory).refused == {}
    assert contents(back) == contents(two)


def test_readers_of_one_object_do_not_move_each_other(two: Store, memory: str) -> None:
    give(two, memory)
    target = open_target(memory, two)
    key = target.keys()[0]
    first, second = target.meta(key), target.meta(key)
    first.read()
    assert second.read() == target.meta(key).read() != b""


PUSHER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from exchange_kit import give, take
from harness.store.store import Store
done = (give if sys.argv[4] == "give" else take)(Store(Path(sys.argv[1])), sys.argv[2])
assert done.refused == {}, done
"""


def test_several_processes_at_once(two: Store) -> None:
    for seed in range(3, 15):
        fill(two, stage(seed))
    team = two.root.with_name("team")
    here = str(Path(__file__).parents[1])  # exchange_kit
    words = [sys.executable, "-c", PUSHER, str(two.root), str(team), here, "give"]
    processes = [subprocess.Popen(words) for _ in range(3)]
    assert [process.wait() for process in processes] == [0, 0, 0]
    assert contents(Store(team)) == contents(two)
    assert clean(Store(team))


def test_a_target_that_cannot_be_used(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match="this store itself"):
        open_target(f"file://{store.root}", store)
    for empty in ("", " ", "file://"):
        with pytest.raises(UserError, match="the target is empty"):
            open_target(empty, store)
    with pytest.raises(UserError, match="nosuch"):
        open_target("nosuch://bucket", store)
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(UserError, match=r"equad-bench\[remote\]"):
        open_target("s3://bucket", store)


def test_a_target_that_does_not_answer_is_not_empty() -> None:
    class Away(AbstractFileSystem):  # type: ignore[misc]
        def ls(self, *_: object, **__: object) -> list[str]:
            raise ConnectionRefusedError(111, "Connection refused")

    away = Objects(Away(), "bucket/bench", "s3://bucket/bench")
    for ask in (away.keys, away.runs, away.exists):
        with pytest.raises(UserError, match=r"cannot read s3://bucket/bench: .*refused"):
            ask()


def test_errors_of_a_library_of_its_own_are_told(two: Store, memory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients of object stores raise exceptions that are no OSError."""

    class ClientError(Exception):
        pass

    def fail(*_: object, **__: object) -> None:
        raise ClientError("AccessDenied")

    target = open_target(memory, two)
    assert isinstance(target, Objects)
    monkeypatch.setattr(target._fs, "put_file", fail)
    with pytest.raises(UserError, match=r"cannot write to memory://.*: ClientError: AccessDenied"):
        give(two, memory)
    monkeypatch.undo()
    give(two, memory)
    monkeypatch.setattr(target._fs, "open", fail)
    refused = take(other(two), memory).refused
    assert set(refused.values()) == {"OSError: ClientError: AccessDenied"}
    assert len(refused) == 2


def test_a_connection_that_breaks_while_reading_is_told(
    two: Store, memory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken(io.BytesIO):
        def read(self, *_: object) -> bytes:
            raise RuntimeError("connection lost")

    class Wrapped:
        def __init__(self) -> None:
            self.read, self.close = Broken().read, lambda: None

    give(two, memory)
    target = open_target(memory, two)
    assert isinstance(target, Objects)
    monkeypatch.setattr(target._fs, "open", lambda *_: Wrapped())
    refused = take(other(two), memory).refused
    assert set(refused.values()) == {"meta.json cannot be read (RuntimeError: connection lost)"}


def test_a_new_record_of_the_same_size_is_sent(two: Store, memory: str) -> None:
    give(two, memory)
    two.record_run(stage(1), {"seconds": 2.5})
    filesystem = fsspec.filesystem("memory")
    for path in filesystem.find(memory.removeprefix("memory:/")):
        if "/artifacts/" in path:
            filesystem.rm_file(path)  # so that it is pushed again
    give(two, memory)
    back = other(two)
    take(back, memory)
    assert back.record(stage(1).key) == {"seconds": 2.5}


def test_what_there_is_no_room_for_is_refused_and_the_rest_arrives(
    two: Store, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(two, stage(3), value="x" * 1000)
    give(two, target)
    monkeypatch.setattr("harness.store.intake.shutil.disk_usage", lambda _: type("Usage", (), {"free": 500}))
    back = other(two)
    done = take(back, target)
    assert list(done.refused) == [stage(3).key[:12]]
    assert "has room for 500" in done.refused[stage(3).key[:12]]
    assert back.artifact_keys() == sorted(stage(seed).key for seed in (1, 2))


def test_a_size_that_is_only_claimed_stops_no_other(two: Store, target: str) -> None:
    path = two.artifact_folder(stage(1).key) / META
    data = json.loads(path.read_text())
    del data["check"]
    data["files"]["info.json"]["size"] = 10**15
    give(two, target)
    team = open_target(target, two)
    if isinstance(team, Objects):
        team._fs.pipe_file(team._sharded("artifacts", f"{stage(1).key}.json"), json.dumps(data).encode())
    else:
        (Store(Path(team.name)).artifact_folder(stage(1).key) / META).write_text(json.dumps(data))
    size = (path.parent / "info.json").stat().st_size
    back = other(two)
    reason = f"info.json claims {10**15} bytes, there are {size}"
    assert take(back, target).refused == {stage(1).key[:12]: reason}
    assert back.artifact_keys() == [stage(2).key]
