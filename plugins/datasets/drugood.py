"""DrugOOD: drug activity from ChEMBL, split by assay, scaffold, molecule size or protein (Ji et al., AAAI 2023)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from harness import DataError, Dataset, Declaration, Download, RawDataset, Register, Role, Task, hookimpl, hparam
from plugins.datasets._drugood_file import DrugOODFile, read_drugood
from plugins.datasets._featurise import FEATURISERS, Wanted, featuriser_class
from plugins.datasets._files import given_path, known_folder, required
from plugins.datasets._molecule_graphs import raw_dataset
from plugins.datasets._molecules import MoleculeSet
from plugins.datasets._smiles_pool import featurise_smiles

MOLEOOD = (
    "https://raw.githubusercontent.com/yangnianzu0515/MoleOOD/5bf49ab3d34779d0dfbeee1261b16b7888650e21/DrugOOD/data"
)
CURATED = "https://drive.google.com/drive/folders/19EAVkhJg0AgMx7X-bXGOhD4ENLfxJMWC"
OOD: Mapping[str, Role] = {"train": "train", "ood_val": "val", "ood_test": "test"}
IID: Mapping[str, Role] = {"iid_val": "val", "iid_test": "test"}
DOMAINS = ("assay", "scaffold", "size", "protein", "protein_family")
NAMED = {"path": [None]}
PUBLIC = tuple({"measure": measure, "domain": domain} for measure in ("ic50", "ec50") for domain in DOMAINS[:3])


class DrugOOD(Dataset):
    """A set of DrugOOD: is a molecule active against a target, on assays, scaffolds or sizes not trained on.

    Ji et al., "DrugOOD: Out-of-Distribution Dataset Curator and Benchmark for AI-Aided Drug Discovery", AAAI 2023.
    Reads the curator's JSON, ``drugood/{task}_{subset}_{measure}_{domain}.json`` in the data folder, or any other with
    ``path``, and checks it as a whole. Environments are the training molecules' domains, numbered by rank; domains of
    other splits that are not among them have numbers after these. A molecule without features is left out and listed.

    The header of the table has the ChEMBL that the file names and the file's digest, since numbers are comparable only
    within one file: upstream draws train and ``iid_*`` by an unseeded shuffle. SBAP sets pair each molecule with a
    protein, which is no graph and is left out.
    """

    name = "drugood"
    family = "drugood"
    names_files = ("path",)
    listed = PUBLIC
    probes = {"*": {"limit": 40}}

    task: str = hparam("lbap", choices=("lbap", "sbap"), active=NAMED, help="ligand-based, or pairs with a protein")
    subset: str = hparam("core", choices=("core", "refined", "general"), active=NAMED, help="level of noise")
    measure: str = hparam("ec50", choices=("ic50", "ec50", "ki", "potency"), active=NAMED, help="what was measured")
    domain: str = hparam("assay", choices=DOMAINS, active=NAMED, help="what the splits differ in")
    path: str | None = hparam(
        None, help="another file of the curator; beside the suite, in the data folder, or absolute"
    )
    iid: bool = hparam(False, help="also the splits iid_val and iid_test, from training domains")
    featuriser: str = hparam("drugood", choices=FEATURISERS, help="DrugOOD's 39/10 numbers or OGB's 9/3 codes")
    scaffolds: bool = hparam(False, help="give out each molecule's scaffold, for the environments `scaffold(k)`")
    fragments: str = hparam("none", choices=("none", "brics"), help="give out each molecule's fragments, for MoleOOD")
    limit: int | None = hparam(None, low=2, help="for trials: at most so many molecules of each split, evenly spread")

    def declare(self, data_dir: Path | None) -> Declaration:
        """Reads the file: its domains are the environments, and it says which ChEMBL it is from."""
        found = self._read(data_dir)
        featuriser = featuriser_class(self.featuriser)
        return Declaration(
            task=Task("binary", 2, metric="rocauc"),
            node_features=featuriser.node_features,
            edge_features=featuriser.edge_features,
            splits=self._splits,
            default_val="ood_val",
            validation="OOD",
            environments=found.training_environments,
            groups=("scaffold",) if self.scaffolds else (),
            variant=self._variant(found),
            departures=() if self.limit is None else (f"reduced: at most {self.limit} molecules of each split",),
            notes=_notes(found),
            version=found.version,
        )

    def files(self, data_dir: Path | None) -> list[Path]:
        """The JSON file."""
        return [required(self._place(data_dir), self._how)]

    def downloads(self, data_dir: Path | None) -> Sequence[Download]:
        """The set's file; only sets of MoleOOD's repository have an address."""
        del data_dir
        if self.path is not None:
            return ()
        return (
            Download(
                path=f"drugood/{self._name}.json",
                url=self._address,
                how=self._how,
                licence="ChEMBL: CC BY-SA 3.0",
                citation="Ji et al., DrugOOD, AAAI 2023; Mendez et al., ChEMBL, Nucleic Acids Research 2019",
            ),
        )

    def build(self, data_dir: Path | None) -> RawDataset:
        """Read and featurise the molecules."""
        found = self._read(data_dir)
        rows = [(split, number) for split in self._splits for number in self._numbers(len(found.rows[split]))]
        smiles = [found.rows[split][number].smiles for split, number in rows]
        wanted = Wanted(self.featuriser, "flat" if self.scaffolds else "none", self.fragments == "brics")
        featurised = featurise_smiles(smiles, wanted)
        used, environments = [found.rows[split][number] for split, number in rows], found.environments
        molecules = MoleculeSet(
            featurised.molecules,
            labels=[[row.label] for row in used],
            splits={name: [place for place, (split, _) in enumerate(rows) if split == name] for name in self._splits},
            skipped={
                place: f"{rows[place][0]}, row {rows[place][1] + 1}: {why}"
                for place, why in featurised.failures.items()
            },
            facts={"file": found.path.name, "sha256": found.digest, "chembl": found.chembl or "not stated"},
            environments={place: environments[row.domain] for place, row in enumerate(used)},
        )
        return raw_dataset(molecules, found.path, scaffolds=self.scaffolds, sealed=("ood_test", "iid_test"))

    @property
    def _splits(self) -> dict[str, Role]:
        return {**OOD, **IID} if self.iid else dict(OOD)

    def _numbers(self, count: int) -> Sequence[int]:
        """Return the used rows of a split: rows stand by domain, so that a spread over all meets most domains."""
        if self.limit is None or self.limit >= count:
            return range(count)
        return [place * count // self.limit for place in range(self.limit)]

    @property
    def _name(self) -> str:
        return f"{self.task}_{self.subset}_{self.measure}_{self.domain}"

    @property
    def _address(self) -> str | None:
        shipped = (self.task, self.subset) == ("lbap", "core") and {
            "measure": self.measure,
            "domain": self.domain,
        } in PUBLIC
        return f"{MOLEOOD}/{self.measure}/{self._name}.json" if shipped else None

    @property
    def _how(self) -> str:
        if self.path is not None:
            return "'path' names a JSON file of DrugOOD's curator"
        address = f"the file of ChEMBL 29 is at {self._address}\n" if self._address else ""
        return (
            f"{address}DrugOOD's own {self._name}.json, of ChEMBL 30, is in the Google Drive folder {CURATED}\n"
            "a curation of your own, with https://github.com/tencent-ailab/DrugOOD, has another train split"
        )

    def _place(self, data_dir: Path | None) -> Path:
        if self.path is not None:
            return given_path(self.path, data_dir)
        return known_folder(data_dir, self._how) / "drugood" / f"{self._name}.json"

    def _read(self, data_dir: Path | None) -> DrugOODFile:
        found = read_drugood(self.files(data_dir)[0])
        stated = found.subset
        if self.path is None and stated not in ("", self._name):
            raise DataError(
                f"{found.path}: the file says that it is '{stated}', not '{self._name}'; put the right one there, or "
                "name it with 'path'"
            )
        return found

    def _variant(self, found: DrugOODFile) -> str:
        what = found.subset or (self._name if self.path is None else found.path.stem)
        parts = [what, f"{'DrugOOD' if self.featuriser == 'drugood' else 'OGB'} features"]
        parts += ["molecules alone, proteins left out"] if found.has_proteins else []
        return ", ".join(parts)


def _notes(found: DrugOODFile) -> tuple[str, ...]:
    notes = [
        "Numbers of papers under this name may come from another ChEMBL or another curation; compare within one file "
        f"({found.version}).",
        "The curator cuts the OOD parts at whole domains, but draws train, iid_val and iid_test within each training "
        "domain by an unseeded shuffle, and a domain of one molecule is in iid_test alone.",
    ]
    if found.has_proteins:
        notes.append(
            "Each row of the file pairs a molecule with a protein, and the protein is left out: a molecule may be "
            "there several times, with both labels, and on both sides of the split."
        )
    return tuple(notes)


@hookimpl
def bench_register(register: Register) -> None:
    register(DrugOOD)
