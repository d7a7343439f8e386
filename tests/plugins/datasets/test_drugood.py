"""DrugOOD: splits, environments, editions and what is declared, on a small file and on the real ones."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest
from drugood_kit import PATTERN, content, place, write
from rdkit import Chem

from harness.errors import DataError
from harness.stages.prepare import check, describe, fingerprint, split_tiers
from plugins.datasets._drugood_file import IN_DISTRIBUTION, read_drugood
from plugins.datasets._scaffold import scaffold
from plugins.datasets.drugood import DrugOOD

OOD = ["train", "ood_val", "ood_test"]


def test_splits_roles_and_labels(tmp_path):
    write(tmp_path)
    dataset = DrugOOD()
    declared, raw = dataset.declare(tmp_path), dataset.build(tmp_path)
    assert declared.splits == {"train": "train", "ood_val": "val", "ood_test": "test"}
    assert (declared.default_val, declared.validation, declared.task.metric) == ("ood_val", "OOD", "rocauc")
    assert list(raw.splits) == OOD
    for split, graphs in raw.splits.items():
        assert [graph.y for graph in graphs] == [label for _, label in PATTERN[split]]
    check(declared, raw)
    assert [len(graph.x) for graph in raw.splits["train"]] == [2, 3, 4, 5, 6]


def test_iid_adds_splits_and_changes_nothing_else(tmp_path):
    write(tmp_path)
    plain, more = DrugOOD().build(tmp_path), DrugOOD(iid=True).build(tmp_path)
    declared = DrugOOD(iid=True).declare(tmp_path)
    assert list(more.splits) == list(declared.splits) == [*OOD, "iid_val", "iid_test"]
    assert [declared.splits[name] for name in ("iid_val", "iid_test")] == ["val", "test"]
    assert declared.default_val == "ood_val"
    for split in OOD:
        assert [(g.y, g.env) for g in plain.splits[split]] == [(g.y, g.env) for g in more.splits[split]]


def test_environments_are_ranks_of_training_domains_and_others_come_after(tmp_path):
    write(tmp_path)
    dataset = DrugOOD(iid=True)
    raw = dataset.build(tmp_path)
    assert dataset.declare(tmp_path).environments == 3
    environments = {split: [graph.env for graph in graphs] for split, graphs in raw.splits.items()}
    assert environments["train"] == [1, 1, 0, 0, 2]
    assert environments["iid_val"] == [1, 0]
    assert environments["iid_test"] == [1, 2, 6]
    assert environments["ood_val"] == [3, 3, 5]
    assert environments["ood_test"] == [4, 7]


def test_test_labels_and_domains_are_sealed(tmp_path):
    write(tmp_path)
    dataset = DrugOOD()
    declared, raw = dataset.declare(tmp_path), dataset.build(tmp_path)
    tiers = split_tiers(declared, raw)
    assert not {"y", "env"} & set(tiers["open"]["ood_test"])
    assert tiers["sealed"]["ood_test"]["y"].tolist() == [0, 1]
    assert "classes" not in describe(declared, raw)["splits"]["ood_test"]
    data = content()
    for row in data["split"]["ood_test"]:
        row["cls_label"], row["reg_label"] = 1 - row["cls_label"], 10 - row["reg_label"]
    write(tmp_path, data)
    other = dataset.build(tmp_path)
    kept = [name for name in raw.facts if name != "sha256"]
    assert [raw.facts[name] for name in kept] == [other.facts[name] for name in kept]


def test_features_scaffolds_and_fragments(tmp_path):
    write(tmp_path)
    assert DrugOOD().declare(tmp_path).node_features.sizes == (39,)
    assert DrugOOD().declare(tmp_path).edge_features.sizes == (10,)
    ogb = DrugOOD(featuriser="ogb", scaffolds=True, fragments="brics")
    declared, raw = ogb.declare(tmp_path), ogb.build(tmp_path)
    check(declared, raw)
    assert (declared.node_features.kind, declared.groups) == ("categorical", ("scaffold",))
    assert {graph.groups["scaffold"] for graph in raw.splits["train"]} == {0}
    assert all(graph.parts for graph in raw.splits["train"])
    assert raw.splits["train"][0].x.shape == (2, 9)


def test_bad_molecules_are_listed_and_shift_nothing(tmp_path):
    data = content()
    data["split"]["train"][1]["smiles"] = "FS(F)(F)(F)(F)F"
    data["split"]["ood_val"][0]["smiles"] = "C1CC("
    write(tmp_path, data)
    raw = DrugOOD().build(tmp_path)
    assert [(len(graph.x), graph.y, graph.env) for graph in raw.splits["train"]] == [
        (2, 1, 1),
        (4, 1, 0),
        (5, 0, 0),
        (6, 1, 2),
    ]
    assert [(graph.y, graph.env) for graph in raw.splits["ood_val"]] == [(0, 3), (1, 5)]
    assert len(raw.skipped) == raw.facts["skipped"] == 2
    assert raw.skipped[0].startswith("train, row 2: atom 1 (S) has 6 neighbours")
    assert raw.skipped[1].startswith("ood_val, row 1: RDKit cannot read the SMILES 'C1CC('")


def test_a_split_without_usable_molecule_is_an_error(tmp_path):
    data = content()
    for number, row in enumerate(data["split"]["ood_test"]):
        row["smiles"] = f"not-a-molecule-{number}"
    write(tmp_path, data)
    with pytest.raises(DataError, match="no labelled molecule is left in ood_test"):
        DrugOOD().build(tmp_path)


def test_a_limit_spreads_over_each_split_and_is_told(tmp_path):
    write(tmp_path)
    dataset = DrugOOD(limit=3)
    raw = dataset.build(tmp_path)
    assert [len(graph.x) for graph in raw.splits["train"]] == [2, 3, 5]
    assert [graph.env for graph in raw.splits["train"]] == [1, 1, 0]
    assert [len(graphs) for graphs in raw.splits.values()] == [3, 3, 2]
    assert dataset.declare(tmp_path).departures == ("reduced: at most 3 molecules of each split",)
    assert DrugOOD().declare(tmp_path).departures == ()


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("/data/chembl_29.db", "ChEMBL 29, file "),
        ("/mnt/ChEMBL-30/sqlite", "ChEMBL 30, file "),
        ("/chembl_29/chembl_30.db", "ChEMBL version not stated, file "),
        ("my.db", "ChEMBL version not stated, file "),
        (None, "ChEMBL version not stated, file "),
    ],
)
def test_version(tmp_path, source, expected):
    data = content()
    data["cfg"]["path"]["source_root"] = source
    found = read_drugood(write(tmp_path, data))
    assert found.version == expected + found.digest[:8]
    assert DrugOOD().declare(tmp_path).version == found.version


def test_two_files_of_one_name_have_their_own_version_and_fingerprint(tmp_path):
    """Also where every graph is the same and only what the file says of itself differs."""
    prints, versions = set(), set()
    for release in ("29", "30"):
        data = content()
        data["cfg"]["path"]["source_root"] = f"chembl_{release}.db"
        write(tmp_path / release, data)
        declared, raw = DrugOOD().declare(tmp_path / release), DrugOOD().build(tmp_path / release)
        prints.add(fingerprint(split_tiers(declared, raw), declared.version))
        versions.add(declared.version)
    assert len(prints) == len(versions) == 2


def test_other_files_by_path(tmp_path):
    data = content()
    data["cfg"] = {}
    source = write(tmp_path, data).rename(tmp_path / "mine.json")
    for path in ("mine.json", str(source)):
        declared = DrugOOD(path=path).declare(tmp_path)
        assert declared.variant == "mine, DrugOOD features"
        assert DrugOOD(path=path).files(tmp_path) == [source]
        assert DrugOOD(path=path).downloads(tmp_path) == ()
    with pytest.raises(DataError, match="no data folder is known"):
        DrugOOD(path="mine.json").files(None)


def test_a_home_folder_of_nobody_is_a_missing_file(tmp_path):
    with pytest.raises(DataError, match="missing data file"):
        DrugOOD(path="~nobody-of-this-name/mine.json").files(tmp_path)


def test_a_file_under_anothers_name_is_refused_unless_named_by_path(tmp_path):
    name = write(tmp_path).rename(place(tmp_path, "lbap_core_ec50_size")).name
    with pytest.raises(DataError, match=r"says that it is 'lbap_core_ec50_assay', not 'lbap_core_ec50_size'"):
        DrugOOD(domain="size").declare(tmp_path)
    assert DrugOOD(path=f"drugood/{name}").declare(tmp_path).variant == "lbap_core_ec50_assay, DrugOOD features"


def test_a_missing_file_says_where_to_put_it_and_where_to_get_it(tmp_path):
    with pytest.raises(DataError) as missing:
        DrugOOD(measure="ki", domain="size").files(tmp_path)
    assert str(tmp_path / "drugood" / "lbap_core_ki_size.json") in str(missing.value)
    assert "Google Drive" in str(missing.value)
    (download,) = DrugOOD(measure="ki").downloads(tmp_path)
    assert (download.path, download.url) == ("drugood/lbap_core_ki_assay.json", None)
    (download,) = DrugOOD().downloads(None)
    assert download.url.endswith("/data/ec50/lbap_core_ec50_assay.json")
    with pytest.raises(DataError, match="no data folder is known"):
        DrugOOD().files(None)


def test_sbap_reads_molecules_alone_and_says_so(tmp_path):
    data = content(proteins=True)
    rows = data["split"]
    rows["train"].append({**rows["train"][0], "protein": "MKW", "cls_label": 0, "reg_label": 4.0})
    rows["ood_test"].append({**rows["ood_test"][0], "smiles": rows["train"][0]["smiles"], "protein": "MKY"})
    data["cfg"]["path"]["task"]["subset"] = "sbap_core_ic50_protein"
    write(tmp_path, data, recount=True).rename(place(tmp_path, "sbap_core_ic50_protein"))
    dataset = DrugOOD(task="sbap", measure="ic50", domain="protein")
    declared, raw = dataset.declare(tmp_path), dataset.build(tmp_path)
    assert "molecules alone, proteins left out" in declared.variant
    assert any("protein is left out" in note for note in declared.notes)
    assert raw.facts["repeated_molecules"] == 1, "one molecule, in two rows of train and one of ood_test"
    assert raw.facts["molecules_with_different_labels"] == 1
    assert raw.facts["molecules_also_in_train"] == {"ood_val": 0, "ood_test": 1}
    assert "1 of 3 ood_test molecules are also in train." in raw.notes
    assert [graph.y for graph in raw.splits["train"]] == [1, 0, 1, 0, 1, 0]


SPLITS = ("train", "iid_val", "iid_test", "ood_val", "ood_test")
REAL = {
    "assay": ((4540, 1502, 1557, 2572, 2490), (3387, 1116, 1147, 2292, 2257), (47, 47, 47, 46, 101)),
    "scaffold": ((2570, 580, 4446, 2532, 2533), (2399, 563, 3540, 1873, 1824), (850, 224, 3667, 1193, 954)),
    "size": ((4684, 1513, 1753, 2313, 2398), (4050, 1313, 1532, 1668, 1636), (167, 103, 205, 4, 16)),
}
ATOMS = {
    "assay": {
        "train": (39.8, 29, 10, 326),
        "iid_val": (39.8, None, None, None),
        "iid_test": (40.2, None, None, None),
        "ood_val": (48.5, 30, 6, 335),
        "ood_test": (32.3, 28, 8, 317),
    },
    "scaffold": {
        "train": (56.8, 33, 21, 332),
        "iid_val": (61.4, None, None, None),
        "iid_test": (45.6, None, None, None),
        "ood_val": (25.6, 25, 17, 44),
        "ood_test": (23.3, 21, 6, 292),
    },
    "size": {
        "train": (48.4, 33, 27, 333),
        "iid_val": (44.1, None, None, None),
        "iid_test": (63.6, None, None, None),
        "ood_val": (24.6, 25, 23, 26),
        "ood_test": (19.3, 20, 6, 22),
    },
}


@pytest.fixture(scope="module")
def real(data_dir):
    """domain -> the real file."""
    paths = {domain: data_dir / "drugood" / f"lbap_core_ec50_{domain}.json" for domain in REAL}
    for path in paths.values():
        if not path.exists():
            pytest.skip(f"no real data: {path} is not there")
    return {domain: read_drugood(path) for domain, path in paths.items()}


@pytest.fixture(scope="module")
def built(real, data_dir):
    """EC50 by assay with all five splits, which are all its molecules."""
    del real
    dataset = DrugOOD(iid=True)
    return dataset.declare(data_dir), dataset.build(data_dir)


@pytest.fixture(scope="module")
def sizes(real, built):
    """SMILES -> number of atoms."""
    _, raw = built
    rows = real["assay"].rows
    return {
        row.smiles: len(graph.x) for split in SPLITS for row, graph in zip(rows[split], raw.splits[split], strict=True)
    }


@pytest.mark.parametrize("domain", REAL)
def test_real_sizes_positives_and_domains(domain, real):
    counts, positives, domains = REAL[domain]
    rows = real[domain].rows
    assert tuple(len(rows[split]) for split in SPLITS) == counts
    assert tuple(sum(row.label for row in rows[split]) for split in SPLITS) == positives
    assert tuple(len({row.domain for row in rows[split]}) for split in SPLITS) == domains
    assert real[domain].training_environments == domains[0]
    assert real[domain].version.startswith("ChEMBL 29, file ")


@pytest.mark.parametrize("domain", REAL)
def test_real_numbers_of_atoms(domain, real, sizes):
    for split, (mean, *others) in ATOMS[domain].items():
        atoms = np.array([sizes[row.smiles] for row in real[domain].rows[split]])
        assert round(float(atoms.mean()), 1) == mean
        found = [np.median(atoms), atoms.min(), atoms.max()]
        assert all(expected is None or value == expected for value, expected in zip(found, others, strict=True))


def test_real_labels_through_the_sealed_tier(built):
    declared, raw = built
    tiers = split_tiers(declared, raw)
    assert raw.skipped == []
    assert {split: int(fields["y"].sum()) for split, fields in tiers["sealed"].items() if "y" in fields} == {
        "ood_test": 2257,
        "iid_test": 1147,
    }
    assert int(tiers["open"]["train"]["y"].sum()) == 3387
    assert set(tiers["open"]["train"]["env"].tolist()) == set(range(47))


def test_real_features_of_the_whole_file(built):
    graphs = [graph for graphs in built[1].splits.values() for graph in graphs]
    x = np.concatenate([graph.x for graph in graphs])
    bonds = np.concatenate([graph.edge_attr[::2] for graph in graphs])
    assert len(graphs) == 12_661
    assert round(len(x) / len(graphs), 2) == 40.13
    assert round(len(bonds) / len(graphs), 2) == 42.78
    assert x[:, 36:].sum(0).tolist() == [31_081, 5_596, 22_632]
    assert (x[:, 37:].sum(1) <= x[:, 36]).all()
    for group in (slice(0, 16), slice(16, 22), slice(24, 30), slice(31, 36)):
        assert (x[:, group].sum(1) == 1).all()
    assert [column for column in range(16, 22) if x[:, column].any()] == [16, 17, 18, 19, 20]
    assert [column for column in range(31, 36) if x[:, column].any()] == [31, 32, 33, 34]
    assert (bonds[:, :4].sum(1) == 1).all()
    assert bonds[:, 6:].any(0).tolist() == [True, False, True, True]
    assert (bonds[:, 6:].sum(1) == 1).all()


def test_real_salts(real):
    smiles = [row.smiles for rows in real["assay"].rows.values() for row in rows]
    assert sum("." in text for text in smiles) == 365


def test_domains_by_size_are_numbers_of_atoms(real, sizes):
    pairs = {(row.domain, sizes[row.smiles]) for rows in real["size"].rows.values() for row in rows}
    assert len(pairs) == len({domain for domain, _ in pairs}) == len({size for _, size in pairs}) == 225


def test_domains_by_scaffold_are_flat_scaffolds(real):
    rows = [row for rows in real["scaffold"].rows.values() for row in rows]
    shared = Counter(row.domain for row in rows)
    sample = sorted((row for row in rows if shared[row.domain] > 1), key=lambda row: row.domain)[::30]
    sample += rows[:: len(rows) // 150]
    pairs = {(row.domain, scaffold(Chem.MolFromSmiles(row.smiles), False)) for row in sample}
    assert len(pairs) == len({domain for domain, _ in pairs}) == len({text for _, text in pairs}) > 200
    assert len(shared) == 5814


def test_domains_by_assay_are_assays(real):
    data = json.loads(real["assay"].path.read_text())
    pairs = {(row["domain_id"], row["assay_id"]) for rows in data["split"].values() for row in rows}
    assert len(pairs) == len({one for one, _ in pairs}) == len({two for _, two in pairs}) == 194


def test_the_three_files_hold_the_same_molecules(real):
    sets = [{row.smiles: row.label for rows in found.rows.values() for row in rows} for found in real.values()]
    assert sets[0] == sets[1] == sets[2]
    assert len(sets[0]) == 12_661


def test_no_domain_of_an_ood_part_is_trained_on(real):
    for found in real.values():
        trained = {row.domain for split in IN_DISTRIBUTION for row in found.rows[split]}
        assert not trained & {row.domain for split in ("ood_val", "ood_test") for row in found.rows[split]}
