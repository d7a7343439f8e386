"""Published numbers: every cell parses, some are checked, and faults are told."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from harness.errors import UserError
from harness.results.published import PublishedValue, load_published, publications, read_published

EQUAD = "equad-icml24"
MEAN_RANGE = {"percent": (35.0, 90.0), "seconds": (100.0, 3000.0)}
TEN = ["ERM", "IRM", "V-REx", "IB-IRM", "EIIL", "GREA", "GSAT", "CIGA", "GIL", "DisC"]
REAL = [
    "ERM",
    "IRM",
    "Coral",
    "MixUp",
    "V-REx",
    "IB-IRM",
    "EIIL",
    "DIR",
    "GSAT",
    "GREA",
    "CAL",
    "DisC",
    "MoleOOD",
    "CIGA",
    "iMoLD",
]
SMALL = {
    "name": "p",
    "citation": "c",
    "spread": "standard deviation",
    "tables": [
        {
            "name": "t",
            "source": "Table 1",
            "metric": "accuracy",
            "unit": "percent",
            "columns": ["A"],
            "rows": {"M": [1.5]},
        }
    ],
}


@pytest.mark.parametrize("name", publications())
def test_every_publication_parses(name: str) -> None:
    found = load_published(name)
    assert found.name == name
    assert found.citation
    assert found.spread
    assert len({table.name for table in found.tables}) == len(found.tables)
    for table in found.tables:
        low, high = MEAN_RANGE[table.unit]
        assert table.source
        assert set(table.metrics) == set(table.columns)
        assert set(table.metrics.values()) <= {"accuracy", "rocauc", "time"}
        assert table.spread in ("standard deviation", "standard error")
        assert {*table.printed, *table.notes} <= {"*", *table.rows}
        for method, cells in table.rows.items():
            assert cells, method
            assert all(low < value.mean < high for value in cells.values()), method
            assert all(value.spread is None or 0 < value.spread <= 15 for value in cells.values()), method


def test_table_1_has_eleven_baselines_and_equad_once_in_each_column() -> None:
    table = load_published(EQUAD).table("synthetic")
    assert list(table.rows) == [*TEN, "GALA, no resampling", "EQuAD, Eqn. 7", "EQuAD, reweighted ERM"]
    assert len(table.columns) == 7
    for method in [*TEN, "GALA, no resampling"]:
        assert set(table.rows[method]) == set(table.columns)
    equad = [table.rows["EQuAD, Eqn. 7"], table.rows["EQuAD, reweighted ERM"]]
    assert [*equad[0], *equad[1]] == list(table.columns)
    assert set(table.printed.values()) == {"GALA", "EQuAD"}


def test_table_2_has_fifteen_baselines_and_equad() -> None:
    table = load_published(EQUAD).table("real")
    assert list(table.rows) == [*REAL, "EQuAD, Eqn. 7"]
    full = [method for method, cells in table.rows.items() if len(cells) == 8]
    assert full == ["ERM", "IRM", "DIR", "GSAT", "GREA", "MoleOOD", "CIGA", "EQuAD, Eqn. 7"]
    assert all(set(cells) >= set(table.columns[:6]) for cells in table.rows.values())
    assert table.value("IRM", "DrugOOD IC50-size") == table.value("EIIL", "DrugOOD IC50-size")


@pytest.mark.parametrize(
    ("table", "method", "column", "value"),
    [
        ("synthetic", "ERM", "SPMotif-0.33", PublishedValue(53.40, 2.20)),
        ("synthetic", "DisC", "Two-piece (0.8, 0.7)", PublishedValue(54.29, 15.0)),
        ("synthetic", "GALA, no resampling", "Two-piece (0.8, 0.9)", PublishedValue(62.25, 3.71)),
        ("synthetic", "EQuAD, Eqn. 7", "SPMotif-0.90", PublishedValue(69.47, 2.06)),
        ("synthetic", "EQuAD, reweighted ERM", "Two-piece (0.7, 0.9)", PublishedValue(71.95, 1.41)),
        ("synthetic", "EQuAD, Eqn. 7", "Two-piece (0.7, 0.9)", None),
        ("real", "iMoLD", "DrugOOD EC50-assay", PublishedValue(77.48, 1.70)),
        ("real", "EQuAD, Eqn. 7", "BBBP", PublishedValue(71.22, 1.47)),
        ("real", "Coral", "BACE", None),
        ("encoder", "EQuAD, GraphCL encoder", "SPMotif-0.60", PublishedValue(70.66, 2.67)),
        ("loss", "EQuAD, Eqn. 7", "Two-piece (0.7, 0.9)", PublishedValue(44.69, 1.06)),
        ("weighting", "EQuAD, Eqn. 7, single", "DrugOOD EC50-size", PublishedValue(66.02, 0.41)),
        ("time", "ERM", "DrugOOD EC50-assay", PublishedValue(170.0)),
    ],
)
def test_values(table: str, method: str, column: str, value: PublishedValue | None) -> None:
    assert load_published(EQUAD).table(table).value(method, column) == value


def test_find_takes_the_first_table_with_a_number_in_the_metric() -> None:
    found = load_published(EQUAD)
    table, value = found.find("EQuAD, Eqn. 7", "Two-piece (0.7, 0.9)", "accuracy") or pytest.fail("nothing found")
    assert (table.name, value.mean) == ("loss", 44.69)
    table, value = found.find("ERM", "DrugOOD EC50-size", "time") or pytest.fail("nothing found")
    assert (table.source, value.mean) == ("running times", 225.0)
    table, value = found.find("ERM", "BACE", "accuracy") or pytest.fail("nothing found")
    assert (table.metrics["BACE"], value.mean > 50) == ("rocauc", True)
    assert found.find("DANN", "BACE", "rocauc") is None


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(UserError, match="did you mean 'equad-icml24'"):
        load_published("equad-icml23")
    with pytest.raises(KeyError):
        load_published(EQUAD).table("none")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rows": {"M": [1.0, 2.0]}}, "longer"),
        ({"rows": {"M": ["1±x"]}}, "could not convert"),
        ({"metric": {"B*": "accuracy"}}, "not enough values"),
    ],
)
def test_faults_of_a_file(tmp_path: Path, change: dict[str, object], message: str) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(yaml.safe_dump({**SMALL, "tables": [{**SMALL["tables"][0], **change}]}), encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        read_published(path)


def test_what_columns_were_made_with() -> None:
    found = load_published(EQUAD)
    made = found.table("synthetic").conditions
    assert made["SPMotif-0.90"].values == {"bias": 0.9}
    assert (made["SPMotif-0.60"].component, made["SPMotif-0.60"].values) == ("spmotif", {})
    assert made["SPMotif-0.60"].settings["train.epochs"] == 50
    real = found.table("real").conditions
    assert real["BACE"].settings["train.epochs"] == 100
    assert real["DrugOOD IC50-size"].values == {"measure": "ic50", "domain": "size"}
    assert {real[column].version for column in real if column.startswith("DrugOOD")} == {"ChEMBL 30"}
    assert {table.spread for table in found.tables} == {"standard deviation"}
    assert {table.protocol for table in found.tables} == {"equad"}
    assert all(column.split == "out-of-distribution" for column in made.values())


def test_a_small_file(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(yaml.safe_dump(SMALL), encoding="utf-8")
    (table,) = read_published(path).tables
    assert table.value("M", "A") == PublishedValue(1.5)
    assert table.runs is None
