"""The catalog of components, read from the torch-free index without importing any of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from harness.component import KINDS
from harness.errors import UserError, did_you_mean
from harness.hparams import HParam, effective


@dataclass(frozen=True)
class Entry:
    """One component.

    Attributes:
        kind, name: its identity.
        module, qualname: where the class is.
        file: the source file (absolute path).
        plugin: the distribution or plugin file it comes from; ``built-in`` for ours.
        digest: source digest (DESIGN: syntax tree of its module, of what it imports from its own distribution,
            and of the core files on whose numerics its kind depends).
        hparams: its hyperparameters, in order of declaration.
        doc: the class docstring (first paragraph first).
        traits: class-level facts the harness reads without importing: ``needs``, ``tasks``, ``oracle``,
            ``upstream``, ``reads_validation_score``, ``family``, ``positional``, ``per_batch``, ``requires`` …
            (lists sorted, so that the index is deterministic).
        files: name below its distribution's folder -> SHA-256 of each file that it is loaded from. Two entries that
            differ in this alone do the same and are equal.
    """

    kind: str
    name: str
    module: str
    qualname: str
    file: str
    plugin: str
    digest: str
    hparams: Mapping[str, HParam] = field(default_factory=dict)
    doc: str = ""
    traits: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict, compare=False)

    @property
    def summary(self) -> str:
        """The first line of the docstring."""
        return self.doc.strip().splitlines()[0] if self.doc.strip() else ""

    @property
    def folder(self) -> Path | None:
        """The folder of its plugin, where that is a single file."""
        path = Path(self.plugin)
        return path.parent if path.is_absolute() else None

    @property
    def defaults(self) -> dict[str, Any]:
        """Default of each hyperparameter."""
        return {name: declared.default for name, declared in self.hparams.items()}

    def changed(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values that have an effect and differ from the defaults; these enter a key."""
        given = sorted(effective(self.hparams, params)[0].items())
        return {name: value for name, value in given if value != self.hparams[name].default}

    def to_json(self) -> dict[str, Any]:
        """Return a plain mapping that :meth:`from_json` reads back."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Entry:
        """Return the entry of such a mapping."""
        return cls(**{**data, "hparams": {n: HParam.from_json(h) for n, h in data["hparams"].items()}})


@dataclass(frozen=True)
class BrokenPlugin:
    """A plugin that could not be loaded, with the reason."""

    plugin: str
    file: str
    reason: str


class Catalog:
    """All registered components, looked up by kind and name.

    Attributes:
        broken: plugins that could not be loaded.
        withheld: names of plugins that ``--no-plugins`` withholds.
        core_files: path below the core -> SHA-256 of each file of the core that enters the digests.
    """

    def __init__(
        self,
        entries: Iterable[Entry],
        broken: Iterable[BrokenPlugin] = (),
        withheld: Iterable[str] = (),
        core_files: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        ordered = sorted(entries, key=lambda entry: (KINDS.index(entry.kind), entry.name))
        self._entries = {(entry.kind, entry.name): entry for entry in ordered}
        self.broken, self.withheld, self.core_files = tuple(broken), tuple(withheld), core_files

    def of_kind(self, kind: str) -> list[Entry]:
        """Return the components of a kind, by name."""
        return [entry for entry in self if entry.kind == kind]

    def names(self, kind: str) -> list[str]:
        """Return the names of a kind's components, sorted."""
        return [entry.name for entry in self.of_kind(kind)]

    def find(self, kind: str, name: str) -> Entry | None:
        """Return the component, or None."""
        return self._entries.get((kind, name))

    def get(self, kind: str, name: str) -> Entry:
        """Return the component.

        Raises:
            UserError: there is none of this kind and name; the text lists what there is and the nearest name.
        """
        entry = self.find(kind, name)
        if entry is None:
            raise UserError(self.unknown(kind, name))
        return entry

    def unknown(self, kind: str, name: str) -> str:
        """Return the message for an unknown name."""
        known = self.names(kind)
        text = f"no {kind} is called '{name}'{did_you_mean(name, known)}; there are: {', '.join(known) or 'none'}"
        broken = ", ".join(item.plugin for item in self.broken)
        text += f" (these plugins could not be loaded: {broken})" if broken else ""
        return f"{text} (not loaded, as --no-plugins asks: {', '.join(self.withheld)})" if self.withheld else text

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries.values())
