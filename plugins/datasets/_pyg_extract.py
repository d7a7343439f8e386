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
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from harness import DataError, did_you_mean
from plugins.datasets._pyg_graphs import arrays, take

_OWN_NAME = "bench_pyg_"
_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
PACKAGES = ("torch", "torch_geometric", "numpy")


def main(request_file: Path) -> None:
    """Answer a request: ``graphs.safetensors`` and ``answer.json`` beside it, the latter last."""
    request = json.loads(request_file.read_text(encoding="utf-8"))
    folder = request_file.parent
    try:
        answer = _extract(request, folder)
    except DataError as error:
        answer = {"error": str(error)}
    except BaseException as error:
        answer = {"error": f"{request['target']}: {_told(error)}"}
    (folder / "answer.tmp").write_text(json.dumps(answer), encoding="utf-8")
    (folder / "answer.tmp").replace(folder / "answer.json")


def end_with(life_line: int) -> None:
    """End this process when the one that started it is gone, though it were killed: the pipe is then closed."""
    from multiprocessing import connection
    from threading import Thread

    def watch() -> None:
        connection.wait([life_line])
        os._exit(1)

    if life_line >= 0:
        Thread(target=watch, name="bench-parent-watch", daemon=True).start()


def _extract(request: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    from safetensors.numpy import save_file

    _seed()
    wanted = _wanted(request["target"])
    made = [_make(wanted, request, folder, part) for part in request["parts"] or [None]]
    taken = [
        take(
            data, f"{request['target']}: graph {row}", request["fields"], request["label"], request["split_field"], part
        )
        for part, dataset in enumerate(made)
        for row, data in enumerate(_graphs(dataset, request["target"]))
    ]
    tables, summary = arrays(taken, request["target"])
    save_file(tables, folder / "graphs.safetensors")
    return {"summary": summary, **_watched(wanted, made, request, folder)}


def _seed() -> None:
    """A class that draws from global generators gives the same graphs each time."""
    import random

    import numpy as np
    import torch

    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)
    torch.set_num_threads(1)


def _graphs(dataset: Any, target: str) -> Iterable[Any]:
    try:
        count = len(dataset)
    except TypeError:
        raise DataError(f"{target}: gives {type(dataset).__name__}, not a dataset or a list of graphs") from None
    if count == 0:
        raise DataError(f"{target}: there is no graph in it")
    return (dataset[row] for row in range(count))


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
    _check_arguments(wanted, request, arguments)
    if not (isinstance(wanted, type) and issubclass(wanted, Dataset)):
        return wanted(**arguments)
    if request["root"] is not None and "root" not in arguments:
        arguments["root"] = request["root"]
    return _bound(wanted, folder, part)(**arguments)


def _check_arguments(wanted: Any, request: Mapping[str, Any], arguments: Mapping[str, Any]) -> None:
    """Refuse arguments that the class does not take, and tell of those that it lacks, before it is made."""
    try:
        known = inspect.signature(wanted).parameters
    except (TypeError, ValueError):
        return
    target, kinds = request["target"], {item.kind for item in known.values()}
    names = [name for name, item in known.items() if item.kind in _BY_NAME]
    wrong = next((name for name in arguments if name not in names), None)
    if wrong is not None and inspect.Parameter.VAR_KEYWORD not in kinds:
        setting = "arguments" if wrong in request["arguments"] else "split_argument"
        raise DataError(
            f"dataset 'pyg', hyperparameter '{setting}': '{target}' takes no argument '{wrong}'"
            f"{did_you_mean(wrong, names)}; it takes: {', '.join(names) or 'none'}"
        )
    given = {*arguments, *(["root"] if request["root"] is not None else [])}
    lacking = [name for name in names if known[name].default is inspect.Parameter.empty and name not in given]
    if lacking:
        raise DataError(
            f"dataset 'pyg', hyperparameter 'arguments': '{target}' needs the argument{'s' * (len(lacking) > 1)} "
            f"{', '.join(map(repr, lacking))}"
        )


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
    raw, processed = _paths(dataset, "raw"), _paths(dataset, "processed_names")
    return bool(raw and processed and not all(path.exists() for path in raw)) and all(
        (plain / path).exists() for path in processed
    )


def _paths(dataset: Any, kind: str) -> list[Path]:
    """Paths of raw files, or names of processed ones; none where the class does not say."""
    try:
        if kind == "raw":
            return [Path(path) for path in dataset.raw_paths]
        names = dataset.processed_file_names
    except (NotImplementedError, AttributeError):
        return []
    names = names() if callable(names) else names
    return [Path(name) for name in ([names] if isinstance(names, str) else names)]


def _fetch_text(wanted: Any, missing: str, root: str) -> str:
    module, own = wanted.__module__, sys.modules[wanted.__module__].__file__
    place = Path(own or "").stem if module.startswith(_OWN_NAME) else module
    return (
        f"missing data file: {missing}\nput it there, or let the class fetch it by making it once yourself: "
        f"from {place} import {wanted.__name__}; {wanted.__name__}(root={root!r}), with its other arguments"
    )


def _watched(wanted: Any, made: list[Any], request: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Files and versions that the graphs follow from, as far as can be told."""
    from plugins.datasets._pyg_cache import content_digest

    memo: dict[str, Any] = {}
    sources = _own_sources() | {
        Path(file) for base in getattr(wanted, "__mro__", [wanted]) if (file := _file_of(base)) is not None
    }
    data = {Path(path) for path in request["watch"]}
    for dataset in made:
        raw = [path for path in _paths(dataset, "raw") if path.exists()]
        read = raw or [Path(path) for path in getattr(dataset, "processed_paths", [])]
        data |= {path for path in read if not path.is_relative_to(folder)}
    return {
        "sources": {str(path): content_digest(path, memo) for path in sorted(sources)},
        "data": {str(path): content_digest(path, memo) for path in sorted(data)},
        "memo": memo,
        "versions": {name: importlib.metadata.version(name) for name in PACKAGES},
    }


def _libraries() -> tuple[str, ...]:
    """Folders of installed libraries, of Python and of the harness, each with a separator at its end."""
    here = Path(__file__).resolve().parents[2]
    found = [Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib")]
    found += [path.resolve() for path in found] + [here / "harness", here / "plugins"]
    return tuple(f"{path}{os.sep}" for path in found)


def _own_sources() -> set[Path]:
    """Files of the imported modules that belong to no installed library and not to the harness."""
    libraries = _libraries()
    files = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    own = {file for file in files if isinstance(file, str) and file.endswith(".py") and not file.startswith(libraries)}
    resolved = {path for file in own if (path := Path(file).resolve()).is_file()}
    return {path for path in resolved if not str(path).startswith(libraries)}


def _file_of(base: Any) -> str | None:
    name = getattr(base, "__module__", "")
    file = None if name in sys.stdlib_module_names else getattr(sys.modules.get(name), "__file__", None)
    return file if isinstance(file, str) and file.endswith(".py") else None


def _told(error: BaseException) -> str:
    here = str(Path(__file__).resolve().parent)
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith((here, "<"))]
    place = f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""
    return f"raised {type(error).__name__}: {error}{place}"
