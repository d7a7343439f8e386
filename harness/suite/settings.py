"""The settings of a suite that are not hyperparameters of a component, each declared once, and names in the language.

The keys of the YAML file, their checks, the JSON Schema, the reference page and the training loop follow from these
dataclasses.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from harness.hparams import DATASET, ENVIRONMENTS, SEVERAL_TASKS, Condition, HParam, effective

PIPELINE = ("encoder", "quantifier", "decorrelator")
ROLES = ("baseline", *PIPELINE)
PARTS = (*ROLES, "envs")
BACKBONE = "model.backbone"
KIND_OF = {**{role: role for role in ROLES}, "envs": "environment", BACKBONE: "backbone"}
SECTIONS = ("model", "train", "select")
ROWS = {"datasets": "dataset", "methods": "method", "analyses": "analysis"}
FAULTY = "!"
"""A key that no file can give: this row has a noted fault, so what it lacks must not be noted as well."""
CALL = re.compile(r"^([^()\s]+)\s*\((.*)\)$", re.DOTALL)
"""``NAME(value)``."""


LAST = "last"
SAMPLERS: Mapping[str, str] = {"tpe": "TPE", "random": "random search"}
"""Samplers of a search, and their names in captions."""


def best_rule(split: str) -> str:
    """Return the name of the checkpoint rule "first best score on this validation split"."""
    return f"best@{split}"


def checkpoint_rule(checkpoint: str, split: str) -> str:
    """Return the name of a checkpoint setting's rule in results: ``last``, or ``best@SPLIT``."""
    return LAST if checkpoint == LAST else best_rule(split)


def checkpoint_word(rule: str) -> str:
    """Return the setting whose rule this is: ``last`` or ``best-val``."""
    return LAST if rule == LAST else "best-val"


def is_label(text: str) -> bool:
    """Return True if a text can name a row or column: it is printable and has 1 to 200 characters."""
    return bool(text.strip()) and len(text) <= 200 and text.isprintable()


def seeds_of(value: Any) -> list[Any]:
    """The seeds that a list, a single one, or a text such as ``1,2,3`` means."""
    if isinstance(value, str):
        return [int(part) for part in value.split(",")]
    return value if isinstance(value, list) else [value]


def setting(
    default: Any,
    help: str,
    *,
    low: float | None = None,
    choices: tuple[str, ...] | None = None,
    active: Mapping[str, Condition] | None = None,
) -> Any:
    """Declare a setting: its default, a line for people, and what is allowed, as for :func:`harness.hparam`."""
    return field(default=default, metadata={"help": help, "low": low, "choices": choices, "active": active})


def declared(settings: type) -> dict[str, HParam]:
    """The settings of a dataclass by name."""
    given = [item for item in fields(settings) if item.metadata]
    return {item.name: HParam(item.name, str(item.type), item.default, **item.metadata) for item in given}


@dataclass(frozen=True)
class TrainSettings:
    """The settings of the final classifier's training."""

    epochs: int = setting(50, "passes over the training graphs", low=1)
    batch_size: int = setting(32, "graphs per training batch", low=1)
    eval_batch_size: int = setting(256, "graphs per batch when predicting", low=1)
    lr: float = setting(1e-3, "learning rate", low=0)
    weight_decay: float = setting(0.0, "weight decay: an L2 term in Adam, decoupled in AdamW", low=0)
    patience: int = setting(
        0,
        "stop after this many epochs without a better validation score; 0 for never",
        low=0,
        active={"epochs": "> $patience"},
    )
    warmup: int = setting(0, "epochs that do not count for patience", low=0, active={"patience": "> 0"})
    optimizer: str = setting("adam", "Adam or AdamW", choices=("adam", "adamw"))
    lr_drop_epoch: int = setting(
        0,
        "epoch, from 0, from which on learning rates are multiplied by lr_drop_factor; 0 for none",
        low=0,
        active={"epochs": "> $lr_drop_epoch"},
    )
    lr_drop_factor: float = setting(
        0.1, "what learning rates are multiplied by at lr_drop_epoch", low=0, active={"lr_drop_epoch": "> 0"}
    )
    groups_per_batch: int = setting(
        0,
        "environments per batch, for methods with fixed environments; 0 for plain shuffling",
        low=0,
        active={ENVIRONMENTS: ("fixed",)},
    )
    drop_last: bool = setting(False, "leave out a last training batch that is not full, unless it is the only one")
    max_batch_nodes: int = setting(0, "most nodes per batch, in training and when predicting; 0 for any", low=0)
    average_over: str = setting(
        "labels",
        "what the loss of a multi-task batch is averaged over: its labels, or the graphs that have one",
        choices=("labels", "graphs"),
        active={DATASET: (SEVERAL_TASKS,)},
    )

    def effective(self, facts: Mapping[str, Any]) -> TrainSettings:
        """The settings, with the default in place of each that has no effect beside the others and these facts.

        Only those that depend on the dataset alone are looked at where ``facts`` do not tell of environments.
        """
        looked = TRAIN if ENVIRONMENTS in facts else _OF_DATASET
        idle = effective(looked, {name: getattr(self, name) for name in looked}, facts)[1]
        changed = {name: TRAIN[name].default for name in idle if getattr(self, name) != TRAIN[name].default}
        return replace(self, **changed)


@dataclass(frozen=True)
class SelectSettings:
    """The rules by which a checkpoint and a configuration are chosen; ``oracle`` is flagged and never a default."""

    checkpoint: str = setting("best-val", "which epoch's weights are reported", choices=("best-val", LAST))
    config: str = setting(
        "mean-val",
        "how one of the tuned configurations is chosen; oracle looks at the test score and is flagged",
        choices=("mean-val", "oracle"),
    )
    split: str = setting("auto", "the validation split that chooses; auto for the dataset's default")


@dataclass(frozen=True)
class TuneSettings:
    """How the configurations of all tuned methods are drawn from their grids, by Optuna."""

    sampler: str = setting("tpe", "how trials are chosen: by the scores so far, or at random", choices=(*SAMPLERS,))
    trials: int = setting(20, "configurations of each tuned method; all of a grid that has no more", low=1)


TRAIN, SELECT, TUNE = declared(TrainSettings), declared(SelectSettings), declared(TuneSettings)
_OF_DATASET = {name: item for name, item in TRAIN.items() if DATASET in (item.active or {})}
