"""Build index entries: a child process, which may hang, crash or end, imports plugins and tells what they hold."""

from __future__ import annotations

import inspect
import json
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from harness.component import BUILT_IN, Component
from harness.engine.supervisor import Child, forks_have_loaded
from harness.errors import BenchError
from harness.registry.catalog import Entry
from harness.registry.core_files import HARNESS
from harness.registry.discovery import Source, load_source
from harness.registry.importing import PluginError, author_errors
from harness.registry.source_digest import Code, read_code
from harness.store import digest, hash_file

_START_LIMIT = 300.0
"""Seconds that starting Python may take, on a disk that is slow."""


_Answer = dict[str, Any]
"""What :func:`describe` returns of a plugin."""


def build(sources: Sequence[Source], time_limit: float) -> dict[Source, _Answer]:
    """Import plugins in child processes and describe their components, see :func:`describe`.

    A plugin that outlives the time limit, or takes its process down, is broken; a new process goes on with the rest.

    Raises:
        BenchError: no child process can be started.
    """
    found: dict[Source, _Answer] = {}
    while len(found) < len(sources):
        _build_some(sources[len(found) :], found, time_limit)
    return found


def _build_some(sources: Sequence[Source], found: dict[Source, _Answer], time_limit: float) -> None:
    """Ask one child process about sources, until it has answered for all or one has broken it.

    It is forked from a server that has torch, where a command has prepared one, and is a fresh Python else.
    """
    path = [str(Path(place).absolute()) for place in [*sys.path, str(HARNESS.parent)]]
    start = Child.fork if forks_have_loaded(HARNESS.rglob("*.py")) else Child.spawn
    with tempfile.TemporaryDirectory(prefix="bench-index-") as folder:
        printed = Path(folder) / "printed"
        child = start(main, list(sources), path, Path.cwd(), dict(os.environ), log=printed)
        try:
            child.receive(_START_LIMIT)
            for source in sources:
                try:
                    found[source] = child.receive(time_limit)
                    continue
                except TimeoutError:
                    reason = f"importing it took more than {time_limit:g} s, at {child.place(str(source.file))}"
                except EOFError:
                    reason = f"it ended the process that imports it, which {_ending(child, printed)}"
                found[source] = {"reason": reason}
                return
        except (EOFError, TimeoutError):
            ending = _ending(child, printed)
            raise BenchError(f"cannot read the plugins: the process that imports them {ending}") from None
        finally:
            child.kill()
            child.wait(5)


def _ending(child: Child, printed: Path) -> str:
    """Say how the process ended, with the last line of what was printed in it."""
    ending = "did not answer in time" if child.wait(5) else child.ending()
    text = printed.read_text("utf-8", "replace") if printed.exists() else ""
    lines = text.strip().splitlines()
    return f"{ending}: {lines[-1][:200]}" if lines else ending


_IDENTITY = {"kind", "name", "hparams", "reserved"}
_MACHINERY = ("component.py", "hooks.py", "hparams.py", "registry/*.py")


def describe(source: Source) -> _Answer:
    """The answer for one plugin.

    Returns:
        ``entries`` (their ``digest`` is that of the plugin's own code alone) and ``files``, the SHA-256 of every file
        that they follow from; or ``reason``, why there are none.
    """
    try:
        with author_errors("importing it", source.file):
            code = source.code()
        components = load_source(source, code)
        with author_errors("describing it", source.file):
            codes = [code, *(_code(component, source, code.contents) for component in components)]
            hashes = {name: digest for code in codes for name, digest in code.hashes.items()}
            files = {str(path): hashes[name] for code in codes for path, name in code.names.items()}
            readers = {path for component in components for path in _readers(component)}
            files |= {str(path): hash_file(path) for path in readers if str(path) not in files}
            entries = [entry(source, component, code) for component, code in zip(components, codes[1:], strict=True)]
            return {"entries": [replace(item, files=hashes).to_json() for item in entries], "files": files}
    except PluginError as error:
        return {"reason": str(error)}


def _readers(component: type[Component]) -> set[Path]:
    """Files of a class's bases, and of what reads it."""
    found = {path for pattern in _MACHINERY for path in HARNESS.glob(pattern)}
    for base in component.__mro__:
        name = getattr(sys.modules.get(base.__module__), "__file__", None)
        if name and name.endswith(".py"):
            found.add(Path(name).resolve())
    return found


def _code(component: type[Component], source: Source, known: Mapping[Path, bytes]) -> Code:
    """The code of a class, which may be elsewhere than in the plugin's own file."""
    return read_code(Path(inspect.getfile(component)).resolve(), source.roots(), known)


def entry(source: Source, component: type[Component], code: Code | None = None) -> Entry:
    """The catalog's row for one class, which says nothing of the files that it is loaded from."""
    code = code or _code(component, source, {})
    own = code.digest
    for name, declared in component.hparams.items():
        for option, value in vars(declared).items():
            _json(value, f"{component.__name__}.{name}: '{option}'")
    if source.plugin != BUILT_IN:  # a plugin may compute a default, from the environment say
        own = digest({"code": own, "defaults": {name: one.default for name, one in component.hparams.items()}})
    return Entry(
        kind=component.kind,
        name=component.name,
        module=component.__module__,
        qualname=component.__qualname__,
        file=str(code.file),
        plugin=source.plugin,
        digest=own,
        hparams=component.hparams,
        doc=inspect.cleandoc(component.__doc__ or ""),
        traits=traits(component),
    )


def traits(component: type[Component]) -> dict[str, Any]:
    """The class variables that a kind's base class declares, and what the class adds in ``traits``.

    Raises:
        PluginError: one of them is not JSON.
    """
    names = {
        name
        for base in component.__mro__
        if base.__module__.startswith("harness.")
        for name, annotation in inspect.get_annotations(base).items()
        if str(annotation).startswith("ClassVar") and not name.startswith("_")
    }
    found = {name: getattr(component, name) for name in sorted(names - _IDENTITY) if hasattr(component, name)}
    found |= getattr(component, "traits", {})
    return {name: _json(value, f"{component.__name__}.{name}") for name, value in found.items()}


def _json(value: Any, what: str) -> Any:
    try:
        return json.loads(json.dumps(value, default=_plain, allow_nan=False))
    except (TypeError, ValueError):
        allowed = "what the harness reads of a class is plain text, finite numbers, lists"
        raise PluginError(f"{what} holds {value!r}; {allowed}") from None


def _plain(value: Any) -> Any:
    """Return a set in order, and any mapping as a dictionary, for JSON."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    raise TypeError


def main(
    line: Connection, sources: Sequence[Source], path: Sequence[str], folder: Path, environ: Mapping[str, str]
) -> None:
    """Answer None when ready, then :func:`describe` for each source. Runs in a child process.

    Args:
        path: where it looks for modules.
        folder: the current folder, and the variables: those of the server that it was forked from may be older.
        environ: see ``folder``.
    """
    sys.path[:] = path
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environ)
    line.send(None)
    for source in sources:
        line.send(json.loads(json.dumps(describe(source))))
