"""Split rules that data sets share: by chance, by graph size, and from index files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path

from harness import DataError, Dataset
from plugins.datasets._files import is_file, read_text

SPLITS = ("train", "val", "test")
LARGEST_SEED = 2**32 - 1
Split = dict[str, list[int]]
"""Split name -> rows, ascending."""


def named_shares(values: Sequence[float], dataset: str) -> dict[str, float]:
    """Three shares, as a hyperparameter ``shares: [0.8, 0.1, 0.1]`` gives them, by split name."""
    if len(values) != len(SPLITS) or min(values) <= 0 or abs(sum(values) - 1) > 1e-6:
        raise DataError(
            f"dataset '{dataset}', hyperparameter 'shares': found {list(values)}; expected three positive shares, of "
            "train, validation and test, whose sum is 1"
        )
    return dict(zip(SPLITS, values, strict=True))


def refuse_seed(dataset: Dataset, drawn_by_nothing: bool) -> None:
    """Refuse a ``split_seed`` where the dataset's ``split`` draws nothing by it."""
    if drawn_by_nothing and dataset.values["split_seed"] != 0:
        raise DataError(
            f"dataset '{dataset.name}': 'split_seed' has no meaning with 'split: {dataset.values['split']}', which "
            "draws nothing"
        )


def random_split(count: int, shares: Mapping[str, float], split_seed: int) -> Split:
    """Rows 0..count-1 in an order drawn by ``split_seed``, cut by ``shares``.

    A split gets its share of the rows rounded down; rows left over go, one each, to the largest remainders (the
    earlier split first). The order is made of raw PCG64 words, which NumPy promises not to change between versions.
    """
    order = shuffled(range(count), split_seed)
    found: Split = {}
    start = 0
    for name, size in share_counts(count, shares).items():
        found[name] = sorted(order[start : start + size])
        start += size
    return found


def size_split(sizes: Sequence[int], shares: Mapping[str, float]) -> Split:
    """Rows by graph size: the smallest graphs in the first split (train), the largest in the last (test).

    Graphs of one size stay together: each cut lies between two sizes, beyond the cut before it, where it is nearest
    to the wanted count (the earlier of two equally near places). A split's share is thus only about the wanted one.
    """
    wanted = share_counts(len(sizes), shares)
    if len(set(sizes)) < len(wanted):
        raise DataError(
            f"{len(sizes)} graphs of {len(set(sizes))} size(s) cannot be split by size into {', '.join(wanted)}, as "
            "graphs of one size stay together"
        )
    order = sorted(range(len(sizes)), key=lambda row: (sizes[row], row))
    cuts = [0, *_cuts([sizes[row] for row in order], list(wanted.values())), len(order)]
    return {name: sorted(order[cuts[i] : cuts[i + 1]]) for i, name in enumerate(wanted)}


def _cuts(ascending: Sequence[int], wanted: Sequence[int]) -> list[int]:
    """Return the positions at which ascending sizes are cut for the wanted counts; see :func:`size_split`."""
    places = [place for place in range(1, len(ascending)) if ascending[place - 1] < ascending[place]]
    cuts: list[int] = []
    reached = first = 0
    for later, size in zip(range(len(wanted) - 2, -1, -1), wanted, strict=False):
        reached += size
        free = range(first, len(places) - later)  # one place is kept for each later cut
        chosen = min(free, key=lambda i: (abs(places[i] - reached), i))
        cuts.append(places[chosen])
        first = chosen + 1
    return cuts


def share_counts(count: int, shares: Mapping[str, float]) -> dict[str, int]:
    """Return the number of ``count`` rows that each split gets; see :func:`random_split`."""
    exact = {name: Fraction(str(share)) * count for name, share in shares.items()}
    found = {name: int(value) for name, value in exact.items()}
    by_remainder = sorted(exact, key=lambda name: found[name] - exact[name])
    for name in by_remainder[: count - sum(found.values())]:
        found[name] += 1
    empty = [name for name, rows in found.items() if not rows]
    if empty:
        told = ", ".join(f"{name} {share:g}" for name, share in shares.items())
        raise DataError(f"the split leaves {' and '.join(empty)} without a graph ({count} rows for the shares {told})")
    return found


def consecutive_split(count: int, counts: Sequence[int], dataset: str) -> Split:
    """Rows in their own order: the first are train, those after them validation, then test."""
    if len(counts) != len(SPLITS) or min(counts) < 1 or sum(counts) > count:
        raise DataError(
            f"dataset '{dataset}', hyperparameter 'counts': found {list(counts)}; expected how many of the {count} "
            "graphs are train, validation and test"
        )
    starts = [sum(counts[:place]) for place in range(len(SPLITS))]
    return {name: list(range(start, start + size)) for name, start, size in zip(SPLITS, starts, counts, strict=True)}


def shuffled(rows: Sequence[int], split_seed: int) -> list[int]:
    """The rows in an order drawn by ``split_seed``, which is the same with every NumPy version."""
    from numpy.random import PCG64, SeedSequence

    keys = PCG64(SeedSequence(split_seed)).random_raw(len(rows)).tolist()
    return [row for _, row in sorted(zip(keys, rows, strict=True))]


def index_split(files: Mapping[str, Path], count: int, where: str) -> Split:
    """Rows from text files with one row number per line, counted from 0."""
    taken: dict[int, str] = {}
    found: Split = {}
    for name, path in files.items():
        rows = _read_indices(path, count, where)
        for row in rows:
            if row in taken:
                raise DataError(f"{path}: row {row} is also in the split '{taken[row]}'; a row belongs to one split")
        taken |= dict.fromkeys(rows, name)
        found[name] = sorted(rows)
    return found


def index_files(folder: Path) -> dict[str, Path]:
    """``train_idx.txt``, ``val_idx.txt`` and ``test_idx.txt`` of a folder by split name."""
    files = {name: folder / f"{name}_idx.txt" for name in SPLITS}
    missing = [str(path) for path in files.values() if not is_file(path)]
    if missing:
        raise DataError(
            f"missing data file: {missing[0]}\nit holds the split's row numbers, counted from 0, one per line"
        )
    return files


def _read_indices(path: Path, count: int, where: str) -> list[int]:
    lines = [line.strip() for line in read_text(path).splitlines()]
    rows: dict[int, None] = {}
    for number, text in enumerate(lines, start=1):
        if not text:
            continue
        row = int(text) if text.isascii() and text.isdigit() and len(text) < 19 else -1
        if row in rows or not 0 <= row < count:
            raise DataError(
                f"{path}: line {number}: found {text[:40]!r}, but expected one of the rows 0..{count - 1} of {where}, "
                "each once"
            )
        rows[row] = None
    if not rows:
        raise DataError(f"{path}: no row number in it")
    return list(rows)
