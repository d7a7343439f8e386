"""Bad and unusual molecule files: one clear message that names the file, or a correct result."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from molecule_kit import graphs_of, raw_folder, ring_table

from harness.data import Dataset
from harness.errors import DataError, UserError
from plugins.datasets import _files
from plugins.datasets.good_hiv import GOODHIV
from plugins.datasets.ogb import OGB
from plugins.datasets.smiles_csv import SmilesCSV

HEADER = "smiles,odd\n"


def refused(dataset: Dataset, folder: Path | None) -> str:
    """The message with which a dataset refuses its files, at planning or when it is built."""
    steps = (dataset.files, dataset.declare, dataset.build)
    with pytest.raises(DataError) as caught:
        [step(folder) for step in steps]
    return str(caught.value)


def table(tmp_path: Path, content: str | bytes) -> SmilesCSV:
    path = tmp_path / "table.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return SmilesCSV(path="table.csv")


def test_missing_data_name_both_places_and_both_sources(tmp_path):
    message = refused(OGB(dataset="bace"), tmp_path)
    assert str(tmp_path / "ogbg_molbace") in message
    assert str(tmp_path / "moleculenet" / "bace.csv") in message
    assert "bace.zip" in message
    assert len(message.splitlines()) < 8


def test_a_missing_csv_names_its_path(tmp_path):
    assert str(tmp_path / "moleculenet" / "bbbp.csv") in refused(OGB(dataset="bbbp", source="csv"), tmp_path)
    assert str(tmp_path / "mine.csv") in refused(SmilesCSV(path="mine.csv"), tmp_path)


def test_a_missing_raw_file_is_named(tmp_path):
    raw_folder(tmp_path / "ogbg_molbace")
    (tmp_path / "ogbg_molbace/raw/edge.csv.gz").unlink()
    message = refused(OGB(dataset="bace"), tmp_path)
    assert str(tmp_path / "ogbg_molbace/raw/edge.csv.gz") in message
    assert "unpack" in message


def test_an_empty_raw_folder_is_not_taken_for_data(tmp_path):
    (tmp_path / "ogbg_molbace").mkdir()
    assert "num-node-list.csv.gz and 8 more" in refused(OGB(dataset="bace"), tmp_path)


def test_no_data_folder(tmp_path):
    assert "BENCH_DATA" in refused(OGB(), None)
    assert "BENCH_DATA" in refused(SmilesCSV(path="x.csv"), None)
    assert graphs_of(SmilesCSV(path=str(ring_table(tmp_path / "rings.csv"))).build(None))


def test_a_data_folder_that_is_not_there(tmp_path):
    assert "neither" in refused(OGB(), tmp_path / "nowhere")


def test_a_folder_where_a_file_should_be(tmp_path):
    (tmp_path / "moleculenet" / "bace.csv").mkdir(parents=True)
    assert "a file is expected here" in refused(OGB(), tmp_path)


@pytest.mark.parametrize("name", ["../secret", "", "tox12", "ogbg-molhiv", "esol"])
def test_names_of_sets_that_there_are_not(name):
    with pytest.raises(UserError, match="dataset"):
        OGB(dataset=name)


def test_no_path():
    assert "'path' is not given" in refused(SmilesCSV(), None)


@pytest.mark.parametrize(
    ("name", "header", "labels"),
    [
        ("bace", "mol,CID,Class,pIC50", "CC,a,1,7.3"),
        ("bbbp", "num,name,p_np,smiles", "1,x,0,CC"),
        ("hiv", "smiles,activity,HIV_active", "CC,CI,0"),
        ("clintox", "smiles,FDA_APPROVED,CT_TOX", "CC,1,0"),
        ("tox21", ",".join(f"t{i}" for i in range(12)) + ",mol_id,smiles", "," * 11 + "1,TOX1,CC"),
    ],
)
def test_moleculenets_own_columns(name, header, labels, tmp_path):
    path = tmp_path / "moleculenet" / f"{name}.csv"
    path.parent.mkdir()
    path.write_text(f"{header}\n{labels}\n")
    task = OGB(dataset=name).declare(tmp_path).task
    assert (task.num_tasks, task.metric) == ({"clintox": 2, "tox21": 12}.get(name, 1), "rocauc")


def test_another_number_of_labels_than_the_set_has(tmp_path):
    path = tmp_path / "moleculenet" / "tox21.csv"
    path.parent.mkdir()
    path.write_text("smiles,a,b\nCC,0,1\n")
    assert "2 label columns where the set has 12" in refused(OGB(dataset="tox21"), tmp_path)
    raw_folder(tmp_path / "ogbg_molclintox")
    assert "labels per molecule: 1; 'clintox' has 2" in refused(OGB(dataset="clintox"), tmp_path)


@pytest.mark.parametrize("name", ["hiv.csv", "HIV.csv", "Hiv.CSV"])
def test_a_tables_name_in_any_case(name, tmp_path):
    """For both components that read it."""
    path = tmp_path / "moleculenet" / name
    path.parent.mkdir()
    path.write_text("smiles,activity,HIV_active\nCC,CI,0\n")
    for dataset in (OGB(dataset="hiv"), OGB(dataset="hiv", source="csv"), GOODHIV()):
        assert dataset.files(tmp_path) == [path]
        assert dataset.declare(tmp_path).task.kind == "binary"


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
        ("smiles;odd\nCC;1\n", "the columns are: smiles;odd"),
        ('smiles,"a;b"\nCC,7\n', "column 'a;b': 1 different labels"),
        ("smiles\nCC\n", "no label column"),
        ("smiles,y,y\nCC,1,0\n", "there twice"),
        ("smiles,smiles,y\nC,C,1\n", "more than one column 'smiles'"),
        ("smiles,y\nCC,0.73\n", "column 'y', row 1: found '0.73'"),
        ("smiles,y\nCC,-1\n", "found '-1'"),
        ("smiles,y\nCC,-2\n", "regression is not supported"),
        ("smiles,y,z\nCC,1,\nCCC,0,NaN\n", "column 'z' has no label in any row"),
        ("smiles,y\nCC,\nCCC,NA\n", "column 'y' has no label in any row"),
        (",smiles,y\n0,CC,1\n1,CCC,0\n", "or one without a name"),
        ("smiles,y,\nCC,1,\nCCC\n", "line 3 has 1 fields, the header 3"),
        ("smiles,y\nCC,yes\n", "found 'yes'"),
        ("smiles,y\nCC,inf\n", "found 'inf'"),
    ],
)
def test_foreign_and_damaged_tables(content, words, tmp_path):
    message = refused(table(tmp_path, content), tmp_path)
    assert words in message
    assert str(tmp_path / "table.csv") in message
    assert len(message) < 600


def test_an_unknown_column_is_named_with_the_nearest(tmp_path):
    ring_table(tmp_path / "rings.csv")
    message = refused(SmilesCSV(path="rings.csv", label_columns=["ods"]), tmp_path)
    assert "no column 'ods' in the header (did you mean 'odd'?); the columns are: smiles, odd" in message
    for option in ("smiles_column", "domain_column"):
        message = refused(SmilesCSV(path="rings.csv", **{option: "SMILES"}), tmp_path)
        assert "(did you mean 'smiles'?)" in message
        assert f"'{option}' names it" in message
    message = refused(SmilesCSV(path="rings.csv", split="column", label_columns=["odd"]), tmp_path)
    assert "'split_column' names it" in message
    assert "no label column" in refused(SmilesCSV(path="rings.csv", label_columns=[]), tmp_path)
    assert "of another use: 'smiles'" in refused(SmilesCSV(path="rings.csv", label_columns=["smiles"]), tmp_path)


def test_a_header_of_any_length_fits_on_a_screen(tmp_path):
    assert len(refused(table(tmp_path, ",".join(map(str, range(5000))) + "\n1\n"), tmp_path)) < 500


def test_too_few_scaffolds_name_the_file(tmp_path):
    message = refused(table(tmp_path, "smiles,y\n" + "CCO,1\n" * 20), tmp_path)
    assert str(tmp_path / "table.csv") in message
    assert "without a molecule" in message


def test_nothing_but_bad_smiles(tmp_path):
    assert "0 of 20 rows" in refused(table(tmp_path, "smiles,y\n" + "C(,1\n" * 20), tmp_path)


def content(path: Path) -> list[tuple[int, int]]:
    return [(len(graph.x), graph.y) for graph in graphs_of(SmilesCSV(path=str(path)).build(None))]


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
        "trailing": "".join(f"{line},\n" for line in text.splitlines()).encode(),
        "trailing-header": text.replace("odd\n", "odd,,\n").encode(),
        "without-values": "".join(
            f"{'NaN' if i else ''},{line},{'' if i else ' '}\n" for i, line in enumerate(text.splitlines())
        ).encode(),
        "quoted": "".join('"' + line.replace(",", '","') + '"\n' for line in text.splitlines()).encode(),
        "gzip": gzip.compress(text.encode()),
    }
    for name, data in variants.items():
        (tmp_path / f"{name}.csv").write_bytes(data)
        assert content(tmp_path / f"{name}.csv") == content(plain), name


def test_a_gzip_bomb_is_refused_before_it_is_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr(_files, "SMALL", 1 << 20)
    bomb = tmp_path / "bomb.csv.gz"
    bomb.write_bytes(gzip.compress(b"0" * (8 << 20)))
    with pytest.raises(DataError, match="bytes of gzip unpack to more than 1,6"):  # 200 times the file's 8 KB
        _files.read_text(bomb)


def test_a_truncated_gzip_is_told(tmp_path):
    whole = gzip.compress(ring_table(tmp_path / "plain.csv").read_bytes())
    (tmp_path / "table.csv").write_bytes(whole[: len(whole) // 2])
    message = refused(SmilesCSV(path="table.csv"), tmp_path)
    assert "truncated or damaged" in message
    assert str(tmp_path / "table.csv") in message
    (tmp_path / "table.csv").write_bytes(whole)
    assert content(tmp_path / "table.csv") == content(tmp_path / "plain.csv")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"raw/num-node-list": "2\n1\n3\n"}, "num-node-list.csv.gz: 3 rows where 4 are due"),
        ({"raw/num-node-list": "2\n1\n4\n2\n"}, "node-feat.csv.gz: 8 rows where 9 are due"),
        ({"raw/num-node-list": "2\n0\n4\n2\n"}, "num-node-list.csv.gz: a number is out of range"),
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
        ({"raw/graph-label": "1\n0\n1\n"}, "4 rows where 3 are due"),
        ({"split/scaffold/test": "2\n3\n"}, "exactly once"),
        ({"split/scaffold/test": "9\n"}, "exactly once"),
        ({"split/scaffold/valid": "\n", "split/scaffold/test": "1\n2\n"}, "no labelled molecule is left in val"),
    ],
)
def test_damaged_raw_folders(changes, words, tmp_path):
    raw_folder(tmp_path / "ogbg_molbace", changes)
    assert words in refused(OGB(dataset="bace"), tmp_path)


@pytest.mark.parametrize("name", ["raw/edge", "raw/graph-label", "split/scaffold/train"])
def test_a_truncated_raw_file_is_named_and_mended_by_replacing_it(name, tmp_path):
    folder = raw_folder(tmp_path / "ogbg_molbace")
    path = folder / f"{name}.csv.gz"
    path.write_bytes(path.read_bytes()[:-6])
    assert str(path) in refused(OGB(dataset="bace"), tmp_path)
    raw_folder(folder)
    assert len(graphs_of(OGB(dataset="bace").build(tmp_path))) == 4
