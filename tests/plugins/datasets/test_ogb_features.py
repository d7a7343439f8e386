"""OGB's codes of atoms and bonds on molecules worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from rdkit import Chem

from plugins.datasets._ogb_features import ATOM_SIZES, BOND_SIZES, OGBFeaturiser
from plugins.datasets._rdkit import rdkit_session


def features(smiles):
    with rdkit_session():
        molecule = Chem.MolFromSmiles(smiles)
        featuriser = OGBFeaturiser()
        return featuriser.atoms(molecule), *featuriser.bonds(molecule)


def test_sizes():
    assert sum(ATOM_SIZES) == 174
    assert len(ATOM_SIZES) == 9
    assert BOND_SIZES == (5, 6, 2)


def test_ethanol():
    x, edge_index, edge_attr = features("CCO")
    assert x.tolist() == [
        [5, 0, 4, 5, 3, 0, 2, 0, 0],
        [5, 0, 4, 5, 2, 0, 2, 0, 0],
        [7, 0, 2, 5, 1, 0, 2, 0, 0],
    ]
    assert edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert edge_attr.tolist() == [[0, 0, 0]] * 4


def test_aromatic_ring():
    x, _, edge_attr = features("c1ccccc1")
    assert x.tolist() == [[5, 0, 3, 5, 1, 0, 1, 1, 1]] * 6
    assert edge_attr.tolist() == [[3, 0, 1]] * 12


@pytest.mark.parametrize(("smiles", "stereo"), [("F/C=C/F", 2), ("F/C=C\\F", 1), ("FC=CF", 0)])
def test_double_bond_stereo(smiles, stereo):
    codes = features(smiles)[2]
    assert codes[codes[:, 0] == 1][:, 1].tolist() == [stereo] * 2


@pytest.mark.parametrize(("smiles", "code"), [("F[C@H](Cl)Br", 2), ("F[C@@H](Cl)Br", 1), ("FC(Cl)Br", 0)])
def test_chirality(smiles, code):
    assert features(smiles)[0][1, 1] == code


@pytest.mark.parametrize(
    ("smiles", "column", "code"),
    [
        ("*C", 0, 118),
        ("[Og]", 0, 117),
        ("[Na+]", 3, 6),
        ("[O-2]", 3, 3),
        ("[CH3]", 5, 1),
        ("C#C", 6, 0),
        ("[H][H]", 6, 5),
    ],
)
def test_single_codes(smiles, column, code):
    assert features(smiles)[0][0, column] == code


def test_values_beyond_the_tables_get_the_last_code():
    x = features("[U+6].[SiH4]")[0]
    assert x[0, 3] == 11
    assert (x < np.array(ATOM_SIZES)).all()


def test_stereo_does_not_depend_on_rdkits_setting():
    before = Chem.GetUseLegacyStereoPerception()
    Chem.SetUseLegacyStereoPerception(False)
    try:
        codes = features("F/C=C/F")[2]
        assert not Chem.GetUseLegacyStereoPerception()
    finally:
        Chem.SetUseLegacyStereoPerception(before)
    assert codes[codes[:, 0] == 1][:, 1].tolist() == [2, 2]
