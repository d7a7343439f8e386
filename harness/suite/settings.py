"""The settings that are not hyperparameters of a component: their names, types and bounds."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from harness.hparams import DATASET, ENVIRONMENTS, SEVERAL_TASKS, Condition, HParam, effective
from harness.suite.spec import ModelSettings, SelectSettings, TrainSettings

PIPELINE = ("encoder", "quantifier", "decorrelator")
ROLES = ("baseline", *PIPELINE)
PARTS = (*ROLES, "envs")
KIND_OF = {**{role: role for role in ROLES}, "envs": "environment"}

CALL = re.compile(r"^([^()\s]+)\s*\((.*)\)$", re.DOTALL)
"""``NAME(value)``."""
POSITIONAL = "()"
"""A key that no file can give: the value in parentheses of a component that a later table changes."""

TOP_KEYS = (
    "bench",
    "name",
    "include",
    "plugins",
    "protocol",
    "seeds",
    "model",
    "train",
    "select",
    "budget",
    "datasets",
    "methods",
    "analyses",
    "trackers",
    "cluster",
    "report",
)
METHOD_KEYS = (*ROLES, "like", "bundle", "envs", "model", "train", "select", "tune", "matrix")
PROTOCOL_KEYS = ("name", "seeds", "model", "train", "select", "families")
SECTIONS = ("model", "train", "select")
REPORT_KEYS = ("reference", "published", "statistics")

_LOW = {"epochs": 1, "batch_size": 1, "eval_batch_size": 1}
_CHOICES: dict[str, tuple[Any, ...]] = {
    "checkpoint": ("best-val", "last"),
    "config": ("mean-val", "oracle"),
    "readout": ("sum", "mean", "max"),
    "optimizer": ("adam", "adamw"),
    "average_over": ("labels", "graphs"),
}
_ACTIVE: dict[str, dict[str, Condition]] = {
    "patience": {"epochs": "> $patience"},
    "warmup": {"patience": "> 0"},
    "lr_drop_epoch": {"epochs": "> $lr_drop_epoch"},
    "lr_drop_factor": {"lr_drop_epoch": "> 0"},
    "groups_per_batch": {ENVIRONMENTS: ("fixed",)},
    "average_over": {DATASET: (SEVERAL_TASKS,)},
}
_HELP = {
    "epochs": "passes over the training graphs",
    "batch_size": "graphs per training batch",
    "eval_batch_size": "graphs per batch when predicting",
    "lr": "learning rate",
    "weight_decay": "weight decay: an L2 term in Adam, decoupled in AdamW",
    "patience": "stop after this many epochs without a better validation score; 0 for never",
    "warmup": "epochs that do not count for patience",
    "optimizer": "Adam or AdamW",
    "lr_drop_epoch": "epoch, from 0, from which on learning rates are multiplied by lr_drop_factor; 0 for none",
    "lr_drop_factor": "what learning rates are multiplied by at lr_drop_epoch",
    "groups_per_batch": "environments per batch, for methods with fixed environments; 0 for plain shuffling",
    "drop_last": "leave out a last training batch that is not full, unless it is the only one",
    "max_batch_nodes": "most nodes per batch, in training and when predicting; 0 for any",
    "average_over": "what the loss of a multi-task batch is averaged over: its labels, or the graphs that have one",
    "checkpoint": "which epoch's weights are reported",
    "config": "how one of the tuned configurations is chosen; oracle looks at the test score and is flagged",
    "split": "the validation split that chooses; auto for the dataset's default",
    "readout": "how node embeddings become a graph embedding",
    "head_layers": "hidden layers of the classifier head",
}


def _read(settings: type, skip: tuple[str, ...] = ()) -> dict[str, HParam]:
    found = {}
    for item in fields(settings):
        if item.name in skip:
            continue
        number = item.type in ("int", "float")
        found[item.name] = HParam(
            name=item.name,
            type=str(item.type),
            default=item.default,
            low=_LOW.get(item.name, 0) if number else None,
            choices=_CHOICES.get(item.name),
            active=_ACTIVE.get(item.name),
            help=_HELP.get(item.name, ""),
        )
    return found


TRAIN = _read(TrainSettings)
SELECT = _read(SelectSettings)
MODEL = _read(ModelSettings, skip=("backbone",))


_OF_DATASET = [name for name, one in TRAIN.items() if DATASET in (one.active or {})]


def effective_train(train: TrainSettings, facts: Mapping[str, Any]) -> TrainSettings:
    """The settings, with the default in place of what has no effect beside the others.

    Of settings that depend on the dataset alone, where ``facts`` say nothing but of that.
    """
    declared = TRAIN if ENVIRONMENTS in facts else {name: TRAIN[name] for name in _OF_DATASET}
    idle = effective(declared, {name: getattr(train, name) for name in declared}, facts)[1]
    changed = {name: TRAIN[name].default for name in idle if getattr(train, name) != TRAIN[name].default}
    return replace(train, **changed) if changed else train
