"""Molecules: equality with OGB's raw files on the real sets, alignment, tasks, and what is declared."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from molecule_kit import equal, graphs_of, raw_folder, ring_table, rings, write_csv

from harness.errors import UserError
from plugins.datasets.ogb import OGB
from plugins.datasets.smiles_csv import SmilesCSV

SIZES = {"bace": (1210, 151, 152), "bbbp": (1631, 204, 204)}
POSITIVES = {"bace": (480, 130, 81), "bbbp": (1369, 83, 108)}


def numbers(path: Path) -> np.ndarray:
    """A gzipped table, read without the code under test."""
    with gzip.open(path, "rt") as file:
        return np.array([[int(cell) for cell in line.split(",")] for line in file])


@pytest.fixture(scope="module", params=SIZES)
def real(request, data_dir):
    """(name, data folder, dataset built from the CSV)."""
    for needed in (f"ogbg_mol{request.param}", f"moleculenet/{request.param}.csv"):
        if not (data_dir / needed).exists():
            pytest.skip(f"no real data: {data_dir / needed} is not there")
    return request.param, data_dir, OGB(dataset=request.param, source="csv").build(data_dir)


def test_split_is_that_of_ogbs_index_files(real):
    """Each graph of a split is the one that OGB's raw files hold at the indices of that split, features and all."""
    name, folder, raw = real
    base = folder / f"ogbg_mol{name}"
    nodes, edges = numbers(base / "raw/num-node-list.csv.gz")[:, 0], numbers(base / "raw/num-edge-list.csv.gz")[:, 0]
    x, ends, codes = (numbers(base / f"raw/{part}.csv.gz") for part in ("node-feat", "edge", "edge-feat"))
    labels = numbers(base / "raw/graph-label.csv.gz")[:, 0]
    node_ptr, edge_ptr = np.cumsum([0, *nodes]), np.cumsum([0, *edges])
    for split, file in {"train": "train", "val": "valid", "test": "test"}.items():
        index = numbers(base / f"split/scaffold/{file}.csv.gz")[:, 0]
        assert len(raw.splits[split]) == len(index)
        for row, graph in zip(index, raw.splits[split], strict=True):
            mine = slice(edge_ptr[row], edge_ptr[row + 1])
            assert np.array_equal(graph.x, x[node_ptr[row] : node_ptr[row + 1]])
            assert np.array_equal(graph.edge_index[:, ::2].T, ends[mine])
            assert np.array_equal(graph.edge_index[:, 1::2], graph.edge_index[::-1, ::2])
            assert np.array_equal(graph.edge_attr[::2], codes[mine])
            assert np.array_equal(graph.edge_attr[1::2], codes[mine])
            assert graph.y == labels[row]


def test_sizes_and_positives(real):
    name, _, raw = real
    assert tuple(len(graphs) for graphs in raw.splits.values()) == SIZES[name]
    assert tuple(sum(graph.y for graph in graphs) for graphs in raw.splits.values()) == POSITIVES[name]


def test_both_sources_give_the_same(real):
    name, folder, raw = real
    other = OGB(dataset=name, source="ogb").build(folder)
    for split, graphs in raw.splits.items():
        assert all(equal(one, two) for one, two in zip(graphs, other.splits[split], strict=True))
    assert raw.facts["labels"] == other.facts["labels"]


def test_auto_prefers_ogbs_folder(real):
    name, folder, _ = real
    assert folder / f"ogbg_mol{name}/raw/edge.csv.gz" in OGB(dataset=name).files(folder)
    assert OGB(dataset=name, source="csv").files(folder) == [folder / f"moleculenet/{name}.csv"]


def test_tox21_is_multitask_with_missing_labels(data_dir, tmp_path):
    source = data_dir / "moleculenet" / "tox21.csv"
    if not source.exists():
        pytest.skip(f"no real data: {source} is not there")
    lines = source.read_text().splitlines()
    (tmp_path / "part.csv").write_text("\n".join([*lines[:200], lines[1323], *lines[200:300]]) + "\n")
    dataset = SmilesCSV(path="part.csv")
    declared = dataset.declare(tmp_path)
    assert (declared.task.kind, declared.task.num_tasks, declared.task.num_classes) == ("multitask", 12, 2)
    raw = dataset.build(tmp_path)
    graphs = graphs_of(raw)
    assert len(graphs) == 299
    assert raw.skipped == ["row 200 (line 201): RDKit cannot read the SMILES 'NC(=O)NC1N=C(O[AlH3](O)O)NC1=O'"]
    labels = np.stack([graph.y for graph in graphs])
    assert labels.dtype == np.float32
    cells = [cell for line in lines[1:300] for cell in line.split(",")[1:]]
    assert np.isnan(labels).sum() == cells.count("")
    assert np.nansum(labels) == cells.count("1")


def test_a_bad_smiles_is_skipped_counted_and_never_shifts_labels(tmp_path, capfd):
    rows = [(smiles, (3 + i) % 2) for i, smiles in enumerate(rings(50))]
    rows.insert(25, ("C1CC(", 1))
    write_csv(tmp_path / "rings.csv", ["smiles", "odd"], rows)
    raw = SmilesCSV(path="rings.csv").build(tmp_path)
    assert raw.skipped == ["row 26 (line 27): RDKit cannot read the SMILES 'C1CC('"]
    assert (raw.facts["rows"], raw.facts["skipped"]) == (51, 1)
    graphs = graphs_of(raw)
    assert sorted(len(graph.x) for graph in graphs) == list(range(3, 53))
    assert all(graph.y == len(graph.x) % 2 for graph in graphs)
    assert capfd.readouterr().err == ""


def test_a_missing_single_label_is_skipped_too(tmp_path):
    rows = [(smiles, 1) for smiles in rings(30)]
    rows[20] = (rows[20][0], "")
    write_csv(tmp_path / "rings.csv", ["smiles", "label"], rows)
    raw = SmilesCSV(path="rings.csv").build(tmp_path)
    assert raw.skipped == ["row 21 (line 22): no label"]
    assert len(graphs_of(raw)) == 29


def test_molecules_without_bonds(tmp_path):
    lone = ["C", "[Na+]", "[Cl-].[Na+]"]
    write_csv(tmp_path / "m.csv", ["smiles", "y"], [(smiles, i % 2) for i, smiles in enumerate([*rings(17), *lone])])
    graphs = [graph for graph in graphs_of(SmilesCSV(path="m.csv").build(tmp_path)) if graph.edge_index.size == 0]
    assert sorted(len(graph.x) for graph in graphs) == [1, 1, 2]
    for graph in graphs:
        assert (graph.edge_index.shape, graph.edge_index.dtype) == ((2, 0), np.int64)
        assert (graph.edge_attr.shape, graph.edge_attr.dtype) == ((0, 3), np.int64)


def test_mostly_acyclic_molecules_with_one_bad_smiles(tmp_path):
    rows = [("C" * (1 + i), i % 2) for i in range(60)] + [(smiles, 1) for smiles in rings(40)]
    rows[70] = ("not a molecule", 1)
    write_csv(tmp_path / "m.csv", ["smiles", "y"], rows)
    raw = SmilesCSV(path="m.csv").build(tmp_path)
    assert {name: len(graphs) for name, graphs in raw.splits.items()} == {"train": 80, "val": 10, "test": 9}
    assert raw.facts["warnings"] == []
    assert raw.facts["largest_scaffold"] == 60


def test_a_group_larger_than_its_split_is_a_warning(tmp_path):
    benzenes, chains = ["c1ccccc1" + "C" * i for i in range(70)], ["C" * (1 + i) for i in range(15)]
    write_csv(tmp_path / "m.csv", ["smiles", "y"], [(smiles, 1) for smiles in [*benzenes, *chains, *rings(15)]])
    (warning,) = SmilesCSV(path="m.csv").build(tmp_path).facts["warnings"]
    assert "without rings) has 15 of 100 molecules" in warning


def test_one_label_column_of_several(tmp_path):
    table = [(smiles, 0.5 * i, i % 2) for i, smiles in enumerate(rings(20))]
    write_csv(tmp_path / "m.csv", ["mol", "pIC50", "Class"], table)
    dataset = SmilesCSV(path="m.csv", smiles_column="mol", label_columns=["Class"])
    assert dataset.declare(tmp_path).task.kind == "binary"
    assert {type(graph.y) for graph in graphs_of(dataset.build(tmp_path))} == {int}


def test_label_columns_keep_the_order_asked_for(tmp_path):
    write_csv(tmp_path / "m.csv", ["smiles", "a", "b"], [(smiles, 0, 1) for smiles in rings(20)])
    graphs = graphs_of(SmilesCSV(path="m.csv", label_columns=["b", "a"]).build(tmp_path))
    assert all(graph.y.tolist() == [1, 0] for graph in graphs)


def test_declaration(tmp_path):
    ring_table(tmp_path / "moleculenet" / "bbbp.csv")
    declared = OGB(dataset="bbbp").declare(tmp_path)
    assert (declared.task.kind, declared.task.num_classes, declared.task.metric) == ("binary", 2, "rocauc")
    assert declared.node_features.sizes == (119, 5, 12, 12, 10, 6, 6, 2, 2)
    assert declared.edge_features.sizes == (5, 6, 2)
    assert declared.validation == "OOD"
    assert declared.oracle == ()
    assert declared.environments == 0


def test_official_split_takes_no_split_seed():
    with pytest.raises(UserError, match="split_seed"):
        OGB(split_seed=1)


def test_raw_folder(tmp_path):
    raw = OGB(dataset="bace").build(raw_folder(tmp_path / "ogbg_molbace").parent)
    assert [len(graph.x) for graph in raw.splits["train"]] == [2, 2]
    (lone,) = raw.splits["val"]
    assert (lone.edge_index.shape, lone.edge_attr.shape) == ((2, 0), (0, 3))
    (chain,) = raw.splits["test"]
    assert chain.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert (chain.y, [graph.y for graph in raw.splits["train"]]) == (1, [1, 0])


def test_raw_folder_with_several_tasks(tmp_path):
    raw_folder(tmp_path / "ogbg_molclintox", {"raw/graph-label": "1,0\n,1\n1,1\n0,nan\n"})
    both = OGB(dataset="clintox")
    assert both.declare(tmp_path).task.num_tasks == 2
    assert np.isnan(both.build(tmp_path).splits["val"][0].y).tolist() == [True, False]


def test_raw_folder_with_a_missing_single_label(tmp_path):
    raw_folder(tmp_path / "ogbg_molbace", {"raw/graph-label": "1\n0\n1\n\n"})
    raw = OGB(dataset="bace").build(tmp_path)
    assert raw.skipped == ["row 4: no label"]
    assert len(raw.splits["train"]) == 1
