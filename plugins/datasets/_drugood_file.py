"""The files of DrugOOD's curator: JSON with rows by split, and statistics that the rows are checked against."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationError

from harness import DataError, file_digest
from plugins.datasets._files import read_text

IN_DISTRIBUTION = ("train", "iid_val", "iid_test")
SPLITS = ("train", "ood_val", "ood_test", "iid_val", "iid_test")
PARTS: Mapping[str, tuple[str, ...]] = {"train": IN_DISTRIBUTION, "val": ("ood_val",), "test": ("ood_test",)}
"""The parts that share no domain, under the names that ``statistics`` has for them."""
_NEAR = 1e-9

_Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
_Id = Annotated[int, Field(strict=True, ge=0, lt=2**63)]
_Word = Annotated[str, Field(pattern="^[!-~]+$")]


class Row(BaseModel, extra="forbid"):
    """One molecule; ``label`` is 0 or 1, and ``protein`` the sequence, where the file has pairs."""

    smiles: _Word
    label: Annotated[int, Field(strict=True, ge=0, le=1, alias="cls_label")]
    domain: _Id = Field(alias="domain_id")
    measured: _Number = Field(alias="reg_label")
    assay_id: _Id
    protein: _Word | None = None


_Rows = Annotated[list[Row], Field(min_length=1)]


class _Splits(BaseModel, extra="forbid"):
    train: _Rows
    ood_val: _Rows
    ood_test: _Rows
    iid_val: list[Row]
    iid_test: list[Row]


class _Content(BaseModel, extra="forbid"):
    cfg: dict[str, Any]
    split: _Splits
    statistics: dict[str, Any]


@dataclass(frozen=True)
class DrugOODFile:
    """A file that passed every check.

    Attributes:
        digest: SHA-256 of the file.
        rows: split name -> rows, in the order of the file.
        config: the curator's settings.
        threshold: the value from which a molecule counts as active, or None where the file does not say.
    """

    path: Path
    digest: str
    rows: Mapping[str, list[Row]]
    config: Mapping[str, Any]
    threshold: float | None

    @property
    def version(self) -> str:
        """The edition of the data: the ChEMBL version that the curator's settings name, and the file's digest."""
        number = self.chembl
        stated = f"ChEMBL {number}" if number else "ChEMBL version not stated"
        return f"{stated}, file {self.digest[:8]}"

    @property
    def chembl(self) -> str:
        """The number of the ChEMBL release, or '' where the settings name none or several."""
        found = set(re.findall(r"chembl[_\s-]?(\d+)", json.dumps(self.config.get("path")), re.IGNORECASE))
        return found.pop() if len(found) == 1 else ""

    @property
    def subset(self) -> str:
        """The set that the curator's settings name, such as ``lbap_core_ec50_assay``; '' where they name none."""
        match self.config.get("path"):
            case {"task": {"subset": str(name)}}:
                return name.removeprefix("drugood_")
        return ""

    @property
    def environments(self) -> dict[int, int]:
        """Domain -> environment: training domains first, 0 to D-1 by rank, then all others, also by rank."""
        own = {row.domain for row in self.rows["train"]}
        others = {row.domain for rows in self.rows.values() for row in rows} - own
        return {domain: rank for rank, domain in enumerate([*sorted(own), *sorted(others)])}

    @property
    def training_environments(self) -> int:
        """The number of domains of the training split."""
        return len({row.domain for row in self.rows["train"]})

    @property
    def has_proteins(self) -> bool:
        """Return True if rows are pairs of a molecule and a protein (SBAP)."""
        return self.rows["train"][0].protein is not None


def read_drugood(path: Path) -> DrugOODFile:
    """Read and check a file."""
    try:
        content = _Content.model_validate_json(read_text(path))
        rows = {split: getattr(content.split, split) for split in SPLITS}
        threshold = content.statistics.get("thr_for_cls")
        _check_rows(rows, threshold)
        _check_domains(rows)
        _compare(content.statistics, rows)
    except ValidationError as error:
        raise DataError(f"{path}: {_told(error)}") from None
    except ValueError as error:
        raise DataError(f"{path}: {error}") from None
    return DrugOODFile(path, file_digest(path), rows, content.cfg, threshold)


def _told(error: ValidationError) -> str:
    """The first fault that pydantic has found, with its row counted from 1."""
    first = error.errors(include_url=False)[0]
    if first["type"] == "json_invalid":
        return f"not a whole JSON file: {first['ctx']['error']}; delete it and put the whole file there"
    where = ", ".join(f"row {part + 1}" if isinstance(part, int) else f"'{part}'" for part in first["loc"])
    found = repr(first["input"])
    return f"{where or 'the file'}: {first['msg']}; found {found if len(found) <= 60 else f'{found[:60]}…'}"


def _check_rows(rows: Mapping[str, list[Row]], threshold: Any) -> None:
    """A label follows from the threshold; a molecule (with its protein) is in one split only, with one label."""
    if threshold is not None and (isinstance(threshold, bool) or not isinstance(threshold, (int, float))):
        raise ValueError(f"'statistics', 'thr_for_cls': found {threshold!r}, expected a number")
    paired = rows["train"][0].protein is not None
    seen: dict[tuple[str, str | None], tuple[str, int]] = {}
    for split, found in rows.items():
        for number, row in enumerate(found, start=1):
            where = f"'split', '{split}', row {number}"
            if (row.protein is not None) != paired:
                raise ValueError(f"{where}: some rows have a 'protein' and some have none")
            if threshold is not None and _contradicts(row, threshold):
                raise ValueError(
                    f"{where}: 'cls_label' is {row.label}, but 'reg_label' is {row.measured:g} and the threshold "
                    f"'thr_for_cls' {threshold:g}"
                )
            other, label = seen.setdefault((row.smiles, row.protein), (split, row.label))
            if (other, label) != (split, row.label):
                what = "molecule and protein" if paired else "molecule"
                why = f"is in '{other}' too" if other != split else "is there with the other label"
                raise ValueError(f"{where}: the same {what} {why}: {row.smiles[:60]!r}")


def _contradicts(row: Row, threshold: float) -> bool:
    return (row.measured >= threshold) != row.label and abs(row.measured - threshold) > _NEAR


def _check_domains(rows: Mapping[str, list[Row]]) -> None:
    """The training domains, those of OOD validation and those of OOD test must differ."""
    seen: dict[int, str] = {}
    for part, splits in PARTS.items():
        for domain in sorted({row.domain for split in splits for row in rows[split]}):
            if domain in seen:
                one, two = "/".join(PARTS[seen[domain]]), "/".join(splits)
                raise ValueError(f"domain {domain} is in {one} and in {two}, but domains must not be shared")
            seen[domain] = part


def _compare(statistics: Mapping[str, Any], rows: Mapping[str, list[Row]]) -> None:
    """Counts against the file's own; all that differ are named."""
    labels = Counter(row.label for found in rows.values() for row in found)
    counted: dict[str, float] = {"positive_samples": labels[1], "negative_samples": labels[0]}
    counted |= {f"{split} datapoints": len(found) for split, found in rows.items()}
    optional = {"positive_rate": labels[1] / labels.total()} | {
        f"{part} domain number": len({row.domain for split in splits for row in rows[split]})
        for part, splits in PARTS.items()
    }
    counted |= {name: value for name, value in optional.items() if name in statistics}
    wrong = [
        f"'{name}' is {str(statistics.get(name))[:60]}, counted {value}"
        for name, value in counted.items()
        if not isinstance(stated := statistics.get(name), (int, float)) or not abs(stated - value) <= _NEAR
    ]
    if wrong:
        raise ValueError(f"the rows do not match the file's own statistics: {'; '.join(wrong)}")
