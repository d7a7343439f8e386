"""Find and read suite files: installed suites, includes, plugin files, protocols and bundles."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from harness.errors import UserError, did_you_mean
from harness.store import hash_file
from harness.suite.normal import over_suite, read_method, read_protocol_table, read_suite
from harness.suite.tree import Items, Leaf, Place, Problems, Table
from harness.suite.yaml import read_file

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
    hint = did_you_mean(name, known)
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
    gathered = gather(path, problems, shape_problems=Problems())
    if gathered.broken:
        problems.check()
    return tuple(dict.fromkeys(plugin for plugin, _ in gathered.plugins))


@dataclass
class Gathered:
    """A suite with its fragments merged in.

    Attributes:
        tree: the merged suite in normal form, without ``include`` and ``plugins``.
        plugins: plugin files with the place that lists each.
        files: every file read.
        broken: a file is missing, unreadable, not YAML or no table, so that what depends on it cannot be judged.
    """

    tree: Table
    plugins: list[tuple[Path, Place]] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)
    broken: bool = False


def digests(path: Path, gathered: Gathered) -> dict[str, str]:
    """Each file that a suite is made of, seen from the suite's folder -> SHA-256 of its content.

    Those with a name that a record cannot hold, as it is no UTF-8, are left out.
    """
    files = {os.path.relpath(file, path.parent): file for file in [*gathered.files, *dict(gathered.plugins)]}
    return {name: hash_file(file) for name, file in files.items() if name.isprintable() and file.is_file()}


def gather(path: Path, problems: Problems, *, shape_problems: Problems | None = None) -> Gathered:
    """Read a suite and what it includes.

    Args:
        path: the suite file.
        problems: receives files that are missing, unreadable or not YAML, and include cycles.
        shape_problems: receives what is wrong inside the files; ``problems`` by default.
    """
    gathered = Gathered(Table(Place(str(path))))
    reader = _Includes(problems, problems if shape_problems is None else shape_problems, gathered)
    gathered.tree = reader.read(path, str(path), ())
    return gathered


@dataclass
class _Includes:
    problems: Problems
    shape_problems: Problems
    gathered: Gathered

    def read(self, path: Path, name: str, above: tuple[Path, ...]) -> Table:
        here = path.resolve()
        before = len(self.problems)
        content = read_file(path, self.problems, name=name)
        self.gathered.files.append(path)
        self.gathered.broken |= not isinstance(content, Table)
        if content is None and len(self.problems) > before:
            return Table(Place(name, 1, 1))
        own = read_suite(content, name, self.shape_problems, fragment=bool(above))
        result = Table(own.place)
        for item in _leaves(own, "include"):
            found = self.locate(path, item)
            if found is None:
                continue
            if found.resolve() in (*above, here):
                cycle = " → ".join(file.name for file in (*above, here, found))
                self.problems.add(item.place, f"include cycle: {cycle}")
            elif len(self.gathered.files) >= MAX_INCLUDES:
                self.problems.add(item.place, f"more than {MAX_INCLUDES} files are included")
                break
            else:
                result = over_suite(result, self.read(found, _shown(found, path), (*above, here)))
        self.plugins(path, own)
        own = own.without(["include", "plugins"])
        return own if not result else over_suite(result, own)

    def locate(self, path: Path, item: Leaf) -> Path | None:
        name = str(item.value)
        for folder in (path.parent, suites_folder()):
            if (folder / name).is_file():
                return folder / name
        known = [file + ".yaml" for file in _named_files(suites_folder())]
        where = f"{path.parent / name}, and not among the installed suites"
        self.gathered.broken = True
        self.problems.add(item.place, f"included file not found: {where}{did_you_mean(name, known)}")
        return None

    def plugins(self, path: Path, own: Table) -> None:
        for item in _leaves(own, "plugins"):
            file = Path(os.path.normpath((path.parent / str(item.value)).absolute()))
            if file.is_file():
                self.gathered.plugins.append((file, item.place))
            else:
                what = "is a folder" if file.is_dir() else "not found"
                self.problems.add(item.place, f"plugin file {what}: {file}")


def _leaves(table: Table, name: str) -> list[Leaf]:
    items = table.get(name)
    return [leaf for leaf in items.items if isinstance(leaf, Leaf)] if isinstance(items, Items) else []


def _shown(found: Path, path: Path) -> str:
    """Return the name of an included file in messages: relative where the suite's is."""
    return str(found) if path.is_absolute() else os.path.relpath(found)


def _named_files(folder: Path) -> list[str]:
    files = sorted(folder.rglob("*.yaml"))
    return [file.relative_to(folder).with_suffix("").as_posix() for file in files]


def protocols() -> list[str]:
    """Names of the protocols."""
    return _named_files(_CORE / "protocols")


def bundles() -> list[str]:
    """Names of the bundles."""
    return _named_files(_CORE / "bundles")


def read_protocol(name: Leaf, problems: Problems) -> Table:
    """A protocol's defaults by name."""
    label = f"protocols/{name.value}.yaml"
    return read_protocol_table(read_file(_CORE / label, problems, name=label), label, problems)


def read_bundle(name: Leaf, problems: Problems) -> Table:
    """A bundle: part of a method's table."""
    label = f"bundles/{name.value}.yaml"
    content = read_file(_CORE / label, problems, name=label)
    return read_method(content, str(name.value), problems) if content is not None else Table(name.place)
