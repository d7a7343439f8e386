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
from harness.suite.overlay import merge, over_model
from harness.suite.settings import SECTIONS
from harness.suite.spec import ComponentSpec
from harness.suite.tree import Place, Table, plain


@dataclass(frozen=True)
class Layers:
    """``model``, ``train`` and ``select`` after some of the overrides."""

    model: Table
    train: Table
    select: Table

    @classmethod
    def of(cls, place: Place, *tops: Table) -> Layers:
        """The settings of several tables, the later over the earlier."""
        empty = Table(place)
        layers = cls(empty, empty, empty)
        for top in tops:
            layers = layers.under(top)
        return layers

    def under(self, top: Table) -> Layers:
        """These settings with a table's own laid over them; the same object where it has none."""
        if not any(name in top for name in SECTIONS):
            return self
        return Layers(
            over_model(self.model, top.table("model")),
            merge(self.train, top.table("train")),
            merge(self.select, top.table("select")),
        )


@dataclass(frozen=True)
class CheckedDataset:
    """A dataset of the suite.

    Attributes:
        label: the column's name.
        part: the component.
        declared: what it says of itself.
        layers: the settings of its rows before the method's own.
        envs: its ``envs`` table, empty where it gives none; ``environment`` likewise, as a component.
    """

    label: str
    part: Part
    declared: Declaration
    layers: Layers
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


def written_dataset(dataset: CheckedDataset, epochs: int | None, effects: Effects) -> dict[str, Any]:
    """A dataset with all its settings, so that no protocol is needed to read it, but those without effect."""
    layers = dataset.layers
    model, train = (effects.kept(table, f"datasets.{dataset.label}") for table in (layers.model, layers.train))
    sections = {"model": model, "train": train, "select": layers.select}
    tree = {**_written(dataset.part), **{name: plain(value) for name, value in sections.items() if value}}
    if dataset.environment is not None:
        tree["envs"] = _written(dataset.environment)
    if epochs is not None:
        tree["train"] = {**tree.get("train", {}), "epochs": epochs}
    return tree


def written_method(method: CheckedMethod, epochs: int | None, effects: Effects) -> dict[str, Any]:
    """A method without copies, matrices, and values without effect."""
    tree = effects.kept(method.row.tree, f"methods.{method.row.label}")
    if epochs is not None:
        tree = tree.put("train", tree.table("train").without(["epochs"]))
        tree = tree.put("tune", tree.table("tune").without(["train.epochs"]))
    empty = [name for name in tree if isinstance(tree.get(name), Table) and not tree.table(name)]
    written: dict[str, Any] = plain(tree.without(empty))
    return {**written, "envs": _written(method.environment)} if method.environment and "envs" in tree else written


def _written(part: Part) -> dict[str, Any]:
    return {"use": part.spec.name, **effective(part.entry.hparams, part.spec.params)[0]}
