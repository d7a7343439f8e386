"""GOOD-HIV: the rule on small tables and on real molecules, unusable rows, messages; HIV itself where the file is."""

from __future__ import annotations

import sys
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from molecule_kit import equal, graphs_of, rings, write_csv

from harness.errors import DataError
from harness.registry.source_digest import read_code
from harness.stages.prepare import check
from harness.testing import check_component
from plugins.datasets import good_hiv
from plugins.datasets._featurise import Wanted
from plugins.datasets._smiles_pool import featurise_smiles
from plugins.datasets.good_hiv import GOODHIV
from plugins.datasets.ogb import OGB

PARTS = ["train", "id_val", "id_test", "ood_val", "ood_test"]


def hiv_like(folder: Path, smiles, labels) -> Path:
    rows = [(text, "CI" if label == 0 else "CA", label) for text, label in zip(smiles, labels, strict=True)]
    return write_csv(folder / "moleculenet" / "HIV.csv", ["smiles", "activity", "HIV_active"], rows)


def chains(count: int) -> list[str]:
    """Alkanes of 1, 2, 3 … carbon atoms."""
    return ["C" * size for size in range(1, count + 1)]


def sizes(graphs) -> list[int]:
    return [len(graph.x) for graph in graphs]


@pytest.fixture
def alkanes(tmp_path):
    """A hundred alkanes; the label of an odd number of atoms is 1."""
    hiv_like(tmp_path, chains(100), [size % 2 for size in range(1, 101)])
    return tmp_path


def test_size_covariate_on_a_table_by_hand(alkanes):
    """A hundred sizes of one molecule each: 100..21 atoms train, 20..11 validation, 10..1 test."""
    splits = GOODHIV(domain="size").build(alkanes).splits
    assert list(splits) == PARTS
    assert [len(splits[part]) for part in PARTS] == [60, 10, 10, 10, 10]
    assert set(sizes(splits["ood_val"])) == set(range(11, 21))
    assert set(sizes(splits["ood_test"])) == set(range(1, 11))
    for part in PARTS[:3]:
        assert all(graph.env == (100 - len(graph.x)) // 8 for graph in splits[part])
    assert {graph.env for part in PARTS[3:] for graph in splits[part]} == {-1}
    assert all(graph.y == len(graph.x) % 2 for graphs in splits.values() for graph in graphs)


def test_scaffold_covariate_takes_scaffolds_in_the_order_of_their_smiles(tmp_path):
    smiles = [*rings(50), *chains(50)]
    hiv_like(tmp_path, smiles, [0, 1] * 50)
    splits = GOODHIV(domain="scaffold").build(tmp_path).splits
    ordered = sorted(rings(50))  # a cycloalkane is its own scaffold, and chains, whose scaffold is '', come first
    assert sorted(sizes(splits["ood_test"])) == sorted(text.count("C") for text in ordered[40:])
    assert sorted(sizes(splits["ood_val"])) == sorted(text.count("C") for text in ordered[30:40])


def test_chirality_makes_no_scaffold_of_its_own(tmp_path):
    twins = ["C[C@H]1CC[C@@H](C)O1", "C[C@@H]1CC[C@H](C)O1"]
    hiv_like(tmp_path, [*chains(16), *twins, "c1ccccc1", "c1ccncc1"], [0, 1] * 10)
    splits = GOODHIV().build(tmp_path).splits
    assert sizes(splits["ood_val"]) == [7, 7]


def test_unusable_rows_keep_their_place_in_the_cuts_and_move_no_label(alkanes, tmp_path):
    whole = GOODHIV(domain="size").build(alkanes).splits
    labels = [str(size % 2) for size in range(1, 101)]
    labels[49] = ""
    damaged = tmp_path / "damaged"
    hiv_like(damaged, ["not a molecule", *chains(100)[1:]], labels)
    raw = GOODHIV(domain="size").build(damaged)
    assert [text.partition(":")[0] for text in raw.skipped] == ["row 1 (line 2)", "row 50 (line 51)"]
    assert sizes(raw.splits["ood_val"]) == sizes(whole["ood_val"])
    assert sizes(raw.splits["ood_test"]) == sizes(whole["ood_test"])[1:]
    assert len(graphs_of(raw)) == 98
    assert all(graph.y == len(graph.x) % 2 for graph in graphs_of(raw))


def test_concept_leaves_unusable_rows_out_before_it_draws(tmp_path):
    smiles = [*chains(100), "not a molecule"]
    hiv_like(tmp_path, smiles, [*(size % 2 for size in range(1, 101)), 1])
    raw = GOODHIV(domain="size", shift="concept").build(tmp_path)
    assert [len(raw.splits[part]) for part in PARTS] == [42, 9, 9, 20, 20]
    assert raw.skipped == ["row 101 (line 102): RDKit cannot read the SMILES 'not a molecule'"]
    assert {graph.env for graph in raw.splits["train"]} == {0, 1, 2}
    assert {graph.env for part in PARTS[3:] for graph in raw.splits[part]} == {-1}
    large = {part: np.array([g.y for g in raw.splits[part] if len(g.x) > 50]).mean() for part in PARTS}
    assert large["train"] > large["ood_test"], "label 1 goes with the large molecules in train"


def test_split_seed_draws_only_what_is_drawn(alkanes):
    one, other = (GOODHIV(domain="size", split_seed=seed).build(alkanes).splits for seed in (0, 1))
    assert sizes(one["ood_test"]) == sizes(other["ood_test"])
    assert sizes(one["id_val"]) != sizes(other["id_val"])
    again = GOODHIV(domain="size", split_seed=0).build(alkanes).splits
    assert all(equal(a, b) for part in PARTS for a, b in zip(one[part], again[part], strict=True))


def test_declaration(alkanes):
    declared = GOODHIV().declare(alkanes)
    assert [declared.splits[part] for part in PARTS] == ["train", "val", "test", "val", "test"]
    assert (declared.default_val, declared.validation, declared.environments) == ("ood_val", "OOD", 10)
    assert declared.variant == "scaffold, covariate, OGB features"
    assert "PyG" in " ".join(declared.notes)
    concept = GOODHIV(domain="size", shift="concept").declare(alkanes)
    assert concept.environments == 3
    assert concept.variant == "size, concept, OGB features, drawn our way"
    assert "cannot be set beside GOOD's" in " ".join(concept.notes)


def test_facts_tell_no_test_label(alkanes):
    assert set(GOODHIV(domain="size").build(alkanes).facts["labels"]) == {"train", "id_val", "ood_val"}


def test_either_name_of_the_file_and_a_table_of_ones_own(alkanes, tmp_path):
    table = alkanes / "moleculenet" / "HIV.csv"
    assert GOODHIV().files(alkanes) == [table]
    assert GOODHIV(path=str(table)).files(None) == [table]
    kano = write_csv(tmp_path / "kano.csv", ["smiles", "HIV_active"], [("C" * n, n % 2) for n in range(1, 101)])
    raw = GOODHIV(domain="size", path=str(kano)).build(None)
    assert all(map(equal, graphs_of(raw), graphs_of(GOODHIV(domain="size").build(alkanes))))


def test_a_missing_table_is_told_with_its_place_and_address(tmp_path):
    with pytest.raises(DataError, match=r"moleculenet.hiv\.csv\n.*HIV\.csv; its columns are smiles and HIV_active"):
        GOODHIV().files(tmp_path)
    with pytest.raises(DataError, match="BENCH_DATA"):
        GOODHIV().files(None)
    with pytest.raises(DataError, match=r"missing data file: .*mine\.csv"):
        GOODHIV(path="mine.csv").files(tmp_path)
    (download,) = GOODHIV().downloads(tmp_path)
    assert download.path == "moleculenet/hiv.csv"
    assert download.url.endswith("/HIV.csv")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("smiles,HIV_active\nCC,2\n", "column 'HIV_active', row 1: found '2'"),
        ("smiles,active\nCC,1\n", "no column 'HIV_active'"),
        ("mol,HIV_active\nCC,1\n", "no column 'smiles'"),
        ("smiles,HIV_active\n", "no molecule in it"),
        ("smiles,HIV_active\nCC\n", "line 2 has 1 fields"),
        ("", "empty"),
    ],
)
def test_bad_tables_are_refused_at_planning(tmp_path, text, told):
    path = tmp_path / "hiv.csv"
    path.write_text(text)
    with pytest.raises(DataError, match=told):
        GOODHIV(path=str(path)).declare(None)


def test_too_few_scaffolds_name_the_table(tmp_path):
    hiv_like(tmp_path, chains(30), [0, 1] * 15)
    with pytest.raises(DataError, match=r"HIV\.csv: the split by domain leaves ood_val and ood_test"):
        GOODHIV().build(tmp_path)


@pytest.fixture(scope="module")
def real(data_dir):
    """(domain, shift) -> the dataset and what it builds of BACE, which is featurised once, as it takes seconds."""
    built = {}
    featurise = cache(lambda smiles: featurise_smiles(smiles, Wanted("ogb", "flat")))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("plugins.datasets.good_hiv.featurise_smiles", lambda smiles, _: featurise(tuple(smiles)))
        for domain, shift in product(("scaffold", "size"), ("covariate", "concept")):
            dataset = GOODHIV(path="moleculenet/bace.csv", label_column="Class", domain=domain, shift=shift)
            built[domain, shift] = dataset, dataset.build(data_dir)
    return built


def test_real_molecules_are_split_disjointly_and_wholly(real, data_dir):
    for (_, shift), (dataset, raw) in real.items():
        declared = dataset.declare(data_dir)
        check(declared, raw)
        total = sum(map(len, raw.splits.values()))
        assert total == len({id(graph) for graph in graphs_of(raw)}) == 1513
        if shift == "covariate":
            assert len(raw.splits["id_val"]) == len(raw.splits["id_test"]) == total // 10
            pool = sum(len(raw.splits[part]) for part in PARTS[:3])
            assert pool >= 0.8 * total
            assert pool + len(raw.splits["ood_val"]) >= 0.9 * total
        environments = {graph.env for graph in raw.splits["train"]}
        assert environments == set(range(declared.environments))


def test_real_molecules_by_size_are_cut_between_sizes(real):
    splits = real["size", "covariate"][1].splits
    pool = [size for part in PARTS[:3] for size in sizes(splits[part])]
    assert min(pool) > max(sizes(splits["ood_val"]))
    assert min(sizes(splits["ood_val"])) > max(sizes(splits["ood_test"]))


def test_real_molecules_keep_features_and_labels(real, data_dir):
    """The same molecules as those of `ogb`, each with its label."""

    def key(graph):
        return graph.x.tobytes(), graph.edge_index.tobytes(), graph.edge_attr.tobytes(), int(graph.y)

    expected = sorted(map(key, graphs_of(OGB(dataset="bace", source="ogb").build(data_dir))))
    for _, raw in real.values():
        assert sorted(map(key, graphs_of(raw))) == expected


def test_concept_goes_with_the_size_in_train_and_against_it_in_test(real):
    splits = real["size", "concept"][1].splits
    halves = np.median([size for graphs in splits.values() for size in sizes(graphs)])

    def rate(part):
        y, large = np.array([g.y for g in splits[part]]), np.array(sizes(splits[part])) > halves
        return y[large].mean() - y[~large].mean()

    assert rate("train") > rate("ood_val") > rate("ood_test")


def test_conforms_on_a_table(alkanes, tmp_path):
    module = tmp_path / "small_hiv.py"
    module.write_text(
        "from harness import hookimpl\nfrom plugins.datasets.good_hiv import GOODHIV\n\n\n"
        "class SmallHIV(GOODHIV):\n    name = 'small-hiv'\n    probes = {'*': {'domain': 'size'}}\n"
    )
    sys.path.insert(0, str(tmp_path))
    try:
        from small_hiv import SmallHIV

        report = check_component(SmallHIV, alkanes)
    finally:
        sys.path.remove(str(tmp_path))
        sys.modules.pop("small_hiv", None)
    assert report.passed, report.text()


@pytest.mark.parametrize(
    ("domain", "parts"), [("size", (26169, 4112, 4112, 2773, 3961)), ("scaffold", (24679, 4112, 4112, 4116, 4108))]
)
def test_sizes_of_hiv_itself(data_dir, domain, parts):
    """GOOD's sizes, which count rows that RDKit cannot read: in the first three parts or, by size, in the last."""
    dataset = GOODHIV(domain=domain)
    try:
        dataset.files(data_dir)
    except DataError as error:
        pytest.skip(str(error).partition("\n")[0])
    raw = dataset.build(data_dir)
    found = [len(raw.splits[part]) for part in PARTS]
    where = slice(4, 5) if domain == "size" else slice(0, 3)
    assert sum(found[where]) == sum(parts[where]) - len(raw.skipped)
    assert found[3] == parts[3]


def test_where_the_table_is_fetched_from_is_in_no_key():
    file = Path(good_hiv.__file__)
    assert "_ogb_downloads.py" not in {path.name for path in read_code(file, {"plugins": file.parents[2]}).contents}
