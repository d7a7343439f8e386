"""The files of DrugOOD's curator: JSON with rows by split, and statistics that the rows are checked against."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from harness import DataError
from plugins.datasets._files import read_text_and_digest
from plugins.datasets._rdkit import is_word

IN_DISTRIBUTION = ("train", "iid_val", "iid_test")
SPLITS = ("train", "ood_val", "ood_test", "iid_val", "iid_test")
PARTS: Mapping[str, tuple[str, ...]] = {"train": IN_DISTRIBUTION, "val": ("ood_val",), "test": ("ood_test",)}
"""The parts that share no domain, under the names that ``statistics`` has for them."""
COLUMNS = frozenset({"smiles", "reg_label", "assay_id", "cls_label", "domain_id"})
PROTEIN = "protein"
_NEAR = 1e-9
_LARGEST = 2**63


class Row(NamedTuple):
    """One molecule: SMILES, label 0 or 1, domain, and the protein's sequence ('' where the file has none)."""

    smiles: str
    label: int
    domain: int
    protein: str


@dataclass(frozen=True)
class DrugOODFile:
    """A file that passed every check.

    Attributes:
        digest: SHA-256 of the file.
        rows: split name -> rows, in the order of the file.
        config: the curator's settings, as far as they are a mapping.
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
        found = set(re.findall(r"chembl[_\s-]?(\d+)", " ".join(_texts(self.config.get("path"))), re.IGNORECASE))
        return found.pop() if len(found) == 1 else ""

    @property
    def subset(self) -> str:
        """The set that the curator's settings name, such as ``lbap_core_ec50_assay``; '' where they name none."""
        path = self.config.get("path")
        task = path.get("task") if isinstance(path, dict) else None
        name = task.get("subset") if isinstance(task, dict) else None
        return name.removeprefix("drugood_") if isinstance(name, str) else ""

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
        return bool(self.rows["train"][0].protein)


def read_drugood(path: Path) -> DrugOODFile:
    """Read and check a file.

    Raises:
        DataError: it is no such file, or its parts contradict each other; the text names the row.
    """
    text, digest = read_text_and_digest(path)
    try:
        return _checked(path, digest, _parsed(text))
    except _Fault as fault:
        raise DataError(f"{path}: {fault}") from None


class _Fault(Exception):
    """A fault of a file, without its path."""


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        if not text[error.pos :].strip() or error.msg.startswith("Unterminated string"):
            raise _Fault(
                "the file is truncated: JSON ends in the middle; delete it and put the whole file there"
            ) from None
        raise _Fault(f"not JSON: {error.msg} (line {error.lineno}, column {error.colno})") from None
    except RecursionError:
        raise _Fault("not a file of DrugOOD's curator: its brackets are nested too deeply") from None
    except ValueError as error:  # a number of more digits than Python reads
        raise _Fault(f"not JSON that can be read: {error}") from None


def _checked(path: Path, digest: str, data: Any) -> DrugOODFile:
    top = _mapping(data, "the file", ("cfg", "split", "statistics"))
    parts = _mapping(top["split"], "'split'", SPLITS)
    statistics = _mapping(top["statistics"], "'statistics'")
    config = _mapping(top["cfg"], "'cfg'")
    threshold = _threshold(statistics)
    columns = _columns(parts)
    rows = {split: _rows(split, parts[split], columns, threshold) for split in SPLITS}
    _refuse_repeats(rows)
    _refuse_shared_domains(rows)
    _compare(statistics, rows)
    return DrugOODFile(path, digest, rows, config, threshold)


def _mapping(value: Any, what: str, keys: tuple[str, ...] = ()) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _Fault(f"{what} is {_kind(value)}, not an object; this is not a file of DrugOOD's curator")
    if keys and set(value) != set(keys):
        raise _Fault(f"{what} has the keys {_keys(value)}; expected {_keys(keys)}")
    return value


def _threshold(statistics: Mapping[str, Any]) -> float | None:
    value = statistics.get("thr_for_cls")
    if value is not None and not _is_number(value):
        raise _Fault(f"'statistics', 'thr_for_cls': found {_short(value)}, expected a number")
    return value


def _columns(parts: Mapping[str, Any]) -> frozenset[str]:
    """The keys that every row must have: those of the first training row, which may name a protein."""
    train = parts["train"]
    if not isinstance(train, list) or not train:
        raise _Fault("split 'train' holds no rows")
    first = train[0]
    return COLUMNS | {PROTEIN} if isinstance(first, dict) and PROTEIN in first else COLUMNS


def _rows(split: str, items: Any, columns: frozenset[str], threshold: float | None) -> list[Row]:
    if not isinstance(items, list):
        raise _Fault(f"split '{split}' is {_kind(items)}, not a list")
    if not items and split in ("train", "ood_val", "ood_test"):
        raise _Fault(f"split '{split}' holds no rows")
    rows = []
    for number, item in enumerate(items, start=1):
        try:
            rows.append(_row(item, columns, threshold))
        except _Fault as fault:
            raise _Fault(f"split '{split}', row {number}: {fault}") from None
    return rows


def _row(item: Any, columns: frozenset[str], threshold: float | None) -> Row:
    if not isinstance(item, dict):
        raise _Fault(f"found {_kind(item)}, not an object")
    if item.keys() != columns:
        raise _Fault(f"has the keys {_keys(item)}; expected {_keys(columns)}")
    smiles, label, domain, measured = item["smiles"], item["cls_label"], item["domain_id"], item["reg_label"]
    protein = item.get(PROTEIN, "")
    if not _is_word(smiles):
        raise _Fault(f"'smiles': found {_short(smiles)}, expected a SMILES without spaces")
    if type(label) is not int or label not in (0, 1):
        raise _Fault(f"'cls_label': found {_short(label)}, expected 0 or 1")
    for name in ("domain_id", "assay_id"):
        if not _is_whole(item[name]) or item[name] < 0:
            raise _Fault(f"'{name}': found {_short(item[name])}, expected a whole number from 0")
    if not _is_number(measured):
        raise _Fault(f"'reg_label': found {_short(measured)}, expected a finite number")
    if PROTEIN in columns and not _is_word(protein):
        raise _Fault(f"'protein': found {_short(protein)}, expected a sequence without spaces")
    if threshold is not None and (measured >= threshold) != bool(label) and abs(measured - threshold) > _NEAR:
        raise _Fault(
            f"'cls_label' is {label}, but 'reg_label' is {_short(measured)} and the threshold 'thr_for_cls' "
            f"{_short(threshold)}"
        )
    return Row(smiles, label, domain, protein)


def _is_word(value: Any) -> bool:
    return isinstance(value, str) and is_word(value)


def _is_number(value: Any) -> bool:
    return _is_whole(value) or (type(value) is float and math.isfinite(value))


def _is_whole(value: Any) -> bool:
    """A whole number that fits 64 bits; true and false are none."""
    return type(value) is int and -_LARGEST <= value < _LARGEST


def _refuse_repeats(rows: Mapping[str, list[Row]]) -> None:
    """A molecule (with its protein) may be in one split only, and with one label."""
    seen: dict[tuple[str, str], tuple[str, int]] = {}
    for split, found in rows.items():
        for number, row in enumerate(found, start=1):
            other, label = seen.setdefault((row.smiles, row.protein), (split, row.label))
            if other != split or label != row.label:
                pair = "molecule and protein" if row.protein else "molecule"
                where = f"in '{other}' too" if other != split else "there with the other label"
                raise _Fault(f"split '{split}', row {number}: the same {pair} is {where}: {_short(row.smiles)}")


def _refuse_shared_domains(rows: Mapping[str, list[Row]]) -> None:
    """The training domains, those of OOD validation and those of OOD test must differ."""
    seen: dict[int, str] = {}
    for part, splits in PARTS.items():
        domains = {row.domain for split in splits for row in rows[split]}
        for domain in sorted(domains):
            if domain in seen:
                one, two = "/".join(PARTS[seen[domain]]), "/".join(splits)
                raise _Fault(f"domain {_short(domain)} is in {one} and in {two}, but domains must not be shared")
            seen[domain] = part


def _compare(statistics: Mapping[str, Any], rows: Mapping[str, list[Row]]) -> None:
    """Counts against the file's own; all that differ are named."""
    labels = Counter(row.label for found in rows.values() for row in found)
    total = labels.total()
    counted: dict[str, float] = {"positive_samples": labels[1], "negative_samples": labels[0]}
    counted |= {f"{split} datapoints": len(found) for split, found in rows.items()}
    missing = [name for name in counted if name not in statistics]
    if missing:
        raise _Fault(f"'statistics' lacks {', '.join(map(repr, missing))}")
    counted["positive_rate"] = labels[1] / total
    for part, splits in PARTS.items():
        counted[f"{part} domain number"] = len({row.domain for split in splits for row in rows[split]})
    wrong = [
        f"'{name}' is {_short(statistics[name])}, counted {value}"
        for name, value in counted.items()
        if name in statistics and not (_is_number(statistics[name]) and abs(statistics[name] - value) <= _NEAR)
    ]
    if wrong:
        raise _Fault(f"the rows do not match the file's own statistics: {'; '.join(wrong)}")


def _texts(value: Any) -> Iterator[str]:
    """All texts within a JSON value, however deeply nested."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            waiting += item.values()
        elif isinstance(item, list):
            waiting += item


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


def _keys(names: Any) -> str:
    return ", ".join(sorted(map(_short, names))) or "none"


def _short(value: Any) -> str:
    """A value as one short text."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a number of too many digits, or lists within lists within lists
        return "something too large to show"
    return text if len(text) <= 60 else f"{text[:60]}…"
