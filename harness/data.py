"""The base class of datasets, and its parts: graphs as NumPy arrays, splits, task and features. No torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from harness.component import Component
from harness.registry.returned import ReturnedError, expect, expect_json, expect_texts
from harness.safe_io import json_text, parse_json_as

if TYPE_CHECKING:
    import numpy as np

    from harness.store import Artifact, Store

    Array = np.ndarray[Any, np.dtype[Any]]
else:
    Array = Any  # NumPy stays out of the planning path

_ROLES = "train, val or test"
TaskKind = Literal["binary", "multiclass", "multitask"]
Role = Literal["train", "val", "test"]
"""The purpose of a split."""


def in_distribution(split: str) -> bool:
    """Return True if a split's name says that it is of the training distribution (``iid_test``, ``id_val``)."""
    return split.lower().startswith(("id_", "iid_", "id-", "iid-"))


@dataclass(frozen=True)
class Task:
    """The predicted labels and their metric.

    Attributes:
        kind: ``binary`` and ``multiclass`` have one integer label per graph (logits B×C, cross-entropy);
            ``multitask`` has T binary labels with NaN where not measured (logits B×T, masked BCE).
        num_classes: C; 2 for multi-task.
        num_tasks: T; 1 otherwise.
        metric: ``accuracy``, ``rocauc`` or ``mcc`` (Matthews correlation); higher is better for each.
    """

    kind: TaskKind
    num_classes: int
    num_tasks: int = 1
    metric: Literal["accuracy", "rocauc", "mcc"] = "accuracy"

    @property
    def outputs(self) -> int:
        """Width of the logits."""
        return self.num_tasks if self.kind == "multitask" else self.num_classes


@dataclass(frozen=True)
class Features:
    """The type and size of node or edge features.

    Attributes:
        kind: ``numeric`` (float32 columns), ``categorical`` (int64 codes, one table per column) or ``none``.
        sizes: for ``numeric`` one number, the width; for ``categorical`` the number of codes of each column.
    """

    kind: Literal["numeric", "categorical", "none"]
    sizes: tuple[int, ...] = ()


@dataclass(frozen=True)
class Declaration:
    """The facts of a dataset that a suite is checked with before the dataset is built.

    Attributes:
        task: the task.
        node_features, edge_features: the features' kinds and sizes.
        splits: split name -> role, in order of display; exactly one split has the role ``train``.
        default_val: the validation split used when the suite names none.
        validation: what that split is, for captions: ``unbiased``, ``biased``, ``in-distribution`` or ``OOD``.
        environments: number of training environments that the dataset itself supplies (``env``), 0 for none.
        oracle: names of training-side oracle fields (``base``, ``node_gt`` …).
        groups: names of groupings that any method may see (``RawGraph.groups``), such as ``scaffold``.
        variant: a short text that names the variant, for captions, e.g. ``published, one-direction edges``.
        notes: known slips and effective figures, one sentence each.
        departures: how the data differ from those that go by their name, for captions, e.g. ``reduced: 200/60/100 of
            3000/1000/1000 graphs per class``.
        version: which edition of the data it is, such as ``ChEMBL 29, file c3b1d45b``; stands in table headers and is
            part of the fingerprint.
    """

    task: Task
    node_features: Features
    edge_features: Features = Features("none")
    splits: Mapping[str, Role] = field(default_factory=lambda: {"train": "train", "val": "val", "test": "test"})
    default_val: str = "val"
    validation: str = "in-distribution"
    environments: int = 0
    oracle: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    variant: str = ""
    notes: tuple[str, ...] = ()
    version: str = ""
    departures: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "splits", dict(self.splits))  # any mapping may be given; asdict copies a dict alone


@dataclass
class RawGraph:
    """One graph.

    Attributes:
        x: (n, F) float32, or (n, F) int64 codes for categorical features.
        edge_index: (2, m) int64, local node ids; a message flows from row 0 to row 1.
        y: an int, or (T,) float32 with NaN where not measured.
        edge_attr: (m, K) or None.
        env: the dataset's own environment id (0..), or -1.
        oracle: ground truth that no method may see unless it declares so: scalars per graph, (n, …) or (m, …)
            arrays for fields named ``node_*`` and ``edge_*``.
        groups: the graph's group (0.., or -1 for none) in each declared grouping: what follows from the graph itself,
            such as its scaffold. Stored for splits that are not a test split.
        parts: substructures, such as a molecule's fragments, with features like the graph's; what else they carry
            (labels …) is ignored. Either every graph of a split has at least one part, or none has any.
    """

    x: Array
    edge_index: Array
    y: int | float | Array
    edge_attr: Array | None = None
    env: int = -1
    oracle: dict[str, Any] = field(default_factory=dict)
    groups: dict[str, int] = field(default_factory=dict)
    parts: Sequence[RawGraph] = ()


@dataclass
class RawDataset:
    """A built dataset: splits hold the graphs; ``skipped`` lists rows left out, with the reason.

    ``facts`` is free-form JSON for ``bench describe`` (label balance, effective agreements …). ``notes``, one sentence
    each, stand beside those of the declaration: what is known only now.
    """

    splits: Mapping[str, Sequence[RawGraph]]
    skipped: list[str] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Download:
    """One file or archive that a dataset reads, and how it gets into the data folder (``bench data fetch``).

    A gzip file (``url`` ends in ``.gz``) is unpacked unless ``path`` ends so too.

    Attributes:
        path: where it must lie, below the data folder and with ``/``: a file, or the folder made from an archive.
        url: an http(s) address, or None where only a person can fetch it; ``how`` then says from where.
        how: what a person does who fetches it by hand, in one or two sentences. The path need not be in it.
        unpack: None for a plain file. For a zip or tar archive: its folder that becomes ``path``, ``""`` for all of it;
            OGB's ``bace.zip`` holds ``bace/``, which becomes ``ogbg_molbace``.
        size: bytes of what ``url`` sends, where known.
        sha256: of what ``url`` sends, where the source promises it: anything else is refused.
        tested: path below the data folder -> SHA-256 of the file that this code was tested with. A file that differs
            is kept and reported, for sources that publish no digests.
        licence, citation: for people, where known.
    """

    path: str
    url: str | None = None
    how: str = ""
    unpack: str | None = None
    size: int | None = None
    sha256: str | None = None
    tested: Mapping[str, str] = field(default_factory=dict)
    licence: str = ""
    citation: str = ""

    @property
    def is_gzip(self) -> bool:
        """True for a gzip file that becomes the file ``path``."""
        return self.unpack is None and (self.url or "").endswith(".gz") and not self.path.endswith(".gz")

    @property
    def is_as_sent(self) -> bool:
        """True if the file in its place has the size and digest of the download."""
        return self.unpack is None and not self.is_gzip


class Dataset(Component):
    """Base class of datasets.

    ``declare`` and ``files`` must be cheap: they run at planning. ``build`` runs once per key, in a worker.
    Every random draw comes from the dataset's own hyperparameters ``seed`` and ``split_seed``, never from
    global state.
    """

    kind: ClassVar[str] = "dataset"
    family: ClassVar[str] = ""
    """The family of a protocol's defaults that holds, e.g. ``synthetic`` or ``ogb``."""
    names_code: ClassVar[Sequence[str]] = ()
    """Hyperparameters that name code which is run: ``bench plan`` tells of it, ``--no-plugins`` forbids it.

    In a suite, ``file.py:NAME`` starts at the suite's folder.
    """
    names_files: ClassVar[Sequence[str]] = ()
    """Hyperparameters that hold paths of data files or folders, as text or lists of it.

    In a suite, a relative one starts at the suite's folder where it is there, and else at the data folder. Of these and
    of ``names_code`` the key has the last part alone; the content of what :meth:`files` lists is in it.
    """
    listed: ClassVar[Sequence[Mapping[str, Any]]] = ()
    """Settings that ``bench data list`` shows, one line each, e.g. one for each public set; none: the defaults."""
    reserved: ClassVar[frozenset[str]] = frozenset({"store"})
    store: Store | None = None
    """The store at work, set by the harness; None: the user's own."""

    def declare(self, data_dir: Path | None) -> Declaration:
        """Return the facts that are known before building. May read a small header from ``data_dir``."""
        raise NotImplementedError

    def files(self, data_dir: Path | None) -> list[Path]:
        """Return the input files, whose content enters the dataset's key.

        Raises:
            DataError: a file is missing; the text names the exact path to put it at, and how to get it.
        """
        del data_dir
        return []

    def read_once(
        self,
        request: Mapping[str, Any],
        holds: Callable[[Mapping[str, Any]], bool],
        read: Callable[[Path], Mapping[str, Any]],
    ) -> Artifact:
        """Return the result of a slow read, as an artifact of the store; see :func:`harness.store.artifact.reading`."""
        from harness.store import Store, reading

        return reading(self.store or Store(), self.name, request, holds, read)

    def downloads(self, data_dir: Path | None) -> Sequence[Download]:
        """Return the files that the dataset reads with these values, for ``bench data``; none for generated graphs.

        Must be cheap and must not fail where files are missing: it says what is to be fetched.
        """
        del data_dir
        return ()

    def build(self, data_dir: Path | None) -> RawDataset:
        """Make or read the graphs.

        Raises:
            DataError: a file is truncated, foreign or inconsistent.
        """
        raise NotImplementedError


def check_declaration(dataset: Dataset, found: Declaration) -> Declaration:
    """Check the answer of ``declare``.

    Raises:
        ReturnedError: it is no declaration, or one of its values is not as it must be.
    """
    expect(isinstance(found, Declaration), dataset, "declare", found, "a Declaration")
    try:
        parse_json_as(Declaration, json_text(found))
    except (TypeError, ValueError) as error:
        raise ReturnedError(f"dataset '{dataset.name}', declare: {error}") from None
    classes, splits = found.task.num_classes, found.splits
    expect(classes > 1, dataset, "declare, num_classes", classes, "a whole number from 2")
    one = list(splits.values()).count("train") == 1
    expect(one, dataset, "declare, splits", splits, f"name -> {_ROLES}, one of them train")
    chosen = splits.get(found.default_val) == "val"
    expect(chosen, dataset, "declare, default_val", found.default_val, "the name of a split with the role val")
    expect(found.environments >= 0, dataset, "declare, environments", found.environments, "a whole number from 0")
    return found


def check_files(dataset: Dataset, found: list[Path]) -> list[Path]:
    """Check the answer of ``files``.

    Raises:
        ReturnedError: it is no list of paths.
    """
    listed = isinstance(found, (list, tuple)) and all(isinstance(item, Path) for item in found)
    expect(listed, dataset, "files", found, "a list of pathlib.Path")
    return list(found)


def check_built(dataset: Dataset, found: RawDataset) -> RawDataset:
    """Check the types of the answer of ``build``.

    Raises:
        ReturnedError: it is no dataset of graphs that are NumPy arrays.
    """
    import numpy as np

    expect(isinstance(found, RawDataset), dataset, "build", found, "a RawDataset")
    expect(isinstance(found.splits, Mapping), dataset, "build, splits", found.splits, "a dict: split -> graphs")
    expect_texts(dataset, "build, skipped", found.skipped)
    expect_json(dataset, "build, facts", found.facts)
    for split, graphs in found.splits.items():
        where = f"build, split '{split}'"
        expect(isinstance(graphs, Sequence), dataset, where, graphs, "a list of RawGraph")
        for number, graph in enumerate(graphs):
            here: Any = graph
            expect(isinstance(here, RawGraph), dataset, where, here, "a list of RawGraph")
            label = isinstance(graph.y, (int, float, np.generic, np.ndarray))
            expect(label, dataset, f"{where}, graph {number}", graph.y, "labels y that are numbers or NumPy arrays")
            for name, value in (("x", graph.x), ("edge_index", graph.edge_index), ("edge_attr", graph.edge_attr)):
                if not (isinstance(value, np.ndarray) or (value is None and name == "edge_attr")):
                    expect(False, dataset, f"{where}, graph {number}, {name}", value, "a NumPy array")
    return found
