"""Check that a method can run on a dataset: tasks, environments, oracle fields, validation split."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from harness.data import Declaration
from harness.errors import did_you_mean
from harness.hparams import holds
from harness.registry.catalog import Catalog
from harness.suite.components import Part
from harness.suite.layers import Flat
from harness.suite.settings import SelectSettings
from harness.suite.spec import ComponentSpec, Configuration
from harness.suite.tree import Place, Problems


@dataclass(frozen=True)
class Pair:
    """A method on a dataset: the names for messages, what the dataset declares, and what receives faults."""

    method: str
    place: Place
    dataset: str
    declared: Declaration
    problems: Problems


def unsupported(pair: Pair, parts: Iterable[Part]) -> tuple[Part, str] | None:
    """Return a component that does not support the dataset's task, or reads what the dataset lacks, and say so."""
    declared, name = pair.declared, f"dataset '{pair.dataset}'"
    for part in parts:
        traits = part.entry.traits
        tasks, group = traits.get("tasks"), traits.get("requires")
        if tasks and declared.task.kind not in tasks:
            return part, f"supports {', '.join(sorted(tasks))} tasks; {name} is {declared.task.kind}"
        if group == "env" and not declared.environments:
            return part, f"reads the dataset's own environments; {name} has none"
        groups = [] if group in (None, "env") else [group]
        fields = [("oracle field", traits.get("oracle", ()), declared.oracle), ("grouping", groups, declared.groups)]
        for what, wanted, there in fields:
            if missing := ", ".join(sorted(set(wanted) - set(there))):
                has = ", ".join(there) or "none"
                return part, f"reads the {what} {missing}, which {name} lacks; it has: {has}"
    return None


def check_split(pair: Pair, select: SelectSettings, settings: Flat) -> None:
    """Check that ``select.split`` names a validation split of the dataset."""
    splits = ["auto", *(name for name, role in pair.declared.splits.items() if role == "val")]
    if select.split not in splits:
        text = f"dataset '{pair.dataset}' has no validation split '{select.split}'{did_you_mean(select.split, splits)}"
        pair.problems.add(settings["select.split"].value.place, f"{text}; allowed: {', '.join(splits)}")


def supplied_environment(pair: Pair, learner: Part, given: Part | None, catalog: Catalog) -> Part | None:
    """Return what supplies environments to a learner that needs some: what is given, or else the dataset's own.

    Noted: there are none, or they lack what the learner needs beside ids.
    """
    who, entries = f"method '{pair.method}' ({learner.entry.name})", catalog.of_kind("environment")
    missing = set(learner.entry.traits.get("needs", ())) - {"environments"}
    missing -= set(given.entry.traits.get("provides", ())) if given else set()
    if missing:
        able = [entry.name for entry in entries if missing <= set(entry.traits.get("provides", ()))]
        text = f"needs environments that come with {', '.join(sorted(missing))}; these do: {', '.join(able) or 'none'}"
        pair.problems.add(given.place if given else pair.place, f"{who} {text}")
    own = next((entry for entry in entries if entry.traits.get("requires") == "env"), None)
    if given is None and own and pair.declared.environments:
        return Part(own, ComponentSpec("environment", own.name), pair.place)
    if given is None:
        known = ", ".join(entry.name for entry in entries if entry is not own)
        text = f"needs environments and dataset '{pair.dataset}' has none; say which with 'envs:'; there are: {known}"
        pair.problems.add(pair.place, f"{who} {text}")
    return given


def check_number(
    pair: Pair, given: Part | None, settings: Flat, configurations: Iterable[Configuration], catalog: Catalog
) -> None:
    """Check that a method that compares environments gets two or more of them, in a batch if it compares them there."""
    for configuration in configurations:
        learner, spec = configuration.learner, configuration.environment
        owner = catalog.get(learner.kind, learner.name)
        values = {**owner.defaults, **learner.params}
        if spec is None or not holds(owner.traits.get("compares_environments", False), values):
            continue
        in_batch = not holds(owner.traits.get("compares_over_batches", False), values)
        entry = catalog.get("environment", spec.name)
        counts = [{**entry.defaults, **spec.params}.get(str(entry.traits.get("counted_by")))]
        counts += [pair.declared.environments] if entry.traits.get("requires") == "env" else []
        if 1 in counts:
            alone, place = f"environment '{spec.name}' gives one", given.place if given else pair.place
        elif in_batch and configuration.train.groups_per_batch == 1 and not entry.traits.get("per_batch"):
            alone, place = "'groups_per_batch: 1' puts one into each batch", settings["train.groups_per_batch"].place
        else:
            continue
        text = f"method '{pair.method}' ({learner.name}) compares environments, and {alone}; it needs two or more"
        pair.problems.add(place, text)
