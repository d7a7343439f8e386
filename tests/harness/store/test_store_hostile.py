"""A store that somebody else can write: descriptions that lie, links, content that bursts readers, false records."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from store_kit import fill, fresh, rewrite, stage

from harness.errors import DataError
from harness.results.rows import DatasetFacts, MethodFacts, RunResults
from harness.results.run_record import CellRecord, RunRecord
from harness.run.collect import collect
from harness.safe_io import json_text, parse_json
from harness.store import Meta, MissingArtifact, Store
from harness.store.artifact import META

RUN = "20260101-000000-toy-0000"
KEY = "a" * 64


def forge(folder: Path, name: str, content: bytes) -> None:
    """Put a file into an artifact so that size and checksum are those of its description."""
    entry = {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    rewrite(folder, lambda data: data["files"].update({name: entry}))
    if name in ("info.json", "weights.safetensors"):
        (folder / name).write_bytes(content)


@pytest.mark.parametrize(
    "name", ["../../../secret", "/etc/hostname", "a/b", "..", ".hidden", "a\\b", "a\nb", "\x1b[2J"]
)
def test_a_description_that_names_files_elsewhere_is_damaged(store: Store, name: str) -> None:
    folder = fill(store, stage())
    forge(folder, name, b"")
    with pytest.raises(ValueError, match="cannot name a file"):
        Meta.read(folder)
    assert not fresh(store).has(stage().key)
    assert len(list((store.root / "debris").iterdir())) == 1


START = '{"key": "k", "kind": "train", "place": "p", "title": "t", "preimage": {}, "created": 1, '
SHAPES = [f'{START}"files": {files}}}' for files in ("[]", '{"a": 1}', '{"a": {"size": 1}}')]


@pytest.mark.parametrize("text", ["[" * 100_000, '{"key": NaN}', "[1]", *SHAPES, f'{START}"x": {{}}}}', "\xff", ""])
def test_descriptions_that_are_none(store: Store, text: str) -> None:
    folder = fill(store, stage())
    (folder / META).write_bytes(text.encode("latin-1"))
    assert not fresh(store).has(stage().key)


@pytest.mark.parametrize("text", ["[" * 100_000, "NaN", "{", "9" * 5000])
def test_json_that_bursts_readers_is_damaged_content(store: Store, text: str) -> None:
    forge(fill(store, stage()), "info.json", text.encode())
    with pytest.raises(MissingArtifact, match=r"damaged \(info\.json"):
        fresh(store).open(stage().key).read_json("info")
    assert not fresh(store).has(stage().key), "its stage runs again"


HEADERS: dict[str, dict[str, Any]] = {
    "shape": {"w": {"dtype": "F32", "shape": [2**40, 2**40], "data_offsets": [0, 16]}},
    "size": {"w": {"dtype": "F32", "shape": [5], "data_offsets": [0, 16]}},
    "beyond": {"w": {"dtype": "F32", "shape": [4], "data_offsets": [1000, 1016]}},
    "overlap": {
        "a": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]},
        "b": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]},
    },
    "negative": {"w": {"dtype": "F32", "shape": [-4], "data_offsets": [0, 16]}},
    "type": {"w": {"dtype": "OBJECT", "shape": [4], "data_offsets": [0, 16]}},
}


@pytest.mark.parametrize("lie", HEADERS)
def test_tensors_whose_header_lies_are_damaged_content(store: Store, lie: str) -> None:
    header = json.dumps(HEADERS[lie]).encode()
    forge(fill(store, stage()), "weights.safetensors", struct.pack("<Q", len(header)) + header + bytes(16))
    with pytest.raises(MissingArtifact, match=r"damaged \(weights\.safetensors"):
        fresh(store).open(stage().key).tensors("weights")


@pytest.mark.parametrize("length", [2**63, 2**64 - 1, 10**9])
def test_tensors_with_a_header_without_end(store: Store, length: int) -> None:
    forge(fill(store, stage()), "weights.safetensors", struct.pack("<Q", length) + b"{}")
    with pytest.raises(MissingArtifact, match="damaged"):
        fresh(store).open(stage().key).tensors("weights")


def test_a_link_in_an_artifact_is_not_followed(store: Store, tmp_path: Path) -> None:
    folder = fill(store, stage())
    secret = tmp_path / "secret"
    secret.write_bytes((folder / "info.json").read_bytes())
    (folder / "info.json").unlink()
    (folder / "info.json").symlink_to(secret)
    with pytest.raises(MissingArtifact, match="a link or a folder"):
        fresh(store).open(stage().key).read_json("info")
    assert secret.is_file()


def test_times_that_are_none(store: Store) -> None:
    store.root.mkdir(parents=True, exist_ok=True)
    lines = ['["a", NaN]', '["a", null]', "[" * 10_000, '["a", 2.5]', "7"]
    (store.root / "timings.jsonl").write_text("\n".join(lines))
    assert store.timings() == [("a", 2.5)]


def record() -> dict[str, Any]:
    """A sound record as its file has it."""
    results = RunResults(
        suite="toy",
        run=RUN,
        protocol="equad",
        seeds=(1,),
        datasets=(DatasetFacts("A"),),
        methods=("M",),
        entries=(MethodFacts("A", "M", {"-": {}}),),
    )
    cell = CellRecord("A", "M", "-", 1, "c0ffee", {}, KEY, KEY, {KEY: "train"})
    record: dict[str, Any] = parse_json(json_text(RunRecord(RUN, "toy.yaml", results, (cell,), {"A": KEY}, "2026")))
    return record


def saved(folder: Path, data: Any) -> Path:
    folder.mkdir(parents=True)
    (folder / "run.json").write_text(json.dumps(data, default=list), encoding="utf-8")
    return folder


OUT = "../../../../home"
Change = Callable[[dict[str, Any]], Any]
CHANGES: dict[str, Change] = {
    "id": lambda data: data.update(id="../../x"),
    "train": lambda data: data["cells"][0].update(train=OUT),
    "score": lambda data: data["cells"][0].update(score="/etc"),
    "needs": lambda data: data["cells"][0].update(needs={OUT: "x"}),
    "cell id": lambda data: data["cells"][0].update(id="../x"),
    "prepared": lambda data: data.update(prepared={"A": OUT}),
    "prepared, no text": lambda data: data.update(prepared={"A": [1]}),
    "failures": lambda data: data.update(failures={OUT: {"status": "failed", "reason": "", "traceback": ""}}),
    "failure": lambda data: data.update(failures={KEY: {"status": "failed", "reason": 3}}),
    "seed": lambda data: data["cells"][0].update(seed="1"),
    "status": lambda data: data.update(status=["x"]),
    "label": lambda data: data["results"]["datasets"][0].update(label="\x1b[31mA"),
    "method": lambda data: data["results"].update(methods=["\u202eM"]),
    "no text": lambda data: data["results"]["datasets"][0].update(label=5),
    "no dataset": lambda data: data["results"].update(datasets=[]),
    "seeds": lambda data: data["results"].update(seeds=["<script>"]),
    "row": lambda data: data["results"].update(rows=[{"dataset": "A", "value": "<b>"}]),
    "row, huge": lambda data: data["results"].update(rows=[7]),
}


def test_the_record_is_sound(store: Store) -> None:
    assert RunRecord.load(saved(store.runs / RUN, record())).cells[0].train == KEY


@pytest.mark.parametrize("what", CHANGES)
def test_records_that_lead_elsewhere_or_are_none(store: Store, what: str) -> None:
    data = json.loads(json.dumps(record(), default=list))
    CHANGES[what](data)
    with pytest.raises(DataError, match="not a readable run record"):
        RunRecord.load(saved(store.runs / RUN, data))


@pytest.mark.parametrize("text", ["[" * 100_000, '{"id": NaN}', "[]", "7", '"x"'])
def test_records_that_are_no_records(store: Store, text: str) -> None:
    folder = store.runs / RUN
    folder.mkdir(parents=True)
    (folder / "run.json").write_text(text)
    with pytest.raises(DataError, match="not a readable run record"):
        RunRecord.load(folder)


def test_a_cell_of_no_row_is_told(store: Store) -> None:
    data = json.loads(json.dumps(record(), default=list))
    data["results"]["entries"] = []
    with pytest.raises(DataError, match="c0ffee is of no row"):
        collect(RunRecord.load(saved(store.runs / RUN, data)), store)


def test_no_folder_outside_the_store_is_put_aside_for_a_record(store: Store, tmp_path: Path) -> None:
    """Keys were once joined to paths as they stood in a record: what they led to was taken for a damaged artifact."""
    precious = tmp_path / "precious"
    precious.mkdir()
    store.root.joinpath("artifacts").mkdir(parents=True)
    data = json.loads(json.dumps(record(), default=list))
    data["cells"][0]["train"] = data["cells"][0]["score"] = f"../../{'../' * len(store.root.parts)}{precious}"
    with pytest.raises(DataError):
        collect(RunRecord.load(saved(store.runs / RUN, data)), store)
    assert precious.is_dir()
