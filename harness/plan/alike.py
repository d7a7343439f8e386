"""Stages of one kind, component and dataset, which differ in seed and inputs alone. No torch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from harness.data import Declaration
from harness.plan.shared import Shared
from harness.plan.stage import Stage
from harness.store.keys import Form
from harness.suite.spec import DatasetSpec

PROTOCOL_VERSION = 1
"""Part of every key; bumped when a default of the harness changes what a stage computes."""


@dataclass(frozen=True)
class Data:
    """A dataset: its declaration, its prepared tiers, what bodies are told of it, and its splits that are scored."""

    spec: DatasetSpec
    declared: Declaration
    prepared: Stage
    payload: Mapping[str, Any]
    scored: Mapping[str, str]


class Alike:
    """Makes stages that read a dataset; what all of them have in common is put together once.

    Args:
        data: the dataset.
        kind, component: of the stages.
        preimage, payload: what they have in common; what a stage has of its own takes the place of what stands here.
    """

    def __init__(
        self,
        shared: Shared,
        data: Data,
        kind: str,
        component: str,
        preimage: Mapping[str, Any],
        payload: Mapping[str, Any],
    ) -> None:
        self._kind, self._place = kind, f"{kind}/{data.spec.component.name}/{component}"
        self._shared, self._data, self._payload = shared, data, payload
        self._preimage = started(kind, **preimage)
        self._forms: dict[tuple[str, ...], Form] = {}

    def stage(self, own: Mapping[str, Any], payload: Mapping[str, Any], inputs: Iterable[str], title: str) -> Stage:
        """The stage with its own values in preimage and payload, which reads the artifacts of the given keys too."""
        return Stage(
            kind=self._kind,
            key=self._form(tuple(own)).digest(own),
            place=self._place,
            preimage={**self._preimage, **own},
            inputs=(self._data.prepared.key, *inputs),
            payload={**self._payload, **payload},
            title=title,
            in_parent=self._kind == "score",
        )

    def _form(self, own: tuple[str, ...]) -> Form:
        """The form of the stages with these names of their own."""
        if own not in self._forms:
            common = {name: part for name, part in self._preimage.items() if name not in own}
            self._forms[own] = self._shared.form(common, *own)
        return self._forms[own]


def started(kind: str, **parts: Any) -> dict[str, Any]:
    """A preimage: of which kind of stage, by which protocol, and what else decides its output."""
    return {"stage": kind, "protocol": PROTOCOL_VERSION, **parts}
