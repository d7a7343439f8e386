"""Load a suite's file as a resolved :class:`harness.suite.spec.Suite`, or report every fault of the file at once."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any
from unicodedata import combining, normalize

from harness.data import Declaration
from harness.errors import BenchError, UserError, did_you_mean
from harness.registry.catalog import Catalog
from harness.suite.analyses import read_analyses, read_trackers, written_analysis
from harness.suite.checks import (
    Pair,
    check_number,
    check_oracle,
    check_split,
    check_tasks,
    environment_uses,
    environments_of,
    supplied_environment,
    wants_environments,
)
from harness.suite.components import Part, Parts
from harness.suite.effects import Effects, facts_of
from harness.suite.files import Gathered, digests, gather, read_protocol
from harness.suite.methods import (
    CheckedDataset,
    CheckedMethod,
    Method,
    resolve_methods,
    written_dataset,
    written_method,
)
from harness.suite.normal import drop, over_sections
from harness.suite.overrides import Overrides, apply_overrides, chosen
from harness.suite.search import Base, Search
from harness.suite.settings import KIND_OF, ROLES, SECTIONS, SelectSettings, seeds_of
from harness.suite.spec import ComponentSpec, DatasetSpec, ReportSettings, Row, Suite
from harness.suite.tree import FAULTY, Leaf, Place, Problems, Table, plain, shortened

Declare = Callable[[ComponentSpec], Declaration]

DEFAULT_PROTOCOL = "equad"
MAX_CELLS = "BENCH_MAX_CELLS"
"""The variable with the most cells of a suite, so that a slip in a grid does not fill the memory."""


def load_suite(path: Path, catalog: Catalog, declare: Declare, *, overrides: Overrides | None = None) -> Suite:
    """Read a suite and check all of it.

    Args:
        path: the suite file.
        catalog: the components, those of the suite's own plugin files included (:func:`peek_plugins`).
        declare: what a dataset says of itself before it is built; called once for each dataset taken.
        overrides: what the command line changes.

    Raises:
        SuiteError: every fault found, each with its place.
    """
    problems = Problems()
    overrides = overrides or Overrides()
    gathered = gather(path, problems)
    if gathered.broken:
        problems.check()
    tree = apply_overrides(gathered.tree, overrides, problems)
    return _Loader(path, Parts(catalog, problems, str(path)), declare, overrides, tree, gathered).suite()


def max_cells() -> int:
    """The most cells that a suite may have, as the variable :data:`MAX_CELLS` says; a million unless it is set.

    Raises:
        UserError: the variable is no number.
    """
    text = os.environ.get(MAX_CELLS) or "1000000"
    if not re.fullmatch(r"[0-9]{1,19}", text):
        raise UserError(f"{MAX_CELLS}={shortened(text)}: expected a whole number of cells")
    return int(text)


class _Loader:
    """One loading: each step notes its problems and goes on with what is sound."""

    def __init__(
        self, path: Path, parts: Parts, declare: Declare, overrides: Overrides, tree: Table, gathered: Gathered
    ) -> None:
        self.path, self.parts, self.declare, self.overrides = path, parts, declare, overrides
        self.tree, self.gathered = tree, gathered
        self.catalog, self.problems, self.effects = parts.catalog, parts.problems, Effects(parts.own)

    def suite(self) -> Suite:
        """The resolved suite."""
        from harness.suite.cluster import read_cluster

        named = self.tree.get("protocol")
        self.protocol_name = named if isinstance(named, Leaf) else Leaf(DEFAULT_PROTOCOL, self.tree.place)
        self.protocol = read_protocol(self.protocol_name, self.problems)
        self.epochs = self._epochs()
        seeds = seeds_of(plain(self.tree.entries.get("seeds", self.protocol.entries["seeds"])))
        self._plugins()
        self._present()
        self.search = Search(self.parts, plain(self.tree.only(["budget"])).get("budget"))
        self.settings = over_sections(over_sections(Table(self.tree.place), self.protocol), self.tree)
        self.parts.model(self.settings.table("model"))  # also where no dataset or method is sound
        all_methods = resolve_methods(self.tree.table("methods"), self.problems)
        if self.epochs:
            all_methods = [replace(method, tree=drop(method.tree, "train.epochs")) for method in all_methods]
        labels = [method.label for method in all_methods]
        methods = self._checked_methods(all_methods)
        report = self._report(labels, [method.row.label for method in methods])
        datasets = self._datasets()
        known = {"datasets": list(self.tree.table("datasets")), "methods": labels}
        declared = {dataset.label: dataset.declared for dataset in datasets}
        analyses = read_analyses(self.tree.table("analyses"), self.parts, datasets=declared, known=known)
        trackers = read_trackers(self.tree.get("trackers"), self.overrides.trackers, self.parts)
        written = self.tree.get("cluster")
        cluster = read_cluster(written, self.problems) if isinstance(written, Table) else None
        rows = self._rows(datasets, methods, len(seeds))
        if len(rows) == len(self.tree.table("datasets")) * len(all_methods):
            swept = [(f"methods.{method.label}", written) for method in all_methods for written in method.swept]
            self.effects.refuse(self.problems, self.tree.table("train"), swept)
        self.problems.check()
        suite = Suite(
            name=self._name(),
            path=self.path,
            protocol=str(self.protocol_name.value),
            seeds=tuple(seeds),
            datasets=tuple(DatasetSpec(dataset.label, dataset.part.spec) for dataset in datasets),
            methods=tuple(method.row.label for method in methods),
            rows=rows,
            report=report,
            analyses=analyses,
            trackers=trackers,
            cluster=cluster,
            plugins=tuple(dict.fromkeys(plugin for plugin, _ in self.gathered.plugins)),
            files=digests(self.path, self.gathered),
            overrides=self.overrides.texts(),
        )
        return replace(suite, resolved=self._resolved(suite, datasets, methods))

    def _rows(self, datasets: list[CheckedDataset], methods: list[CheckedMethod], seeds: int) -> tuple[Row, ...]:
        rows: list[Row] = []
        count = len(datasets) * len(methods) * seeds
        for dataset, method in product(datasets, methods) if self._few(count) else ():
            row = self._row(dataset, method)
            if row is not None:
                rows.append(row)
                count += seeds * (len(row.configurations) - 1)
            if not self._few(count):
                break
        return tuple(rows)

    def _few(self, count: int) -> bool:
        """Return True if a suite may have so many cells; else this is noted."""
        most = max_cells()
        if count > most:
            message = f"the suite has {count:,} cells or more; at most {most:,} are allowed ({MAX_CELLS}=N allows N)"
            self.problems.add(self.tree.place, message)
        return count <= most

    def _name(self) -> str:
        leaf = self.tree.get("name")
        if isinstance(leaf, Leaf):
            return str(leaf.value)
        letters = "".join(c for c in normalize("NFKD", self.path.stem) if not combining(c))
        return re.sub(r"[^A-Za-z0-9._ -]", "-", letters).lstrip("._ -")[:100] or "suite"

    def _epochs(self) -> Table:
        """Return the settings that ``--epochs`` lays over those of every training."""
        epochs = self.overrides.epochs
        if epochs is None:
            return Table(self.tree.place)
        place = Place(f"--epochs {epochs}")
        if epochs < 1:
            self.problems.add(place, "expected at least 1")
            return Table(place)
        return Table(place).put("train", Table(place).put("epochs", Leaf(epochs, place)))

    def _plugins(self) -> None:
        broken = {Path(item.file).resolve(): item.reason for item in self.catalog.broken if item.file}
        for file, place in self.gathered.plugins:
            if file.resolve() in broken:
                self.parts.lacking = True
                self.problems.add(place, f"the plugin {file} could not be loaded: {broken[file.resolve()]}")

    def _present(self) -> None:
        from harness.suite.validation import EXAMPLES

        for section in ("datasets", "methods"):
            if section not in self.tree:
                message = f"the key '{section}' is missing; it is a table such as {EXAMPLES[section]}"
                self.problems.add(self.tree.place, message)

    def _report(self, labels: list[str], taken: list[str]) -> ReportSettings:
        table = self.tree.table("report")
        values = plain(table)
        reference = values.get("reference")
        if reference is not None and reference not in labels and labels:
            message = f"'reference' names no row: '{reference}'{did_you_mean(reference, labels)}"
            self.problems.add(table.entries["reference"].place, f"{message}; there are: {', '.join(labels)}")
        reference = reference if reference in taken else None
        return ReportSettings(reference, values.get("published"), values.get("statistics", False))

    def _checked_methods(self, methods: list[Method]) -> list[CheckedMethod]:
        families = {method.label: method.family for method in methods}
        labels = [method.label for method in methods]
        taken = chosen(self.overrides.methods, labels, "methods", self.problems, families.__getitem__) if labels else []
        sound = []
        for method in methods:
            checked = self._checked(method)
            if checked is not None and method.label in taken:
                sound.append(checked)
        return sound

    def _checked(self, method: Method) -> CheckedMethod | None:
        before = len(self.problems)
        parts: dict[str, Part] = {}
        pool: tuple[ComponentSpec, ...] = ()
        for role in ROLES:
            if role not in method.tree:
                continue
            table = method.tree.table(role)
            part = self.parts.component(KIND_OF[role], table.without(["pool"]))
            if part is not None:
                parts[role] = part
            if part is not None and role == "encoder":
                pool = self.parts.pool(part, table.table("pool")) or ()
        envs = self._environment_part(method.tree.table("envs"))
        self.search.check(method.tree, parts)
        sound = len(self.problems) == before and FAULTY not in method.tree
        return CheckedMethod(method, parts, pool, envs) if sound else None

    def _environment_part(self, table: Table) -> Part | None:
        """The environment that a method or dataset names; None where it names none."""
        return self.parts.component("environment", table) if "use" in table else None

    def _datasets(self) -> list[CheckedDataset]:
        table = self.tree.table("datasets")
        taken = chosen(self.overrides.datasets, list(table), "datasets", self.problems) if table else []
        datasets = []
        for label in table:
            own = table.table(label).without([*SECTIONS, "envs"])
            if "use" not in own:
                message = f"dataset '{label}' has no component; write {{use: NAME, …}}"
                self.problems.add(table.key(label), message)
                continue
            part = self.parts.alone("dataset", own)
            if part is None or label not in taken:
                continue
            declared = self._declared(part, label)
            if declared is not None:
                datasets.append(self._dataset(label, part, declared, table.table(label)))
        return datasets

    def _declared(self, part: Part, label: str) -> Declaration | None:
        try:
            return self.declare(part.spec)
        except BenchError as error:
            self.problems.add(part.place, f"dataset '{label}': {error}")
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            self.problems.add(part.place, f"dataset '{label}': describing it raised {reason}")
        return None

    def _dataset(self, label: str, part: Part, declared: Declaration, tree: Table) -> CheckedDataset:
        family = self.protocol.table("families").table(str(part.entry.traits.get("family", "")))
        settings = Table(self.tree.place)
        for top in (self.protocol, family, self.tree, tree, self.epochs):
            settings = over_sections(settings, top)
        envs = tree.table("envs")
        return CheckedDataset(label, part, declared, settings, envs, self._environment_part(envs))

    def _row(self, dataset: CheckedDataset, method: CheckedMethod) -> Row | None:
        before = len(self.problems)
        tree = method.row.tree
        settings = over_sections(dataset.settings, tree)
        of_training, of_selection = settings.table("train"), settings.table("select")
        pair = Pair(method.row.label, method.row.place, dataset.label, dataset.declared)
        environment = self._environment(pair, dataset, method)
        model, train = self.parts.model(settings.table("model")), self.parts.train(of_training)
        select = SelectSettings(**plain(of_selection))
        check_split(pair, select, of_selection, self.problems)
        check_tasks(pair, method.parts, self.problems)
        used = [*method.parts.values(), *([environment] if environment else [])]
        check_oracle(pair, used, self.problems)
        if model is None or len(self.problems) > before:
            return None
        facts = facts_of(dataset.declared, environments_of(method.learner, environment))
        written = {name: (of_training.key(name), name) for name in of_training}
        base = Base(method.parts, method.pool, environment, model[0], model[1], train, written, facts)
        found = self.search.configurations(tree, base)
        if found is None:
            return None
        self.effects.add(found.uses, f"datasets.{dataset.label}", f"methods.{method.row.label}")
        check_number(pair, environment, of_training, found.configurations, self.catalog, self.problems)
        tuned = sorted({path for configuration in found.configurations for path in configuration.values})
        return Row(method.row.label, dataset.label, found.configurations, select, tuple(tuned))

    def _environment(self, pair: Pair, dataset: CheckedDataset, method: CheckedMethod) -> Part | None:
        learner, written = method.learner, method.row.tree
        wanted = wants_environments(learner.entry)
        if "envs" in written:
            self.effects.add(environment_uses(learner, written, wanted=wanted), f"methods.{method.row.label}")
        if not wanted:
            return None
        given = method.environment
        default = learner.entry.traits.get("default_environment")
        if given is None and default:
            use = Table(learner.place).put("use", Leaf(default, learner.place))
            given = self.parts.component("environment", use)
        elif given is None:
            given = dataset.environment
        if given is None and (default or dataset.envs):
            return None  # the problem is noted
        return supplied_environment(pair, learner, given, self.catalog, self.problems)

    def _resolved(self, suite: Suite, datasets: list[CheckedDataset], methods: list[CheckedMethod]) -> dict[str, Any]:
        """The suite as one self-contained file: no includes, copies, matrices or defaults from elsewhere."""
        tree: dict[str, Any] = {
            "bench": 1,
            "name": suite.name,
            "protocol": suite.protocol,
            "seeds": list(suite.seeds),
            "plugins": list(map(str, suite.plugins)),
            "budget": self.search.budget,
            "datasets": {dataset.label: written_dataset(dataset, self.effects) for dataset in datasets},
            "methods": {method.row.label: written_method(method, self.effects) for method in methods},
            "analyses": {spec.label: written_analysis(spec) for spec in suite.analyses},
            "trackers": [{"use": spec.name, **spec.params} for spec in suite.trackers],
            "report": {key: value for key, value in vars(suite.report).items() if value not in (None, False)},
        }
        return {key: value for key, value in tree.items() if value not in (None, [], {})}
