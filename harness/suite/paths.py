"""Paths in a suite go by the file in which they are written, so that it means the same from every folder."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.registry.catalog import Entry
from harness.suite.tree import Place, Table


def located(entry: Entry, params: Mapping[str, Any], table: Table) -> dict[str, Any]:
    """Hyperparameters with their paths as absolute ones, where these can be told.

    A file of code (``names_code``) starts at the folder of the suite file that names it. A data file or folder
    (``names_files``) does so where it is there; else it is left as it is, and goes by the data folder. What the command
    line names starts at the current folder.
    """
    found = dict(params)
    for name in entry.traits.get("names_code", ()):
        if name in found:
            found[name] = _code(found[name], _folder(table, name))
    for name in entry.traits.get("names_files", ()):
        value, folder = found.get(name), _folder(table, name)
        if isinstance(value, list):
            found[name] = [_data(text, folder) for text in value]
        elif value:
            found[name] = _data(value, folder)
    return found


def _folder(table: Table, name: str) -> Path:
    tree = table.get(name)
    place = Place("") if tree is None else tree.place
    return Path(place.file).parent if place.line else Path()


def _code(text: str, folder: Path) -> str:
    place, _, name = text.rpartition(":")
    return f"{_absolute(place, folder)}:{name}" if place.endswith(".py") else text


def _data(text: str, folder: Path) -> str:
    path = _absolute(text, folder)
    return path if os.path.exists(path) else text  # noqa: PTH110 - Path.exists raises for names that are too long


def _absolute(text: str, folder: Path) -> str:
    return os.path.normpath((folder / os.path.expanduser(text)).absolute())  # noqa: PTH111 - as it is without a home
