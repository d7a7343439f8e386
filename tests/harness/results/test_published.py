"""Published numbers: every cell parses, some are checked, and faults are told."""

from __future__ import annotations

import pytest

from harness.errors import UserError
from harness.results.published import PublishedTable, PublishedValue, load_published, publications

EQUAD = "equad-icml24"
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


@pytest.mark.parametrize("name", publications())
def test_every_publication_parses(name: str) -> None:
    found = load_published(name)
    assert found.name == name
    assert found.citation
    assert found.spread == "standard deviation"
    assert found.protocol == "equad"
    assert {column.metric for column in found.columns.values()} <= {"accuracy", "rocauc"}
    assert len({table.name for table in found.tables}) == len(found.tables)
    for table in found.tables:
        assert table.source
        assert {*table.printed, *table.notes} <= {"*", *table.rows}
        for method, cells in table.rows.items():
            assert cells, method
            assert all(35 < value.mean < 90 for value in cells.values()), method
            assert all(value.spread is None or 0 < value.spread <= 15 for value in cells.values()), method


def table_of(name: str) -> PublishedTable:
    return next(table for table in load_published(EQUAD).tables if table.name == name)


def test_table_1_has_eleven_baselines_and_equad_once_in_each_column() -> None:
    table = table_of("synthetic")
    assert list(table.rows) == [*TEN, "GALA, no resampling", "EQuAD, Eqn. 7", "EQuAD, reweighted ERM"]
    assert len(table.columns) == 7
    for method in [*TEN, "GALA, no resampling"]:
        assert set(table.rows[method]) == set(table.columns)
    equad = [table.rows["EQuAD, Eqn. 7"], table.rows["EQuAD, reweighted ERM"]]
    assert [*equad[0], *equad[1]] == list(table.columns)
    assert set(table.printed.values()) == {"GALA", "EQuAD"}


def test_table_2_has_fifteen_baselines_and_equad() -> None:
    table = table_of("real")
    assert list(table.rows) == [*REAL, "EQuAD, Eqn. 7"]
    full = [method for method, cells in table.rows.items() if len(cells) == 8]
    assert full == ["ERM", "IRM", "DIR", "GSAT", "GREA", "MoleOOD", "CIGA", "EQuAD, Eqn. 7"]
    assert all(set(cells) >= set(table.columns[:6]) for cells in table.rows.values())
    assert table.rows["IRM"]["DrugOOD IC50-size"] == table.rows["EIIL"]["DrugOOD IC50-size"]


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
    ],
)
def test_values(table: str, method: str, column: str, value: PublishedValue | None) -> None:
    assert table_of(table).rows[method].get(column) == value


def test_find_takes_the_first_table_with_a_number() -> None:
    found = load_published(EQUAD)
    table, value = found.find("EQuAD, Eqn. 7", "Two-piece (0.7, 0.9)") or pytest.fail("nothing found")
    assert (table.name, value.mean) == ("loss", 44.69)
    assert found.find("DANN", "BACE") is None


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(UserError, match="did you mean 'equad-icml24'"):
        load_published("equad-icml23")


def test_what_columns_were_made_with() -> None:
    made = load_published(EQUAD).columns
    assert made["SPMotif-0.90"].values == {"bias": 0.9}
    assert (made["SPMotif-0.60"].component, made["SPMotif-0.60"].values) == ("spmotif", {})
    assert made["SPMotif-0.60"].settings["train.epochs"] == 50
    assert made["BACE"].settings["train.epochs"] == 100
    assert made["DrugOOD IC50-size"].values == {"measure": "ic50", "domain": "size"}
    assert {made[column].version for column in made if column.startswith("DrugOOD")} == {"ChEMBL 30"}
