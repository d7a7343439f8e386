"""Molecules that are there several times: found however they are written, counted, dropped or kept together."""

from __future__ import annotations

import pytest
from molecule_kit import graphs_of, rings, write_csv

from harness.errors import DataError
from plugins.datasets._splits import random_split
from plugins.datasets.smiles_csv import SmilesCSV

NAMES = ["train", "train", "val", "test", "train", "val", "val", "test"]


def table(folder, header, rows):
    write_csv(folder / "t.csv", header, rows)
    return folder


def sizes(raw):
    """Split name -> numbers of atoms, in order."""
    return {name: [len(graph.x) for graph in graphs] for name, graphs in raw.splits.items()}


BENZOIC = ["OC(=O)c1ccccc1", "c1ccccc1C(O)=O", "[OH:1][C:2](=O)c1ccccc1"]
"""One molecule, written in three ways."""


@pytest.fixture
def repeated(tmp_path):
    """Ten rings, and one molecule in four rows: two of train, of which one is wrong, one of val and one of test."""
    rows = [(s, i % 2, NAMES[i % 8]) for i, s in enumerate(rings(10))]
    rows += zip([*BENZOIC, BENZOIC[0]], [1, 0, 1, 1], ["train", "train", "val", "test"], strict=True)
    return table(tmp_path, ["smiles", "odd", "split"], rows)


def test_repeated_molecules_are_counted_however_they_are_written(repeated):
    raw = SmilesCSV(path="t.csv", split="column").build(repeated)
    assert raw.facts["repeated_molecules"] == 1
    assert raw.facts["molecules_with_different_labels"] == 1
    assert raw.facts["molecules_also_in_train"] == {"val": 1, "test": 1}
    assert raw.facts["atom_mapped"] == 1
    assert raw.notes == [
        "Atom map numbers of 1 molecule are left out.",
        "1 molecule of 4 rows is there more than once, of which 1 with different labels outside the test splits.",
        "1 of 4 val and 1 of 3 test molecules are also in train.",
    ]


def test_of_test_labels_nothing_is_told(tmp_path):
    rows = [(s, i % 2, NAMES[i]) for i, s in enumerate(rings(8))]
    told = []
    for label in (0, 1):
        table(tmp_path, ["smiles", "odd", "split"], [*rows, ("C1CC1", label, "test")])
        raw = SmilesCSV(path="t.csv", split="column").build(tmp_path)
        told.append((raw.facts, raw.notes))
    assert told[0] == told[1]
    assert told[0][0]["repeated_molecules"] == 1


def test_duplicates_are_dropped_and_none_stays_of_those_that_contradict_each_other(tmp_path):
    rows = [(smiles, i % 2) for i, smiles in enumerate(rings(20))]
    rows[4] = ("nonsense", 1)
    rows += [(BENZOIC[0], ""), (BENZOIC[1], 1), (BENZOIC[2], 1), ("C1CC1", 1), (BENZOIC[0], 1), ("C1CC1", 0)]
    dataset = SmilesCSV(path="t.csv", split="random", duplicates="drop")
    raw = dataset.build(table(tmp_path, ["smiles", "odd"], rows))
    assert raw.skipped == [
        "row 1 (line 2): the same molecule as row 24, whose rows have different labels",
        "row 5 (line 6): RDKit cannot read the SMILES 'nonsense'",
        "row 21 (line 22): no label",
        "row 23 (line 24): the same molecule as row 22",
        "row 24 (line 25): the same molecule as row 1, whose rows have different labels",
        "row 25 (line 26): the same molecule as row 22",
        "row 26 (line 27): the same molecule as row 1, whose rows have different labels",
    ]
    assert len(graphs_of(raw)) == 19
    assert raw.facts["repeated_molecules"] == 0
    assert [graph.y for graph in graphs_of(raw) if len(set(graph.x[:, 0])) == 2] == [1], "the one with oxygen"


def test_dropped_rows_do_not_count_in_the_shares(tmp_path):
    rows = [(smiles, i % 2) for i, smiles in enumerate(rings(20))] * 3
    splits = SmilesCSV(path="t.csv", duplicates="drop").build(table(tmp_path, ["smiles", "odd"], rows)).splits
    assert {name: len(graphs) for name, graphs in splits.items()} == {"train": 16, "val": 2, "test": 2}


def test_rows_of_several_tasks_contradict_each_other_only_where_both_are_measured(tmp_path):
    rows = [(smiles, i % 2, 1 - i % 2) for i, smiles in enumerate(rings(20))]
    rows += [(BENZOIC[0], 1, ""), (BENZOIC[1], "", 0), ("C1CC1", "", 0)]
    raw = SmilesCSV(path="t.csv", duplicates="drop").build(table(tmp_path, ["smiles", "a", "b"], rows))
    assert [text.partition(":")[0] for text in raw.skipped] == [
        "row 1 (line 2)",
        "row 22 (line 23)",
        "row 23 (line 24)",
    ]


def test_a_group_of_duplicates_is_where_its_first_row_is_drawn(tmp_path):
    rows = [(smiles, i % 2) for i, smiles in enumerate(rings(40))]
    folder = table(tmp_path, ["smiles", "odd"], [*rows, *rows[:20]])
    kept = SmilesCSV(path="t.csv", split="random").build(folder)
    raw = SmilesCSV(path="t.csv", split="random", duplicates="group").build(folder)
    assert kept.facts["molecules_also_in_train"] == {"val": 2, "test": 0}
    assert raw.facts["molecules_also_in_train"] == {"val": 0, "test": 0}
    assert raw.facts["repeated_molecules"] == 20
    drawn = random_split(60, {"train": 0.8, "val": 0.1, "test": 0.1}, 0)
    for name, graphs in raw.splits.items():
        first = [row for row in drawn[name] if row < 40]
        assert sorted(len(graph.x) - 3 for graph in graphs) == sorted([*first, *(row for row in first if row < 20)])


def test_duplicates_of_the_tables_own_split_stay_where_they_are(repeated):
    dataset = SmilesCSV(path="t.csv", split="column", duplicates="group")
    with pytest.raises(DataError, match="'duplicates: group' has no meaning with 'split: column'"):
        dataset.declare(repeated)


@pytest.mark.parametrize("split", ["scaffold", "size"])
def test_duplicates_are_together_by_scaffold_and_by_size(split, tmp_path):
    rows = [(smiles, i % 2) for i, smiles in enumerate(rings(30))] + [(smiles, 1) for smiles in rings(30)[::3]]
    table(tmp_path, ["smiles", "odd"], rows)
    one, other = (SmilesCSV(path="t.csv", split=split, duplicates=name).build(tmp_path) for name in ("keep", "group"))
    assert sizes(one) == sizes(other)
    assert other.facts["molecules_also_in_train"] == {"val": 0, "test": 0}


def test_environments_are_those_of_the_rows_that_stay(tmp_path):
    """Which rows stay in training is known only with the molecules, so planning counts the domains of all."""
    rows = [(s, i % 2, f"lab {i % 2}") for i, s in enumerate(rings(20))] + [("C1CC1", 0, "again")]
    for name, built in {"keep": 3, "drop": 2, "group": 3}.items():
        dataset = SmilesCSV(path="t.csv", split="random", split_seed=3, domain_column="lab", duplicates=name)
        raw = dataset.build(table(tmp_path, ["smiles", "odd", "lab"], rows))
        assert len(raw.facts["environments"]) == built
        assert dataset.declare(tmp_path).environments == 3


def test_molecules_of_bbbp_that_a_split_by_chance_has_twice(data_dir):
    """Of 204 validation and 204 test molecules, 15 and 4 are in train, though no SMILES is there twice as a text."""
    if not (data_dir / "moleculenet/bbbp.csv").is_file():
        pytest.skip(f"no real data: {data_dir}/moleculenet/bbbp.csv is not there")
    settings = {"path": "moleculenet/bbbp.csv", "label_columns": ["p_np"], "split": "random"}
    raw = SmilesCSV(**settings).build(data_dir)
    assert raw.facts["molecules_also_in_train"] == {"val": 15, "test": 4}
    assert raw.facts["repeated_molecules"] == 60
    assert raw.notes[-1] == "15 of 204 val and 4 of 204 test molecules are also in train."
