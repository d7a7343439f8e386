"""Files of DrugOOD's kind with every fault: one clear error, or the right rows; never anything else."""

from __future__ import annotations

import json
import random

import pytest
from drugood_kit import content, place, write

from harness.errors import DataError
from plugins.datasets._drugood_file import SPLITS, read_drugood
from plugins.datasets.drugood import DrugOOD


def rows_of(found):
    return {split: [(row.smiles, row.label, row.domain) for row in found.rows[split]] for split in SPLITS}


def expected_rows():
    return {
        split: [(row["smiles"], row["cls_label"], row["domain_id"]) for row in rows]
        for split, rows in content()["split"].items()
    }


def change(data, *keys, to=None, drop=False):
    """Set or drop what lies at a path of keys."""
    for key in keys[:-1]:
        data = data[key]
    if drop:
        del data[keys[-1]]
    else:
        data[keys[-1]] = to


ROW = ("split", "train", 1)
FAULTS = {
    "label 2": (
        (*ROW, "cls_label"),
        2,
        "'split', 'train', row 2, 'cls_label': Input should be less than or equal to 1",
    ),
    "label NaN": ((*ROW, "cls_label"), float("nan"), "found nan"),
    "label true": ((*ROW, "cls_label"), True, "found True"),
    "label flipped": ((*ROW, "cls_label"), 1, "'cls_label' is 1, but 'reg_label' is 4.5 and the threshold"),
    "measured NaN": (
        (*ROW, "reg_label"),
        float("nan"),
        "row 2, 'reg_label': Input should be a finite number; found nan",
    ),
    "measured huge": ((*ROW, "reg_label"), 10**400, "found 1000"),
    "domain fraction": ((*ROW, "domain_id"), 50.5, "row 2, 'domain_id': Input should be a valid integer; found 50.5"),
    "domain negative": ((*ROW, "domain_id"), -1, "found -1"),
    "smiles number": ((*ROW, "smiles"), 5, "'smiles': Input should be a valid string; found 5"),
    "smiles empty": ((*ROW, "smiles"), "", "found ''"),
    "smiles with a space": ((*ROW, "smiles"), "CC CO", "found 'CC CO'"),
    "row is a list": (ROW, [1, 2], "'split', 'train', row 2: Input should be an object; found [1, 2]"),
    "one more key": ((*ROW, "extra"), 1, "row 2, 'extra': Extra inputs are not permitted"),
    "a protein in one row": ((*ROW, "protein"), "MKV", "row 2: some rows have a 'protein' and some have none"),
    "split is an object": (("split", "ood_val"), {}, "'split', 'ood_val': Input should be a valid array; found {}"),
    "split is empty": (("split", "ood_val"), [], "'ood_val': List should have at least 1 item"),
    "one more split": (("split", "extra"), [], "'split', 'extra': Extra inputs are not permitted"),
    "splits are a list": (("split",), [], "'split': Input should be an object"),
    "statistics are null": (("statistics",), None, "'statistics': Input should be an object"),
    "threshold text": (("statistics", "thr_for_cls"), "5", "'thr_for_cls': found '5', expected a number"),
    "count differs": (("statistics", "train datapoints"), 6, "'train datapoints' is 6, counted 5"),
    "count is NaN": (("statistics", "positive_samples"), float("nan"), "'positive_samples' is nan, counted 9"),
    "rate differs": (("statistics", "positive_rate"), 0.5, "'positive_rate' is 0.5, counted 0.6"),
    "domains differ": (("statistics", "val domain number"), 3, "'val domain number' is 3, counted 2"),
    "domain moved": (("split", "ood_val", 0, "domain_id"), 50, "domain 50 is in train/iid_val/iid_test and in ood_val"),
    "domain in both": (("split", "ood_test", 0, "domain_id"), 3, "domain 3 is in ood_val and in ood_test"),
    "molecule in two splits": (
        ("split", "ood_test", 0, "smiles"),
        "CCO",
        "'split', 'ood_test', row 1: the same molecule is in 'train' too: 'CCO'",
    ),
    "molecule with both labels": (
        (*ROW, "smiles"),
        "CO",
        "row 2: the same molecule is there with the other label: 'CO'",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_named_with_its_place(fault, tmp_path):
    keys, value, expected = FAULTS[fault]
    data = content()
    change(data, *keys, to=value)
    path = write(tmp_path, data)
    for use in (read_drugood, lambda _: DrugOOD().declare(tmp_path), lambda _: DrugOOD().build(tmp_path)):
        with pytest.raises(DataError) as error:
            use(path)
        assert str(error.value).startswith(f"{path}: ")
        assert expected in str(error.value)
        assert len(str(error.value)) < 600


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (("cfg",), "'cfg': Field required"),
        (("split", "iid_val"), "'split', 'iid_val': Field required"),
        ((*ROW, "domain_id"), "row 2, 'domain_id': Field required"),
        (("statistics", "iid_val datapoints"), "'iid_val datapoints' is None, counted 2"),
    ],
)
def test_what_is_missing_is_named(keys, expected, tmp_path):
    data = content()
    change(data, *keys, drop=True)
    with pytest.raises(DataError) as error:
        read_drugood(write(tmp_path, data))
    assert expected in str(error.value)


def test_all_differing_counts_are_named(tmp_path):
    data = content()
    del data["split"]["train"][0]
    with pytest.raises(DataError) as error:
        read_drugood(write(tmp_path, data))
    for text in ("'positive_samples' is 9, counted 8", "'train datapoints' is 5, counted 4", "'positive_rate'"):
        assert text in str(error.value)


@pytest.mark.parametrize("text", ["", "[]", "5", "null", '"text"', "{}", "[" * 100_000, "{" * 50, "1" * 10_000, "\0"])
def test_other_content(text, tmp_path):
    place(tmp_path).write_text(text)
    with pytest.raises(DataError) as error:
        DrugOOD().declare(tmp_path)
    assert str(place(tmp_path)) in str(error.value)


def test_every_truncation(tmp_path):
    path = write(tmp_path)
    whole = path.read_bytes()
    for size in range(0, len(whole), 7):
        path.write_bytes(whole[:size])
        with pytest.raises(DataError) as error:
            read_drugood(path)
        assert "put the whole file there" in str(error.value)


def test_a_folder_in_its_place(tmp_path):
    place(tmp_path).mkdir()
    with pytest.raises(DataError, match="a file is expected here"):
        DrugOOD().files(tmp_path)


def test_not_text(tmp_path):
    place(tmp_path).write_bytes(b"\xff\xfe\x00{")
    with pytest.raises(DataError, match="not a UTF-8 text file"):
        DrugOOD().declare(tmp_path)


def test_byte_order_mark_and_windows_line_ends_change_nothing(tmp_path):
    text = json.dumps(content(), indent=1)
    path = place(tmp_path)
    for data in (text.encode(), b"\xef\xbb\xbf" + text.encode(), text.replace("\n", "\r\n").encode()):
        path.write_bytes(data)
        assert rows_of(read_drugood(path)) == expected_rows()


def test_a_measurement_at_the_threshold_goes_either_way(tmp_path):
    data = content()
    for row in data["split"]["train"][:2]:
        row["reg_label"] = 5
    assert rows_of(read_drugood(write(tmp_path, data))) == expected_rows()


def test_same_molecule_with_other_protein_may_be_in_another_split(tmp_path):
    data = content(proteins=True)
    data["split"]["ood_test"][0] |= {"smiles": "CCO", "protein": "MKW"}
    assert read_drugood(write(tmp_path, data)).has_proteins
    data["split"]["ood_test"][0]["protein"] = "MKV"
    with pytest.raises(DataError, match="the same molecule and protein is in 'train' too"):
        read_drugood(write(tmp_path, data))


def mutated(rng, whole):
    """One to three random changes of bytes."""
    data = bytearray(whole)
    for _ in range(rng.choice((1, 1, 2, 3))):
        start, length = rng.randrange(len(data)), rng.choice((1, 1, 1, 2, 5, 40, 200))
        other = rng.randrange(len(data))
        kind = rng.randrange(6)
        if kind == 0:
            data[start] = rng.randrange(256)
        elif kind == 1:
            data[start] = rng.choice(b'0123456789"{}[],:.-eENntu\\ \r\n')
        elif kind == 2:
            del data[start : start + length]
        elif kind == 3:
            data[start:start] = data[other : other + length]
        elif kind == 4:
            data[start : start + length] = data[other : other + length]
        else:
            data[start], data[other] = data[other], data[start]
    return bytes(data)


def test_two_thousand_mutations(tmp_path):
    """An error, or rows whose labels are right; every twentieth file that passes is also built."""
    rng = random.Random(4)
    path = write(tmp_path)
    whole = path.read_bytes()
    truth = {smiles: label for rows in expected_rows().values() for smiles, label, _ in rows}
    passed = 0
    for _ in range(2_000):
        path.write_bytes(mutated(rng, whole))
        try:
            found = read_drugood(path)
        except DataError:
            continue
        passed += 1
        for rows in rows_of(found).values():
            assert all(truth.get(smiles, label) == label for smiles, label, _ in rows)
        if passed % 20 == 0:
            built(found, truth, tmp_path)
    assert passed > 60


def built(found, truth, folder):
    try:
        raw = DrugOOD(path=str(found.path), iid=True).build(folder)
    except DataError:
        return
    assert sum(map(len, raw.splits.values())) + len(raw.skipped) == sum(map(len, found.rows.values()))
    by_size = {len(smiles): label for smiles, label in truth.items()}
    for split, graphs in raw.splits.items():
        kept = [row for n, row in enumerate(found.rows[split], 1) if not lost(raw.skipped, split, n)]
        for row, graph in zip(kept, graphs, strict=True):
            assert graph.y == row.label
            if row.smiles in truth:
                assert graph.y == by_size[len(graph.x)]


def lost(skipped, split, number):
    return any(line.startswith(f"{split}, row {number}: ") for line in skipped)
