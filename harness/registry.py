"""Finds plugins and loads them with pluggy; a broken one is described and does not break the others."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

import pluggy

from harness import hooks
from harness.catalog import Entry
from harness.component import KINDS, Component
from harness.errors import UserError

BUILT_IN = "built-in"
GROUP = "equad_bench"
_SINGLE = "bench_plugin_"


class PluginError(Exception):
    """A plugin cannot be loaded; the text says why, for its author."""


@dataclass(frozen=True)
class Source:
    """Where a plugin is.

    Attributes:
        plugin: what people call it: ``built-in``, a distribution's name, or the path of a file.
        module: its importable name.
        file: its source file.
        base: the folder that holds its top-level package, or the file itself.
    """

    plugin: str
    module: str
    file: Path
    base: Path

    @property
    def single(self) -> bool:
        """Whether it is one file named by a suite or on the command line."""
        return self.module.startswith(_SINGLE)


def built_in_sources() -> list[Source]:
    """The modules of the ``plugins`` package, one component file each."""
    spec = importlib.util.find_spec("plugins")
    assert spec is not None
    assert spec.submodule_search_locations
    root = Path(next(iter(spec.submodule_search_locations))).resolve()
    files = sorted(path for path in root.glob("*/*.py") if not path.name.startswith("_"))
    return [Source(BUILT_IN, f"plugins.{path.parent.name}.{path.stem}", path, root.parent) for path in files]


def distribution_sources() -> tuple[list[Source], dict[str, str]]:
    """Plugins of installed distributions, and for those whose module is nowhere, the reason by name."""
    found, missing = [], {}
    for point in sorted(entry_points(group=GROUP), key=lambda item: (item.name, item.value)):
        name = point.dist.name if point.dist is not None else point.name
        place = _locate(point.module)
        if place is None:
            missing[name] = f"its entry point '{point.name}' names the module '{point.module}', which is not there"
        else:
            found.append(Source(name, point.module, *place))
    return found, missing


def _locate(module: str) -> tuple[Path, Path] | None:
    """File and base folder of a module, found without importing its package."""
    top, *rest = module.split(".")
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return None
    if spec is None or spec.origin is None:
        return None
    if not rest and not spec.submodule_search_locations:
        return Path(spec.origin).resolve(), Path(spec.origin).resolve().parent
    for location in spec.submodule_search_locations or ():
        folder = Path(location).resolve().joinpath(*rest)
        for candidate in (folder.with_suffix(".py"), folder / "__init__.py"):
            if candidate.is_file():
                return candidate, Path(location).resolve().parent
    return None


def file_source(path: Path) -> Source:
    """A plugin that is one file.

    Raises:
        UserError: there is no such file.
    """
    resolved = path.resolve()
    if not resolved.is_file():
        raise UserError(f"plugin file {path} does not exist")
    digest = hashlib.sha256(str(resolved).encode()).hexdigest()[:10]
    return Source(str(path), f"{_SINGLE}{digest}_{resolved.stem}", resolved, resolved.parent)


def load_source(source: Source) -> list[type[Component]]:
    """Import one plugin and collect what it registers.

    Raises:
        PluginError: whatever goes wrong, in words for its author.
    """
    module = _import(source)
    _check_names(module)
    manager = pluggy.PluginManager(hooks.PROJECT)
    manager.add_hookspecs(hooks)
    found: list[type[Component]] = []
    try:
        manager.register(module, source.module)
        manager.check_pending()
        manager.hook.bench_register(register=found.append)
    except pluggy.PluginValidationError as error:
        raise PluginError(f"{error}; the hooks are: {', '.join(_hook_names())}") from None
    except SystemExit as error:
        raise PluginError(f"it called sys.exit({error.code!r}) while registering") from None
    except Exception as error:
        raise PluginError(f"registering raised {type(error).__name__}: {error}") from None
    if not found:
        raise PluginError("it registers nothing: decorate `def bench_register(register)` with @hookimpl and call register")
    for component in found:
        _check_component(component)
    return found


def _import(source: Source) -> ModuleType:
    try:
        return _import_file(source) if source.single else importlib.import_module(source.module)
    except SystemExit as error:
        raise PluginError(f"it called sys.exit({error.code!r}) while being imported") from None
    except Exception as error:
        raise PluginError(f"importing it raised {_where(error, source.file)}") from None


def _where(error: Exception, file: Path) -> str:
    """Type, text and the last line inside the plugin's own file."""
    trace = error.__traceback__
    line = None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(file):
            line = trace.tb_lineno
        trace = trace.tb_next
    if isinstance(error, SyntaxError):
        line = error.lineno
    return f"{type(error).__name__}: {error}" + (f" ({file.name}, line {line})" if line else "")


def _import_file(source: Source) -> ModuleType:
    if source.module in sys.modules:
        return sys.modules[source.module]
    spec = importlib.util.spec_from_file_location(source.module, source.file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[source.module] = module
    try:
        with _on_path(source.file.parent):
            spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[source.module]
        raise
    return module


@contextmanager
def _on_path(folder: Path) -> Iterator[None]:
    """Let a single file import its neighbours."""
    sys.path.append(str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))


def _hook_names() -> list[str]:
    return [name for name, value in vars(hooks).items() if hasattr(value, f"{hooks.PROJECT}_spec")]


def _check_names(module: ModuleType) -> None:
    """Find hooks that pluggy would pass over in silence."""
    for name, value in vars(module).items():
        if name.startswith("bench_") and inspect.isfunction(value) and not hasattr(value, f"{hooks.PROJECT}_impl"):
            raise PluginError(f"its function '{name}' is not decorated: put @hookimpl (from harness) above it")


def _check_component(component: Any) -> None:
    if not (inspect.isclass(component) and issubclass(component, Component)):
        raise PluginError(f"it registers {component!r}, which is not a component class")
    if component.kind not in KINDS:
        raise PluginError(f"{component.__name__} derives from no kind's base class (Baseline, Encoder, Dataset …)")
    if not isinstance(component.name, str) or not component.name:
        raise PluginError(f"{component.__name__} has no name: set `name = \"…\"` on the class")


def refuse_duplicates(entries: Iterable[Entry]) -> None:
    """Refuse two components of one kind and name.

    Raises:
        UserError: names both plugins.
    """
    seen: dict[tuple[str, str], Entry] = {}
    for entry in entries:
        other = seen.setdefault((entry.kind, entry.name), entry)
        if other is not entry:
            raise UserError(
                f"two plugins register the {entry.kind} '{entry.name}': {other.plugin} ({other.file}) and "
                f"{entry.plugin} ({entry.file}); rename one of them"
            )


def load_one(entry: Entry) -> type[Any]:
    """Import the class of one component, and nothing else.

    Raises:
        UserError: it is no longer where the index found it.
    """
    file = Path(entry.file)
    source = Source(entry.plugin, entry.module, file, file.parent)
    try:
        found: Any = _import(source)
        for part in entry.qualname.split("."):
            found = getattr(found, part)
    except (PluginError, AttributeError) as error:
        raise UserError(f"{entry.kind} '{entry.name}' of {entry.plugin} cannot be loaded: {error}") from None
    return found  # type: ignore[no-any-return]


def all_sources(files: Sequence[Path] = ()) -> tuple[list[Source], dict[str, str]]:
    """Every plugin there is, and what is known to be broken before anything is imported."""
    installed, missing = distribution_sources()
    return [*built_in_sources(), *installed, *(file_source(path) for path in dict.fromkeys(files))], missing
