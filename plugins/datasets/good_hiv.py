"""GOOD-HIV: MoleculeNet's HIV with covariate and concept shift of scaffold or size (GOOD, NeurIPS 2022)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan
from pathlib import Path

from harness import DataError, Dataset, Declaration, Download, RawDataset, Register, Task, hookimpl, hparam
from plugins.datasets._featurise import Scaffolds, Wanted
from plugins.datasets._files import given_path, in_any_case, known_folder, required
from plugins.datasets._good_split import (
    CONCEPT_ENVIRONMENTS,
    COVARIATE_ENVIRONMENTS,
    ROLES,
    TEST_SPLITS,
    DomainSplit,
    concept_split,
    covariate_split,
)
from plugins.datasets._molecule_graphs import raw_dataset
from plugins.datasets._molecules import Labels, Molecule, MoleculeSet, tell_failures
from plugins.datasets._ogb_features import OGBFeaturiser
from plugins.datasets._smiles_pool import featurise_smiles
from plugins.datasets._splits import LARGEST_SEED
from plugins.datasets._table import Table, parse_labels, read_table, refuse_unlabelled

PLACE = "moleculenet/hiv.csv"
FEATURES = (
    "Features are OGB's, as in {use: ogb, dataset: hiv}, so that an encoder fits both; GOOD has PyG's, whose codes "
    "differ."
)
OURS = (
    "GOOD's concept split draws molecules in a way that we do not know in detail. Here the odds that a label goes with "
    "its half of the domains are in the ratios of GOOD's strengths .95, .95, .9, .85, .5; numbers of this split cannot "
    "be set beside GOOD's."
)


class GOODHIV(Dataset):
    """GOOD-HIV: does a molecule inhibit HIV, on scaffolds or sizes not trained on, or with another label to them.

    Gui et al., "GOOD: A Graph Out-of-Distribution Benchmark", NeurIPS 2022 (Datasets and Benchmarks); the molecules are
    MoleculeNet's (Wu et al., Chemical Science 2018). ``covariate``: whole domains, until training has 80 % and
    validation 10 % of the rows; ten training environments, neighbouring domains together. ``concept``: the label goes
    with the domain in three training environments, and against it in ``ood_test``; the notes of the data set tell what
    of this is ours.

    A row that cannot be used is left out, counted and listed. Under covariate shift it keeps its place, with the
    scaffold '' or 0 atoms, while the cuts are made, so that they do not depend on what RDKit can read.
    """

    name = "good-hiv"
    family = "ogb"
    names_files = ("path",)

    domain: str = hparam("scaffold", choices=("scaffold", "size"), help="what shifts")
    shift: str = hparam("covariate", choices=("covariate", "concept"), help="how it shifts")
    path: str | None = hparam(None, help="another table; beside the suite, in the data folder, or absolute")
    smiles_column: str = hparam("smiles", help="the column of SMILES")
    label_column: str = hparam("HIV_active", help="the column to predict")
    split_seed: int = hparam(0, low=0, high=LARGEST_SEED, help="seed of id_val and id_test, and of the concept split")
    scaffolds: bool = hparam(False, help="give out each molecule's scaffold, for the environments `scaffold(k)`")
    fragments: str = hparam("none", choices=("none", "brics"), help="give out each molecule's fragments, for MoleOOD")

    def declare(self, data_dir: Path | None) -> Declaration:
        """Reads the labels."""
        self._contents(data_dir)
        concept = self.shift == "concept"
        return Declaration(
            task=Task("binary", 2, metric="rocauc"),
            node_features=OGBFeaturiser.node_features,
            edge_features=OGBFeaturiser.edge_features,
            splits=ROLES,
            default_val="ood_val",
            validation="OOD",
            environments=CONCEPT_ENVIRONMENTS if concept else COVARIATE_ENVIRONMENTS,
            groups=("scaffold",) if self.scaffolds else (),
            variant=f"{self.domain}, {self.shift}, OGB features" + (", drawn our way" if concept else ""),
            notes=(FEATURES, OURS) if concept else (FEATURES,),
        )

    def files(self, data_dir: Path | None) -> list[Path]:
        """The table."""
        if self.path is not None:
            return [required(given_path(self.path, data_dir), "'path' names a CSV table with a header")]
        (download,) = self.downloads(data_dir)
        how = f"MoleculeNet's is at {download.url}; its columns are {self.smiles_column} and {self.label_column}"
        return [required(in_any_case(known_folder(data_dir, how) / PLACE), how)]

    def downloads(self, data_dir: Path | None) -> Sequence[Download]:
        """MoleculeNet's table."""
        from plugins.datasets._ogb_downloads import table_download

        del data_dir
        return () if self.path is not None else (table_download("hiv", PLACE),)

    def build(self, data_dir: Path | None) -> RawDataset:
        """Featurise and split the molecules."""
        table, smiles, labels = self._contents(data_dir)
        scaffolds: Scaffolds = "flat" if self.scaffolds or self.domain == "scaffold" else "none"
        found = featurise_smiles(smiles, Wanted("ogb", scaffolds, self.fragments == "brics"))
        try:
            split = self._split(found.molecules, labels)
        except DataError as error:
            raise DataError(f"{table.path}: {error}") from None
        skipped = tell_failures(found.failures, table.lines)
        molecules = MoleculeSet(found.molecules, labels, split.rows, skipped, {}, split.environments, table.lines)
        return raw_dataset(molecules, table.path, scaffolds=self.scaffolds, sealed=TEST_SPLITS)

    def _split(self, molecules: Mapping[int, Molecule], labels: Labels) -> DomainSplit:
        domains = self._domains([molecules.get(row) for row in range(len(labels))])
        if self.shift == "covariate":
            return covariate_split(domains, self.split_seed)
        usable = {row: int(labels[row][0]) for row in sorted(molecules) if not isnan(labels[row][0])}
        return concept_split({row: domains[row] for row in usable}, usable, self.split_seed)

    def _domains(self, molecules: Sequence[Molecule | None]) -> list[int]:
        """The number of each row's domain, in the order in which they are taken."""
        if self.domain == "size":
            return [0 if molecule is None else -len(molecule.x) for molecule in molecules]
        scaffolds = ["" if molecule is None else molecule.scaffold or "" for molecule in molecules]
        numbers = {scaffold: number for number, scaffold in enumerate(sorted(set(scaffolds)))}
        return [numbers[scaffold] for scaffold in scaffolds]

    def _contents(self, data_dir: Path | None) -> tuple[Table, list[str], Labels]:
        """The table, its SMILES, and (rows, 1) labels: 0, 1 or NaN."""
        (path,) = self.files(data_dir)
        table = read_table(path)
        smiles = table.column(self.smiles_column, "smiles_column")
        cells = table.column(self.label_column, "label_column")
        labels = parse_labels(path, [[cell] for cell in cells], [self.label_column])
        refuse_unlabelled(path, labels, [self.label_column])
        return table, smiles, labels


@hookimpl
def bench_register(register: Register) -> None:
    register(GOODHIV)
