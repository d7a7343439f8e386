"""Import a plugin's modules, whatever they do, and report faults to their authors.

The bytes that run are those that were hashed: a plugin's files are read once, and modules are made of these bytes, also
if one is imported later, within a function. No bytecode is read: it may belong to another content.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

from harness.errors import bounded
from harness.registry.core_files import PLUGINS, is_as_at_start
from harness.registry.source_digest import Code

PACKAGE = PLUGINS.name
SINGLE = "bench_plugin_"


class PluginError(ImportError):
    """A plugin cannot be loaded; the text says why, for its author."""


@contextmanager
def author_errors(doing: str, file: Path) -> Iterator[None]:
    """Turn whatever a plugin raises into a :class:`PluginError`.

    Args:
        doing: the words before the error, such as ``importing it``.
        file: the plugin's file.
    """
    try:
        yield
    except (PluginError, KeyboardInterrupt):
        raise
    except BaseException as error:  # a plugin may call sys.exit(), or raise one of its own
        raise PluginError(f"{doing} raised {told(error, file)}") from None


def find_spec(name: str) -> ModuleSpec | None:
    """Return the spec of a top-level name, or None."""
    try:
        return importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None


def locate(module: str) -> tuple[Path, Path] | None:
    """Return file and base folder of a module without importing its package; None if there is no such module."""
    top, *rest = module.split(".")
    spec = find_spec(top)
    if spec is None:
        return None
    if spec.submodule_search_locations is None:
        file = Path(spec.origin or "")
        return (file.resolve(), file.resolve().parent) if not rest and file.is_file() else None
    for location in spec.submodule_search_locations:
        folder = Path(location).resolve().joinpath(*rest)
        for candidate in (folder.with_name(f"{folder.name}.py"), folder / "__init__.py"):
            if candidate.is_file():
                return candidate, Path(location).resolve().parent
    return None


def single_package(folder: Path) -> str:
    """Return the name of the package of a folder of single-file plugins, the same in every process."""
    return f"{SINGLE}{hashlib.sha256(str(folder).encode()).hexdigest()[:10]}"


def import_plugin(name: str, code: Code, single: Path | None) -> ModuleType:
    """Import a module of a plugin, whatever it does.

    Args:
        code: the module's file, and the plugin's files as they were read: those that are loaded with another content
            are loaded anew, with all that may have imported them.
        single: the folder of the plugin, where that is a single file; it becomes a package.
    """
    if single is not None and (package := single_package(single)) not in sys.modules:
        sys.modules[package] = ModuleType(package)
        sys.modules[package].__path__ = [str(single)]
    reader().hold(code, single)
    with author_errors("importing it", code.file):
        return importlib.import_module(name)


class _FromBytes(SourceFileLoader):
    """Loads a module from bytes that were read before."""

    def __init__(self, name: str, path: Path, data: bytes) -> None:
        super().__init__(name, str(path))
        self.data = data

    def get_data(self, path: str) -> bytes:
        """Return the bytes that were read, for the file itself."""
        return self.data if path == self.path else super().get_data(path)

    def get_code(self, fullname: str) -> CodeType:
        """Compile the bytes that were read."""
        del fullname
        code: CodeType = self.source_to_code(self.data, self.path)
        return code


class _Reader(MetaPathFinder):
    """Finds the modules of plugins in the bytes that were read last.

    Attributes:
        contents: the bytes that were read.
    """

    def __init__(self) -> None:
        self.contents: dict[Path, bytes] = {}
        self._files: dict[str, Path] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a plugin's module; None for all others."""
        del path, target
        file = self._files.get(fullname)
        if file is None or file not in self.contents:
            return None
        folders = [str(file.parent)] if file.stem == "__init__" else None
        loader = _FromBytes(fullname, file, self.contents[file])
        return importlib.util.spec_from_file_location(fullname, file, loader=loader, submodule_search_locations=folders)

    def hold(self, code: Code, single: Path | None) -> None:
        """Make modules of this code from now on, and forget those that were made of other bytes."""
        files = dict(_modules(code, single))
        stale = {name for name, file in files.items() if not _is_made_of(name, file, code.contents[file])}
        if stale:
            _forget(stale)
        self.contents.update(code.contents)
        self._files.update(files)


def reader() -> _Reader:
    """Return the finder with which this process imports plugins."""
    reader = next((finder for finder in sys.meta_path if isinstance(finder, _Reader)), None)
    if reader is None:
        reader = _Reader()
        sys.meta_path.insert(0, reader)
    return reader


def _modules(code: Code, single: Path | None) -> Iterator[tuple[str, Path]]:
    """Yield the name under which each of a plugin's files is imported."""
    for file, name in code.names.items():
        parts = Path(name).with_suffix("").parts
        module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if single is not None and file == single / name:
            yield f"{single_package(single)}.{module}", file
            if locate(module) == (file, single):  # its folder is on the path: it can be imported so too
                yield module, file
        elif not Path(name).is_absolute():
            yield module, file


def _is_made_of(name: str, file: Path, data: bytes) -> bool:
    """Return False if a module is loaded with another content; only our modules are known otherwise."""
    module = sys.modules.get(name)
    if module is None:
        return True
    loader = _loader(module)
    if isinstance(loader, _FromBytes):
        return (loader.path, loader.data) == (str(file), data)
    return Path(getattr(module, "__file__", None) or "").resolve() == file and is_as_at_start(file)


def _loader(module: ModuleType) -> object:
    return getattr(vars(module).get("__spec__"), "loader", None)


def _forget(stale: Collection[str]) -> None:
    """Take modules out of this process, and plugins' modules that may have imported them: ours import only ours."""
    ours_too = any(_is_ours(name) for name in stale)
    for name, module in list(sys.modules.items()):
        if name in stale or (isinstance(_loader(module), _FromBytes) and (ours_too or not _is_ours(name))):
            del sys.modules[name]
            parent, _, last = name.rpartition(".")
            if getattr(sys.modules.get(parent), last, None) is module:
                delattr(sys.modules[parent], last)


def _is_ours(name: str) -> bool:
    return name.partition(".")[0] == PACKAGE


def told(error: BaseException, file: Path) -> str:
    """Return type and text of an error, with the last line inside the plugin's own file."""
    if isinstance(error, SyntaxError):
        name = Path(error.filename).name if error.filename else file.name
        return f"{type(error).__name__}: {error.msg} ({name}, line {error.lineno})"
    trace, line = error.__traceback__, None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(file):
            line = trace.tb_lineno
        trace = trace.tb_next
    place = f" ({file.name}, line {line})" if line else ""
    return bounded(f"{type(error).__name__}: {error}") + place + lacking(error)


def lacking(error: BaseException) -> str:
    """Return a hint for a package that is not installed; empty for any other error."""
    if isinstance(error, ModuleNotFoundError) and error.name:
        top = error.name.partition(".")[0]
        return f"; install the package that provides '{top}', or write `from .{top} import …` for a file beside it"
    return ""
