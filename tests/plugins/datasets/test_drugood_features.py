"""DrugOOD's features of atoms and bonds on molecules worked out by hand, whatever RDKit is set to."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pytest
from rdkit import Chem

from plugins.datasets._drugood_features import DrugOODFeaturiser, legacy_stereo
from plugins.datasets._featurise import Wanted
from plugins.datasets._molecules import UnusableMolecule
from plugins.datasets._rdkit import rdkit_session
from plugins.datasets._smiles_pool import featurise_smiles


@contextmanager
def legacy_perception(on):
    """RDKit's stereo perception set to legacy or new."""
    before = Chem.GetUseLegacyStereoPerception()
    Chem.SetUseLegacyStereoPerception(on)
    try:
        yield
    finally:
        Chem.SetUseLegacyStereoPerception(before)


def features(smiles):
    with rdkit_session():
        molecule = Chem.MolFromSmiles(smiles)
        featuriser = DrugOODFeaturiser()
        return featuriser.atoms(molecule), *featuriser.bonds(molecule)


def written(row):
    """The columns that are not zero, with their values where these are not one."""
    return {int(i): float(row[i]) for i in np.nonzero(row)[0]}


def ones(*columns):
    return dict.fromkeys(columns, 1.0)


ATOMS = {
    "CCO": [ones(1, 17, 26, 34), ones(1, 18, 26, 33), ones(3, 17, 26, 32)],
    "C#N": [ones(1, 17, 24, 32), ones(2, 17, 24, 31)],
    "C[N+](C)(C)C": [ones(1, 17, 26, 34), ones(2, 20, 22, 26, 31), *[ones(1, 17, 26, 34)] * 3],
    "[Na+].[O-]C": [ones(15, 16, 22, 29, 31), ones(3, 17, 26, 31) | {22: -1.0}, ones(1, 17, 26, 34)],
    "c1cc[nH]c1": [*[ones(1, 18, 25, 30, 32)] * 3, ones(2, 18, 25, 30, 31), ones(1, 18, 25, 30, 32)],
    "FP(F)(F)(F)F": [ones(4, 17, 26, 31), ones(6, 21, 27, 31), *[ones(4, 17, 26, 31)] * 4],
    "C": [ones(1, 16, 26, 35)],
}


@pytest.mark.parametrize("smiles", ATOMS)
def test_atoms(smiles):
    x = features(smiles)[0]
    assert (x.dtype, x.shape[1]) == (np.float32, 39)
    assert [written(row) for row in x] == ATOMS[smiles]


@pytest.mark.parametrize(
    ("symbol", "column"),
    [("B", 0), ("Si", 5), ("S", 7), ("Cl", 8), ("As", 9), ("Se", 10), ("Br", 11), ("Te", 12), ("I", 13), ("At", 14)],
)
def test_elements(symbol, column):
    assert np.nonzero(features(f"[{symbol}]C")[0][0, :16])[0].tolist() == [column]


def test_radical():
    assert features("C[CH2]")[0][:, 23].tolist() == [0, 1]


@pytest.mark.parametrize(
    ("smiles", "columns"),
    [("C[C@H](N)C(=O)O", [36, 38]), ("C[C@@H](N)C(=O)O", [36, 37]), ("CC(N)C(=O)O", [36]), ("CC(C)C(=O)O", [])],
)
def test_chirality(smiles, columns):
    """L-alanine is S, D-alanine R; without marks its centre is only possible; isobutyric acid has none."""
    x = features(smiles)[0]
    assert [36 + i for i in np.nonzero(x[1, 36:])[0]] == columns
    assert not x[[0, 2, 3], 36:].any()


def test_hydrogens_that_are_written_do_not_count():
    assert written(features("C[C@H](N)C(=O)O")[0][1])[31] == 1
    assert written(features("CC(N)C(=O)O")[0][1])[32] == 1


BONDS = {
    "CC": ones(0, 6),
    "C=C": ones(1, 6),
    "C#C": ones(2, 6),
    "c1ccccc1": ones(3, 4, 5, 6),
    "C1CC1": ones(0, 5, 6),
}


@pytest.mark.parametrize("smiles", BONDS)
def test_bonds(smiles):
    edge_attr = features(smiles)[2]
    assert (edge_attr.dtype, edge_attr.shape[1]) == (np.float32, 10)
    assert all(written(row) == BONDS[smiles] for row in edge_attr)


def test_conjugation_of_butadiene():
    assert [written(row) for row in features("C=CC=C")[2][::2]] == [ones(1, 4, 6), ones(0, 4, 6), ones(1, 4, 6)]


STEREO = {
    "F/C=C/F": 9,
    "F/C=C\\F": 8,
    "FC=CF": 6,
    "C/C(F)=C/Cl": 8,
    "C/C=C(/C)CC": 8,
    "FC(/C)=C/C": 9,
}
"""The last three are TRANS to the new perception, which looks at other neighbours than E and Z do."""


@pytest.mark.parametrize("legacy", [True, False])
@pytest.mark.parametrize("smiles", STEREO)
def test_stereo_of_double_bonds(smiles, legacy):
    with legacy_perception(legacy):
        edge_attr = DrugOODFeaturiser().bonds(Chem.MolFromSmiles(smiles))[1]
    assert [written(row)[STEREO[smiles]] for row in edge_attr if row[1]] == [1, 1]
    assert edge_attr[:, 6:].sum() == len(edge_attr)


def test_each_bond_is_followed_by_its_reverse():
    _, edge_index, edge_attr = features("CC(=O)N")
    assert edge_index.dtype == np.int64
    assert edge_index.tolist() == [[0, 1, 1, 2, 1, 3], [1, 0, 2, 1, 3, 1]]
    assert np.array_equal(edge_attr[::2], edge_attr[1::2])


@pytest.mark.parametrize("smiles", ["C", "[Na+]", "[Cl-].[Na+]"])
def test_without_bonds(smiles):
    x, edge_index, edge_attr = features(smiles)
    assert len(x) >= 1
    assert (edge_index.shape, edge_index.dtype) == ((2, 0), np.int64)
    assert (edge_attr.shape, edge_attr.dtype) == ((0, 10), np.float32)


@pytest.mark.parametrize("legacy", [True, False])
def test_the_setting_neither_matters_nor_changes(legacy):
    smiles = ["C[C@H](N)C(=O)O", "C/C(F)=C/Cl", "O[C@H]1CC[C@@H](C)CC1", "CC(N)C", "C/C=C/[C@@](C)(O)CC"]
    expected = featurise_smiles(smiles, Wanted("drugood"), processes=0).molecules
    with legacy_perception(legacy):
        found = featurise_smiles(smiles, Wanted("drugood"), processes=0).molecules
        assert Chem.GetUseLegacyStereoPerception() is legacy
        for row, text in enumerate(smiles):
            molecule, featuriser = Chem.MolFromSmiles(text), DrugOODFeaturiser()
            before = Chem.MolToSmiles(molecule)
            assert np.array_equal(featuriser.atoms(molecule), expected[row].x)
            assert np.array_equal(featuriser.bonds(molecule)[1], expected[row].edge_attr)
            assert np.array_equal(found[row].x, expected[row].x)
            assert np.array_equal(found[row].edge_attr, expected[row].edge_attr)
            assert Chem.MolToSmiles(molecule) == before
        assert Chem.GetUseLegacyStereoPerception() is legacy
    assert expected[0].x[1, 38] == 1


def test_new_perception_alone_would_lose_every_label():
    """What is guarded against; if this fails, RDKit has changed and the guard may go."""
    with legacy_perception(False):
        molecule = Chem.MolFromSmiles("C[C@H](N)C(=O)O")
        assert not any(atom.HasProp("_CIPCode") for atom in molecule.GetAtoms())
        assert legacy_stereo(molecule).GetAtomWithIdx(1).GetProp("_CIPCode") == "S"


REFUSED = {
    "FS(F)(F)(F)(F)F": "atom 1 (S) has 6 neighbours, and there are features for up to 5",
    "[NH3]->[Fe]": "bond 0 is of type DATIVE, for which there are no features",
    "C$C": "bond 0 is of type QUADRUPLE, for which there are no features",
}


@pytest.mark.parametrize("smiles", REFUSED)
def test_refused(smiles):
    with pytest.raises(UnusableMolecule) as refusal:
        features(smiles)
    assert str(refusal.value) == REFUSED[smiles]
