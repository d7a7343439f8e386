"""The store: artifacts are complete or absent, read back, listed and explained."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from store_kit import fill, fresh, stage

from harness.store import Failure, Meta, Store, digest, new_run_name
from harness.store.artifact import strict
from harness.store.maintenance import disk_size, inspect, listing


def test_what_is_written_is_read_back(store: Store) -> None:
    made = stage()
    assert not store.has(made.key)
    fill(store, made)
    assert store.has(made.key)
    artifact = store.open(made.key)
    assert artifact.read_json("info") == {"value": 1}
    assert torch.equal(artifact.tensors("weights")["w"], torch.arange(4.0))
    assert artifact.path("weights").name == "weights.safetensors"
    meta = artifact.meta
    assert (meta.key, meta.kind, meta.place, meta.title) == (made.key, "train", made.place, made.title)
    assert meta.preimage == made.preimage
    assert set(meta.files) == {"info.json", "weights.safetensors"}


def test_an_unknown_file_of_an_artifact_is_told(store: Store) -> None:
    fill(store, stage())
    with pytest.raises(KeyError, match=r"no file 'gone'.*info\.json"):
        store.open(stage().key).path("gone")


def test_views_and_shared_tensors_are_written_in_full(store: Store) -> None:
    whole = torch.arange(6.0)
    with store.create(stage()) as draft:
        draft.write_tensors("t", {"view": whole[::2], "same": whole, "again": whole, "grad": whole.requires_grad_()})
    read = store.open(stage().key).tensors("t")
    assert torch.equal(read["view"], torch.tensor([0.0, 2.0, 4.0]))
    assert torch.equal(read["again"], torch.arange(6.0))


def test_writing_into_a_loaded_tensor_leaves_the_artifact_alone(store: Store) -> None:
    fill(store, stage())
    store.open(stage().key).tensors("weights")["w"].fill_(9.0)
    assert torch.equal(store.open(stage().key).tensors("weights")["w"], torch.arange(4.0))
    assert list(inspect(store)) == []


def test_json_is_strict(store: Store) -> None:
    with store.create(stage()) as draft:
        draft.write_json(
            "a", {"nan": float("nan"), "np": np.float32("inf"), "list": np.array([1.0, np.nan]), "t": (1,)}
        )
    text = store.open(stage().key).path("a").read_text()

    def refuse(name: str) -> None:
        raise AssertionError(name)

    assert json.loads(text, parse_constant=refuse) == {"nan": None, "np": None, "list": [1.0, None], "t": [1]}


def test_strict_json_keeps_what_json_can_say() -> None:
    assert strict({1: True, "p": Path("x"), "s": {2, 1}, "n": np.int64(3)}) == {
        "1": True,
        "p": "x",
        "s": [1, 2],
        "n": 3,
    }


@pytest.mark.parametrize("name", ["../x", "a/b", ".hidden", "meta.json", "a\\b"])
def test_a_file_cannot_leave_its_artifact(store: Store, name: str) -> None:
    with store.create(stage()) as draft, pytest.raises(ValueError, match="cannot name"):
        draft.path(name)


def test_an_exception_leaves_nothing(store: Store) -> None:
    with pytest.raises(TypeError, match="not JSON serializable"), store.create(stage()) as draft:
        draft.write_json("info", object())
    assert not store.has(stage().key)
    assert list((store.root / "tmp").iterdir()) == []


def test_the_first_artifact_of_a_key_stays(store: Store) -> None:
    fill(store, stage(), value="first")
    fill(fresh(store), stage(), value="second")
    assert store.open(stage().key).read_json("info") == {"value": "first"}
    assert list((store.root / "tmp").iterdir()) == []


def test_outputs_are_committed_in_the_order_of_writing(store: Store) -> None:
    made = stage(place="prepare/two-piece")
    sealed = digest({"tier": "sealed", "of": made.key})
    with store.create(made, key=sealed) as draft:
        draft.write_json("info", "sealed")
    assert store.has(sealed)
    assert not store.has(made.key)
    assert store.preimages(made.place) == [], "the place is told by the stage's own key alone"
    fill(store, made)
    assert [key for key, _ in store.preimages(made.place)] == [made.key]


def test_failures_are_kept_until_the_stage_succeeds(store: Store) -> None:
    made = stage()
    assert store.failure(made.key) is None
    failure = Failure("failed", "ValueError: no", "Traceback")
    store.record_failure(made.key, failure, made)
    path = store.failure_path(made.key)
    path.write_text(json.dumps({**json.loads(path.read_text()), "created": 90.0}), encoding="utf-8")
    stored = fresh(store).failure(made.key)
    assert stored == failure
    assert stored is not None
    assert stored.remark == " (stored 1970-01-01 00:01 UTC; --retry-failed runs it again)"
    assert failure.remark == ""
    fill(store, made)
    assert store.failure(made.key) is None
    store.record_failure(made.key, failure, made)
    store.clear_failure(made.key)
    store.clear_failure(made.key)
    assert store.failure(made.key) is None


@pytest.mark.parametrize("status", ["timeout", "memory", "killed", "disk", "import", "skipped"])
def test_what_is_not_a_result_is_not_stored(store: Store, status: str) -> None:
    store.record_failure(stage().key, Failure(status, "x"), stage())
    assert store.failure(stage().key) is None


def test_preimages_are_found_by_place(store: Store) -> None:
    fill(store, stage(1))
    fill(store, stage(2))
    fill(store, stage(3, place="train/spmotif/erm"))
    assert [preimage["seed"] for _, preimage in fresh(store).preimages("train/two-piece/erm")] == [1, 2]
    assert store.preimages("train/none/erm") == []


def test_records_and_timings(store: Store) -> None:
    store.record_run(stage(1), {"seconds": 1.5, "memory": 10})
    store.record_run(stage(2), {"seconds": 2.5})
    store.record_run(stage(3), {})
    with (store.root / "timings.jsonl").open("a") as stream:
        stream.write("torn lin\n")
    assert fresh(store).record(stage(1).key) == {"seconds": 1.5, "memory": 10}
    assert store.record("unknown") == {}
    work = stage(1).work
    assert work.startswith("train/two-piece/erm/")
    assert store.timings() == [(work, 1.5), (work, 2.5)]
    assert stage(1, train={"epochs": 9}).work != work, "twice the epochs take twice the time"


def test_runs_get_folders_of_their_own(store: Store) -> None:
    one, two = (store.new_run(new_run_name("my suite/№1", store.runs)) for _ in range(2))
    assert one != two
    assert one.parent == two.parent == store.runs
    assert "my-suite-" in one.name


def test_a_clock_that_is_set_back_changes_no_order_of_runs(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    names = []
    for now in (1e9, 1e9 - 3600, 1e9 + 1, 0.0, 1e9 + 0.5):
        monkeypatch.setattr("time.time", lambda now=now: now)
        names.append(store.new_run(new_run_name("s", store.runs)).name)
        store.new_run(new_run_name("another-s", store.runs))
    assert names == sorted(set(names))
    assert names[0] == "20010909-014640-s-0000"


def test_file_digests_are_remembered_in_the_store(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "folder" / ".." / "data.csv"  # as a suite may name it
    (tmp_path / "folder").mkdir()
    path.write_text("x")
    monkeypatch.setattr("harness.store.keys._SETTLED_NS", -1)
    expected = store.file_digest(path)

    def refuse(path: Path) -> str:
        raise AssertionError(path)

    monkeypatch.setattr("harness.store.keys.hash_file", refuse)
    assert fresh(store).file_digest(path) == expected


def test_listing_and_size(store: Store) -> None:
    assert listing(store) == ()
    assert disk_size(store.root) == 0
    fill(store, stage(1))
    fill(store, stage(2))
    infos = listing(store)
    assert [info.title for info in infos] == ["train ERM, seed 1", "train ERM, seed 2"]
    assert 0 < sum(info.size for info in infos) < disk_size(store.root)


def test_the_default_root(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("BENCH_STORE", raising=False)
    monkeypatch.delenv("BENCH_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert Store().root == tmp_path / "equad-bench" / "store"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Store().root == tmp_path / ".cache" / "equad-bench" / "store"
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "c"))
    assert Store().root == tmp_path / "c" / "store"
    monkeypatch.setenv("BENCH_STORE", str(tmp_path / "s"))
    assert Store().root == tmp_path / "s"


def test_the_store_reads_json_without_torch(store: Store) -> None:
    fill(store, stage())
    code = (
        "import sys; from pathlib import Path; from harness.store import Store\n"
        "artifact = Store(Path(sys.argv[1])).open(sys.argv[2]); artifact.read_json('info')\n"
        "print([name for name in ('torch', 'numpy', 'safetensors') if name in sys.modules])"
    )
    command = [sys.executable, "-c", code, str(store.root), stage().key]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "[]\n"


def test_a_description_is_read_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    stages = [stage(seed) for seed in range(5)]
    for made in stages:
        with store.create(made) as draft:
            draft.write_json("info", 1)
    other, read = fresh(store), []
    real = Meta.read
    monkeypatch.setattr(Meta, "read", lambda folder: (read.append(folder), real(folder))[1])
    assert all(other.has(made.key) for made in stages for _ in range(4))
    assert read == [store.artifact_folder(made.key) for made in stages]


def test_exactly_the_keys_that_are_there_are_present(store: Store) -> None:
    keys = [digest(number) for number in range(400)]
    assert store.present(keys) == set()
    for key in keys[::3]:
        store.artifact_folder(key).mkdir(parents=True)
    assert store.present(keys) == set(keys[::3])
    assert store.present([digest("other")]) == set()
    assert store.failed(keys) == set()
