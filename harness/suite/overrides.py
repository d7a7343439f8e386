"""Apply the command line's changes to a suite: ``--seeds``, ``--epochs``, ``--set KEY=VALUE``, and globs of rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from harness.errors import did_you_mean
from harness.suite.normal import over_suite, read_top
from harness.suite.tree import Leaf, Place, Problems, Table, Tree
from harness.suite.yaml import read_value

_FIXED = ("bench", "include", "plugins")
_LABELLED = ("datasets", "methods", "analyses")
_DOTTED_BELOW = ("tune", "matrix", "pool")


@dataclass(frozen=True)
class Overrides:
    """The options of a command line that change a suite.

    Attributes:
        seeds: a list such as ``1,2,3``, or None.
        epochs: epochs of every training, or None.
        sets: ``KEY=VALUE`` texts with dotted keys, such as ``methods.EQuAD.decorrelator.gamma=0.1``.
        datasets, methods: globs of the rows to take; empty for all.
        trackers: further trackers; as they change no result, captions do not tell them.
    """

    seeds: str | None = None
    epochs: int | None = None
    sets: Sequence[str] = ()
    datasets: Sequence[str] = ()
    methods: Sequence[str] = ()
    trackers: Sequence[str] = ()

    def texts(self) -> tuple[str, ...]:
        """The overrides as on the command line, for captions."""
        texts = [f"--seeds {self.seeds}"] if self.seeds is not None else []
        texts += [f"--epochs {self.epochs}"] if self.epochs is not None else []
        for option, values in (("set", self.sets), ("datasets", self.datasets), ("methods", self.methods)):
            texts += [f"--{option} {value}" for value in values]
        return tuple(texts)


def apply_overrides(tree: Table, overrides: Overrides, problems: Problems) -> Table:
    """The suite (normal form) with each ``KEY=VALUE`` laid over it, in order, and then the seeds."""
    for text in overrides.sets:
        place = Place(f"--set {text}")
        split = _split(text, tree, place, problems)
        if split is None:
            continue
        path, written = split
        value = read_value(written, place, problems)
        if value is not None:
            tree = over_suite(tree, read_top(_nest(path, value, place), problems))
    if overrides.seeds is not None:
        place = Place(f"--seeds {overrides.seeds}")
        tree = over_suite(tree, read_top(Table(place).put("seeds", Leaf(overrides.seeds, place)), problems))
    return tree


def _split(text: str, tree: Table, place: Place, problems: Problems) -> tuple[list[str], str] | None:
    """The key's steps and the value; labels of rows may hold dots and equals signs."""
    section, dot, rest = text.partition(".")
    if dot and section in _LABELLED:
        labels = tree.table(section)
        fitting = [label for label in labels if rest.startswith((f"{label}.", f"{label}="))]
        if not fitting:
            wanted = rest.partition("=")[0]
            problems.add(place, _no_row(section, wanted, labels))
            return None
        label = max(fitting, key=len)
        key, equals, value = rest[len(label) :].partition("=")
        steps = [section, label, *key.removeprefix(".").split(".")] if key else [section, label]
    else:
        key, equals, value = text.partition("=")
        steps = key.strip().split(".")
    if not equals or not all(steps):
        problems.add(place, "expected KEY=VALUE with a dotted key, such as train.lr=1e-3")
        return None
    if steps[0] in _FIXED:
        problems.add(place, f"'{steps[0]}' cannot be set from the command line")
        return None
    return steps, value


def _no_row(section: str, wanted: str, labels: Table) -> str:
    steps = wanted.split(".")
    hints = (did_you_mean(".".join(steps[:count]), labels) for count in range(len(steps), 0, -1))
    hint = next((hint for hint in hints if hint), "")
    return f"no row of '{section}' is called '{steps[0]}'{hint}; there are: {', '.join(labels)}"


def _nest(steps: list[str], value: Tree, place: Place) -> Table:
    first = 2 if steps[0] in _LABELLED else 0
    for position, step in enumerate(steps):
        if position >= first and step in _DOTTED_BELOW:
            steps = [*steps[: position + 1], *filter(None, [".".join(steps[position + 1 :])])]
            break
    for step in reversed(steps):
        value = Table(place).put(step, value, place)
    assert isinstance(value, Table)
    return value


def chosen(
    globs: Sequence[str], labels: Sequence[str], option: str, problems: Problems, also: Callable[[str], str] = str
) -> list[str]:
    """The labels that fit any of the globs, in the suite's order; all without globs.

    Args:
        globs: patterns; one that equals a label takes that label literally.
        labels: the rows.
        option: the option's name, for messages.
        problems: receives globs that fit nothing.
        also: another name under which a label may be taken.
    """
    if not globs:
        return list(labels)
    taken: set[str] = set()
    for glob in globs:
        literal = [label for label in labels if glob in (label, also(label))]
        found = literal or [x for x in labels if fnmatchcase(x, glob) or fnmatchcase(also(x), glob)]
        if not found:
            place = Place(f"--{option} {glob}")
            what = "column" if option == "datasets" else "row"
            problems.add(place, f"fits no {what}{did_you_mean(glob, labels)}; there are: {', '.join(labels)}")
        taken.update(found)
    return [label for label in labels if label in taken]
