"""The code of an entry of the index: its place on this machine, its content then, and the copy in a run's folder.

No torch.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

from harness.errors import ChangedError
from harness.registry.catalog import Entry
from harness.registry.core_files import PLUGINS
from harness.registry.importing import PACKAGE, PluginError, locate, reader
from harness.registry.source_digest import Code

KEPT: Final = "code.json"
"""The file of a run folder that holds plugins' code as it was planned."""


def planned_code(entry: Entry, kept: KeptCode) -> Code:
    """Return the code of an entry: as this process read it, as it is on disk, or as a run keeps it.

    Args:
        kept: the code in a run's folder.

    Raises:
        ChangedError: a file has changed since, and is not kept.
        PluginError: its distribution is gone.
    """
    contents: dict[Path, bytes] = {}
    names: dict[Path, str] = {}
    changed: list[Path] = []
    for path, (name, digest) in paths_of(entry).items():
        data = _content(path, digest, kept.content(digest))
        if data is None:
            changed.append(path)
        else:
            contents[path], names[path] = data, name
    if changed:
        raise ChangedError(f"changed since it was planned: {', '.join(map(str, changed))}")
    return Code(Path(entry.file), contents, names)


def paths_of(entry: Entry) -> dict[Path, tuple[str, str]]:
    """Return path -> name and digest of the files of an entry's code on this machine."""
    if not entry.files:
        return {}
    own = entry.folder
    if own is None:
        place = locate(entry.module)
        if place is None:
            raise PluginError(f"there is no module '{entry.module}'")
        own = place[1]
    bases = {name: PLUGINS.parent if name.startswith(f"{PACKAGE}/") else own for name in entry.files}
    return {bases[name] / name: (name, digest) for name, digest in entry.files.items()}


def _content(path: Path, digest: str, kept: bytes | None = None) -> bytes | None:
    """Return the content of a file that has this SHA-256: as this process read it, as it is on disk, or as kept."""
    readings = [reader().contents.get(path), kept]
    with suppress(OSError):
        readings.insert(1, path.read_bytes())
    return next((data for data in readings if data is not None and _sha256(data) == digest), None)


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@dataclass(frozen=True)
class KeptCode:
    """The plugins' code in a run's folder.

    Attributes:
        plugins: path of each plugin file that the suite names -> name -> SHA-256 of what it is loaded from; first is
            the plugin file itself.
        texts: content by SHA-256; bytes that are no UTF-8 are surrogates.
    """

    plugins: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, plugins: Iterable[Path], entries: Iterable[Entry]) -> KeptCode:
        """Return the code of plugins that are not ours; files that have changed already are left out."""
        named, texts = {}, {}
        labels = {str(path.resolve()): str(path) for path in plugins}
        for entry in entries:
            own = {path: item for path, item in paths_of(entry).items() if not path.is_relative_to(PLUGINS)}
            if entry.plugin in labels:
                first = sorted(own.items(), key=lambda item: str(item[0]) != entry.plugin)
                named[labels[entry.plugin]] = dict(item for _, item in first)
            for path, (_, digest) in own.items():
                data = _content(path, digest)
                if data is not None:
                    texts[digest] = data.decode("utf-8", "surrogateescape")
        return cls(named, texts)

    def to_json(self) -> str:
        """Return text that :meth:`read` reads."""
        return json.dumps(asdict(self))

    @classmethod
    def read(cls, folder: Path) -> KeptCode:
        """Read the code in a run's folder; nothing if it has none."""
        try:
            return cls(**json.loads((folder / KEPT).read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return cls()

    def content(self, digest: str) -> bytes | None:
        """Return a file's content by its SHA-256, if it is kept and whole."""
        data = self.texts.get(digest, "").encode("utf-8", "surrogateescape")
        return data if _sha256(data) == digest else None
