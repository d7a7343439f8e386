"""A dataset whose table is on the web: rings of given sizes, with labels, domains and splits."""

from __future__ import annotations

import csv

import numpy as np

from harness import DataError, Dataset, Declaration, Download, Features, RawDataset, RawGraph, Task, hookimpl, hparam


class Rings(Dataset):
    """Rings from a table."""

    name = "rings"
    listed = ({"of": "three"}, {"of": "four"})

    of: str = hparam("three", help="which table")
    address: str = hparam("", help="where it is")
    tasks: int = hparam(1, help="label columns")

    def declare(self, data_dir):
        self.files(data_dir)
        kind = "binary" if self.tasks == 1 else "multitask"
        return Declaration(
            Task(kind, 2, self.tasks, metric="rocauc"),
            Features("numeric", (1,)),
            environments=2,
            variant="a ring",
            version="edition 7",
            notes=("Rings are round.",),
        )

    def files(self, data_dir):
        path = data_dir / "rings" / f"{self.of}.csv"
        if not path.is_file():
            raise DataError(f"missing data file: {path}")
        return [path]

    def downloads(self, data_dir):  # noqa: ARG002
        path, by_hand = f"rings/{self.of}.csv", "Ask the ring maker."
        return [Download(path, self.address or None, how=by_hand, licence="CC0", citation="Ring Maker, 2024")]

    def build(self, data_dir):
        splits = {"train": [], "val": [], "test": []}
        skipped = []
        for number, row in enumerate(csv.DictReader(self.files(data_dir)[0].read_text().splitlines()), start=2):
            if not row["size"].isdecimal():
                skipped.append(f"line {number}: size {row['size']!r}")
                continue
            splits[row["split"]].append(self._ring(int(row["size"]), row["y"], int(row["domain"])))
        facts = {"roundness": 1.0, "classes": {"odd": 0, "even": 1}}
        return RawDataset(splits, skipped, facts, notes=[f"{len(splits['train'])} rings are in train."])

    def _ring(self, size, label, domain):
        y = int(label) if self.tasks == 1 else np.array([float(label), np.nan], dtype=np.float32)
        ends = np.stack([np.arange(size), (np.arange(size) + 1) % size])
        return RawGraph(np.ones((size, 1), dtype=np.float32), ends.astype(np.int64), y, env=domain)


@hookimpl
def bench_register(register):
    register(Rings)
