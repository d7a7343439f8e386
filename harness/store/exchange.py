"""Copies between stores: what one has and the other lacks, by fsspec, checked where it arrives. No torch.

A folder as the other store is a store like any other. Behind any other URL, files are named by their checksum, so that
two who push an artifact at once cannot mix theirs, and the description that says that it is complete comes last.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from harness.errors import BenchError, FileError, UserError
from harness.registry.planned_code import KEPT
from harness.results.run_record import RECORD, RESULTS, RunRecord
from harness.safe_io import RUN_ID, parse_json, writing
from harness.store.artifact import META, Meta
from harness.store.keys import DIGEST
from harness.store.maintenance import keys_of_run, keys_of_stage, stage_key
from harness.store.stage import STAGE_KINDS
from harness.store.store import Store

RUN_FILES = (KEPT, "suite.yaml", RESULTS, RECORD)
"""The files of a run from which a report can be made, the record last."""
_MOST_TEXT = 16 << 20
"""Bytes of the description of an artifact, or the record of a stage; four are read at a time."""
_MOST_RUN = 256 << 20
"""Bytes of a file of a run; the record of a cell has about a thousand."""
_AT_ONCE = 4


@dataclass
class Copied:
    """Artifacts, bytes and runs copied, artifacts that were there already, and the reason for each that was refused."""

    artifacts: int = 0
    bytes: int = 0
    present: int = 0
    runs: int = 0
    refused: dict[str, str] = field(default_factory=dict)

    @contextmanager
    def refusing(self, what: str) -> Iterator[None]:
        """Keep the reason where a block cannot copy something, so that the rest is copied; a disk fault ends all."""
        try:
            yield
        except FileError:
            raise
        except FileNotFoundError as error:
            self.refused[what] = f"{Path(str(error.filename or error)).name} is missing"
        except Exception as error:  # clients of object stores raise exceptions of their own
            named = isinstance(error, (BenchError, ValueError)) and str(error)
            self.refused[what] = named or f"{type(error).__name__}: {error}"


class Remote:
    """Another store, as fsspec reaches it; nothing that it gives is trusted.

    Raises:
        UserError: the target is empty, this store itself, cannot be used, or is absent where it must exist.
    """

    def __init__(self, target: str, store: Store, *, exists: bool = False) -> None:
        from fsspec.core import url_to_fs
        from fsspec.implementations.local import LocalFileSystem

        if not target.removeprefix("file://").strip():
            raise UserError("the target is empty; name a folder or a URL")  # an empty path is the current folder
        self.name = target
        with self.named_errors():
            self.fs, root = url_to_fs(target, use_listings_cache=False)
            self.root = root.rstrip("/")
            if exists and not self.fs.info(self.root):
                raise FileNotFoundError
        self.folder = Path(root) if isinstance(self.fs, LocalFileSystem) else None
        if self.folder is not None and self.folder.resolve() == store.root.resolve():
            raise UserError(f"{target} is this store itself")

    def keys(self) -> set[str]:
        """Return the keys of all artifacts that are complete."""
        return {key for key in self._folders_with("artifacts", META) if DIGEST.fullmatch(key)}

    def runs(self) -> set[str]:
        """Return the ids of all runs that are complete."""
        return {run for run in self._folders_with("runs", RECORD) if RUN_ID.fullmatch(run)}

    def _folders_with(self, below: str, name: str) -> list[str]:
        depth = None if self.folder is None else 3  # links in a folder may lead in a circle
        with self.named_errors():
            paths = [path.split("/") for path in self.fs.find(f"{self.root}/{below}", maxdepth=depth)]
        return [path[-2] for path in paths if path[-1] == name]

    def path(self, key: str, name: str, sha256: str = "") -> str:
        """Return where a file of an artifact is."""
        if self.folder is None and name != META:
            return f"{self.root}/blobs/{sha256[:2]}/{sha256}"
        return f"{self.root}/artifacts/{key[:2]}/{key}/{name}"

    def read(self, path: str, size: int | None = None, *, most: int = _MOST_TEXT) -> Iterator[bytes]:
        """Yield the content of a plain file of that size: a link could lead anywhere, and a pipe would never end.

        Args:
            most: bytes that it may have, where its size is not known.
        """
        info = self.fs.info(path)
        name, left = path.rsplit("/", 1)[-1], most if size is None else size
        if info["type"] != "file" or info.get("islink"):
            raise ValueError(f"{name} is no plain file; links are not followed")
        if size is not None and info["size"] not in (None, size):
            raise ValueError(f"{name} has {info['size']} bytes instead of {size}")
        if (info["size"] or 0) > left:
            raise ValueError(f"{name} is larger than it may be")
        with self.fs.open(path, "rb", cache_type="none") as stream:
            while block := stream.read(min(1 << 20, left + 1)):
                left -= len(block)
                if left < 0:
                    raise ValueError(f"{name} is larger than it may be")
                yield block

    def text(self, path: str) -> str:
        """Return the content of a text file of bounded size."""
        return b"".join(self.read(path)).decode("utf-8")

    def send(self, source: Path, path: str, *, once: bool = False) -> int:
        """Copy a file there, unless it is sent ``once`` and one of its size is there; return its bytes."""
        size = source.stat().st_size
        with self.named_errors():
            if not (once and self.fs.exists(path) and self.fs.size(path) == size):
                self.fs.makedirs(path.rsplit("/", 1)[0], exist_ok=True)
                self.fs.put_file(str(source), path)
        return size

    @contextmanager
    def named_errors(self) -> Iterator[None]:
        """Turn exceptions, of which clients of object stores have their own, into messages that name the store."""
        try:
            yield
        except FileNotFoundError:
            raise FileError(f"there is no store at {self.name}") from None
        except Exception as error:
            raise FileError(f"cannot use {self.name}: {type(error).__name__}: {error}") from None


def pull(store: Store, remote: Remote, keys: Collection[str] | None, runs: Iterable[str]) -> Copied:
    """Copy artifacts (all where ``keys`` is None), and runs with all that they are made of, into this store.

    Raises:
        FileError: a store cannot be used; what has arrived is kept.
    """
    store.require_writable()
    copied, there = Copied(), remote.keys()
    wanted = set(there if keys is None else keys)
    for run in runs:
        with copied.refusing(f"run {run}"):
            copied.runs += _receive_run(store, remote, run)
            wanted.update(*map(keys_of_stage, keys_of_run(RunRecord.load(store.runs / run))))
    missing = sorted(key for key in wanted & there if not store.has(key))
    copied.present = len(wanted & there) - len(missing)
    _copy_each(copied, missing, lambda key: _receive(store, remote, key))
    return copied


def push(store: Store, remote: Remote, keys: Collection[str] | None, runs: Iterable[str]) -> Copied:
    """Copy artifacts and runs of this store elsewhere; see :func:`pull`."""
    if remote.folder is not None:
        other = Store(remote.folder)
        return pull(other, Remote(str(store.root), other), keys, runs)
    copied, there = Copied(), remote.keys()
    wanted = set(store.artifact_keys() if keys is None else keys)
    for run in runs:
        with copied.refusing(f"run {run}"):
            wanted.update(*map(keys_of_stage, keys_of_run(RunRecord.load(store.runs / run))))
            for name in RUN_FILES:
                remote.send(store.runs / run / name, f"{remote.root}/runs/{run}/{name}")
            copied.runs += 1
    wanted = store.present(wanted)
    copied.present = len(wanted & there)
    _copy_each(copied, sorted(wanted - there), lambda key: _send(store, remote, key))
    return copied


def _copy_each(copied: Copied, keys: Collection[str], copy: Callable[[str], int]) -> None:
    """Copy several at a time, as object stores answer slowly."""
    from tqdm import tqdm

    def copy_one(key: str) -> list[int]:
        sizes: list[int] = []
        with copied.refusing(key[:12]):
            sizes.append(copy(key))
        return sizes

    pool = ThreadPoolExecutor(_AT_ONCE)
    try:
        for sizes in tqdm(pool.map(copy_one, keys), total=len(keys), unit=" artifacts", disable=None, leave=False):
            copied.artifacts += len(sizes)
            copied.bytes += sum(sizes)
    finally:
        pool.shutdown(cancel_futures=True)


def _send(store: Store, remote: Remote, key: str) -> int:
    artifact = store.open(key)
    for name, item in artifact.meta.files.items():
        remote.send(artifact.path(name), remote.path(key, name, item["sha256"]), once=True)
    if store.record(key):
        remote.send(store.record_path(key), f"{remote.root}/records/{key[:2]}/{key}.json")
    remote.send(artifact.folder / META, remote.path(key, META))
    return artifact.meta.size


def _receive(store: Store, remote: Remote, key: str) -> int:
    """Copy an artifact into a store, complete and checked, or not at all, and return its bytes."""
    text = remote.text(remote.path(key, META))
    meta = Meta.parse(text)
    if meta.kind not in STAGE_KINDS or meta.key != key or key not in keys_of_stage(stage_key(meta)):
        raise ValueError("its description is that of another artifact")
    with store.drafted(key) as folder:
        for name, item in meta.files.items():
            blocks = remote.read(remote.path(key, name, item["sha256"]), item["size"])
            if _save(blocks, folder / name) != item["sha256"]:
                raise ValueError(f"{name}: content differs from what was written")
        with writing(folder):
            (folder / META).write_text(text, encoding="utf-8")
        if key == stage_key(meta):
            store.index(meta.place, key)
    if key == stage_key(meta):
        store.clear_failure(key)
        with suppress(OSError, ValueError):
            facts = parse_json(remote.text(f"{remote.root}/records/{key[:2]}/{key}.json"))
            if isinstance(facts, dict) and not store.record(key):
                store.keep_record(key, facts)
    return meta.size


def _save(blocks: Iterable[bytes], target: Path) -> str:
    """Write a new file block by block, and return its SHA-256."""
    total = hashlib.sha256()
    with target.open("xb") as stream:
        for block in blocks:
            total.update(block)
            with writing(target):
                stream.write(block)
    return total.hexdigest()


def _receive_run(store: Store, remote: Remote, run: str) -> bool:
    """Copy the files of a run, complete or not at all; return False if it is here."""
    if not RUN_ID.fullmatch(run):
        raise ValueError("no run can have this name")
    if (store.runs / run).exists():
        return False
    with store.draft_folder("run") as draft:
        for name in RUN_FILES:
            _save(remote.read(f"{remote.root}/runs/{run}/{name}", most=_MOST_RUN), draft / name)
        if RunRecord.load(draft).id != run:
            raise ValueError("its record is that of another run")
        with writing(store.runs):
            store.runs.mkdir(exist_ok=True)
            draft.rename(store.runs / run)
    return True
