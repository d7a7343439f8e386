"""The fixed part of the suite language: checks the tables of a file and brings them to one normal form.

Normal form: every component is a table with ``use``; what a component tunes or puts in a matrix stands in the
method's ``tune`` and ``matrix`` under a dotted path (``decorrelator.gamma``), so that files, ``like``, bundles and
``--set`` all merge by the same rules (:mod:`harness.suite.overlay`). Faulty parts are noted and left out.
"""

from __future__ import annotations

from collections.abc import Iterable

from harness.errors import did_you_mean
from harness.suite.settings import (
    METHOD_KEYS,
    PARTS,
    PIPELINE,
    POSITIONAL,
    PROTOCOL_KEYS,
    REPORT_KEYS,
    ROLES,
    SECTIONS,
    SELECT,
    TOP_KEYS,
    TRAIN,
)
from harness.suite.tree import Items, Leaf, Place, Problems, Table, Tree, describe, mark_faulty, shortened

_COMPONENT = "a component is NAME or {use: NAME, hyperparameters…}"
EXAMPLES = {"datasets": "{SPMotif: {use: spmotif}}", "methods": "{ERM: {baseline: erm}}"}
"""How the two tables of rows are written, for messages."""
EVERYWHERE = "*"
"""The path in ``tune`` that stands for every component of the method; ``tune: default`` is short for it."""


class Shape:
    """Checks and normalises one file."""

    def __init__(self, problems: Problems) -> None:
        self.problems = problems

    def suite(self, tree: Tree | None, file: str, *, fragment: bool) -> Table:
        """A suite file, or a fragment that another one includes."""
        if tree is None or (isinstance(tree, Leaf) and tree.value is None):
            self.problems.add(Place(file, 1, 1), "the file is empty; a suite starts with 'bench: 1'")
            return Table(Place(file, 1, 1))
        if not isinstance(tree, Table):
            self.problems.add(tree.place, f"a suite is a table that starts with 'bench: 1', found {describe(tree)}")
            return Table(tree.place)
        if "bench" not in tree and not fragment:
            self.problems.add(tree.place, "the key 'bench' is missing; a suite starts with 'bench: 1'")
        return self.top(tree)

    def top(self, tree: Table) -> Table:
        """The top level, also of what ``--set`` gives."""
        self.known(tree, TOP_KEYS, "a suite")
        result = Table(tree.place)
        for name in tree.only(TOP_KEYS):
            value = self._top_value(name, tree.entries[name], tree.key(name))
            if value is not None:
                result = result.put(name, value, tree.key(name))
        return result

    def _top_value(self, name: str, value: Tree, key: Place) -> Tree | None:
        if name == "bench" and not (isinstance(value, Leaf) and value.value is not True and value.value == 1):
            self.problems.add(value.place, f"this bench reads suites of version 1, found {describe(value)}")
        if name in ("name", "protocol"):
            return self.text(value, name)
        if name in ("include", "plugins"):
            return self.paths(value, name)
        if name in EXAMPLES:
            return self._rows(value, key, name)
        if name == "analyses":
            return self._analyses(value)
        if name == "trackers":
            return self._trackers(value)
        return self.section(value, name) if name in (*SECTIONS, "report") else value

    def protocol(self, tree: Tree | None, file: str) -> Table:
        """A protocol file."""
        if not isinstance(tree, Table):
            self.problems.add(Place(file, 1, 1), "a protocol is a table")
            return Table(Place(file, 1, 1))
        self.known(tree, PROTOCOL_KEYS, "a protocol")
        result = tree.only(("name", "seeds"))
        for name in tree.only(SECTIONS):
            result = result.put(name, self.section(tree.entries[name], name))
        families = Table(tree.place)
        for family, value in tree.table("families").entries.items():
            families = families.put(family, self.sections(value, f"families.{family}"), value.place)
        return result.put("families", families)

    def sections(self, tree: Tree, what: str) -> Table:
        """A table with ``model``, ``train`` and ``select``."""
        result = Table(tree.place)
        if not self.is_table(tree, what):
            return result
        assert isinstance(tree, Table)
        self.known(tree, SECTIONS, what)
        for name in tree.only(SECTIONS):
            result = result.put(name, self.section(tree.entries[name], name), tree.key(name))
        return result

    def section(self, tree: Tree, name: str) -> Table:
        """``model``, ``train``, ``select`` or ``report``; types are checked later."""
        if not self.is_table(tree, name):
            return Table(tree.place)
        assert isinstance(tree, Table)
        if name == "model":
            return self._model(tree)
        allowed = {"train": tuple(TRAIN), "select": tuple(SELECT), "report": REPORT_KEYS}[name]
        self.known(tree, allowed, f"'{name}'")
        return tree.only(allowed)

    def _model(self, tree: Table) -> Table:
        if "use" in tree:
            self.problems.add(tree.key("use"), "unknown key 'use' in 'model'; write backbone: NAME")
            tree = tree.without(["use"])
        if "backbone" not in tree:
            return tree
        backbone = self.component(tree.entries["backbone"], "backbone")
        if backbone is None:
            return tree.without(["backbone"])
        for name in backbone:
            if name in tree and name != "use":
                self.problems.add(tree.key(name), f"'{name}' is given twice, here and under 'backbone'")
        return tree.put("backbone", backbone, tree.key("backbone"))

    def _rows(self, tree: Tree, key: Place, name: str) -> Table:
        example = EXAMPLES[name]
        if not isinstance(tree, Table):
            found = "is empty" if isinstance(tree, Leaf) and tree.value is None else f"is {describe(tree)}"
            self.problems.add(tree.place, f"'{name}' {found}; it is a table of rows: {name}: {example}")
            return Table(tree.place)
        if not tree:
            self.problems.add(key, f"'{name}' is empty; it is a table of rows: {name}: {example}")
        result = Table(tree.place)
        for label, value in tree.entries.items():
            place = tree.key(label)
            if not self._label(label, place, name):
                continue
            row = self.method(value, label) if name == "methods" else self.dataset(value, label)
            if row is not None:
                result = result.put(label, row, place)
        return result

    def _label(self, label: str, place: Place, name: str) -> bool:
        sound = bool(label.strip()) and len(label) <= 200 and label.isprintable()
        if not sound:
            self.problems.add(place, f"a name in '{name}' must be printable text of 1 to 200 characters")
        return sound

    def dataset(self, tree: Tree, label: str) -> Table | None:
        """A dataset: a component that may also override settings."""
        part = self.component(tree, f"dataset '{label}'")
        if part is None:
            return None
        for name in part.only(("tune", "matrix", "pool")):
            self.problems.add(part.key(name), f"'{name}' belongs to a method; give each dataset a row of its own")
        part = part.without(("tune", "matrix", "pool"))
        for name in part.only(SECTIONS):
            part = part.put(name, self.section(part.entries[name], name), part.key(name))
        if "envs" in part:
            envs = self.component(part.entries["envs"], "envs")
            part = part.without(["envs"]) if envs is None else part.put("envs", envs, part.key("envs"))
        return part

    def _analyses(self, tree: Tree) -> Table:
        """Label -> component; its datasets and methods are checked later."""
        result = Table(tree.place)
        if not self.is_table(tree, "analyses"):
            return result
        assert isinstance(tree, Table)
        for label, value in tree.entries.items():
            if not self._label(label, tree.key(label), "analyses"):
                continue
            part = self.component(value, f"analysis '{label}'")
            if part is not None:
                result = result.put(label, part, tree.key(label))
        return result

    def _trackers(self, tree: Tree) -> Items:
        """A list of components; one alone counts as a list of one."""
        items = tree.items if isinstance(tree, Items) else (tree,)
        parts = [part for item in items if (part := self.component(item, "a tracker")) is not None]
        for part in parts:
            if "use" not in part:
                self.problems.add(part.place, "a tracker has a name: NAME or {use: NAME, hyperparameters…}")
        return Items(tuple(part for part in parts if "use" in part), tree.place)

    def component(self, tree: Tree, what: str) -> Table | None:
        """A component as a table; ``use`` may be missing where it only changes another one."""
        if isinstance(tree, Table):
            use = tree.get("use")
            if use is not None and not (isinstance(use, Leaf) and isinstance(use.value, str)):
                self.problems.add(use.place, f"{what}: 'use' takes a component's name, found {describe(use)}")
                return None
            if POSITIONAL in tree:
                self.problems.add(tree.key(POSITIONAL), f"{what}: '{POSITIONAL}' is no hyperparameter")
            return tree.without([POSITIONAL])
        if isinstance(tree, Leaf) and isinstance(tree.value, str):
            return Table(tree.place).put("use", tree)
        hint = "; to compare several, use 'matrix'" if isinstance(tree, Items) else ""
        self.problems.add(tree.place, f"{what}: found {describe(tree)}; {_COMPONENT}{hint}")
        return None

    def method(self, tree: Tree, label: str) -> Table | None:
        """A method's table, or a bundle's."""
        if not isinstance(tree, Table):
            written = shortened(tree.value) if isinstance(tree, Leaf) and isinstance(tree.value, str) else "NAME"
            message = f"method '{label}' is {describe(tree)}; write {{baseline: {written}}}, or {', '.join(PIPELINE)}"
            self.problems.add(tree.place, message)
            return None
        before = len(self.problems)
        self.known(tree, METHOD_KEYS, f"method '{label}'")
        result = Table(tree.place)
        for name in ("like", "bundle"):
            source = self.text(tree.entries[name], name) if name in tree else None
            result = result if source is None else result.put(name, source, tree.key(name))
        if "like" in tree and "bundle" in tree:
            self.problems.add(tree.key("bundle"), "give either 'like' or 'bundle'")
        for name in tree.only(SECTIONS):
            result = result.put(name, self.section(tree.entries[name], name), tree.key(name))
        axes = {"tune": Table(tree.place), "matrix": Table(tree.place)}
        for name in tree.only(PARTS):
            part = self.component(tree.entries[name], name)
            if part is not None:
                part = self._hoist(part, name, axes)
                result = result.put(name, part, tree.key(name))
        result = self._hoist_backbone(result, axes)
        for kind, hoisted in axes.items():
            found = self._axes(tree.entries[kind], kind, hoisted) if kind in tree else hoisted
            if found:
                result = result.put(kind, found, tree.key(kind))
        return mark_faulty(result) if len(self.problems) > before else result

    def _hoist(self, part: Table, name: str, axes: dict[str, Table]) -> Table:
        """Move a component's ``tune`` and ``matrix`` to the method's, under dotted paths."""
        for kind, above in list(axes.items()):
            value, found = part.get(kind), above
            if isinstance(value, Table):
                for key, values in value.entries.items():
                    found = found.put(f"{name}.{key}", self._axis_value(f"{name}.{key}", values), value.key(key))
            elif value is not None and kind == "tune" and _is_default(value):
                found = found.put(name, value, part.key(kind))
            elif value is not None:
                self.problems.add(value.place, _axes_message(kind, value))
            axes[kind] = found
        pool = part.get("pool")
        if pool is not None and name != "encoder":
            self.problems.add(part.key("pool"), "'pool' belongs to an encoder: outputs of several architectures")
            part = part.without(["pool"])
        elif pool is not None and not isinstance(pool, Table):
            self.problems.add(
                pool.place, f"'pool' is a table of lists, such as {{layers: [2, 3]}}, not {describe(pool)}"
            )
            part = part.without(["pool"])
        return part.without(("tune", "matrix"))

    def _hoist_backbone(self, method: Table, axes: dict[str, Table]) -> Table:
        model = method.table("model")
        if "backbone" not in model:
            return method
        backbone = self._hoist(model.table("backbone"), "model", axes)
        return method.put("model", model.put("backbone", backbone, model.key("backbone")), method.key("model"))

    def _axes(self, tree: Tree, kind: str, axes: Table) -> Table:
        if kind == "tune" and _is_default(tree):
            return axes.put(EVERYWHERE, tree)
        if not isinstance(tree, Table):
            self.problems.add(tree.place, _axes_message(kind, tree))
            return axes
        for path, value in tree.entries.items():
            place = tree.key(path)
            if path in axes:
                self.problems.add(place, f"'{path}' is given twice in '{kind}'")
            elif self._axis(path, value, kind, place):
                axes = axes.put(path, self._axis_value(path, value), place)
        return axes

    def _axis(self, path: str, value: Tree, kind: str, place: Place) -> bool:
        head, dot, _ = path.partition(".")
        heads = (*PARTS, "model", "train")
        if path == EVERYWHERE and kind == "tune" and _is_default(value):
            return True
        if head not in heads:
            example = "baseline.penalty" if not dot else "model.layers"
            known = ", ".join(heads)
            self.problems.add(
                place,
                f"'{path}' in '{kind}': a path starts with {known} (for example {example}){did_you_mean(head, heads)}",
            )
            return False
        if dot or (kind == "tune" and _is_default(value) and head in ROLES):
            return True
        if kind == "matrix" and head in PARTS:
            return True
        self.problems.add(place, f"'{path}' in '{kind}' names no value; write for example {head}.NAME: [1, 2]")
        return False

    def _axis_value(self, path: str, value: Tree) -> Tree:
        """Lists of components become lists of tables."""
        if not isinstance(value, Items) or (path not in PARTS and path != "model.backbone"):
            return value
        parts = [part for item in value.items if (part := self.component(item, path)) is not None]
        for part in parts:
            if "use" not in part:
                self.problems.add(part.place, f"a component in the matrix over '{path}' needs a name: {{use: NAME, …}}")
        return Items(tuple(part for part in parts if "use" in part), value.place)

    def text(self, tree: Tree, name: str) -> Leaf | None:
        """A non-empty text."""
        if isinstance(tree, Leaf) and isinstance(tree.value, str) and tree.value.strip():
            return tree
        self.problems.add(tree.place, f"'{name}' takes a name, found {describe(tree)}")
        return None

    def paths(self, tree: Tree, name: str) -> Items:
        """A list of file names; one name alone counts as a list of one."""
        items = tree.items if isinstance(tree, Items) else (tree,)
        if isinstance(tree, Leaf) and tree.value is None:
            items = ()
            self.problems.add(tree.place, f"'{name}' is empty; it lists files")
        kept = [leaf for leaf in (self.text(item, name) for item in items) if leaf is not None]
        return Items(tuple(kept), tree.place)

    def known(self, tree: Table, allowed: Iterable[str], what: str) -> None:
        """Note the keys that are not allowed."""
        names = tuple(allowed)
        for name in tree:
            if name not in names:
                hint = did_you_mean(name, names)
                self.problems.add(tree.key(name), f"unknown key '{name}' in {what}{hint}; allowed: {', '.join(names)}")

    def is_table(self, tree: Tree, name: str) -> bool:
        """Whether this is a table, else a note."""
        if not isinstance(tree, Table):
            self.problems.add(tree.place, f"'{name}' is a table, found {describe(tree)}")
        return isinstance(tree, Table)


def _is_default(tree: Tree) -> bool:
    return isinstance(tree, Leaf) and tree.value == "default"


def _axes_message(kind: str, tree: Tree) -> str:
    also = "'default' or " if kind == "tune" else ""
    return f"'{kind}' takes {also}a table of lists, such as {{penalty: [1, 10]}}, found {describe(tree)}"
