"""What planning asks of a dataset imports nothing heavy, and building one no more than it needs."""

from __future__ import annotations

import subprocess
import sys

from molecule_kit import raw_folder, ring_table, write_csv

CODE = """
import sys
from pathlib import Path
from plugins.datasets.good_hiv import GOODHIV
from plugins.datasets.good_motif import GOODMotif
from plugins.datasets.mspmotif import MSPMotif
from plugins.datasets.ogb import OGB
from plugins.datasets.smiles_csv import SmilesCSV
from plugins.datasets.spmotif import SPMotif
from plugins.datasets.spmotif_large_invariant import LargeInvariant
from plugins.datasets.two_piece import TwoPiece

folder, bbbp = Path(sys.argv[1]), OGB(dataset="bbbp")
tables = [SmilesCSV(path="t.csv", featuriser=name) for name in ("ogb", "drugood")]
drawn = [SPMotif(), MSPMotif(), LargeInvariant(), TwoPiece(), GOODMotif()]
for dataset in [*drawn, bbbp, OGB(dataset="bace"), GOODHIV(), *tables]:
    dataset.files(folder), dataset.declare(folder)
print({"numpy", "torch", "networkx", "rdkit", "pandas"} & {*sys.modules})
SPMotif(num_per_class=[1, 1, 1]).build(None), bbbp.build(folder)
print({"torch", "networkx", "pandas", "ogb"} & {*sys.modules})
"""


def test_declaring_and_building_import_nothing_heavy(tmp_path):
    ring_table(tmp_path / "t.csv")
    ring_table(tmp_path / "moleculenet" / "bbbp.csv")
    write_csv(tmp_path / "moleculenet" / "hiv.csv", ["smiles", "HIV_active"], [("C" * n, n % 2) for n in range(1, 101)])
    raw_folder(tmp_path / "ogbg_molbace")
    done = subprocess.run([sys.executable, "-c", CODE, tmp_path], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\nset()\n"
