"""Finds plugins and loads them with pluggy; a broken one is described and does not break the others."""

from __future__ import annotations

import inspect
import os
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from harness.component import BUILT_IN, KINDS, Component
from harness.errors import UserError
from harness.registry.catalog import Entry
from harness.registry.core_files import PLUGINS
from harness.registry.importing import (
    PACKAGE,
    SINGLE,
    PluginError,
    author_errors,
    import_plugin,
    locate,
    single_package,
)
from harness.registry.planned_code import KeptCode, planned_code
from harness.registry.source_digest import Code, read_code
from harness.safe_io import no_plugin_file

GROUP = "equad_bench"
NO_PLUGINS = "BENCH_NO_PLUGINS"
"""Environment variable: if set, only our plugins and those that the command line names are loaded."""
_HOOK = "bench_register"
_NAME = re.compile(r"\w[\w.+-]*")


@dataclass(frozen=True)
class Source:
    """The location of a plugin.

    Attributes:
        plugin: its name for people: ``built-in``, a distribution's name, or the absolute path of a file.
        module: its importable name.
        file: its source file.
        base: the folder that holds its top-level package or module.
    """

    plugin: str
    module: str
    file: Path
    base: Path

    @property
    def single(self) -> bool:
        """True for a single file that a suite or the command line names."""
        return self.module.startswith(SINGLE)

    def roots(self) -> dict[str, Path]:
        """Return the top-level names whose modules count as its own code -> the folder that holds them.

        A distribution's package, the files and folders beside a single file, and our ``plugins`` for all.
        """
        if self.single:
            beside = {path.stem for path in self.base.glob("*.py")} | {path.name for path in self.base.glob("*/")}
            own = dict.fromkeys(sorted(beside), self.base)
        else:
            own = {self.module.split(".")[0]: self.base}
        return {**own, PACKAGE: PLUGINS.parent}

    def code(self) -> Code:
        """Read the plugin's code as it is now.

        Raises:
            SyntaxError, OSError: a file cannot be read.
        """
        return read_code(self.file, self.roots())


def built_in_sources() -> list[Source]:
    """Return the modules of our ``plugins`` package: the files below a kind's folder without a leading underscore."""
    files = {path: path.relative_to(PLUGINS).with_suffix("").parts for path in sorted(PLUGINS.glob("*/**/*.py"))}
    return [
        Source(BUILT_IN, ".".join((PACKAGE, *names)), path, PLUGINS.parent)
        for path, names in files.items()
        if not any(name.startswith("_") for name in names)
    ]


def distribution_sources() -> tuple[list[Source], dict[str, str]]:
    """Return the plugins of installed distributions, and name -> reason of those whose module is missing."""
    from importlib.metadata import entry_points

    sources, missing = [], {}
    for point in sorted(entry_points(group=GROUP), key=lambda item: (item.name, item.value)):
        name = point.dist.name if point.dist is not None else point.name
        place = locate(point.module)
        if point.attr or place is None:
            missing[name] = f"its entry point '{point.name}' names '{point.value}', which is no module that is there"
        else:
            sources.append(Source(name, point.module, *place))
    return list(dict.fromkeys(sources)), missing


def file_source(path: Path) -> Source:
    """Return the plugin that is one file.

    Raises:
        UserError: there is no such file, or its name cannot be a module's.
    """
    file = path.resolve()
    if why := no_plugin_file(file):
        raise UserError(f"plugin file {why}: {file}")
    return Source(str(file), f"{single_package(file.parent)}.{file.stem}", file, file.parent)


def all_sources(files: Sequence[Path] = ()) -> tuple[list[Source], dict[str, str]]:
    """Return every plugin, and name -> reason of those that are known to be broken before any import.

    A file that is already there as a built-in or installed plugin, or is named twice, counts once.

    Raises:
        UserError: a named file does not exist.
    """
    installed, missing = distribution_sources()
    sources = {source.file: source for source in [*built_in_sources(), *installed]}
    for path in files:
        named = file_source(path)
        sources.setdefault(named.file, named)
    return list(sources.values()), missing


def plugins_off() -> bool:
    """Return True if :data:`NO_PLUGINS` asks for our own plugins alone."""
    return os.environ.get(NO_PLUGINS, "").strip().lower() not in ("", "0", "false", "no")


def allowed(sources: Sequence[Source], named: Iterable[Path]) -> tuple[list[Source], tuple[str, ...]]:
    """Return the plugins that may be loaded, and the names of those that :data:`NO_PLUGINS` withholds.

    Args:
        named: files that the command line names: who names one wants it.
    """
    if not plugins_off():
        return list(sources), ()
    wanted = {path.resolve() for path in named}
    kept = [source for source in sources if source.plugin == BUILT_IN or source.file in wanted]
    return kept, tuple(dict.fromkeys(source.plugin for source in sources if source not in kept))


def load_source(source: Source, code: Code | None = None) -> list[type[Component]]:
    """Import one plugin and collect what it registers.

    Args:
        code: its code where it has been read already.

    Raises:
        PluginError: whatever goes wrong, in words for its author.
    """
    with author_errors("importing it", source.file):
        code = code or source.code()
    module = import_plugin(source.module, code, source.base if source.single else None)
    components = _registered(module, source)
    for component in components:
        _check_component(component)
    names = [f"{component.kind} '{component.name}'" for component in components]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise PluginError(f"it registers the {twice} twice")
    return components


def _registered(module: ModuleType, source: Source) -> list[type[Component]]:
    import pluggy

    from harness import hooks

    _check_hooks(module)
    manager = pluggy.PluginManager(hooks.PROJECT)
    manager.add_hookspecs(hooks)
    components: list[type[Component]] = []

    def register(component: type[Component], /) -> None:
        components.append(component)

    with author_errors("registering", source.file):
        manager.register(module, source.module)
        manager.check_pending()
        manager.hook.bench_register(register=register)
    if not components:
        raise PluginError(
            "it registers nothing: write a function `bench_register(register)` under @hookimpl that calls "
            "register(Class); a helper module's file name starts with an underscore"
        )
    return components


def _check_hooks(module: ModuleType) -> None:
    """Find hooks that pluggy would pass over in silence, and misspelt ones."""
    from harness import hooks

    for name, value in vars(module).items():
        marked = hasattr(value, f"{hooks.PROJECT}_impl")
        line = f"line {value.__code__.co_firstlineno}" if inspect.isfunction(value) else ""
        if line and name != _HOOK and (marked or name.startswith(f"{hooks.PROJECT}_")):
            raise PluginError(f"{line}: there is no hook '{name}'; the hook is {_HOOK}(register)")
        if line and name == _HOOK and not marked:
            raise PluginError(f"{line}: its function '{name}' is not decorated: put @hookimpl (from harness) above it")


def _check_component(component: Any) -> None:
    if not (inspect.isclass(component) and issubclass(component, Component)):
        raise PluginError(f"it registers {component!r}, which is not a component class")
    if component.kind not in KINDS:
        raise PluginError(f"{component.__name__} derives from no kind's base class (Baseline, Encoder, Dataset …)")
    if not _NAME.fullmatch(str(component.name)):
        raise PluginError(
            f'{component.__name__} has no name that can be used: set `name = "…"` on the class, of letters, digits and '
            f"- _ . +, not {component.name!r}"
        )
    if _attribute(sys.modules.get(component.__module__), component.__qualname__) is not component:
        raise PluginError(f"{component.__qualname__} must be defined at the top of its module, where workers find it")


def _attribute(owner: Any, qualname: str) -> Any:
    for part in qualname.split("."):
        owner = getattr(owner, part, None)
    return owner


def origin(plugin: str, file: str) -> str:
    """Return a plugin with its file, once if it is its file or has none."""
    return plugin if file in ("", plugin) else f"{plugin} ({file})"


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
                f"two plugins register the {entry.kind} '{entry.name}': {origin(other.plugin, other.file)} and "
                f"{origin(entry.plugin, entry.file)}; rename one of them"
            )


def load_one(entry: Entry, kept: KeptCode = KeptCode()) -> type[Any]:  # noqa: B008 - it is frozen
    """Import the class of one component, and nothing else; from the files that the entry names, as they were then.

    Args:
        kept: what a run keeps of code, for files that have changed since.

    Raises:
        ChangedError: a file has changed since.
        UserError: it is no longer where the index found it.
    """
    try:
        module = import_plugin(entry.module, planned_code(entry, kept), entry.folder)
        component = _attribute(module, entry.qualname)
        if component is None or (component.kind, component.name) != (entry.kind, entry.name):
            raise PluginError(f"{entry.module} has no such class any more")
    except PluginError as error:
        raise UserError(f"{entry.kind} '{entry.name}' of {entry.plugin} cannot be loaded: {error}") from error
    return component  # type: ignore[no-any-return]
