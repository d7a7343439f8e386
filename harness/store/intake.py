"""Taking in artifacts and runs from elsewhere, where names, sizes, checksums and formats are not trusted. No torch."""

from __future__ import annotations

import hashlib
import shutil
import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from harness.errors import DataError
from harness.registry.planned_code import KEPT
from harness.results.run_record import RunRecord
from harness.safe_io import parse_json
from harness.store.artifact import JSON, META, TENSORS, Meta, writing
from harness.store.keys import DIGEST
from harness.store.placing import move
from harness.store.references import keys_of_stage, stage_key
from harness.store.source import RUN_FILES, Refused, Source, chunks, is_run_id
from harness.store.stage import STAGE_KINDS
from harness.store.store import Store

_MOST_TEXT = 64 << 20
"""Bytes that a description, a record or a file of a run may have."""
_MOST_FILES = 10_000
_MOST_TITLE = 10_000
_MOST_HEADER = 100 << 20
Moved = Callable[[int], None]
"""Is told of bytes that have arrived."""


def receive(store: Store, source: Source, key: str, moved: Moved) -> None:
    """Copy an artifact into a store, complete and checked, or not at all.

    Raises:
        Refused: the artifact is damaged, not what its key says, or larger than the room; the text says what is wrong.
        StoreError, DiskFullError: the store cannot take it.
    """
    try:
        text = _text(source.meta(key), META)
        meta = _checked(key, text)
        _require_room(store, source, meta)
        with store.drafted(key) as folder:
            for name, item in meta.files.items():
                _copy(source, key, name, item, folder / name, moved)
            with writing(folder):
                (folder / META).write_text(text, encoding="utf-8")
            if key == stage_key(meta):
                store.index(meta.place, key)
    except (OSError, ValueError) as error:
        raise Refused(f"{type(error).__name__}: {error}") from None
    _tell(store, source, meta)


def receive_run(store: Store, source: Source, run: str) -> tuple[RunRecord, bool]:
    """Copy what a report needs of a run; one that is there stays as it is.

    Returns:
        Its record, and whether it has been copied.

    Raises:
        Refused: it is no run, or damaged.
        StoreError, DiskFullError: the store cannot take it.
    """
    if not is_run_id(run):
        raise Refused(f"'{run}' cannot be the name of a run")
    folder = store.runs / run
    with suppress(DataError):
        return RunRecord.load(folder), False
    try:
        texts = {name: _text(source.run_file(run, name), name) for name in RUN_FILES}
        with suppress(FileNotFoundError):  # older runs keep no code
            texts[KEPT] = _text(source.run_file(run, KEPT), KEPT)
    except FileNotFoundError as error:
        raise Refused(f"there is no complete run {run} in {source.name} ({Path(str(error.filename)).name})") from None
    except (OSError, ValueError) as error:
        raise Refused(f"{type(error).__name__}: {error}") from None
    with store.draft_folder("run") as draft, writing(draft):
        for name, text in texts.items():
            (draft / name).write_text(text, encoding="utf-8")
        try:
            record = RunRecord.load(draft)
        except DataError as error:
            raise Refused(str(error)) from None
        if record.id != run:
            raise Refused(f"the record of {run} is that of another run")
        store.runs.mkdir(exist_ok=True)
        try:
            move(draft, folder)
        except OSError:
            if not folder.exists():
                raise
            return _already_here(folder), False
    return record, True


def _already_here(folder: Path) -> RunRecord:
    """The record of a run that another process brought meanwhile; a damaged one is not replaced."""
    try:
        return RunRecord.load(folder)
    except DataError:
        raise Refused("it is here and cannot be read; `bench cache verify --repair` puts it aside") from None


def _checked(key: str, text: str) -> Meta:
    """The description of an artifact whose every part may stand in a store."""
    meta = Meta.parse(text)
    if meta.kind not in STAGE_KINDS:
        raise ValueError(f"{META} describes no stage")
    if max(len(meta.place), len(meta.title)) >= _MOST_TITLE:
        raise ValueError(f"{META} has a place or title without end")
    if meta.key != key or key not in keys_of_stage(stage_key(meta)):
        raise ValueError("its description is that of another artifact")
    if len(meta.files) > _MOST_FILES:
        raise ValueError(f"it has {len(meta.files)} files")
    for name, item in meta.files.items():
        if name == META or Path(name).suffix not in (JSON, TENSORS):
            raise ValueError(f"{name!r} cannot name a file of an artifact")
        if not isinstance(item["size"], int) or item["size"] < 0 or not DIGEST.fullmatch(str(item["sha256"])):
            raise ValueError(f"{name} has no size or checksum")
    return meta


def _require_room(store: Store, source: Source, meta: Meta) -> None:
    """Refuse what does not fit, or only claims to be so large: smaller artifacts may fit all the same."""
    room = shutil.disk_usage(_existing(store.root)).free
    if meta.size <= room:
        return
    for name, item in meta.files.items():
        size = source.size(meta.key, name, item["sha256"])
        if size is not None and size != item["size"]:
            raise Refused(f"{name} claims {item['size']} bytes, there are {size}")
    raise Refused(f"it has {meta.size} bytes; {store.root} has room for {room}")


def _copy(source: Source, key: str, name: str, item: Any, path: Path, moved: Moved) -> None:
    total = hashlib.sha256()
    with source.file(key, name, item["sha256"]) as stream, writing(path), path.open("xb") as target:
        for block in chunks(stream, item["size"], name):
            total.update(block)
            target.write(block)
            moved(len(block))
    if path.stat().st_size != item["size"] or total.hexdigest() != item["sha256"]:
        raise Refused(f"{name}: content differs from what was written")
    _well_formed(path)


def _well_formed(path: Path) -> None:
    """Refuse what readers would stumble over: text that is no strict JSON, tensors without a header."""
    if path.suffix == JSON:
        parse_json(path.read_text(encoding="utf-8"))
        return
    with path.open("rb") as stream:
        try:
            (length,) = struct.unpack("<Q", stream.read(8))
        except struct.error:
            raise ValueError(f"{path.name} is no safetensors file") from None
        if length > min(_MOST_HEADER, path.stat().st_size - 8):
            raise ValueError(f"{path.name} is no safetensors file")
        if not isinstance(parse_json(stream.read(length).decode("utf-8")), dict):
            raise ValueError(f"{path.name} is no safetensors file")


def _tell(store: Store, source: Source, meta: Meta) -> None:
    """Keep what is known of the making of an artifact that has arrived, and forget that it failed here."""
    if meta.key != stage_key(meta):
        return
    store.clear_failure(meta.key)
    with suppress(OSError, ValueError, Refused):
        facts = parse_json(_text(source.record(meta.key), "record"))
        if isinstance(facts, dict) and not store.record(meta.key):
            store.keep_record(meta.key, facts)


def _text(stream: Any, what: str) -> str:
    with stream:
        return b"".join(chunks(stream, _MOST_TEXT, what)).decode("utf-8")


def _existing(path: Path) -> Path:
    return next(folder for folder in (path, *path.parents) if folder.exists())
