"""Find and read suite files: installed suites, includes, plugin files, protocols and bundles."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from itertools import takewhile
from pathlib import Path

from harness.errors import UserError, did_you_mean
from harness.safe_io import no_file, no_plugin_file
from harness.store import hash_file
from harness.suite.tree import Items, Leaf, Place, Problems, Table, describe
from harness.suite.yaml import MAX_BYTES, read_file

MAX_INCLUDES = 200
_CORE = Path(__file__).resolve().parents[1]


def suites_folder() -> Path:
    """The folder of the suites that come with the package (beside ``harness`` in a source checkout)."""
    installed = _CORE / "suites"
    return installed if installed.is_dir() else _CORE.parent / "suites"


def installed_suites() -> list[str]:
    """Names of the suites that come with the package, such as ``paper/ablation``; fragments are left out."""
    return [name for name in _named_files(suites_folder()) if not name.startswith("common/")]


def find_suite(name_or_path: str | Path) -> Path:
    """The file of a suite, given its path or the name of an installed one, with or without ``.yaml``.

    ``suites/ablation.yaml`` names the installed suite from anywhere, unless such a file exists here. Links are
    followed, so that what the suite names goes by the folder of the file that is meant, whichever way leads to it.

    Raises:
        UserError: there is no such file, and the text lists the installed suites and the nearest name; or it is a pipe.
    """
    path = Path(name_or_path)
    if path.is_file():
        return path if path.resolve() == Path(os.path.normpath(path.absolute())) else path.resolve()
    if path.exists() and not path.is_dir():
        raise UserError(f"{name_or_path} is not a regular file: a suite is read more than once, so write it to a file")
    name, known = _plain_name(name_or_path), installed_suites()
    if name in known:
        return suites_folder() / f"{name}.yaml"
    what = "is a folder" if path.is_dir() else "does not exist"
    near = [file for file in path.parent.glob("*.y*ml") if file.is_file() and did_you_mean(path.stem, [file.stem])]
    hint = did_you_mean(name, known) or did_you_mean(str(path), map(str, near))
    raise UserError(f"{name_or_path} {what}, and no installed suite has this name{hint}; there are: {', '.join(known)}")


def installed_name(name_or_path: str | Path) -> str:
    """The name of the installed suite that a name or the file of one means; empty where it means none."""
    path = Path(name_or_path)
    if path.is_file():
        folder, file = suites_folder().resolve(), path.resolve()
        return file.relative_to(folder).with_suffix("").as_posix() if file.is_relative_to(folder) else ""
    name = _plain_name(name_or_path)
    return name if name in installed_suites() else ""


def _plain_name(name_or_path: str | Path) -> str:
    return str(name_or_path).replace(os.sep, "/").removeprefix("./").removeprefix("suites/").removesuffix(".yaml")


def peek_plugins(path: Path) -> tuple[Path, ...]:
    """The plugin files that a suite and its fragments list, read without looking at anything else.

    Those that do not exist are left out: whoever reads all of the suite reports them with everything else.

    Raises:
        SuiteError: a suite file that does not exist, cannot be read or is not YAML.
    """
    problems = Problems()
    gathered = Gathered(path, problems)
    if gathered.broken:
        problems.check()
    return tuple(dict.fromkeys(plugin for plugin, _ in gathered.plugins))


class Gathered:
    """A suite and what it includes; what is wrong inside the files is not looked at.

    Attributes:
        layers: the table of each file, what is included first.
        plugins: plugin files with the place that lists each.
        files: every file read.
        broken: a file is missing, unreadable, not YAML or no table, so that what depends on it cannot be judged.
    """

    def __init__(self, path: Path, problems: Problems) -> None:
        self.layers: list[Table] = []
        self.plugins: list[tuple[Path, Place]] = []
        self.files: list[Path] = []
        self.broken = False
        self._problems, self._size = problems, 0
        self._read(path, str(path), ())

    def digests(self) -> dict[str, str]:
        """Each file that the suite is made of, seen from the suite's folder -> SHA-256 of its content.

        Those with a name that a record cannot hold, as it is no UTF-8, are left out.
        """
        files = {os.path.relpath(file, self.files[0].parent): file for file in [*self.files, *dict(self.plugins)]}
        return {name: hash_file(file) for name, file in files.items() if name.isprintable() and file.is_file()}

    def _read(self, path: Path, name: str, above: tuple[Path, ...]) -> None:
        here, problems, before = path.resolve(), self._problems, len(self._problems)
        own = read_file(path, problems, name=name)
        with suppress(OSError):
            self._size += path.stat().st_size
        self.files.append(path)
        if not isinstance(own, Table):
            self.broken = True
            if len(problems) == before:
                place = Place(name, 1, 1) if own is None else own.place
                problems.add(place, f"a suite is a table that starts with 'bench: 1', found {describe(own)}")
            return
        for item in _names(own, "include"):
            found = self._locate(path, item)
            if found is None:
                continue
            if found.resolve() in (*above, here):
                cycle = " → ".join(file.name for file in (*above, here, found))
                problems.add(item.place, f"include cycle: {cycle}")
            elif len(self.files) >= MAX_INCLUDES:
                problems.add(item.place, f"more than {MAX_INCLUDES} files are included")
                break
            elif self._size > MAX_BYTES:
                problems.add(item.place, f"the files before this one have more than {MAX_BYTES:,} bytes together")
                break
            else:
                shown = str(found) if path.is_absolute() else os.path.relpath(found)
                self._read(found, shown, (*above, here))
        for item in _names(own, "plugins"):
            file = Path(os.path.normpath((path.parent / str(item.value)).absolute()))
            if why := no_plugin_file(file):
                problems.add(item.place, f"plugin file {why}: {file}")
            else:
                self.plugins.append((file, item.place))
        self.layers.append(own)

    def _locate(self, path: Path, item: Leaf) -> Path | None:
        name = str(item.value)
        whys = []
        for folder in (path.parent, suites_folder()):
            if not (why := no_file(folder / name)):
                return folder / name
            whys.append(why)
        hint = did_you_mean(name, [file + ".yaml" for file in _named_files(suites_folder())])
        self.broken = True
        where = f"{path.parent / name}, and not among the installed suites"
        self._problems.add(item.place, f"included file {whys[0]}: {where}{hint}")
        return None


def _names(table: Table, name: str) -> list[Leaf]:
    value = table.get(name)
    items = value.items if isinstance(value, Items) else (value,)
    return [leaf for leaf in items if isinstance(leaf, Leaf) and isinstance(leaf.value, str)]


def _named_files(folder: Path) -> list[str]:
    files = sorted(folder.rglob("*.yaml"))
    return [file.relative_to(folder).with_suffix("").as_posix() for file in files]


def shipped(kind: str) -> dict[str, Path]:
    """Return the ``protocols`` or ``bundles`` that come with the package: name -> file."""
    return {name: _CORE / kind / f"{name}.yaml" for name in _named_files(_CORE / kind)}


def read_shipped(kind: str, name: Leaf, problems: Problems) -> Table:
    """Read the defaults of a protocol, or a bundle: part of a method's table."""
    label = f"{kind}/{name.value}.yaml"
    tree = read_file(_CORE / label, problems, name=label)
    return tree if isinstance(tree, Table) else Table(Place(label))


def titles(kind: str) -> dict[str, str]:
    """Return the installed ``suites`` or ``bundles`` by name, each with the beginning of its file's comment."""
    suites = {name: suites_folder() / f"{name}.yaml" for name in installed_suites()}
    files = suites if kind == "suites" else shipped(kind)
    return {name: _title(file.read_text(encoding="utf-8")) for name, file in files.items()}


def _title(text: str) -> str:
    comment = takewhile(lambda line: line.startswith("#"), text.splitlines())
    words = " ".join(line.removeprefix("#").strip() for line in comment if "yaml-language-server" not in line)
    found = re.match(r".{15,}?(?=[.:;?](?: |$))\??", words)
    return found[0] if found else words
