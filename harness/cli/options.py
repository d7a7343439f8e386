"""Options that several commands share, each declared once, and the groups of options that commands take."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness.cli.completion import complete_runs, complete_suites, complete_trackers
from harness.cli.output import FORMATS, note
from harness.errors import UserError

if TYPE_CHECKING:
    from harness.engine import EngineOptions
    from harness.registry.catalog import Catalog
    from harness.results.run_record import RunRecord
    from harness.run.session import Options
    from harness.store import Store
    from harness.suite.spec import ComponentSpec

Commands = Mapping[str, Callable[..., None]]
"""Name on the command line -> function."""

_BYTES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "ki": 2**10, "mi": 2**20, "gi": 2**30}
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}


def parse_bytes(text: str) -> int:
    """Return the bytes of ``4G``, ``500M``, ``2GiB`` or a plain number; for typer."""
    return int(
        _amount(text, _BYTES | {f"{unit}b": size for unit, size in _BYTES.items()}, "no size; write 4G, 500M or 2GiB")
    )


def parse_seconds(text: str) -> float:
    """Return the seconds of ``90``, ``90s``, ``15m``, ``2h`` or ``30d``; for typer."""
    return _amount(text, _SECONDS, "no time; write 90 (seconds), 15m, 2h or 30d")


def _amount(text: str, units: Mapping[str, int], refusal: str) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d*)?)\s*([a-z]*)", str(text).strip().lower())
    if found is None or found[2] not in units:
        raise typer.BadParameter(f"'{text}' is {refusal}")
    return float(found[1]) * units[found[2]]


Suite = Annotated[
    str,
    typer.Argument(
        help="A suite file, or the name of an installed suite.", metavar="SUITE", autocompletion=complete_suites
    ),
]
CellOrSuite = Annotated[
    str,
    typer.Argument(
        help="Id of a cell, as the HTML report shows it, or a suite: its first cell that fits.",
        metavar="CELL|SUITE",
        autocompletion=complete_suites,
    ),
]
Run = Annotated[
    str,
    typer.Argument(
        help="A suite (its latest complete run, else the latest) or a run's id.",
        metavar="SUITE|RUN",
        autocompletion=complete_runs,
    ),
]
StoreDir = Annotated[
    Path | None,
    typer.Option("--store", envvar="BENCH_STORE", help="Folder of cached results.", show_default="the user's cache"),
]
DataDir = Annotated[
    Path | None,
    typer.Option(
        "--data-dir", envvar="BENCH_DATA", help="Folder of data files.", show_default="data in the user's cache"
    ),
]
Seeds = Annotated[str | None, typer.Option("--seeds", help="Training seeds instead of the suite's, e.g. 1,2,3.")]
Epochs = Annotated[int | None, typer.Option("--epochs", help="Training epochs of every method.")]
Sets = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change any value; repeatable.")]
Datasets = Annotated[
    list[str] | None, typer.Option("--datasets", metavar="GLOB", help="Only these datasets; repeatable.")
]
Methods = Annotated[list[str] | None, typer.Option("--methods", metavar="GLOB", help="Only these methods; repeatable.")]
Trackers = Annotated[
    list[str] | None,
    typer.Option(
        "--tracker", metavar="NAME", help="Tell this tool of the run; repeatable.", autocompletion=complete_trackers
    ),
]
Plugins = Annotated[list[Path] | None, typer.Option("--plugin", metavar="FILE", help="A plugin file; repeatable.")]
RetryFailed = Annotated[bool, typer.Option("--retry-failed", help="Run stored failures again.")]
Strict = Annotated[bool, typer.Option("--strict", help="A plugin that cannot be loaded is an error.")]
Format = Annotated[
    str | None,
    typer.Option("--format", "-f", help=", ".join(FORMATS), show_default="by the file's ending, else terminal"),
]
OutputFile = Annotated[
    Path | None, typer.Option("--output", "-o", help="Write to a file; its ending chooses the format.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]

Device = Annotated[
    str,
    typer.Option(
        "--device",
        metavar="auto|cpu|cuda|cuda:0,cuda:1",
        help="Where networks are trained; auto: every GPU, else the CPU.",
    ),
]
Jobs = Annotated[int | None, typer.Option("--jobs", "-j", help="Worker processes.", show_default="cores")]
Engine = Annotated[str, typer.Option("--engine", help="processes, inline, or dask (more machines; for `bench run`).")]
JobsPerDevice = Annotated[
    int | None, typer.Option("--jobs-per-device", metavar="N", help="Stages at a time on each GPU.", show_default="2")
]


@dataclass(frozen=True)
class Sources:
    """The options of a command that reads data files and plugin files."""

    data_dir: DataDir = None
    plugin: Plugins = None

    def catalog(self) -> Catalog:
        """Return the components that are registered, those of the plugin files among them."""
        from harness.registry.index import load_catalog

        return load_catalog(self.plugin or ())

    def data_folder(self, *, made: bool = False) -> Path:
        """Return the folder of data files; it must exist if it is named, unless the command makes it (``made``).

        Raises:
            UserError: the named folder is a file, or does not exist.
        """
        from harness.store import data_folder

        return data_folder(self.data_dir, "--data-dir or BENCH_DATA", made=made)


@dataclass(frozen=True)
class Folders(Sources):
    """The options of a command that reads the store too."""

    store: StoreDir = None

    def open_store(self) -> Store:
        """Return the store of cached results."""
        from harness.store import Store

        return Store(self.store)

    def session(
        self,
        chosen: SuiteOptions | None = None,
        trackers: Sequence[str] = (),
        *,
        tell: Callable[[str], None] = lambda _: None,
        quick: bool = False,
    ) -> Options:
        """Return the options of :func:`harness.run.session.open_session`."""
        from harness.run.session import Options
        from harness.suite import Overrides

        given = {name: value for name, value in vars(chosen or SuiteOptions()).items() if value is not None}
        strict = given.pop("strict")
        overrides = Overrides(**given, quick=quick, trackers=trackers)
        return Options(self.store, self.data_folder(), overrides, tuple(self.plugin or ()), strict, tell)


@dataclass(frozen=True)
class SuiteOptions:
    """The options that change or narrow a suite."""

    seeds: Seeds = None
    epochs: Epochs = None
    sets: Sets = None
    datasets: Datasets = None
    methods: Methods = None
    strict: Strict = False


@dataclass(frozen=True)
class Workers:
    """The options that say where and by how many processes stages are run."""

    jobs: Jobs = None
    engine: Engine = "processes"
    device: Device = "cpu"
    jobs_per_device: JobsPerDevice = None

    def options(self, **more: Any) -> EngineOptions:
        """Return the options of :func:`harness.run.execute.execute`; ``more`` are those of one command alone."""
        from harness.engine import EngineOptions

        return EngineOptions(**vars(self), **more)


def register(app: typer.Typer, commands: Commands) -> None:
    """Register functions as commands of an application, with their groups of options expanded."""
    for name, function in commands.items():
        app.command(name)(_with_groups(function))


def _with_groups(function: Callable[..., None]) -> Callable[..., None]:
    """Return a command whose parameters stand for options: each group of options is replaced by its fields.

    A group is a dataclass such as :class:`Folders`; the function is called with an object of it.
    """
    signature = inspect.signature(function, eval_str=True)
    groups: dict[str, Any] = {
        name: parameter.annotation
        for name, parameter in signature.parameters.items()
        if is_dataclass(parameter.annotation)
    }
    parameters: list[inspect.Parameter] = []
    for name, parameter in signature.parameters.items():
        of_group = inspect.signature(groups[name], eval_str=True).parameters.values() if name in groups else [parameter]
        parameters += [item.replace(kind=item.KEYWORD_ONLY) for item in of_group]

    @wraps(function)
    def command(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in fields(group)})
        function(**values)

    command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


def stored_run(name: str, store: Path | None) -> tuple[RunRecord, Store]:
    """Return the run that a suite's name or file or an id means, and its store."""
    from harness.run.find import find_run
    from harness.store import Store

    opened = Store(store)
    return find_run(name, opened, note), opened


def one_device(text: str) -> str:
    """Return the device of a command that runs in this process.

    Raises:
        UserError: no such device, or several.
    """
    from harness.engine.devices import CPU, choose_devices

    devices = choose_devices(text)
    if len(devices) > 1:
        raise UserError(f"--device {text}: this command uses one device, not {len(devices)}; write {devices[0]}")
    return devices[0] if devices else CPU


def component(catalog: Catalog, kind: str, name: str, sets: Sequence[str] | None) -> ComponentSpec:
    """Return a component with the hyperparameters that ``--set`` gives it; paths start at the current folder.

    Raises:
        UserError: an unknown name, or a value that does not fit.
    """
    from harness.suite.components import Parts
    from harness.suite.layers import Flattener, read_sets
    from harness.suite.tree import Leaf, Place, Problems

    problems = Problems()
    flat = Flattener(catalog, problems).component(kind, Leaf(name, Place("")))
    flat |= read_sets(sets or (), problems, f"{kind}.")
    part = Parts(catalog, problems).component(kind, flat)
    problems.check()
    assert part is not None  # otherwise there is a problem
    return part.spec
