"""Code and files that a suite's datasets name: recorded and archived, never run."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path, PurePath
from typing import Any

from harness.errors import UserError
from harness.registry.catalog import Catalog
from harness.registry.source_digest import read_code
from harness.suite.spec import Suite


def _code_files(file: Path) -> dict[str, Path]:
    """Return a file of code that is no plugin, and what it imports from its folder, by their place in it."""
    folder = file.parent
    names = [*(path.stem for path in folder.glob("*.py")), *(path.name for path in folder.glob("*/"))]
    files = {file}
    with suppress(SyntaxError, OSError, ValueError):  # running it will say so
        files.update(read_code(file, dict.fromkeys(names, folder)).contents)
    return {path.relative_to(folder).as_posix(): path for path in files}


def named_files(suite: Suite, catalog: Catalog, digest: Callable[[Path], str]) -> list[dict[str, Any]]:
    """Describe each absolute path that a dataset names, for the record of a run.

    Returns:
        ``dataset``, ``hyperparameter`` and ``value``, ``code`` (True for code), and ``files``, name -> SHA-256: the
        file and, of code, what it imports from its folder; nothing of a folder.
    """
    named = []
    for dataset in suite.datasets:
        traits = catalog.get("dataset", dataset.component.name).traits
        code_names = traits.get("names_code", ())
        for name in (*code_names, *traits.get("names_files", ())):
            code, value = name in code_names, dataset.component.params.get(name)
            for text in value if isinstance(value, list) else [value or ""]:
                path = Path(text.rpartition(":")[0] if code else text)
                if not (path.is_absolute() and path.exists()):
                    continue
                files = _code_files(path) if code else {path.name: path} if path.is_file() else {}
                digests = {place: digest(file) for place, file in sorted(files.items())}
                where = {"dataset": dataset.label, "hyperparameter": name, "value": text}
                named.append({**where, "code": code, "files": digests})
    return named


def digests_from(folder: Path, named: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return the files that :func:`named_files` gave, seen from a folder -> SHA-256, as those of a suite are kept."""
    digests: dict[str, str] = {}
    for item in named:
        path = Path(item["value"].rpartition(":")[0] if item["code"] else item["value"])
        digests |= {os.path.relpath(path.parent / name, folder): digest for name, digest in item["files"].items()}
    return {name: digest for name, digest in digests.items() if name.isprintable()}


def archived(named: Iterable[Mapping[str, Any]], datasets: Mapping[str, dict[str, Any]]) -> dict[str, bytes]:
    """Make a suite's datasets name files by the archive's own folder. Returns the code among them, by place.

    Args:
        named: what :func:`named_files` gave of the run.
        datasets: the datasets of its suite, which are changed. Data files are named alone: they go beside the suite.

    Raises:
        UserError: a file of code is gone, or is not what it was.
    """
    files: dict[str, bytes] = {}
    for number, item in enumerate(named, start=1):
        old, new = item["value"], PurePath(item["value"]).name
        if item["code"]:
            folder, new = Path(old).parent, f"datasets/{number:02d}/{new}"
            for name, sha256 in item["files"].items():
                files[f"datasets/{number:02d}/{name}"] = _unchanged(folder / name, sha256)
        table, name = datasets[item["dataset"]], item["hyperparameter"]
        value = table[name]
        table[name] = [new if text == old else text for text in value] if isinstance(value, list) else new
    return files


def _unchanged(path: Path, sha256: str) -> bytes:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror or error}") from None
    if hashlib.sha256(data).hexdigest() != sha256:
        raise UserError(f"{path} has changed since the run; run the suite again and export that run")
    return data
