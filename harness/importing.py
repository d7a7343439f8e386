"""Imports a plugin's modules, whatever they do, and tells their authors what went wrong."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

from harness.source import absolute_names, closure

PACKAGE = "plugins"
SINGLE = "bench_plugin_"
_SETTLED = 2.0


class PluginError(ImportError):
    """A plugin cannot be loaded; the text says why, for its author."""


@lru_cache(maxsize=1)
def plugins_folder() -> Path:
    """Our ``plugins`` package is installed beside ``harness``, whatever else has that name."""
    return Path(__file__).resolve().parent.parent / PACKAGE


def find_spec(name: str) -> ModuleSpec | None:
    """How a top-level name is imported, or None."""
    try:
        return importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None


def single_package(folder: Path) -> str:
    """The package that stands for a folder of single-file plugins, the same in every process."""
    return f"{SINGLE}{hashlib.sha256(str(folder).encode()).hexdigest()[:10]}"


def import_plugin(name: str, file: Path, single: Path | None, roots: Mapping[str, Path] | None = None) -> ModuleType:
    """Import a module of a plugin, whatever it does.

    Args:
        single: the plugin, where it is a single file; its neighbours are then checked if ``roots`` are given.
    """
    try:
        if single is not None and roots is not None:
            _check_neighbours(file, roots)
        return _import_module(name, file, single)
    except PluginError:
        raise
    except SystemExit as error:
        raise PluginError(f"it called sys.exit({error.code!r}) while being imported") from None
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a plugin may raise one of its own
        raise PluginError(f"importing it raised {told(error, file)}") from None


def _import_module(name: str, file: Path, single: Path | None) -> ModuleType:
    """Import a module of a plugin; for a single file, its folder becomes a package and the last place to look."""
    if single is not None:
        package = single_package(single.parent)
        if package not in sys.modules:
            module = ModuleType(package)
            module.__path__ = [str(single.parent)]
            sys.modules[package] = module
        if str(single.parent) not in sys.path:
            sys.path.append(str(single.parent))
    elif name.split(".", maxsplit=1)[0] == PACKAGE:
        _check_package()
    built_in = file.is_relative_to(plugins_folder())
    with _sure_bytecode(plugins_folder().rglob("*.py") if built_in else file.parent.glob("*.py")):
        return importlib.import_module(name)


@contextmanager
def _sure_bytecode(files: Iterable[Path]) -> Iterator[None]:
    """Cache no bytecode while one of a plugin's files was edited in the last moments.

    Python takes cached bytecode for current where the source has the same size and second of modification: an edit
    made right after a run would go unnoticed from then on, and old code would work under the new code's key.
    """
    before = sys.dont_write_bytecode
    sys.dont_write_bytecode = before or any(map(_young, files))
    try:
        yield
    finally:
        sys.dont_write_bytecode = before


def _young(file: Path) -> bool:
    try:
        return time.time() - file.stat().st_mtime < _SETTLED
    except OSError:
        return True


def _check_package() -> None:
    spec = find_spec(PACKAGE)
    places = [] if spec is None else [Path(place).resolve() for place in spec.submodule_search_locations or ()]
    if places[:1] != [plugins_folder()]:
        raise PluginError(
            f"another package called '{PACKAGE}' ({places[0] if places else 'a module'}) hides ours "
            f"({plugins_folder()}); run from another folder or correct PYTHONPATH"
        )


def _check_neighbours(file: Path, roots: Mapping[str, Path]) -> None:
    """Refuse an absolute import of a file beside a plugin whose name leads elsewhere."""
    folder = file.parent
    beside = {name for name, base in roots.items() if base == folder and name != PACKAGE}
    for name in sorted(beside & {top for path in closure(file, roots) for top in absolute_names(path)}):
        spec = find_spec(name)
        if spec is not None and folder not in Path(spec.origin or "").resolve().parents:
            raise PluginError(
                f"it imports '{name}', meant as the file beside it, but that name belongs to "
                f"{spec.origin or 'Python itself'}: write `from .{name} import …` or rename the file"
            )


def told(error: BaseException, file: Path) -> str:
    """Type and text of an error, with the last line inside the plugin's own file."""
    if isinstance(error, SyntaxError):
        name = Path(error.filename).name if error.filename else file.name
        return f"{type(error).__name__}: {error.msg} ({name}, line {error.lineno})"
    trace, line = error.__traceback__, None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(file):
            line = trace.tb_lineno
        trace = trace.tb_next
    return f"{type(error).__name__}: {error}" + (f" ({file.name}, line {line})" if line else "") + lacking(error)


def lacking(error: BaseException) -> str:
    """What to do about a package that is not installed; empty for any other error."""
    if isinstance(error, ModuleNotFoundError) and error.name:
        return f"; install the package that provides '{error.name.split('.')[0]}'"
    return ""
