"""The base of every component: a kind, a name and typed hyperparameters. Imports nothing heavy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from harness.errors import UserError, did_you_mean
from harness.hparams import HParam, collect

BUILT_IN = "built-in"
"""The plugin of a component that is ours."""
KINDS = (
    "dataset",
    "backbone",
    "environment",
    "encoder",
    "quantifier",
    "decorrelator",
    "baseline",
    "analysis",
    "tracker",
)


def require_kind(kind: str, others: Sequence[str] = ()) -> str:
    """Return a kind of component; ``others`` are words that the caller takes beside the kinds.

    Raises:
        UserError: there is no such kind.
    """
    if kind not in KINDS:
        known = [*KINDS, *others]
        raise UserError(f"no kind is called '{kind}'{did_you_mean(kind, known)}; there are: {', '.join(known)}")
    return kind


LEARNER_KINDS = ("baseline", "decorrelator")
_KEYS_OF_ALL = ("use", "tune", "matrix")
_KEYS = {
    "dataset": ("model", "train", "select", "envs"),
    "backbone": ("backbone", "readout", "head_layers"),
    "encoder": ("pool",),
    "analysis": ("datasets", "methods"),
}
"""Kind -> keys of a suite that stand beside a component's hyperparameters, none of which can have such a name."""


class Component:
    """One registered implementation.

    A subclass of a kind's base class sets ``name`` and declares its hyperparameters with
    :func:`harness.hparam`; instances carry the values as attributes.

    Raises:
        UserError: an unknown hyperparameter, or a value of the wrong type.
    """

    kind: ClassVar[str] = ""
    name: ClassVar[str] = ""
    hparams: ClassVar[dict[str, HParam]] = {}
    reserved: ClassVar[frozenset[str]] = frozenset()
    oracle: ClassVar[frozenset[str]] = frozenset()
    """Oracle fields (``base``, ``node_gt`` …) that this component opens; every output flags it."""
    upstream: ClassVar[Mapping[str, Any]] = {}
    """Stages this component builds on: role -> :func:`harness.upstream` declaration."""
    unused: ClassVar[frozenset[str]] = frozenset()
    """Inherited hyperparameters that have no effect on this component."""
    probes: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    """For the conformance kit: hyperparameter -> values under which it matters, its own second value among them.

    ``*`` holds values for all checks, e.g. a short schedule or few graphs.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        keys = (*_KEYS_OF_ALL, *_KEYS.get(str(cls.kind), ()))
        found = collect(cls, cls.reserved.union(vars(Component), keys))
        cls.hparams = {name: replace(one, unused=name in cls.unused) for name, one in found.items()}

    def __init__(self, **values: Any) -> None:
        for name in values:
            if name not in self.hparams:
                hint = did_you_mean(name, self.hparams)
                raise UserError(f"{self.kind} '{self.name}' has no hyperparameter '{name}'{hint}")
        for name, declared in self.hparams.items():
            try:
                setattr(self, name, declared.coerce(values.get(name, declared.default)))  # a list of its own
            except ValueError as error:
                raise UserError(f"{self.kind} '{self.name}', hyperparameter '{name}': {error}") from None

    @property
    def values(self) -> dict[str, Any]:
        """Return the hyperparameters' current values by name."""
        return {name: getattr(self, name) for name in self.hparams}


def upstream(
    kind: str,
    name: str,
    /,
    *,
    train: Mapping[str, Any] | None = None,
    when: Mapping[str, Sequence[Any]] | None = None,
    checkpoint: str = "best-val",
    **params: Any,
) -> dict[str, Any]:
    """Declare a stage that a component builds on: ``upstream("baseline", "erm", train={"epochs": "$ref_epochs"})``.

    A text value that starts with ``$`` names a hyperparameter of the declaring component; where that
    hyperparameter is ``None`` the suite's own setting holds.

    Args:
        kind: ``baseline`` (a trained learner's predictions and embeddings) or ``environment`` (ids).
        name: the component's name.
        train: overrides of the suite's training settings for this stage.
        when: values of the declaring component's hyperparameters under which the stage is needed; else it is left out.
        checkpoint: which weights of a trained learner: ``best-val`` or ``last``.
        params: hyperparameters of the component.
    """
    conditions = {hparam: list(values) for hparam, values in (when or {}).items()}
    return {
        "kind": kind,
        "name": name,
        "train": dict(train or {}),
        "when": conditions,
        "checkpoint": checkpoint,
        "params": params,
    }
