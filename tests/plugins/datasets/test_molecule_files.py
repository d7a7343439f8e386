"""Bad and unusual molecule files: one clear message that names the file, or a correct result."""

from __future__ import annotations

import gzip
import random
from pathlib import Path

import pytest
from molecule_kit import graphs_of, raw_folder, ring_table, rings, write_csv, write_gz

from harness.errors import DataError
from plugins.datasets.molecules import Molecules

HEADER = "smiles,odd\n"


def refused(dataset: Molecules, folder: Path | None) -> str:
    """The message with which a dataset refuses its files, at planning or when it is built."""
    steps = (dataset.files, dataset.declare, dataset.build)
    with pytest.raises(DataError) as caught:
        [step(folder) for step in steps]
    return str(caught.value)


def table(tmp_path: Path, content: str | bytes) -> Molecules:
    path = tmp_path / "table.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return Molecules(path="table.csv")


def test_missing_data_name_both_places_and_both_sources(tmp_path):
    message = refused(Molecules(dataset="bace"), tmp_path)
    assert str(tmp_path / "ogbg_molbace") in message
    assert str(tmp_path / "moleculenet" / "bace.csv") in message
    assert "bace.zip" in message
    assert len(message.splitlines()) < 8


def test_a_missing_csv_names_its_path(tmp_path):
    assert str(tmp_path / "moleculenet" / "bbbp.csv") in refused(Molecules(dataset="bbbp", source="csv"), tmp_path)
    assert str(tmp_path / "mine.csv") in refused(Molecules(path="mine.csv"), tmp_path)


def test_a_missing_raw_file_is_named(tmp_path):
    raw_folder(tmp_path / "ogbg_molfour")
    (tmp_path / "ogbg_molfour/raw/edge.csv.gz").unlink()
    message = refused(Molecules(dataset="four"), tmp_path)
    assert str(tmp_path / "ogbg_molfour/raw/edge.csv.gz") in message
    assert "unpack" in message


def test_an_empty_raw_folder_is_not_taken_for_data(tmp_path):
    (tmp_path / "ogbg_molbace").mkdir()
    assert "num-node-list.csv.gz and 8 more" in refused(Molecules(dataset="bace"), tmp_path)


def test_no_data_folder(tmp_path):
    assert "BENCH_DATA" in refused(Molecules(), None)
    assert "BENCH_DATA" in refused(Molecules(path="x.csv"), None)
    assert graphs_of(Molecules(path=str(ring_table(tmp_path / "rings.csv"))).build(None))


def test_a_data_folder_that_is_not_there(tmp_path):
    assert "neither" in refused(Molecules(), tmp_path / "nowhere")


def test_a_folder_where_a_file_should_be(tmp_path):
    (tmp_path / "moleculenet" / "bace.csv").mkdir(parents=True)
    assert "a file is expected here" in refused(Molecules(), tmp_path)


@pytest.mark.parametrize("name", ["../secret", "a/b", "", ".."])
def test_a_name_that_is_a_path_is_refused(name, tmp_path):
    assert "plain name" in refused(Molecules(dataset=name), tmp_path)


def test_a_path_does_not_go_with_the_raw_folder(tmp_path):
    assert "does not go with" in refused(Molecules(path="x.csv", source="ogb"), tmp_path)


@pytest.mark.parametrize("method", ["read_bytes", "stat"])
def test_without_permission(method, tmp_path, monkeypatch):
    dataset = table(tmp_path, HEADER)

    def denied(self, **_):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, method, denied)
    message = refused(dataset, tmp_path)
    assert str(tmp_path / "table.csv") in message
    assert "Permission denied" in message


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty (0 bytes)"),
        (HEADER, "no molecule in it"),
        ("\n\n", "no molecule in it"),
        ("<html><body>404</body>\n<p>no</p></html>\n", "no column 'smiles'"),
        ("version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 4\n", "no column 'smiles'"),
        (b"\x89PNG\r\n\x1a\n\x00\x00", "not a UTF-8 text file"),
        ("smiles,odd\nC\0,1\n", "null bytes"),
        ("smiles,odd\nCC,1\nCCO\n", "line 3 has 1 fields, the header 2"),
        ("smiles,odd\nCC,1,0\n", "line 2 has 3 fields"),
        ('smiles,odd\n"CC,1\nCCO,0\n', "not a comma-separated table"),
        ("smiles;odd\nCC;1\n", "no column 'smiles'"),
        ("smiles\nCC\n", "no label column"),
        ("smiles,y,y\nCC,1,0\n", "'y' is not exactly one label column"),
        ("smiles,smiles,y\nC,C,1\n", "more than one column 'smiles'"),
        ("smiles,y\nCC,0.73\n", "column 'y', row 1: found '0.73'"),
        ("smiles,y\nCC,-1\n", "regression is not supported"),
        ("smiles,y\nCC,yes\n", "found 'yes'"),
        ("smiles,y\nCC,inf\n", "found 'inf'"),
    ],
)
def test_foreign_and_damaged_tables(content, words, tmp_path):
    message = refused(table(tmp_path, content), tmp_path)
    assert words in message
    assert str(tmp_path / "table.csv") in message
    assert len(message) < 600


def test_an_unknown_label_column_is_named(tmp_path):
    ring_table(tmp_path / "rings.csv")
    message = refused(Molecules(path="rings.csv", label_columns=["even"]), tmp_path)
    assert "'even'" in message
    assert "smiles, odd" in message
    assert "no label column" in refused(Molecules(path="rings.csv", label_columns=[]), tmp_path)
    assert "'smiles' is not" in refused(Molecules(path="rings.csv", label_columns=["smiles"]), tmp_path)


def test_a_header_of_any_length_fits_on_a_screen(tmp_path):
    assert len(refused(table(tmp_path, ",".join(map(str, range(5000))) + "\n1\n"), tmp_path)) < 500


def test_too_few_scaffolds_name_the_file(tmp_path):
    message = refused(table(tmp_path, "smiles,y\n" + "CCO,1\n" * 20), tmp_path)
    assert str(tmp_path / "table.csv") in message
    assert "without a molecule" in message


def test_nothing_but_bad_smiles(tmp_path):
    assert "0 of 20 rows" in refused(table(tmp_path, "smiles,y\n" + "C(,1\n" * 20), tmp_path)


def content(path: Path) -> list[tuple[int, int]]:
    return [(len(graph.x), graph.y) for graph in graphs_of(Molecules(path=str(path)).build(None))]


def test_line_ends_marks_blank_lines_and_spaces_change_nothing(tmp_path):
    plain = ring_table(tmp_path / "plain.csv")
    text = plain.read_text()
    variants = {
        "windows": text.replace("\n", "\r\n").encode(),
        "mark": b"\xef\xbb\xbf" + text.encode(),
        "both": b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode(),
        "blank": (text.replace("\n", "\n\n") + "\n\n").encode(),
        "no-end": text.rstrip("\n").encode(),
        "spaces": text.replace(",", " , ").encode(),
        "floats": text.replace(",1\n", ",1.0\n").replace(",0\n", ",0.0\n").encode(),
        "quoted": "".join('"' + line.replace(",", '","') + '"\n' for line in text.splitlines()).encode(),
        "gzip": gzip.compress(text.encode()),
    }
    for name, data in variants.items():
        (tmp_path / f"{name}.csv").write_bytes(data)
        assert content(tmp_path / f"{name}.csv") == content(plain), name


def test_a_truncated_gzip_is_told(tmp_path):
    whole = gzip.compress(ring_table(tmp_path / "plain.csv").read_bytes())
    (tmp_path / "table.csv").write_bytes(whole[: len(whole) // 2])
    message = refused(Molecules(path="table.csv"), tmp_path)
    assert "truncated or damaged" in message
    assert str(tmp_path / "table.csv") in message
    (tmp_path / "table.csv").write_bytes(whole)
    assert content(tmp_path / "table.csv") == content(tmp_path / "plain.csv")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"raw/num-node-list": "2\n1\n3\n"}, "num-node-list.csv.gz: expected 4 counts"),
        ({"raw/num-node-list": "2\n1\n4\n2\n"}, "node-feat.csv.gz: 8 rows where 9 are due"),
        ({"raw/num-node-list": "2\n0\n4\n2\n"}, "at least 1"),
        ({"raw/num-node-list": "2\n1\n3\n999999999999\n"}, "rows where"),
        ({"raw/num-edge-list": "1\n0\n2\n9\n"}, "edge.csv.gz: 4 rows where 12 are due"),
        ({"raw/node-feat": "5,0,4,5,3,0,2,0,0\n" * 7}, "7 rows where 8 are due"),
        ({"raw/node-feat": "5,0,4\n" * 8}, "3 columns where OGB has 9"),
        ({"raw/node-feat": "119,0,4,5,3,0,2,0,0\n" * 8}, "out of range"),
        ({"raw/edge": "0,1\n0,1\n1,3\n0,1\n"}, "edge.csv.gz: a number is out of range"),
        ({"raw/edge": "0,-1\n0,1\n1,2\n0,1\n"}, "out of range"),
        ({"raw/edge": "0,x\n0,1\n1,2\n0,1\n"}, "not a table of integers"),
        ({"raw/edge": "0\n0,1\n1,2\n0,1\n"}, "not a table of integers"),
        ({"raw/edge-feat": "9,0,0\n" * 4}, "out of range"),
        ({"raw/graph-label": "0.5\n0\n1\n0\n"}, "regression is not supported"),
        ({"raw/graph-label": "1,0\n0\n1\n0\n"}, "different numbers of labels"),
        ({"raw/graph-label": "1\n0\n1\n"}, "expected 3 counts"),
        ({"split/scaffold/test": "2\n3\n"}, "exactly once"),
        ({"split/scaffold/test": "9\n"}, "exactly once"),
        ({"split/scaffold/valid": "\n", "split/scaffold/test": "1\n2\n"}, "no labelled molecule is left in val"),
    ],
)
def test_damaged_raw_folders(changes, words, tmp_path):
    raw_folder(tmp_path / "ogbg_molfour", changes)
    assert words in refused(Molecules(dataset="four"), tmp_path)


def test_an_unknown_column_of_a_raw_folder(tmp_path):
    raw_folder(tmp_path / "ogbg_molfour")
    message = refused(Molecules(dataset="four", label_columns=["Class"]), tmp_path)
    assert "no label column 'Class'; there are: active" in message
    assert "'label_columns' is empty" in refused(Molecules(dataset="four", label_columns=[]), tmp_path)


@pytest.mark.parametrize("name", ["raw/edge", "raw/graph-label", "split/scaffold/train"])
def test_a_truncated_raw_file_is_named_and_mended_by_replacing_it(name, tmp_path):
    folder = raw_folder(tmp_path / "ogbg_molfour")
    path = folder / f"{name}.csv.gz"
    path.write_bytes(path.read_bytes()[:-6])
    assert str(path) in refused(Molecules(dataset="four"), tmp_path)
    raw_folder(folder)
    assert len(graphs_of(Molecules(dataset="four").build(tmp_path))) == 4


def mutate(data: bytes, rng: random.Random) -> bytes:
    """One to three bytes changed, removed or inserted, or a truncation."""
    changed = bytearray(data)
    for _ in range(rng.randint(1, 3)):
        if not changed:
            break
        place = rng.randrange(len(changed))
        action = rng.randrange(4)
        if action == 0:
            changed[place] = rng.randrange(256)
        elif action == 1:
            del changed[place]
        elif action == 2:
            changed.insert(place, rng.choice(b'\0\n\r,"C1(x\xff'))
        else:
            del changed[max(place, 1) :]
    return bytes(changed)


def test_random_damage_to_a_table_is_an_error_or_a_result(tmp_path):
    rows = [(smiles, i % 2, "") for i, smiles in enumerate(rings(12))]
    data = write_csv(tmp_path / "whole.csv", ["smiles", "a", "b"], rows).read_bytes()
    rng, path, refusals = random.Random(0), tmp_path / "table.csv", []
    for _ in range(400):
        path.write_bytes(mutate(data, rng))
        try:
            raw = Molecules(path="table.csv").build(tmp_path)
        except DataError as error:
            refusals.append(str(error))
        else:
            assert len(graphs_of(raw)) + len(raw.skipped) == raw.facts["rows"]
    assert len(refusals) > 100
    assert all(str(path) in refusal for refusal in refusals)


def test_random_damage_to_a_raw_folder_is_an_error_or_a_result(tmp_path):
    folder = raw_folder(tmp_path / "ogbg_molfour")
    rng, refusals = random.Random(0), []
    paths = sorted(folder.rglob("*.csv.gz"))
    for _ in range(400):
        path = rng.choice(paths)
        whole = path.read_bytes()
        write_gz(path, mutate(gzip.decompress(whole), rng).decode("utf-8", "replace"))
        try:
            assert len(graphs_of(Molecules(dataset="four").build(tmp_path))) in (3, 4)
        except DataError as error:
            refusals.append(str(error))
        path.write_bytes(whole)
    assert len(refusals) > 100
    assert all(str(folder) in refusal for refusal in refusals)
