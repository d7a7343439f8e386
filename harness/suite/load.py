"""Load a suite's file as a resolved :class:`harness.suite.spec.Suite`, or report every fault of the file at once."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from harness.data import Declaration
from harness.errors import BenchError, did_you_mean, listed
from harness.hparams import Idle, effective
from harness.registry.catalog import Catalog
from harness.suite.analyses import OWN, read_analyses
from harness.suite.checks import Pair, check_number, check_split, supplied_environment, unsupported
from harness.suite.components import Part, Parts
from harness.suite.effects import Uses, facts_of
from harness.suite.files import Gathered, read_shipped
from harness.suite.layers import Decision, Flat, Flattener, Layers, over, sections, under, written
from harness.suite.layers import Row as WrittenRow
from harness.suite.methods import Method, resolve_methods
from harness.suite.overrides import QUICK_EPOCHS, Overrides, chosen, quick
from harness.suite.search import Base, Search, departures_from
from harness.suite.settings import FAULTY, ROLES, SELECT, TRAIN, SelectSettings, TrainSettings, seeds_of
from harness.suite.spec import ComponentSpec, DatasetSpec, ReportSettings, Row, Suite, Unsupported
from harness.suite.tree import Items, Leaf, Place, Problems, Table, plain

Declare = Callable[[ComponentSpec], Declaration]

DEFAULT_PROTOCOL = "equad"
MAX_CELLS = 1_000_000
"""The most cells of a suite, so that a slip in a grid does not fill the memory."""


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
    gathered = Gathered(path, problems)
    if gathered.broken:
        problems.check()
    parts = Parts(catalog, problems, str(path))
    return _Loader(path, parts, declare, overrides or Overrides(), gathered).suite()


@dataclass(frozen=True)
class _Dataset:
    """A dataset of the suite, checked: ``settings`` are those of its rows before the method's own, ``protocol`` the
    values that the protocol has for them."""

    label: str
    part: Part
    declared: Declaration
    protocol: Mapping[str, Any]
    settings: Flat
    environment: Part | None


@dataclass(frozen=True)
class _Method:
    """A method of the suite, checked: its parts by role, its encoder's pool, the environment it names."""

    row: Method
    parts: Mapping[str, Part]
    pool: tuple[ComponentSpec, ...]
    environment: Part | None

    @property
    def learner(self) -> Part:
        """The component that trains the classifier."""
        return self.parts.get("baseline") or self.parts["decorrelator"]


class _Loader:
    """One loading: each step notes its problems and goes on with what is sound."""

    def __init__(self, path: Path, parts: Parts, declare: Declare, overrides: Overrides, gathered: Gathered) -> None:
        self.path, self.parts, self.declare, self.overrides, self.gathered = path, parts, declare, overrides, gathered
        self.catalog, self.problems = parts.catalog, parts.problems
        self.flattener = Flattener(self.catalog, self.problems)
        self.place = gathered.layers[-1].place
        self.quick = overrides.quick
        self.epochs = QUICK_EPOCHS if overrides.quick and overrides.epochs is None else overrides.epochs
        self.uses: defaultdict[str, Uses] = defaultdict(Uses)
        """What values do, by the dataset or method with which they are written down again; under ``""`` all."""
        self.unsupported: list[tuple[Unsupported, Place]] = []
        """What cannot run, and the line of the user's that a refusal names."""

    def suite(self) -> Suite:
        """The resolved suite."""
        from harness.suite.cluster import read_cluster

        self._plugins()
        self.layers = self._layers()
        top, rows = self.layers.top, self.layers.rows
        protocol_name = top.get("protocol")
        protocol_name = protocol_name if isinstance(protocol_name, Leaf) else Leaf(DEFAULT_PROTOCOL, self.place)
        protocol = read_shipped("protocols", protocol_name, self.problems)
        usual = seeds_of(plain(protocol.entries["seeds"]))
        seeds = [int(seed) for seed in seeds_of(plain(top.get("seeds") or protocol.entries["seeds"]))]
        seeds = seeds[:1] if self.quick else seeds
        self.fewer = (f"seeds {len(seeds)} (protocol {len(usual)})",) if len(seeds) < len(usual) else ()
        self.search = Search(self.parts, top, quick=self.quick)
        settings = over(self.flattener.row("protocol", protocol), self.layers.settings)
        self.parts.model(settings)  # also where no dataset or method is sound
        all_methods = resolve_methods(rows.get("methods", {}), self.flattener)
        if self.quick:
            all_methods = [replace(method, flat=quick(method.flat, self.catalog)) for method in all_methods]
        methods = self._methods(all_methods)
        datasets = self._datasets(protocol)
        known = {"datasets": list(rows.get("datasets", {})), "methods": [method.label for method in all_methods]}
        declared = {dataset.label: dataset.declared for dataset in datasets}
        analyses = read_analyses(rows.get("analyses", {}), self.parts, datasets=declared, known=known)
        report = self._report(known["methods"], [method.row.label for method in methods])
        trackers = self._trackers()
        cluster = top.get("cluster")
        profile = read_cluster(cluster, self.problems) if isinstance(cluster, Table) else None
        suite_rows = self._rows(datasets, methods, len(seeds))
        if len(suite_rows) + len(self.unsupported) == len(known["datasets"]) * len(all_methods) and not self.quick:
            self._refuse_idle(all_methods)
        strict = bool(top.get("strict")) and plain(top.entries["strict"])
        for one, place in self.unsupported if strict or not suite_rows else ():
            self.problems.add(place, f"method '{one.method}': {one.component} {one.reason}")
        self.problems.check()
        tree: dict[str, Any] = {
            "bench": 1,
            "name": self._name(),
            "protocol": protocol_name.value,
            "seeds": list(seeds),
            "plugins": list(dict.fromkeys(str(plugin) for plugin, _ in self.gathered.plugins)),
            "budget": self.search.budget,
            "strict": strict or None,
            "tune": self.search.tune and vars(self.search.tune),
            "datasets": {dataset.label: self._written_dataset(dataset) for dataset in datasets},
            "methods": {method.row.label: self._written_method(method) for method in methods},
            "analyses": {
                spec.label: {"use": spec.component.name, **spec.component.params}
                | {name: list(getattr(spec, name)) for name in OWN if getattr(spec, name)}
                for spec in analyses
            },
            "trackers": [{"use": spec.name, **spec.params} for spec in trackers],
            "report": {key: value for key, value in vars(report).items() if value not in (None, False)},
        }
        return Suite(
            name=tree["name"],
            path=self.path,
            protocol=tree["protocol"],
            seeds=tuple(seeds),
            datasets=tuple(DatasetSpec(dataset.label, dataset.part.spec) for dataset in datasets),
            methods=tuple(method.row.label for method in methods),
            rows=suite_rows,
            unsupported=tuple(one for one, _ in self.unsupported),
            tune=self.search.tune,
            report=report,
            analyses=analyses,
            trackers=trackers,
            cluster=profile,
            plugins=tuple(map(Path, tree["plugins"])),
            files=self.gathered.digests(),
            overrides=self.overrides.texts(),
            departures=self.fewer,
            resolved={key: value for key, value in tree.items() if value not in (None, [], {})},
        )

    # What the file and the command line say

    def _plugins(self) -> None:
        broken = {Path(item.file).resolve(): item.reason for item in self.catalog.broken if item.file}
        for file, place in self.gathered.plugins:
            if file.resolve() in broken:
                self.problems.add(place, f"the plugin {file} could not be loaded: {broken[file.resolve()]}")

    def _layers(self) -> Layers:
        """The suite over what it includes, the command line over both."""
        from harness.suite.models import SUITE
        from harness.suite.validation import EXAMPLES, checked

        if "bench" not in self.gathered.layers[-1]:
            self.problems.add(self.place, "the key 'bench' is missing; a suite starts with 'bench: 1'")
        layers = Layers(self.flattener, Table(self.place))
        for table in self.gathered.layers:
            layers.lay(checked(SUITE, table, self.problems, "a suite")[0])
        for section in ("datasets", "methods"):
            if section not in layers.rows:
                message = f"the key '{section}' is missing; it is a table such as {EXAMPLES[section]}"
                self.problems.add(self.place, message)
        for table in self.overrides.tables(layers, self.problems):
            layers.lay(checked(SUITE, table, self.problems, "a suite")[0])
        for section in ("datasets", "analyses") if self.quick else ():
            for label, row in layers.rows.get(section, {}).items():
                layers.rows[section][label] = replace(row, flat=quick(row.flat, self.catalog))
        return layers

    def _name(self) -> str:
        name = self.layers.top.get("name")
        if name is not None:
            return str(plain(name))
        return re.sub(r"[^A-Za-z0-9._ -]", "-", self.path.stem).lstrip("._ -")[:100] or "suite"

    def _report(self, labels: list[str], taken: list[str]) -> ReportSettings:
        table = self.layers.top.table("report")
        values = plain(table)
        reference = values.get("reference")
        if reference is not None and reference not in labels and labels:
            hint = f"{did_you_mean(reference, labels)}; there are: {listed(labels)}"
            self.problems.add(table.entries["reference"].place, f"'reference' names no row: '{reference}'{hint}")
        reference = reference if reference in taken else None
        return ReportSettings(reference, values.get("published"), values.get("statistics", False))

    def _trackers(self) -> tuple[ComponentSpec, ...]:
        named = self.layers.top.get("trackers")
        trees = list(named.items) if isinstance(named, Items) else [named] if named else []
        trees += [Leaf(name, Place(f"--tracker {name}")) for name in self.overrides.trackers]
        parts = [self.parts.alone("tracker", self.flattener.component("tracker", tree)) for tree in trees]
        return tuple(part.spec for part in parts if part is not None)

    # Methods and datasets by themselves

    def _methods(self, methods: list[Method]) -> list[_Method]:
        families = {method.label: method.family for method in methods}
        taken = chosen(self.overrides.methods, list(families), "methods", self.problems, families.__getitem__)
        checked = [self._method(method) for method in methods]
        return [method for method in checked if method is not None and method.row.label in taken]

    def _method(self, method: Method) -> _Method | None:
        if self.epochs is not None:
            flat = {path: one for path, one in method.flat.items() if path != "train.epochs"}
            method = replace(method, flat=flat)
        before, flat = len(self.problems), method.flat
        found = {role: self.parts.component(role, flat) for role in ROLES if role in flat}
        parts = {role: part for role, part in found.items() if part is not None}
        pool = self.parts.pool(parts["encoder"], flat) if "encoder" in parts else ()
        envs = self.parts.component("envs", flat) if "envs" in flat else None
        sound = len(self.problems) == before and FAULTY not in flat
        return _Method(method, parts, pool, envs) if sound else None

    def _datasets(self, protocol: Table) -> list[_Dataset]:
        rows = self.layers.rows.get("datasets", {})
        taken = chosen(self.overrides.datasets, list(rows), "datasets", self.problems)
        found = [self._dataset(label, row, label in taken, protocol) for label, row in rows.items()]
        return [dataset for dataset in found if dataset is not None]

    def _dataset(self, label: str, row: WrittenRow, taken: bool, protocol: Table) -> _Dataset | None:
        if FAULTY in row.flat:
            return None
        if "dataset" not in row.flat:
            self.problems.add(row.place, f"dataset '{label}' has no component; write {{use: NAME, …}}")
            return None
        part = self.parts.alone("dataset", row.flat)
        if part is None or not taken:
            return None
        try:
            declared = self.declare(part.spec)
        except BenchError as error:
            told = "; ".join(str(error).splitlines())  # what to fetch has lines, a fault has one
            self.problems.add(part.place, f"dataset '{label}': {told}")
            return None
        family = protocol.table("families").table(str(part.entry.traits.get("family", "")))
        settings: Flat = {}
        for table in (protocol, family):
            settings = over(settings, self.flattener.row("protocol", table))
        usual = {path: plain(one.value) for path, one in settings.items()}
        for flat in (self.layers.settings, sections(row.flat), self._epochs()):
            settings = over(settings, flat)
        envs = {path: one for path, one in row.flat.items() if path.partition(".")[0] == "envs"}
        environment = self.parts.component("envs", envs) if envs else None
        return None if envs and not environment else _Dataset(label, part, declared, usual, settings, environment)

    def _epochs(self) -> Flat:
        place = Place(f"--epochs {self.epochs}")
        return {} if self.epochs is None else {"train.epochs": Decision(Leaf(self.epochs, place), place)}

    # Methods on datasets

    def _rows(self, datasets: list[_Dataset], methods: list[_Method], seeds: int) -> tuple[Row, ...]:
        rows: list[Row] = []
        count, pairs = len(datasets) * len(methods) * seeds, product(datasets, methods)
        while count <= MAX_CELLS and (pair := next(pairs, None)):
            row = self._row(*pair)
            if row is not None:
                rows.append(row)
                count += seeds * (len(row.configurations) + row.pending - 1)
        if count > MAX_CELLS:
            message = f"the suite has {count:,} cells or more; at most {MAX_CELLS:,} are allowed"
            self.problems.add(self.place, message)
        return tuple(rows)

    def _row(self, dataset: _Dataset, method: _Method) -> Row | None:
        before, label = len(self.problems), method.row.label
        settings = over(dataset.settings, sections(method.row.flat))
        pair = Pair(label, method.row.place, dataset.label, dataset.declared, self.problems)
        environment = self._environment(pair, dataset, method)
        model, train = self.parts.model(settings), TrainSettings(**self.parts.values(TRAIN, under(settings, "train")))
        select = SelectSettings(**self.parts.values(SELECT, under(settings, "select")))
        check_split(pair, select, settings)
        parts = {**method.parts, **({"envs": environment} if environment else {})}
        if model is None or len(self.problems) > before:
            return None
        if lacking := unsupported(pair, parts.values()):
            part, reason = lacking
            place = part.place if not part.place.line or part.place.file == self.parts.own else method.row.place
            one = Unsupported(dataset.label, label, f"{part.entry.kind} '{part.entry.name}'", reason)
            self.unsupported.append((one, place))
            return None
        facts = facts_of(dataset.declared, environment.entry if environment else None)
        decisions = {**(environment.written if environment else {}), **settings, **method.row.flat}
        base = Base({**parts, "model": model[0]}, method.pool, model[1], train, decisions, facts)
        uses, named = base.uses, method.row.flat.get("envs")
        if named and environment:
            uses.active.add((named.place, "envs"))
        elif named:
            name = f"{method.learner.entry.kind} '{method.learner.entry.name}'"
            uses.idle[named.place, "envs"] = Idle("", f"'envs' has no meaning with {name}, which takes none")
        found = self.search.configurations(method.row.flat, base)
        for owner in ("", f"datasets.{dataset.label}", f"methods.{label}"):
            self.uses[owner].add(uses)
        if found is None:
            return None
        check_number(pair, environment, settings, found.possible, self.catalog)
        tuned, first = tuple(sorted({path for one in found.known for path in one.values})), found.known[0]
        usual = self.catalog.get("backbone", first.model.backbone.name).defaults
        departures = departures_from({**usual, **dataset.protocol}, first, facts)
        return Row(label, dataset.label, found.known, select, tuned, departures, found.pending, found.ask)

    def _environment(self, pair: Pair, dataset: _Dataset, method: _Method) -> Part | None:
        learner, traits = method.learner, method.learner.entry.traits
        infers = any(stage.get("kind") == "environment" for stage in traits.get("upstream", {}).values())
        if infers or "environments" not in traits.get("needs", ()):
            return None
        given, default = method.environment, traits.get("default_environment")
        if given is None and default:
            given = self.parts.component("envs", self.flattener.component("envs", Leaf(default, learner.place)))
            if given is None:
                return None  # the problem is noted
        elif given is None:
            given = dataset.environment
        return supplied_environment(pair, learner, given, self.catalog)

    def _refuse_idle(self, methods: list[Method]) -> None:
        """Refuse values without effect, where no row was left out that could have a use for them."""
        own, general = self.parts.own, self.layers.settings
        self.uses[""].refuse(self.problems, own, spared=general)
        for method in methods:
            self.uses[f"methods.{method.label}"].refuse(self.problems, own, spared=general, among=method.swept)

    # The suite as one self-contained file: no includes, copies, matrices or defaults from elsewhere

    def _written_dataset(self, dataset: _Dataset) -> dict[str, Any]:
        """A dataset with all its settings, so that no protocol is needed to read it, but those without effect."""
        settings = self.uses[f"datasets.{dataset.label}"].kept(dataset.settings)
        envs = {"envs": _written_part(dataset.environment)} if dataset.environment else {}
        return {**_written_part(dataset.part), **written(settings), **envs}

    def _written_method(self, method: _Method) -> dict[str, Any]:
        """A method without copies, matrices, and values without effect."""
        flat = self.uses[f"methods.{method.row.label}"].kept(method.row.flat)
        envs = {"envs": _written_part(method.environment)} if method.environment and "envs" in flat else {}
        if method.environment and not envs:
            flat = {path: one for path, one in flat.items() if not path.startswith("envs.")}
        return {**written(flat), **envs}


def _written_part(part: Part) -> dict[str, Any]:
    return {"use": part.spec.name, **effective(part.entry.hparams, part.spec.params)[0]}
