"""OGB's molecule sets with its features and scaffold split, from OGB's raw folder or MoleculeNet's table of SMILES."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness import DataError, Dataset, Declaration, Download, RawDataset, Register, Task, hookimpl, hparam
from plugins.datasets._files import in_any_case, is_file, is_folder, known_folder
from plugins.datasets._molecule_graphs import raw_dataset
from plugins.datasets._ogb_features import OGBFeaturiser
from plugins.datasets._ogb_raw import OGBRaw
from plugins.datasets._ogb_sets import MOLECULENET_ADDRESS, OGB_ADDRESS, SETS
from plugins.datasets._ogb_table import OGBTable

NOTE = (
    "Official scaffold split (80/10/10): validation and test hold rarer scaffolds than train, and their label balance "
    "differs from train and from each other, so selection on validation is noisy."
)
PRECISION = "OGB's own leaderboard ranks this set by average precision; the figures here are ROC-AUC."


class OGB(Dataset):
    """A classification set of OGB's molecules (``ogbg-mol*``) with OGB's features and OGB's scaffold split.

    Hu et al., "Open Graph Benchmark: Datasets for Machine Learning on Graphs", NeurIPS 2020; the sets are from
    MoleculeNet (Wu et al., Chemical Science 2018). Two sources give the same result: OGB's raw folder
    ``ogbg_mol<dataset>/`` (with its index files), or MoleculeNet's table ``moleculenet/<dataset>.csv`` of SMILES and
    labels, of which features and split are computed with RDKit; neither needs the ``ogb`` package. A row that cannot be
    used is left out, counted and listed; it counts as a test molecule where the 80/10/10 shares are computed.
    """

    name = "ogb"
    family = "ogb"
    listed = tuple({"dataset": name} for name in SETS)

    dataset: str = hparam("bace", choices=tuple(SETS), help="name of the set")
    source: str = hparam("auto", choices=("auto", "ogb", "csv"), help="auto: OGB's folder if there is one, else a CSV")
    scaffolds: bool = hparam(False, help="give out each molecule's scaffold, for the environments `scaffold(k)`")
    fragments: str = hparam("none", choices=("none", "brics"), help="give out each molecule's fragments, for MoleOOD")

    def declare(self, data_dir: Path | None) -> Declaration:
        """Reads the labels."""
        known, source = SETS[self.dataset], self._source(data_dir)
        count = source.tasks()
        if count != known.tasks:
            raise DataError(f"{source.where}: labels per molecule: {count}; '{self.dataset}' has {known.tasks}")
        return Declaration(
            task=Task("multitask" if count > 1 else "binary", 2, count, metric="rocauc"),
            node_features=OGBFeaturiser.node_features,
            edge_features=OGBFeaturiser.edge_features,
            groups=("scaffold",) if self.scaffolds else (),
            validation="OOD",
            variant="OGB features, OGB scaffold split",
            notes=(NOTE, PRECISION) if self.dataset in {"pcba", "muv"} else (NOTE,),
        )

    def files(self, data_dir: Path | None) -> list[Path]:
        """The input files."""
        return self._source(data_dir).files()

    def downloads(self, data_dir: Path | None) -> Sequence[Download]:
        """OGB's archive, or MoleculeNet's table where ``source`` asks for one."""
        from plugins.datasets._ogb_downloads import folder_download, table_download

        del data_dir
        if self.source == "csv":
            return (table_download(self.dataset, self._csv.as_posix()),)
        return (folder_download(self.dataset, self._folder),)

    def build(self, data_dir: Path | None) -> RawDataset:
        """Read or featurise the molecules."""
        source = self._source(data_dir)
        return raw_dataset(source.read(), source.where, scaffolds=self.scaffolds)

    def _source(self, data_dir: Path | None) -> OGBRaw | OGBTable:
        known, how = SETS[self.dataset], self._how(data_dir)
        root = known_folder(data_dir, how)
        folder, table = root / self._folder, in_any_case(root / self._csv)
        if self.source == "ogb" or (self.source == "auto" and is_folder(folder)):
            return OGBRaw(folder, how, self.scaffolds, self.fragments == "brics")
        if self.source == "auto" and not is_file(table):
            raise DataError(f"missing data: neither {folder} nor {table} is there\n{how}")
        return OGBTable(table, known, how, self.fragments == "brics")

    @property
    def _folder(self) -> str:
        return f"ogbg_mol{self.dataset}"

    @property
    def _csv(self) -> Path:
        return Path("moleculenet") / f"{self.dataset}.csv"

    def _how(self, data_dir: Path | None) -> str:
        root = Path("FOLDER") if data_dir is None else data_dir
        return (
            f"either unpack {OGB_ADDRESS}/{self.dataset}.zip there and rename its folder to {root / self._folder}\n"
            f"or put MoleculeNet's table at {root / self._csv}; MoleculeNet's own are at {MOLECULENET_ADDRESS}/"
        )


@hookimpl
def bench_register(register: Register) -> None:
    register(OGB)
