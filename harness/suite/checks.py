"""Check that a method can run on a dataset: tasks, environments, oracle fields, validation split."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from harness.data import Declaration
from harness.errors import did_you_mean
from harness.hparams import holds
from harness.registry.catalog import Catalog, Entry
from harness.suite.components import Part
from harness.suite.effects import Hindered, Uses
from harness.suite.settings import SelectSettings
from harness.suite.spec import ComponentSpec, Configuration
from harness.suite.tree import Place, Problems, Table


@dataclass(frozen=True)
class Pair:
    """A method on a dataset: the names for messages, and what the dataset declares."""

    method: str
    place: Place
    dataset: str
    declared: Declaration


def check_tasks(pair: Pair, parts: Mapping[str, Part], problems: Problems) -> None:
    """Check that every component supports the dataset's task."""
    kind = pair.declared.task.kind
    for role, part in parts.items():
        supported = part.entry.traits.get("tasks")
        if supported and kind not in supported:
            message = (
                f"{role} '{part.entry.name}' of method '{pair.method}' supports {_join(supported)} tasks; "
                f"dataset '{pair.dataset}' is {kind}"
            )
            problems.add(part.place, message)


def check_oracle(pair: Pair, parts: Iterable[Part], problems: Problems) -> None:
    """Check that the dataset has the oracle fields that the components open."""
    for part in parts:
        missing = sorted(set(part.entry.traits.get("oracle", ())) - set(pair.declared.oracle))
        if missing:
            has = f"it has: {', '.join(pair.declared.oracle)}" if pair.declared.oracle else "it has none"
            message = (
                f"{part.entry.kind} '{part.entry.name}' reads the oracle field {_join(missing)}, "
                f"which dataset '{pair.dataset}' lacks; {has}"
            )
            problems.add(part.place, message)


def check_split(pair: Pair, select: SelectSettings, table: Table, problems: Problems) -> None:
    """Check that ``select.split`` names a validation split of the dataset."""
    splits = [name for name, role in pair.declared.splits.items() if role == "val"]
    if select.split != "auto" and select.split not in splits:
        message = (
            f"dataset '{pair.dataset}' has no validation split '{select.split}'{did_you_mean(select.split, splits)}; "
            f"allowed: {', '.join(['auto', *splits])}"
        )
        problems.add(table.entries["split"].place if "split" in table else pair.place, message)


def wants_environments(learner: Entry) -> bool:
    """Return True if the suite must supply environments: the learner needs some and infers none itself."""
    inferred = any(stage.get("kind") == "environment" for stage in learner.traits.get("upstream", {}).values())
    return "environments" in learner.traits.get("needs", ()) and not inferred


def environments_of(learner: Part, given: Part | None) -> str:
    """Return the source of a training's environments: ``fixed`` before it, ``drawn per batch``, or ``none``."""
    if given is None or "environments" not in learner.entry.traits.get("needs", ()):
        return "none"
    return "drawn per batch" if given.entry.traits.get("per_batch") else "fixed"


def environment_uses(learner: Part, method: Table, *, wanted: bool) -> Uses:
    """Return the effect of a method's ``envs``: none where its learner takes none."""
    uses, written = Uses(), (method.key("envs"), "envs")
    if wanted:
        uses.active.add(written)
    else:
        text = f"'envs' has no meaning with {learner.entry.kind} '{learner.entry.name}', which takes none"
        uses.idle[written] = Hindered(text)
    return uses


def _check_provided(pair: Pair, learner: Part, given: Part | None, catalog: Catalog, problems: Problems) -> None:
    """Check that an environment provides all that its learner needs beside ids."""
    provided = set(given.entry.traits.get("provides", ())) if given is not None else set()
    missing = set(learner.entry.traits.get("needs", ())) - {"environments"} - provided
    if not missing:
        return
    able = [entry.name for entry in catalog.of_kind("environment") if missing <= set(entry.traits.get("provides", ()))]
    message = (
        f"method '{pair.method}' ({learner.entry.name}) needs environments that come with {_join(missing)}; "
        f"{'none does' if not able else 'these do: ' + ', '.join(able)}"
    )
    problems.add(pair.place if given is None else given.place, message)


def supplied_environment(
    pair: Pair, learner: Part, given: Part | None, catalog: Catalog, problems: Problems
) -> Part | None:
    """Return what supplies environments to a learner that needs some: what is given, or else the dataset's own.

    Faults are noted: there are none, they are not of a kind that the dataset allows, or lack what the learner needs.
    """
    _check_provided(pair, learner, given, catalog, problems)
    has_own = pair.declared.environments > 0
    if given is not None:
        _check_groups(pair, given, problems)
        if _reads_own(given.entry) and not has_own:
            message = (
                f"environment '{given.entry.name}' reads the dataset's own environments; "
                f"dataset '{pair.dataset}' has none"
            )
            problems.add(given.place, message + _others(catalog, given.entry.name))
        return given
    own = next((entry for entry in catalog.of_kind("environment") if _reads_own(entry)), None)
    if has_own and own is not None:
        return Part(own, ComponentSpec("environment", own.name), pair.place)
    message = (
        f"method '{pair.method}' ({learner.entry.name}) needs environments and dataset '{pair.dataset}' has none; "
        f"say which with 'envs:'"
    )
    problems.add(pair.place, message + _others(catalog))
    return None


def check_number(
    pair: Pair,
    given: Part | None,
    train: Table,
    configurations: Iterable[Configuration],
    catalog: Catalog,
    problems: Problems,
) -> None:
    """Check that a method that compares environments gets two or more of them, in a batch if it compares them there."""
    for configuration in configurations:
        learner, spec = configuration.learner, configuration.environment
        owner = catalog.get(learner.kind, learner.name)
        values = {**owner.defaults, **learner.params}
        if spec is None or not holds(owner.traits.get("compares_environments", False), values):
            continue
        in_batch = not holds(owner.traits.get("compares_over_batches", False), values)
        entry, place = catalog.get("environment", spec.name), pair.place
        if _most(entry, spec, pair.declared) == 1:
            alone, place = f"environment '{spec.name}' gives one", pair.place if given is None else given.place
        elif in_batch and configuration.train.groups_per_batch == 1 and not entry.traits.get("per_batch"):
            alone = "'groups_per_batch: 1' puts one into each batch"
            place = train.entries["groups_per_batch"].place if "groups_per_batch" in train else place
        else:
            continue
        message = f"method '{pair.method}' ({learner.name}) compares environments, and {alone}; it needs two or more"
        problems.add(place, message)


def _most(environment: Entry, spec: ComponentSpec, declared: Declaration) -> int | None:
    """The largest number of environments that there can be, as far as the suite tells."""
    named = environment.traits.get("counted_by")
    most = [{**environment.defaults, **spec.params}[named]] if named else []
    own = [declared.environments] if _reads_own(environment) else []
    return min((number for number in (*most, *own) if number is not None), default=None)


def _check_groups(pair: Pair, given: Part, problems: Problems) -> None:
    wanted = str(given.entry.traits.get("requires") or "env")
    if wanted != "env" and wanted not in pair.declared.groups:
        has = f"it has: {', '.join(pair.declared.groups)}" if pair.declared.groups else "it has none"
        message = (
            f"environment '{given.entry.name}' reads the grouping '{wanted}', which dataset '{pair.dataset}' lacks; "
            f"{has}; an option of the dataset may add it"
        )
        problems.add(given.place, message)


def _reads_own(entry: Entry) -> bool:
    return bool(entry.traits.get("requires") == "env")


def _others(catalog: Catalog, skip: str = "") -> str:
    texts = []
    for entry in catalog.of_kind("environment"):
        target = entry.traits.get("positional")
        if entry.name != skip and not _reads_own(entry):
            texts.append(f"{entry.name}({target})" if target else entry.name)
    return f"; there are: {', '.join(texts)}" if texts else ""


def _join(names: Iterable[str]) -> str:
    listed = sorted(names)
    return listed[0] if len(listed) == 1 else f"{', '.join(listed[:-1])} and {listed[-1]}"
