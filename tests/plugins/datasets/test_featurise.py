"""From SMILES to features: the same in any number of processes, and one bad molecule is one failure."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import psutil
import pytest
from rdkit import Chem

from harness.errors import DataError
from plugins.datasets import _featurise, _smiles_pool
from plugins.datasets._featurise import Wanted
from plugins.datasets._rdkit import rdkit_session
from plugins.datasets._smiles_pool import featurise_smiles

SMILES = ["CCO", "C1CC(", "c1ccccc1OC", "", "[Na+].[Cl-]", "C", "CC(=O)Nc1ccc(O)cc1", "F/C=C/F", "C[C@H](N)O", "x"] * 3
UNREADABLE = {row for row, smiles in enumerate(SMILES) if smiles in ("C1CC(", "", "x")}
ALL = Wanted("ogb", "chiral", fragments=True)


def dumped(found):
    """Everything in a result, byte by byte."""

    def arrays(molecule):
        own = tuple((a.tobytes(), a.shape, a.dtype.str) for a in (molecule.x, molecule.edge_index, molecule.edge_attr))
        return own, molecule.scaffold, tuple(map(arrays, molecule.fragments))

    return {row: arrays(molecule) for row, molecule in found.molecules.items()}, found.failures


def served_after(code: str) -> str:
    """What a process runs that first runs ``code``, which may replace ``_featurise.featurise_one``."""
    return f"from plugins.datasets import _featurise, _smiles_pool\n{code}\n_smiles_pool.serve()"


def test_a_part_of_rdkit_that_is_missing_is_no_fault_of_a_molecule(monkeypatch):
    """Every molecule with rings was left out of a data set that then was stored."""
    monkeypatch.setitem(sys.modules, "rdkit.Chem.Scaffolds", None)
    with pytest.raises(ImportError, match=r"rdkit\.Chem\.Scaffolds"):
        featurise_smiles(["c1ccccc1OC"], Wanted("ogb", "chiral"), 0)


def test_the_number_of_processes_changes_nothing(monkeypatch):
    """Nor does that of the chunks: three, for two processes at a time."""
    monkeypatch.setattr(_smiles_pool, "_CHUNK", 10)
    here = featurise_smiles(SMILES, ALL, 0)
    assert set(here.failures) == UNREADABLE
    assert sorted([*here.molecules, *here.failures]) == list(range(len(SMILES)))
    assert dumped(featurise_smiles(SMILES, ALL, 2)) == dumped(here)


def test_no_molecule_at_all():
    assert featurise_smiles([], ALL, 2) == featurise_smiles([], ALL, 0)


def test_a_molecule_that_ends_its_process_is_one_failure(monkeypatch):
    """The others of its chunk are featurised, too, each in its place."""
    crash = (
        "import os, signal; old = _featurise.featurise_one\n"
        "def new(smiles, *rest):\n"
        "    if smiles == 'CCCCCC': os.kill(os.getpid(), signal.SIGSEGV)\n"
        "    return old(smiles, *rest)\n"
        "_featurise.featurise_one = new"
    )
    monkeypatch.setattr(_smiles_pool, "_SERVE", served_after(crash))
    found = featurise_smiles(["C" * size for size in range(4, 9)], Wanted(), 2)
    assert found.failures == {2: "RDKit crashed (code -11) on the SMILES 'CCCCCC'"}
    assert {row: len(molecule.x) for row, molecule in found.molecules.items()} == {0: 4, 1: 5, 3: 7, 4: 8}


def test_an_error_of_python_in_a_process_is_no_fault_of_a_molecule(monkeypatch, capfd):
    monkeypatch.setattr(_smiles_pool, "_SERVE", served_after("_featurise.featurise_one = None"))
    with pytest.raises(DataError, match="ended with code 1"):
        featurise_smiles(SMILES, ALL, 2)
    assert "TypeError" in capfd.readouterr().err


def test_what_is_printed_in_a_process_is_not_taken_for_an_answer(monkeypatch):
    noise = (
        "old = _featurise.featurise_one\n"
        "def new(*given):\n"
        "    print('noise', flush=True)\n"
        "    return old(*given)\n"
        "_featurise.featurise_one = new"
    )
    monkeypatch.setattr(_smiles_pool, "_SERVE", served_after(noise))
    assert dumped(featurise_smiles(SMILES, ALL, 1)) == dumped(featurise_smiles(SMILES, ALL, 0))


def test_processes_end_with_the_one_that_started_them():
    """Also while they are at work, and although that one was killed."""
    child = served_after("import time; _featurise.featurise_one = lambda s, *_: time.sleep(60 * (len(s) > 1))")
    script = (
        f"import sys; sys.path[:] = {sys.path!r}\n"
        "from plugins.datasets import _featurise, _smiles_pool\n"
        f"_smiles_pool._SERVE = {child!r}\n"
        "_smiles_pool.featurise_smiles(['CC'] * 9, _featurise.Wanted(), 1)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], start_new_session=True)
    try:
        until = time.monotonic() + 60
        while not (children := psutil.Process(parent.pid).children()) and time.monotonic() < until:
            time.sleep(0.05)
        time.sleep(0.5)
    finally:
        parent.kill()
        parent.wait()
    gone, alive = psutil.wait_procs(children, timeout=60)
    assert len(gone) == 1
    assert not alive


def _in_a_worker(processes: int) -> object:
    return dumped(featurise_smiles(SMILES, ALL, processes))


def test_workers_of_the_harness_may_have_such_processes():
    context = multiprocessing.get_context("forkserver")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        assert pool.submit(_in_a_worker, 2).result(120) == dumped(featurise_smiles(SMILES, ALL, 0))


def test_an_error_of_rdkit_is_one_failure(monkeypatch):
    def broken(molecule, _featuriser):
        if molecule.GetNumAtoms() == 3:
            raise RuntimeError("Invariant\nViolation")
        return ()

    monkeypatch.setattr(_featurise, "brics_fragments", broken)
    found = featurise_smiles(["CC", "CCC", "CCCC"], ALL, 0)
    assert found.failures == {1: "RDKit fails on the SMILES 'CCC': Invariant Violation"}
    assert list(found.molecules) == [0, 2]


def test_a_molecule_without_features_is_one_failure():
    found = featurise_smiles(["CC", "FS(F)(F)(F)(F)F", "C"], Wanted("drugood"), 0)
    assert list(found.molecules) == [0, 2]
    assert "atom 1 (S) has 6 neighbours" in found.failures[1]
    assert found.failures[1].endswith("in the SMILES 'FS(F)(F)(F)(F)F'")


def test_scaffolds_with_and_without_chirality():
    smiles = ["C1C[C@H]1N1CC1"]
    chiral, flat = (
        featurise_smiles(smiles, Wanted("ogb", kind), 0).molecules[0].scaffold for kind in ("chiral", "flat")
    )
    assert "@" not in (flat or "@")
    assert chiral is not None
    assert featurise_smiles(smiles, Wanted(), 0).molecules[0].scaffold is None


def test_odd_molecules_are_molecules():
    """Salts, lone atoms, dummies, isotopes, a peptide of 300 atoms."""
    peptide = "N" + "CC(=O)N" * 75 + "C"
    smiles = ["[Na+].[Cl-].O", "[U]", "*", "[2H]C", "[H][H]", peptide]
    for name in ("ogb", "drugood"):
        found = featurise_smiles(smiles, Wanted(name, "chiral"), 0)
        assert not found.failures
        assert [len(molecule.x) for molecule in found.molecules.values()] == [3, 1, 1, 2, 2, 302]
        assert all(np.isfinite(molecule.x).all() for molecule in found.molecules.values())


MAPPED = {
    "[CH3:1][CH2:2][OH:30]": "CCO",
    "[cH:1]1[cH:2][cH:3][nH:4][cH:5]1": "c1cc[nH]c1",
    "[CH3:1][C@H:2]([CH3:3])[NH3+:4].[Cl-:5]": "CC(C)[NH3+].[Cl-]",
    "[H:1][O:2][C@@H:3]([F:4])[Cl:5]": "O[C@@H](F)Cl",
    "[13CH3:1]N": "[13CH3]N",
}


@pytest.mark.parametrize("wanted", [ALL, Wanted("drugood", "flat")], ids=lambda wanted: wanted.featuriser)
def test_atom_map_numbers_change_nothing(wanted):
    """Neither features nor scaffold nor fragments: three methyl groups with numbers make no stereocentre, say."""
    with rdkit_session():
        plain = [Chem.CanonSmiles(text) for text in MAPPED.values()]
    mapped, unmapped = featurise_smiles(list(MAPPED), wanted, 0), featurise_smiles(plain, wanted, 0)
    assert dumped(mapped) == dumped(unmapped)
    assert [molecule.smiles for molecule in mapped.molecules.values()] == plain
    assert all(molecule.mapped for molecule in mapped.molecules.values())
    assert not any(molecule.mapped for molecule in unmapped.molecules.values())


def test_mapped_molecules_have_the_scaffolds_of_their_rings():
    """120 molecules on 12 rings, each with numbers of its own."""
    smiles = [f"[CH2:{i + 1}]1{'C' * (i % 12 + 2)}[CH:{i + 2}]1[OH:{i + 3}]" for i in range(120)]
    found = featurise_smiles(smiles, ALL, 0).molecules.values()
    assert len({molecule.scaffold for molecule in found}) == len({molecule.smiles for molecule in found}) == 12


def test_an_isotope_is_part_of_the_molecule():
    """As in OGB's scaffolds; features do not show it."""
    one, other = featurise_smiles(["C1CC1", "[13CH2]1CC1"], ALL, 0).molecules.values()
    assert (one.smiles, other.smiles) == (one.scaffold, other.scaffold) == ("C1CC1", "C1C[13CH2]1")
    assert (one.x == other.x).all()


@pytest.mark.parametrize("text", ["C C O", "CC\nO", "CC\tO", "CCO…", "CCOé", "\xa0CCO", "CCO\x01", "CCO |c:1|"])
def test_a_smiles_is_read_as_a_whole_or_not_at_all(text):
    """RDKit stops at white space, and skips such signs at both ends, without a word."""
    failures = featurise_smiles(["CC", text, "C"], ALL, 0).failures
    assert list(failures) == [1]
    assert failures[1].startswith(f"RDKit reads only a part of the SMILES {text!r}")


@pytest.mark.parametrize("text", ["", "NaN", "NA", "None", "null"])
def test_a_missing_smiles(text):
    assert featurise_smiles([text], ALL, 0).failures == {0: "no SMILES"}
