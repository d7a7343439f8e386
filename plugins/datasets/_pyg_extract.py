"""Reads a PyG dataset in a process of its own and writes its graphs as plain arrays.

The class is the user's code: it may print, draw from global generators, take long, or end the process.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import inspect
import json
import os
import sys
import sysconfig
import traceback
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from harness import DataError, file_digest
from plugins.datasets._pyg_graphs import PARTS, Taken, arrays, take
from plugins.datasets._splits import SPLITS

_OWN_NAME = "bench_pyg_"
PACKAGES = ("torch", "torch_geometric", "numpy")


def main(name: str) -> None:
    """Answer a request: ``graphs.safetensors`` and ``answer.json`` beside it, the latter last."""
    folder = Path(name).parent
    request = json.loads(Path(name).read_text(encoding="utf-8"))
    try:
        answer = _extract(request, folder)
    except DataError as error:
        answer = {"error": str(error)}
    except BaseException as error:
        answer = {"error": f"{request['target']}: {_told(error)}"}
    (folder / "answer.tmp").write_text(json.dumps(answer), encoding="utf-8")
    (folder / "answer.tmp").replace(folder / "answer.json")


def _extract(request: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    from safetensors.numpy import save_file

    _seed()
    wanted = _wanted(request["target"])
    before = _digests({*_sources(wanted), *map(Path, request["watch"])})
    made = [_make(wanted, request, folder, part) for part in request["parts"] or [None]]
    tables, summary = read(made, request)
    save_file(tables, folder / "graphs.safetensors")
    watched = _watched(wanted, made, request, folder)
    after = {**watched["code"], **watched["data"]}
    changed = next((path for path, digest in before.items() if after.get(path) != digest), None)
    if changed is not None:
        raise DataError(f"{request['target']}: changed while it was read: {changed}; run it again")
    return {"summary": summary, **watched}


def read(made: Sequence[Any], request: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The graphs of what a class or function gave, as :func:`plugins.datasets._pyg_graphs.arrays`.

    ``own_splits`` of the summary says whether they came as a dict of splits.
    """
    target, parts = request["target"], request["parts"]
    named = dict(zip(parts, made, strict=True)) if parts else _named(made[0], target)
    taken = [graph for part, graphs in named.items() for graph in _taken(graphs, part, request)]
    tables, summary = arrays(taken, target)
    return tables, {**summary, "own_splits": isinstance(made[0], Mapping)}


def _named(made: Any, target: str) -> dict[str | None, Any]:
    """The graphs by split where they come as a dict of splits; else under None."""
    if not isinstance(made, Mapping):
        return {None: made}
    found = {SPLITS[PARTS[name]]: graphs for name, graphs in made.items() if name in PARTS}
    if len(found) < len(made) or len(found) < len(SPLITS):
        raise DataError(f"{target}: gives a dict of {', '.join(map(repr, made))}; expected {', '.join(SPLITS)}")
    return {part: found[part] for part in SPLITS}


def _taken(graphs: Any, part: str | None, request: Mapping[str, Any]) -> Iterator[Taken]:
    field, number = (request["split_field"], 0) if part is None else ("parts", PARTS[part])
    where = request["target"] if part is None else f"{request['target']}, split '{part}'"
    for row, data in enumerate(_graphs(graphs, where)):
        name = f"graph {row}" if part is None else f"graph {row} of {part}"
        try:
            yield take(data, name, request["fields"], request["label"], field, number)
        except ValueError as error:
            raise DataError(f"{request['target']}: {name}: {error}") from None


def _seed() -> None:
    """A class that draws from global generators gives the same graphs each time."""
    import random

    import numpy as np
    import torch

    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)
    torch.set_num_threads(1)


def _graphs(dataset: Any, target: str) -> Iterator[Any]:
    from torch_geometric.data.data import BaseData

    single = isinstance(dataset, (BaseData, Mapping))
    if single or not hasattr(dataset, "__len__"):
        found = f"one {type(dataset).__name__}" if single else type(dataset).__name__
        raise DataError(f"{target}: gives {found}; expected a dataset, a list of graphs, or a dict of them by split")
    if len(dataset) == 0:
        raise DataError(f"{target}: there is no graph in it")
    return (dataset[row] for row in range(len(dataset)))


def _wanted(target: str) -> Any:
    """The class or function that ``module:name`` or ``file.py:name`` names."""
    place, _, name = target.rpartition(":")
    try:
        module = _from_file(Path(place)) if place.endswith(".py") else importlib.import_module(place)
    except ImportError as error:
        raise DataError(f"'{target}': cannot be imported: {error}") from None
    found = getattr(module, name, None)
    if not callable(found):
        raise DataError(f"'{target}': there is no class or function '{name}' in {place}")
    return found


def _from_file(path: Path) -> ModuleType:
    """A module of one file, named by its content: what it pickles is found again as long as it is the same."""
    if not path.is_file():
        raise DataError(f"{path}: there is no such file")
    name = f"{_OWN_NAME}{hashlib.sha256(path.read_bytes()).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None  # noqa: PT018
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.append(str(path.parent))
    spec.loader.exec_module(module)
    return module


def _make(wanted: Any, request: Mapping[str, Any], folder: Path, part: str | None) -> Any:
    from torch_geometric.data import Dataset

    arguments = dict(request["arguments"])
    if part is not None:
        arguments[request["split_argument"]] = part
    if request["root"] is not None and isinstance(wanted, type) and _names_root(wanted):
        arguments.setdefault("root", request["root"])
    bound = isinstance(wanted, type) and issubclass(wanted, Dataset) and arguments.get("root") is not None
    return (_bound(wanted, folder, part) if bound else wanted)(**arguments)


def _names_root(wanted: type) -> bool:
    try:
        return "root" in inspect.signature(wanted).parameters
    except (TypeError, ValueError):
        return False


def _bound(wanted: Any, folder: Path, part: str | None) -> Any:
    """The class with a folder of its own for what it processes, and without a network.

    PyG takes up whatever is in ``processed``, also what other arguments or older code have left there. Where there are
    no raw files to process, what lies there is all there is, and is taken.
    """

    class Bound(wanted):  # type: ignore[misc]
        @property
        def processed_dir(self) -> str:
            plain = str(super().processed_dir)
            if _only_processed(self, Path(plain)):
                return plain
            return str(folder / "processed" / (part or "all"))

        def download(self) -> None:
            if _only_processed(self, Path(super().processed_dir)):
                return
            missing = [path for path in self.raw_paths if not Path(path).exists()]
            if self.raw_paths and missing:
                raise DataError(_fetch_text(wanted, missing[0], self.root))
            super().download()

    if "download" not in {name for base in wanted.__mro__[:-1] for name in vars(base) if not _is_base(base)}:
        del Bound.download
    Bound.__name__, Bound.__qualname__, Bound.__module__ = wanted.__name__, wanted.__qualname__, wanted.__module__
    return Bound


def _is_base(base: type) -> bool:
    return base.__module__.startswith("torch_geometric.data.")


def _only_processed(dataset: Any, plain: Path) -> bool:
    raw, processed = _paths(dataset, "raw_paths"), _paths(dataset, "processed_file_names")
    return bool(raw and processed and not all(path.exists() for path in raw)) and all(
        (plain / path).exists() for path in processed
    )


def _paths(dataset: Any, name: str) -> list[Path]:
    """Paths or names of a dataset's raw or processed files; none where it has no root, or does not say."""
    if getattr(dataset, "root", None) is None:
        return []
    try:
        found = getattr(dataset, name)
    except (NotImplementedError, AttributeError):
        return []
    found = found() if callable(found) else found
    return [Path(path) for path in ([found] if isinstance(found, str) else found)]


def _fetch_text(wanted: Any, missing: str, root: str) -> str:
    module, own = wanted.__module__, sys.modules[wanted.__module__].__file__
    place = Path(own or "").stem if module.startswith(_OWN_NAME) else module
    return (
        f"missing data file: {missing}\nput it there, or let the class fetch it by making it once yourself: "
        f"from {place} import {wanted.__name__}; {wanted.__name__}(root={root!r}), with its other arguments"
    )


def _watched(wanted: Any, made: Sequence[Any], request: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Files and versions that the graphs follow from, as far as can be told."""
    data = {Path(path) for path in request["watch"]}
    for dataset in (one for found in made for one in (found.values() if isinstance(found, Mapping) else [found])):
        raw = [path for path in _paths(dataset, "raw_paths") if path.exists()]
        read = raw or [path for path in _paths(dataset, "processed_paths") if path.exists()]
        data |= {path for path in read if not path.is_relative_to(folder)}
    return {
        "code": _digests(_sources(wanted)),
        "data": _digests(data),
        "versions": {name: importlib.metadata.version(name) for name in PACKAGES},
    }


def _sources(wanted: Any) -> set[Path]:
    """Files of the code that gives the graphs, as far as it is loaded."""
    return _own_sources() | {Path(inspect.getfile(wanted))}


def _digests(paths: set[Path]) -> dict[str, str]:
    return {str(path): content_digest(path) for path in sorted(paths)}


def content_digest(path: Path) -> str:
    """Return the SHA-256 of what a file holds, or of the names and contents of all files below a folder."""
    if not path.is_dir():
        return file_digest(path)
    files = sorted(file for file in path.rglob("*") if file.is_file())
    contents = [[file.relative_to(path).as_posix(), file_digest(file)] for file in files]
    return hashlib.sha256(json.dumps(contents).encode()).hexdigest()


def _libraries() -> tuple[str, ...]:
    """Folders of installed libraries, of Python and of the harness, each with a separator at its end."""
    here = Path(__file__).resolve().parents[2]
    found = [Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib")]
    found += [Path(str(importlib.import_module(name).__file__)).parents[1] for name in PACKAGES]  # may lie elsewhere
    found += [path.resolve() for path in found] + [here / "harness", here / "plugins"]
    return tuple(f"{path}{os.sep}" for path in found)


def _own_sources() -> set[Path]:
    """Files of the imported modules that belong to no installed library and not to the harness."""
    libraries = _libraries()
    files = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    own = {file for file in files if isinstance(file, str) and file.endswith(".py") and not file.startswith(libraries)}
    resolved = {path for file in own if (path := Path(file).resolve()).is_file()}
    return {path for path in resolved if not str(path).startswith(libraries)}


def _told(error: BaseException) -> str:
    here = str(Path(__file__).resolve().parent)
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith((here, "<"))]
    place = f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""
    return f"raised {type(error).__name__}: {' '.join(str(error).split())}{place}"
