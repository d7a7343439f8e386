"""Random damage to molecule files: one clear message, or a result in which no label has moved."""

from __future__ import annotations

import gzip
import math
import random

import pytest
from molecule_kit import graphs_of, raw_folder, rings, write_csv

from harness.errors import DataError
from plugins.datasets.ogb import OGB
from plugins.datasets.smiles_csv import SmilesCSV

MUTATIONS = 5_000
BUILT = 8
"""Every so many of the tables that can be read are featurised, too."""
BITS = ("b0", "b1", "b2", "b3")
SPLITS = ("train", "train", "val", "test", "train", "val", "test", "train")


def bits(size):
    """A number of atoms as labels."""
    return [size >> place & 1 for place in range(len(BITS))]


def shifted(pairs):
    """How many of (number of atoms, its labels) do not belong together; missing labels do not count."""
    return sum(
        any(not math.isnan(label) and label != bit for label, bit in zip(labels, bits(atoms), strict=True))
        for atoms, labels in pairs
    )


def mutate(data, rng):
    """Data with one to three bytes changed, removed or inserted, or cut off, and the number of edits."""
    changed, edits = bytearray(data), rng.randint(1, 3)
    for _ in range(edits):
        if not changed:
            break
        place = rng.randrange(len(changed))
        action = rng.randrange(12)
        if action < 4:
            changed[place] = rng.choice(b'\0\n\r,"C1(x0\xff ')
        elif action < 7:
            del changed[place]
        elif action < 11:
            changed.insert(place, rng.choice(b'\0\n\r,"C1(x0\xff '))
        else:
            del changed[max(place, 1) :]
    return bytes(changed), edits


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_damage_to_a_table(end, tmp_path):
    """Labels are the bits of the number of atoms: an edit may spoil the rows it touches, and no other."""
    rows = [(smiles, SPLITS[i], *bits(i + 3)) for i, smiles in enumerate(rings(8))]
    path = write_csv(tmp_path / "t.csv", ["smiles", "split", *BITS], rows, end)
    data, rng = path.read_bytes(), random.Random(0)
    dataset = SmilesCSV(path="t.csv", split="column", label_columns=list(BITS))
    refusals, read, built = [], 0, 0
    for _ in range(MUTATIONS // 2):
        damaged, edits = mutate(data, rng)
        path.write_bytes(damaged)
        try:
            contents = dataset._contents(tmp_path)
            read += 1
            assert (
                shifted((smiles.count("C"), y) for smiles, y in zip(contents.smiles, contents.labels, strict=True))
                <= edits
            )
            if read % BUILT == 0:
                raw = dataset.build(tmp_path)
                graphs = graphs_of(raw)
                built += 1
                assert shifted((len(graph.x), graph.y.tolist()) for graph in graphs) <= edits
                assert len(graphs) + len(raw.skipped) == raw.facts["rows"]
        except DataError as error:
            refusals.append(str(error))
    assert min(len(refusals) / 10, read / 10, built) > 25
    assert all(str(path) in refusal and len(refusal) < 600 for refusal in refusals)


def test_damage_to_a_raw_folder(tmp_path):
    """The files have no redundancy beyond their lengths and ranges: an edit may spoil two molecules at most."""
    atom, sizes = "5,0,4,5,3,0,2,0,0\n", (1, 2, 3, 2)
    folder = raw_folder(
        tmp_path / "ogbg_molclintox",
        {
            "raw/graph-label": "".join(f"{size & 1},{size >> 1 & 1}\n" for size in sizes),
            "raw/num-node-list": "".join(f"{size}\n" for size in sizes),
            "raw/num-edge-list": "".join(f"{size - 1}\n" for size in sizes),
            "raw/node-feat": atom * sum(sizes),
        },
    )
    paths, rng = sorted(folder.rglob("*.csv.gz")), random.Random(0)
    refusals, built = [], 0
    for _ in range(600):
        path = rng.choice(paths)
        whole = path.read_bytes()
        damaged, edits = mutate(gzip.decompress(whole), rng)
        path.write_bytes(gzip.compress(damaged, 1))
        try:
            graphs = graphs_of(OGB(dataset="clintox").build(tmp_path))
            built += 1
            assert len(graphs) == 4
            assert shifted((len(graph.x), [*graph.y.tolist(), 0, 0]) for graph in graphs) <= 2 * edits
        except DataError as error:
            refusals.append(str(error))
        path.write_bytes(whole)
    assert min(len(refusals), built) > 100
    assert all(str(folder) in refusal and len(refusal) < 600 for refusal in refusals)


def test_damage_to_compressed_bytes(tmp_path):
    path = write_csv(tmp_path / "t.csv", ["smiles", "y"], [(smiles, i % 2) for i, smiles in enumerate(rings(8))])
    data, rng, refusals = gzip.compress(path.read_bytes()), random.Random(0), 0
    dataset = SmilesCSV(path="t.csv.gz")
    for _ in range(1000):
        damaged = bytearray(data)
        damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
        (tmp_path / "t.csv.gz").write_bytes(bytes(damaged))
        try:
            contents = dataset._contents(tmp_path)
            assert [smiles.count("C") for smiles in contents.smiles] == list(range(3, 11))
            assert [label for (label,) in contents.labels] == [0, 1] * 4
        except DataError:
            refusals += 1
    assert refusals > 800


@pytest.mark.parametrize("missing", ["", "nan", "NaN", "NA", "None", "null"])
def test_missing_labels(missing, tmp_path):
    rows = [(smiles, missing if i == 3 else i % 2, i % 2) for i, smiles in enumerate(rings(12))]
    write_csv(tmp_path / "t.csv", ["smiles", "a", "b"], rows)
    both = graphs_of(SmilesCSV(path="t.csv").build(tmp_path))
    assert [len(graph.x) for graph in both if math.isnan(graph.y[0])] == [6]
    raw = SmilesCSV(path="t.csv", label_columns=["a"]).build(tmp_path)
    assert raw.skipped == ["row 4 (line 5): no label"]
    assert all(graph.y == (len(graph.x) + 1) % 2 for graph in graphs_of(raw))
