"""What a molecule set gives out beside graphs and labels: scaffolds and BRICS fragments."""

import time

import pytest
from molecule_kit import equal, graphs_of, raw_folder, ring_table, write_csv
from rdkit import Chem
from rdkit.Chem.Scaffolds import MurckoScaffold

from harness import DataError, PackedGraphs
from plugins.datasets import _featurise
from plugins.datasets._featurise import brics_fragments
from plugins.datasets._ogb_features import ATOM_SIZES, OGBFeaturiser
from plugins.datasets._rdkit import rdkit_session
from plugins.datasets.ogb import OGB
from plugins.datasets.smiles_csv import SmilesCSV

ESTER = "CCOC(=O)c1ccccc1"
OTHER = ATOM_SIZES[0] - 1
"""The code of an atomic number that no element has."""


def fragments(smiles):
    with rdkit_session():
        return brics_fragments(Chem.MolFromSmiles(smiles), OGBFeaturiser())


def atoms(fragment):
    """Atomic numbers, 0 for dummy atoms."""
    return sorted(0 if code == OTHER else int(code) + 1 for code in fragment.x[:, 0])


def test_ethyl_benzoate_falls_into_four_fragments():
    """Ethyl, ether oxygen, carbonyl and phenyl, each with a dummy atom at every cut."""
    assert sorted(map(atoms, fragments(ESTER))) == sorted([[0, 6, 6], [0, 0, 8], [0, 0, 6, 8], [0, 6, 6, 6, 6, 6, 6]])


def test_fragments_are_distinct_and_in_the_order_of_their_smiles():
    """Equal pieces count once, and the order does not depend on how the molecule's SMILES was written."""
    assert sorted(map(atoms, fragments("CCOCC"))) == [[0, 0, 8], [0, 6, 6]]
    one, other = fragments(ESTER), fragments("c1ccccc1C(OCC)=O")
    assert [atoms(f) for f in one] == [atoms(f) for f in other]
    again = fragments(ESTER)
    assert all((a.x == b.x).all() and (a.edge_index == b.edge_index).all() for a, b in zip(one, again, strict=True))


@pytest.mark.parametrize("smiles", ["C", "CC", "[Na+].[Cl-]", "c1ccccc1"])
def test_a_molecule_that_cannot_be_cut_is_its_own_fragment(smiles):
    (only,) = fragments(smiles)
    assert atoms(only) == sorted(atom.GetAtomicNum() for atom in Chem.MolFromSmiles(smiles).GetAtoms())


def test_large_peptides_and_rings_of_amino_acids_are_cut_at_once(monkeypatch):
    """With the fragments that cutting bond by bond gives, ions left out."""
    text = "CC(C)CC(NC(=O)c1ccccc1)C(=O)NCC(=O)OCC.[Na+].[Cl-]"
    one_by_one = [atoms(fragment) for fragment in fragments(text)]
    monkeypatch.setattr(_featurise, "_ONE_BY_ONE", 0)
    assert [atoms(fragment) for fragment in fragments(text)] == one_by_one
    monkeypatch.undo()
    start = time.process_time()
    assert len(fragments("N" + "C(C)C(=O)N" * 75 + "C")) > 2
    sides = ["C(C)C", "Cc2ccccc2", "CO", "CCSC", "CCCCN", "CC(=O)O", "Cc2c[nH]cn2", "CCC", "CC(C)C", "CCC(N)=O", "C"]
    ring = "".join(f"NC({side})C(=O)" for side in sides)
    assert len(fragments(f"N1{ring[1:-4]}1=O")) > 2
    assert time.process_time() - start < 2


def test_fragments_come_only_when_asked_for(tmp_path):
    path = str(ring_table(tmp_path / "rings.csv"))
    plain = graphs_of(SmilesCSV(path=path).build(tmp_path))
    asked = graphs_of(SmilesCSV(path=path, fragments="brics").build(tmp_path))
    assert all(not graph.parts and not graph.groups for graph in plain)
    assert all(len(graph.parts) == 1 for graph in asked), "a ring cannot be cut"
    assert all(equal(one, other) for one, other in zip(plain, asked, strict=True))
    assert PackedGraphs.pack(asked).parts is not None


def test_scaffolds_are_groups(tmp_path):
    smiles = [f"C1{'C' * size}1{tail}" for size in range(2, 14) for tail in ("", "C")]
    path = write_csv(tmp_path / "t.csv", ["smiles", "y"], [(text, i % 2) for i, text in enumerate(smiles)])
    data = SmilesCSV(path=str(path), scaffolds=True)
    assert data.declare(tmp_path).groups == ("scaffold",)
    assert SmilesCSV(path=str(path)).declare(tmp_path).groups == ()
    raw = data.build(tmp_path)
    groups = [graph.groups["scaffold"] for graph in graphs_of(raw)]
    assert len(set(groups)) == len({MurckoScaffold.MurckoScaffoldSmiles(text) for text in smiles}) == 12
    assert all(groups.count(group) == 2 for group in groups)


SMILES = "active,smiles,mol_id\n1,CC,a\n0,C,b\n1,{},c\n0,CC,d\n"


def test_ogbs_folder_reads_its_smiles_only_when_asked(tmp_path):
    raw_folder(tmp_path / "ogbg_molbace", {"mapping/mol": SMILES.format("COC")})
    plain = OGB(source="ogb")
    assert not any("mapping" in str(path) for path in plain.files(tmp_path))
    asked = OGB(source="ogb", scaffolds=True, fragments="brics")
    assert any("mapping" in str(path) for path in asked.files(tmp_path))
    graphs = graphs_of(asked.build(tmp_path))
    assert [atoms(graph.parts[0]) for graph in graphs] == [[6, 6], [6, 6], [6], [6, 6, 8]]
    assert all(equal(one, other) for one, other in zip(graphs, graphs_of(plain.build(tmp_path)), strict=True))
    assert {graph.groups["scaffold"] for graph in graphs} == {0}, "none has a ring"


def test_ogbs_molecule_that_rdkit_cannot_read_is_its_own_fragment(tmp_path):
    raw_folder(tmp_path / "ogbg_molbace", {"mapping/mol": SMILES.format("not-a-molecule")})
    graphs = graphs_of(OGB(source="ogb", scaffolds=True, fragments="brics").build(tmp_path))
    (part,) = graphs[-1].parts
    assert (part.x == graphs[-1].x).all()
    assert graphs[-1].groups == {"scaffold": -1}


@pytest.mark.parametrize(
    ("text", "match"),
    [(SMILES.format("CCCC"), "SMILES of molecule 3 is not that of its atoms"), ("a,b\n1,2\n", "no column 'smiles'")],
)
def test_smiles_that_do_not_fit_the_folder_are_refused(tmp_path, text, match):
    raw_folder(tmp_path / "ogbg_molbace", {"mapping/mol": text})
    with pytest.raises(DataError, match=match):
        OGB(source="ogb", fragments="brics").build(tmp_path)
