"""A table of one's own: splits, tasks, domains, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from molecule_kit import equal, graphs_of, ring_table, rings, write_csv

from harness.errors import DataError
from harness.stages.prepare import split_tiers
from harness.testing import check_component
from plugins.datasets.ogb import OGB
from plugins.datasets.smiles_csv import SmilesCSV

NAMES = ["train", "train", "val", "test", "train", "VALID", "validation", "Test"]


def table(folder, header, rows):
    write_csv(folder / "t.csv", header, rows)
    return folder


def sizes(raw):
    """Split name -> numbers of atoms, in order. A ring of n atoms is the row n - 2."""
    return {name: [len(graph.x) for graph in graphs] for name, graphs in raw.splits.items()}


def refused(folder, **settings):
    """The message with which a table is refused at planning."""
    dataset = SmilesCSV(path="t.csv", **settings)
    with pytest.raises(DataError) as caught:
        dataset.declare(folder)
    return str(caught.value)


@pytest.fixture
def folder(tmp_path):
    """Eight rings of 3 to 10 atoms, with the parity of their size, and a split and a domain for each."""
    rows = [(s, (i + 3) % 2, NAMES[i], "acb"[i % 3]) for i, s in enumerate(rings(8))]
    return table(tmp_path, ["smiles", "odd", "split", "lab"], rows)


def test_the_tables_own_split(folder):
    dataset = SmilesCSV(path="t.csv", split="column", label_columns=["odd"])
    raw = dataset.build(folder)
    assert sizes(raw) == {"train": [3, 4, 7], "val": [5, 8, 9], "test": [6, 10]}
    assert all(graph.y == len(graph.x) % 2 for graph in graphs_of(raw))
    assert dataset.declare(folder).validation == "from the table"


def test_a_split_column_of_any_name(folder):
    text = (folder / "t.csv").read_text().replace(",split,", ",fold,")
    (folder / "t.csv").write_text(text)
    raw = SmilesCSV(path="t.csv", split="column", split_column="fold", domain_column="lab").build(folder)
    assert sizes(raw)["test"] == [6, 10]


@pytest.mark.parametrize("wrong", ["", "dev", "train1", "0"])
def test_a_split_of_another_name_is_an_error_with_its_row(wrong, folder):
    text = (folder / "t.csv").read_text().replace(",VALID,", f",{wrong},")
    (folder / "t.csv").write_text(text)
    message = refused(folder, split="column", label_columns=["odd"])
    assert f"row 6 (line 7): found {wrong!r}, but expected one of train, val, valid, validation, test" in message


def test_a_split_without_a_row_is_an_error_at_planning(folder):
    text = (folder / "t.csv").read_text().replace(",test,", ",val,").replace(",Test,", ",val,")
    (folder / "t.csv").write_text(text)
    assert "column 'split' has no row for test" in refused(folder, split="column", label_columns=["odd"])


def test_the_split_by_scaffold_is_ogbs_where_no_two_scaffolds_are_equally_frequent(tmp_path):
    rows = [(f"{ring}{'C' * tail}", tail % 2) for i, ring in enumerate(rings(12)) for tail in range(12 - i)]
    write_csv(tmp_path / "moleculenet" / "bbbp.csv", ["smiles", "odd"], rows)
    one, other = OGB(dataset="bbbp").build(tmp_path), SmilesCSV(path="moleculenet/bbbp.csv").build(tmp_path)
    for split, graphs in one.splits.items():
        assert all(equal(a, b) for a, b in zip(graphs, other.splits[split], strict=True))


def test_the_order_of_rows_moves_no_molecule(tmp_path):
    """Of equally frequent scaffolds, that with the smaller SMILES is in train. The environments do not move either."""
    rows = [(smiles, i % 2) for i, smiles in enumerate(rings(20))]
    dataset, found = SmilesCSV(path="t.csv", scaffolds=True), []
    for ordered in (rows, rows[::-1], sorted(rows)):
        splits = dataset.build(table(tmp_path, ["smiles", "odd"], ordered)).splits
        found.append({name: {(len(graph.x), graph.groups["scaffold"]) for graph in splits[name]} for name in splits})
    assert found[0] == found[1] == found[2]
    names = sorted(rings(20))
    assert {size for size, _ in found[0]["test"]} == {name.count("C") for name in names[18:]}
    assert dict(found[0]["train"]) == {name.count("C"): number for number, name in enumerate(names[:16])}


def test_shares_of_the_split_by_scaffold(tmp_path):
    ring_table(tmp_path / "t.csv", 40)
    raw = SmilesCSV(path="t.csv", shares=[0.5, 0.25, 0.25]).build(tmp_path)
    assert {name: len(graphs) for name, graphs in raw.splits.items()} == {"train": 20, "val": 10, "test": 10}


def test_the_split_by_size(tmp_path):
    rows = [(smiles, i % 2) for i, smiles in enumerate(rings(20))]
    rows[4:4] = [("nonsense", 1), ("C" * 40, "")]
    raw = SmilesCSV(path="t.csv", split="size").build(table(tmp_path, ["smiles", "y"], rows))
    assert sizes(raw) == {"train": list(range(3, 19)), "val": [19, 20], "test": [21, 22]}
    assert raw.skipped == ["row 5 (line 6): RDKit cannot read the SMILES 'nonsense'", "row 6 (line 7): no label"]


def test_the_split_by_chance(tmp_path):
    rows = [(smiles, (i + 3) % 2) for i, smiles in enumerate(rings(30))]
    folder = table(tmp_path, ["smiles", "odd"], rows)
    whole = sizes(SmilesCSV(path="t.csv", split="random").build(folder))
    assert list(map(len, whole.values())) == [24, 3, 3]
    assert sizes(SmilesCSV(path="t.csv", split="random").build(folder)) == whole
    assert sizes(SmilesCSV(path="t.csv", split="random", split_seed=1).build(folder)) != whole
    rows[9] = ("nonsense", 1)
    damaged = sizes(SmilesCSV(path="t.csv", split="random").build(table(tmp_path, ["smiles", "odd"], rows)))
    assert damaged == {name: [size for size in found if size != 12] for name, found in whole.items()}


def test_a_seed_has_no_meaning_where_nothing_is_drawn(folder):
    assert "'split_seed' has no meaning with 'split: scaffold'" in refused(folder, split_seed=3)


def test_a_column_that_is_there_twice_has_no_nearest(tmp_path):
    message = refused(table(tmp_path, ["smiles", "y", "y"], [("CC", 1, 0)]), label_columns=["y"])
    assert "more than one column 'y' in the header; the columns are: smiles, y, y" in message


@pytest.mark.parametrize("shares", [[0.8, 0.1], [0.5, 0.5, 0.5], [1.0, 0.0, 0.0]])
def test_shares_that_are_none(shares, folder):
    assert "three positive shares" in refused(folder, shares=shares)


def test_domains_are_environments_of_training_molecules(folder):
    """Numbered in the order of their names; a domain that train lacks is none, and a test molecule's is sealed."""
    dataset = SmilesCSV(path="t.csv", split="column", label_columns=["odd"], domain_column="lab")
    declared, raw = dataset.declare(folder), dataset.build(folder)
    assert declared.environments == 2, "b occurs outside train alone"
    env = {name: [graph.env for graph in graphs] for name, graphs in raw.splits.items()}
    assert env == {"train": [0, 1, 1], "val": [-1, -1, 0], "test": [0, 1]}
    assert list(raw.facts["environments"]) == ["0", "1"], "what the numbers stand for is told"
    tiers = split_tiers(declared, raw)
    assert "env" in tiers["open"]["train"]
    assert "env" not in tiers["open"]["test"]


def test_domains_of_a_drawn_split_are_those_of_the_table(folder):
    rows = [(s, i % 2, f"assay {i % 4}" if i else "") for i, s in enumerate(rings(20))]
    dataset = SmilesCSV(path="t.csv", domain_column="lab")
    table(folder, ["smiles", "y", "lab"], rows)
    assert dataset.declare(folder).environments == 4
    graphs = graphs_of(dataset.build(folder))
    assert {len(graph.x): graph.env for graph in graphs} == {i + 3: i % 4 if i else -1 for i in range(20)}
    assert SmilesCSV(path="t.csv", label_columns=["y"]).declare(folder).environments == 0


def test_domains_of_test_molecules_alone_are_no_environments(tmp_path):
    """By size, the largest rings are the test split: their domain is none of training's, and numbers have no gap."""
    rows = [(s, i % 2, "a" if i >= 18 else "bc"[i % 2]) for i, s in enumerate(rings(20))]
    dataset = SmilesCSV(path="t.csv", split="size", domain_column="lab")
    table(tmp_path, ["smiles", "y", "lab"], rows)
    raw = dataset.build(tmp_path)
    assert {graph.env for graph in raw.splits["train"]} == {0, 1}
    assert {graph.env for graph in raw.splits["test"]} == {-1}
    seeds = {seed: SmilesCSV(path="t.csv", split="random", split_seed=seed, domain_column="lab") for seed in range(6)}
    counts = set()
    for dataset in seeds.values():
        envs = {graph.env for graph in dataset.build(tmp_path).splits["train"]}
        assert envs == set(range(len(envs)))
        counts.add(dataset.declare(tmp_path).environments)
        assert dataset.declare(tmp_path).environments == len(envs)
    assert 2 <= min(counts) <= max(counts) <= 3


def test_domains_of_rows_without_a_label_are_no_environments(tmp_path):
    rows = [(s, i % 2, NAMES[i % 8], "bc"[i % 2]) for i, s in enumerate(rings(16))]
    rows[:2] = [(smiles, "", "train", "a") for smiles, *_ in rows[:2]]
    table(tmp_path, ["smiles", "y", "split", "lab"], rows)
    dataset = SmilesCSV(path="t.csv", split="column", label_columns=["y"], domain_column="lab")
    assert {graph.env for graph in dataset.build(tmp_path).splits["train"]} == {0, 1}
    assert dataset.declare(tmp_path).environments == 2


@pytest.mark.parametrize("split", ["column", "random", "scaffold"])
def test_a_domain_column_without_a_domain_is_refused(split, tmp_path):
    rows = [
        (s, i % 2, NAMES[i], "" if NAMES[i] == "train" or split != "column" else "a") for i, s in enumerate(rings(8))
    ]
    table(tmp_path, ["smiles", "odd", "split", "lab"], rows)
    message = refused(tmp_path, split=split, domain_column="lab", label_columns=["odd"])
    assert "column 'lab' (domain_column) is empty in every labelled training row, so there is no domain" in message


def test_every_spelling_of_missing_is_no_domain(tmp_path):
    missing = ["", "NaN", "nan", "NA", "None", "null", " NULL ", "N/A", "#N/A", "<NA>"]
    rows = [(s, i % 2, missing[i] if i < len(missing) else "ab"[i % 2]) for i, s in enumerate(rings(20))]
    dataset = SmilesCSV(path="t.csv", split="random", domain_column="lab")
    table(tmp_path, ["smiles", "odd", "lab"], rows)
    assert dataset.declare(tmp_path).environments == 2
    raw = dataset.build(tmp_path)
    assert {len(graph.x) - 3 for graph in graphs_of(raw) if graph.env == -1} == set(range(len(missing)))
    assert raw.facts["environments"] == {"0": "a", "1": "b"}


def test_a_whole_number_is_one_domain_however_it_is_written(tmp_path):
    names = ["1", "1.0", "1.", "-2", "-2.00", "1.5", "1.50", "1.0a"]
    rows = [(smiles, i % 2, names[i % 8]) for i, smiles in enumerate(rings(40))]
    dataset = SmilesCSV(path="t.csv", domain_column="lab")
    raw = dataset.build(table(tmp_path, ["smiles", "odd", "lab"], rows))
    assert list(raw.facts["environments"].values()) == ["-2", "1", "1.0a", "1.5", "1.50"]
    assert dataset.declare(tmp_path).environments == 5


def test_rows_left_out_are_listed_in_the_order_of_the_file(tmp_path):
    rows = [(s, "" if i == 1 else i % 2) for i, s in enumerate(rings(20))]
    rows[0], rows[4] = ("nonsense(", 0), ("C(C", 1)
    table(tmp_path, ["smiles", "y"], rows)
    raw = SmilesCSV(path="t.csv", split="random").build(tmp_path)
    assert [text.partition(":")[0].partition(" (")[0] for text in raw.skipped] == ["row 1", "row 2", "row 5"]


def test_several_classes(tmp_path):
    rows = [(smiles, f"{i % 3}.0" if i != 7 else "") for i, smiles in enumerate(rings(20))]
    dataset = SmilesCSV(path="t.csv")
    folder = table(tmp_path, ["smiles", "class"], rows)
    task = dataset.declare(folder).task
    assert (task.kind, task.num_classes, task.num_tasks, task.metric) == ("multiclass", 3, 1, "accuracy")
    raw = dataset.build(folder)
    assert all(graph.y == (len(graph.x) - 3) % 3 for graph in graphs_of(raw))
    assert raw.skipped == ["row 8 (line 9): no label"]


def test_two_classes_and_several_tasks(tmp_path):
    rows = [(smiles, i % 2, "" if i % 5 else 1, 0) for i, smiles in enumerate(rings(20))]
    folder = table(tmp_path, ["smiles", "a", "b", "c"], rows)
    task = SmilesCSV(path="t.csv", label_columns=["a"]).declare(folder).task
    assert (task.kind, task.num_classes, task.metric) == ("binary", 2, "rocauc")
    several = SmilesCSV(path="t.csv")
    task = several.declare(folder).task
    assert (task.kind, task.num_tasks, task.metric) == ("multitask", 3, "rocauc")
    for graph in graphs_of(several.build(folder)):
        i = len(graph.x) - 3
        assert np.array_equal(graph.y, [i % 2, np.nan if i % 5 else 1, 0], equal_nan=True)


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ((0, 1, 5), "3 different labels, of which the largest is 5; classes are numbered 0, 1 … without gaps"),
        ((1, 2, 3), "3 different labels, of which the largest is 3"),
        ((0, 1, -1), "found '-1', but a label is a whole number from 0 on"),
        ((0, 1, 0.5), "found '0.5'"),
        (
            (0, 1, "active"),
            "found 'active', but a label is a whole number from 0 on, or empty (regression is",
        ),
        ((0, 1, "0_1"), "found '0_1'"),
        ((0, 1, "inf"), "found 'inf'"),
        ((0, 1, "1e300"), "the largest is 1e+300"),
    ],
)
def test_labels_that_are_no_classes(labels, words, tmp_path):
    rows = [(smiles, labels[i % 3]) for i, smiles in enumerate(rings(20))]
    assert words in refused(table(tmp_path, ["smiles", "y"], rows))


def test_drugoods_features(folder):
    dataset = SmilesCSV(path="t.csv", split="column", label_columns=["odd"], featuriser="drugood")
    declared, raw = dataset.declare(folder), dataset.build(folder)
    assert (declared.node_features.kind, declared.node_features.sizes, declared.edge_features.sizes) == (
        "numeric",
        (39,),
        (10,),
    )
    assert declared.variant == "DrugOOD features, split by the table's column"
    assert {graph.x.dtype.name for graph in graphs_of(raw)} == {"float32"}


def test_it_conforms(tmp_path):
    """With a table that every setting changes something in: chiral rings, esters, two labels."""
    rows = [
        (f"C1{'C' * (i % 9 + 2)}[C@H]1OC(=O){'C' * (i % 4 + 1)}", i % 2, (i // 2) % 2, NAMES[i % 8], f"lab {i % 3}")
        for i in range(40)
    ]
    table(tmp_path, ["smiles", "a", "b", "split", "lab"], rows)

    probes = {
        "*": {"path": str(tmp_path / "t.csv"), "label_columns": ["a"]},
        "label_columns": {"label_columns": ["a", "b"]},
        "domain_column": {"domain_column": "lab"},
    }
    report = check_component(type("Probed", (SmilesCSV,), {"probes": probes, "__doc__": SmilesCSV.__doc__}), tmp_path)
    assert report.passed, report.text()
