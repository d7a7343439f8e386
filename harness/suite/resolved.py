"""Checked datasets and methods, and the form in which they are written down again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.data import Declaration
from harness.hparams import effective
from harness.suite.components import Part
from harness.suite.effects import Effects
from harness.suite.methods import Method
from harness.suite.settings import SECTIONS
from harness.suite.spec import ComponentSpec
from harness.suite.tree import Table, plain


@dataclass(frozen=True)
class CheckedDataset:
    """A dataset of the suite.

    Attributes:
        label: the column's name.
        part: the component.
        declared: what it says of itself.
        settings: ``model``, ``train`` and ``select`` of its rows before the method's own.
        envs: its ``envs`` table, empty where it gives none; ``environment`` likewise, as a component.
    """

    label: str
    part: Part
    declared: Declaration
    settings: Table
    envs: Table
    environment: Part | None


@dataclass(frozen=True)
class CheckedMethod:
    """A method of the suite: its row, its parts by role, its encoder's pool, the environment it names."""

    row: Method
    parts: Mapping[str, Part]
    pool: tuple[ComponentSpec, ...]
    environment: Part | None

    @property
    def learner(self) -> Part:
        """The component that trains the classifier."""
        return self.parts.get("baseline") or self.parts["decorrelator"]


def written_dataset(dataset: CheckedDataset, effects: Effects) -> dict[str, Any]:
    """A dataset with all its settings, so that no protocol is needed to read it, but those without effect."""
    settings = effects.kept(dataset.settings, f"datasets.{dataset.label}")
    sections = {name: settings.table(name) for name in SECTIONS}
    tree = {**_written(dataset.part), **{name: plain(value) for name, value in sections.items() if value}}
    if dataset.environment is not None:
        tree["envs"] = _written(dataset.environment)
    return tree


def written_method(method: CheckedMethod, effects: Effects) -> dict[str, Any]:
    """A method without copies, matrices, and values without effect."""
    tree = effects.kept(method.row.tree, f"methods.{method.row.label}")
    empty = [name for name in tree if isinstance(tree.get(name), Table) and not tree.table(name)]
    written: dict[str, Any] = plain(tree.without(empty))
    return {**written, "envs": _written(method.environment)} if method.environment and "envs" in tree else written


def _written(part: Part) -> dict[str, Any]:
    return {"use": part.spec.name, **effective(part.entry.hparams, part.spec.params)[0]}
