"""A small file of DrugOOD's kind, with statistics that fit, to be changed by tests."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

IN_DISTRIBUTION = ("train", "iid_val", "iid_test")
PATTERN = {
    "train": [(50, 1), (50, 0), (7, 1), (7, 0), (90, 1)],
    "ood_val": [(3, 1), (3, 0), (60, 1)],
    "ood_test": [(4, 0), (200, 1)],
    "iid_val": [(50, 1), (7, 0)],
    "iid_test": [(50, 0), (90, 1), (91, 1)],
}
"""split -> (domain, label) of each row; domain 91 is in iid_test alone."""


def content(proteins: bool = False) -> dict[str, Any]:
    """Alcohols of 2, 3 … atoms: each row another one, so that a row is known by its SMILES."""
    length = 0
    split: dict[str, list[dict[str, Any]]] = {}
    for name, rows in PATTERN.items():
        split[name] = []
        for domain, label in rows:
            length += 1
            row = {
                "smiles": "C" * length + "O",
                "reg_label": 4.5 + label,
                "assay_id": 1000 + domain,
                "cls_label": label,
                "domain_id": domain,
            }
            split[name].append({**row, "protein": "MKV"} if proteins else row)
    path = {"task": {"type": "lbap", "subset": "lbap_core_ec50_assay"}, "source_root": "/data/chembl_29.db"}
    found = {"cfg": {"path": path}, "split": split}
    return {**found, "statistics": statistics(found)}


def statistics(data: dict[str, Any]) -> dict[str, Any]:
    """What the curator counts."""
    split = data["split"]
    labels = Counter(row["cls_label"] for rows in split.values() for row in rows)
    parts = {"train": IN_DISTRIBUTION, "val": ("ood_val",), "test": ("ood_test",)}
    return {
        "thr_for_cls": 5,
        "positive_samples": labels[1],
        "negative_samples": labels[0],
        "positive_rate": labels[1] / labels.total(),
        **{f"{name} datapoints": len(rows) for name, rows in split.items()},
        **{
            f"{part} domain number": len({row["domain_id"] for name in names for row in split[name]})
            for part, names in parts.items()
        },
    }


def place(folder: Path, name: str = "lbap_core_ec50_assay") -> Path:
    """Where the set lies in a data folder."""
    path = folder / "drugood" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def write(folder: Path, data: Any = None, *, recount: bool = False) -> Path:
    """A file in a data folder: the small one, or another; ``recount`` makes its statistics fit."""
    data = content() if data is None else data
    if recount:
        data["statistics"] = statistics(data)
    path = place(folder)
    path.write_text(json.dumps(data), encoding="utf-8")
    return path
