"""Copies between stores: complete, checked, only what is missing."""

from __future__ import annotations

import subprocess
import sys
import uuid
from pathlib import Path

import fsspec
import pytest
from exchange_kit import clean, contents, give, other, take
from store_kit import fill, flip, fresh, record_run, rewrite, stage

from harness.errors import FileError, UserError
from harness.run.find import find_run
from harness.store import Failure, Store
from harness.store.artifact import META
from harness.store.exchange import Remote, pull


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of an object store of fsspec's own, whose readers of one object share a position."""
    monkeypatch.setattr("harness.store.exchange._AT_ONCE", 1)
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
    assert give(two, target, (run,)).runs == 1
    back = other(two)
    source = Remote(target, back, exists=True)
    assert source.runs() == {run}
    assert source.keys() == {stage(1).key, stage(2).key}
    done = pull(back, source, set(), [run])
    assert (done.artifacts, done.runs) == (1, 1)
    assert find_run("toy", back).id == run
    assert (back.runs / run / "code.json").read_text() == "{}"
    done = pull(back, source, set(), [run])
    assert (done.artifacts, done.present, done.runs) == (0, 1, 0), "it was there"
    assert pull(back, source, set(), ["none", "../x"]).refused.keys() == {"run none", "run ../x"}


def test_a_run_that_has_changed_is_sent_again(two: Store, memory: str) -> None:
    run = record_run(two, [stage(1)])
    give(two, memory, (run,))
    (two.runs / run / "suite.yaml").write_text("[]")
    assert give(two, memory, (run,)).runs == 1
    there = Remote(memory, two)
    assert there.text(f"{there.root}/runs/{run}/suite.yaml") == "[]"


def test_an_incomplete_run_is_not_pushed(two: Store, memory: str) -> None:
    run = record_run(two, [stage(1)])
    (two.runs / run / "suite.yaml").unlink()
    done = give(two, memory, (run,))
    assert "suite.yaml" in done.refused[f"run {run}"]
    assert Remote(memory, two).runs() == set()


def test_a_damaged_artifact_is_not_pushed(two: Store, target: str) -> None:
    flip(two.artifact_folder(stage(1).key) / "info.json")
    done = give(fresh(two), target)
    assert list(done.refused) == [stage(1).key[:12]]
    assert "info.json" in str(done.refused)
    assert Remote(target, two).keys() == {stage(2).key}


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
    cut = True
    filesystem = type(Remote(memory, two).fs)
    real = filesystem.put_file

    def put_file(self: object, path: str, target: str) -> None:
        if Path(path).name == META and cut:
            raise KeyboardInterrupt
        sent.append(Path(path).name)
        real(self, path, target)

    monkeypatch.setattr(filesystem, "put_file", put_file)
    with pytest.raises(KeyboardInterrupt):
        give(two, memory)
    assert Remote(memory, two).keys() == set()
    assert "info.json" in sent
    sent.clear()
    cut = False
    give(two, memory)
    assert sent.count(META) == 2
    assert "weights.safetensors" not in sent
    assert len(Remote(memory, two).keys()) == 2


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


PUSHER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from exchange_kit import give, take
from harness.store import Store
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


def test_a_target_that_cannot_be_used(store: Store) -> None:
    store.require_writable()
    with pytest.raises(UserError, match="this store itself"):
        Remote(f"file://{store.root}", store)
    for empty in ("", " ", "file://"):
        with pytest.raises(UserError, match="the target is empty"):
            Remote(empty, store)
    with pytest.raises(UserError, match="cannot use nosuch://bucket"):
        Remote("nosuch://bucket", store)


class ClientError(Exception):
    """Clients of object stores raise exceptions that are no OSError."""


def refuse(*_: object, **__: object) -> None:
    raise ClientError("AccessDenied")


def test_a_target_that_does_not_answer_is_not_empty(two: Store, memory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(Remote(memory, two).fs), "info", refuse)
    with pytest.raises(FileError, match=r"cannot use memory://.*: ClientError: AccessDenied"):
        take(two, memory)


def test_errors_of_a_client_name_the_target(two: Store, memory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    filesystem = type(Remote(memory, two).fs)
    with monkeypatch.context() as patch:
        patch.setattr(filesystem, "put_file", refuse)
        with pytest.raises(FileError, match=r"cannot use memory://.*: ClientError: AccessDenied"):
            give(two, memory)
    give(two, memory)
    monkeypatch.setattr(filesystem, "open", refuse)
    refused = take(other(two), memory).refused
    assert set(refused.values()) == {"ClientError: AccessDenied"}
    assert len(refused) == 2


def test_a_new_record_is_sent_with_its_artifact(two: Store, memory: str) -> None:
    give(two, memory)
    two.record_run(stage(1), {"seconds": 2.5})
    there = Remote(memory, two)
    there.fs.rm_file(there.path(stage(1).key, META))  # so that it is pushed again
    give(two, memory)
    back = other(two)
    take(back, memory)
    assert back.record(stage(1).key) == {"seconds": 2.5}


def test_a_size_that_is_only_claimed_stops_no_other(two: Store, target: str) -> None:
    give(two, target)
    there = Remote(target, two)
    folder = fill(other(two, "forged"), stage(1))
    size = (folder / "info.json").stat().st_size
    rewrite(folder, lambda data: data["files"]["info.json"].update(size=size + 7))
    there.fs.put_file(str(folder / META), there.path(stage(1).key, META))
    back = other(two)
    reason = f"has {size} bytes instead of {size + 7}"
    assert reason in take(back, target).refused[stage(1).key[:12]]
    assert back.artifact_keys() == [stage(2).key]


def test_a_server_that_sends_more_than_it_says_is_cut_off(
    two: Store, memory: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    give(two, memory)
    there = Remote(memory, two)
    real = type(there.fs).info
    for path in there.fs.find(f"{there.root}/blobs"):
        there.fs.pipe_file(path, there.fs.cat_file(path) + b"more")
    monkeypatch.setattr(
        type(there.fs), "info", lambda *a: {**(told := real(*a)), "size": told["size"] and told["size"] - 4}
    )
    back = other(two)
    assert all("larger than it may be" in why for why in take(back, memory).refused.values())
    assert back.artifact_keys() == []
