"""Apply the command line's changes to a suite: ``--seeds``, ``--set KEY=VALUE``, globs of rows, and ``--quick``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from harness.errors import did_you_mean, listed
from harness.registry.catalog import Catalog
from harness.suite.components import coerced
from harness.suite.layers import Decision, Flat, Layers
from harness.suite.settings import KIND_OF, PARTS, ROWS
from harness.suite.tree import Items, Leaf, Place, Problems, Table, plain
from harness.suite.yaml import read_pair

QUICK = "--quick"
NARROWED = ("--seeds ", "--datasets ", "--methods ", "cell ")
"""How those texts of changes begin after which a run may lack cells of its suite."""
_FIXED = ("bench", "include", "plugins")
_DOTTED_BELOW = ("tune", "matrix", "pool")
QUICK_EPOCHS = 2
_SMALL: Mapping[str, Callable[[Any], Any]] = {
    "epochs": lambda epochs: min(epochs or QUICK_EPOCHS, QUICK_EPOCHS),
    "snapshots": lambda epochs: [min([*epochs, QUICK_EPOCHS])],
    "num_per_class": lambda counts: [min(count, 30) for count in counts or [30, 30, 30]],
    "graphs": lambda graphs: min(graphs or 300, 300),
    "limit": lambda graphs: min(graphs or 90, 90),
}
"""Names of hyperparameters that say how much is done, of whatever component -> the value that a quick run takes."""


@dataclass(frozen=True)
class Overrides:
    """The options of a command line that change a suite.

    Attributes:
        seeds: a list such as ``1,2,3``, or None.
        epochs: epochs of every training, or None.
        sets: ``KEY=VALUE`` texts with dotted keys, such as ``methods.EQuAD.decorrelator.gamma=0.1``.
        datasets, methods: globs of the rows to take; empty for all.
        quick: everything as small as it goes: all is tried, no number is a result.
        trackers: further trackers; as they change no result, captions do not tell them.
    """

    seeds: str | None = None
    epochs: int | None = None
    sets: Sequence[str] = ()
    datasets: Sequence[str] = ()
    methods: Sequence[str] = ()
    quick: bool = False
    trackers: Sequence[str] = ()

    def texts(self) -> tuple[str, ...]:
        """The overrides as on the command line, for captions."""
        texts = [QUICK] if self.quick else []
        texts += [f"--seeds {self.seeds}"] if self.seeds is not None else []
        texts += [f"--epochs {self.epochs}"] if self.epochs is not None else []
        for option, values in (("set", self.sets), ("datasets", self.datasets), ("methods", self.methods)):
            texts += [f"--{option} {value}" for value in values]
        return tuple(texts)

    def tables(self, layers: Layers, problems: Problems) -> Iterator[Table]:
        """Each ``KEY=VALUE``, in order, and then the seeds, as tables of a suite; ``layers`` has the rows."""
        for text in self.sets:
            table = _table(text, layers, problems)
            if table is not None:
                yield table
        if self.seeds is not None:
            place = Place(f"--seeds {self.seeds}")
            yield Table(place).put("seeds", Leaf(self.seeds, place))


def _table(text: str, layers: Layers, problems: Problems) -> Table | None:
    place = Place(f"--set {text}")
    section, _, rest = text.partition(".")
    labels = layers.rows.get(section, {}) if section in ROWS else {}
    # Labels may hold dots and equals signs; one that is unknown ends at the first of them.
    fitting = [label for label in labels if rest.startswith((f"{label}.", f"{label}="))]
    label = max(fitting, key=len, default="")
    pair = read_pair(section + rest.removeprefix(label) if label else text, place, problems)
    if pair is None:
        return None
    key, value = pair
    steps = [section, label, *key.split(".")[1:]] if label else key.split(".")
    if section in ROWS and not label and len(steps) > 1:
        hint = f"{did_you_mean(steps[1], labels)}; there are: {listed(labels)}"
        problems.add(place, f"no row of '{section}' is called '{steps[1]}'{hint}")
        return None
    if steps[0] in _FIXED:
        problems.add(place, f"'{steps[0]}' cannot be set from the command line")
        return None
    for position, step in enumerate(steps[2:] if label else steps, 2 if label else 0):
        if step in _DOTTED_BELOW and steps[position + 1 :]:
            steps = [*steps[: position + 1], ".".join(steps[position + 1 :])]
            break
    for step in reversed(steps[1:]):
        value = Table(place).put(step, value, place)
    return Table(place).put(steps[0], value, place)


def chosen(
    globs: Sequence[str], labels: Sequence[str], option: str, problems: Problems, also: Callable[[str], str] = str
) -> list[str]:
    """The labels that fit any of the globs, in the suite's order; all without globs.

    A glob that equals a label takes that label literally; ``also`` gives another name under which one may be taken.
    """
    if not globs:
        return list(labels)
    taken: set[str] = set()
    for glob in globs:
        literal = [label for label in labels if glob in (label, also(label))]
        found = literal or [x for x in labels if fnmatchcase(x, glob) or fnmatchcase(also(x), glob)]
        if not found:
            what = "column" if option == "datasets" else "row"
            hint = f"{did_you_mean(glob, labels)}; there are: {listed(labels)}"
            problems.add(Place(f"--{option} {glob}"), f"fits no {what}{hint}")
        taken.update(found)
    return [label for label in labels if label in taken]


def quick(flat: Flat, catalog: Catalog) -> Flat:
    """Return the decisions of a row with small sizes and, of a pool, one architecture."""
    place = Place(QUICK)
    small = dict(flat)
    for path, one in flat.items():
        if one.way == "pool" and isinstance(one.value, Items):
            small[path] = replace(one, value=replace(one.value, items=one.value.items[:1]))
    for role in ("dataset", "analysis", *PARTS):
        entry = catalog.find(KIND_OF.get(role, role), str(plain(flat[role].value))) if role in flat else None
        hparams = entry.hparams if entry else {}
        for name in _SMALL.keys() & hparams:
            declared, given = hparams[name], flat.get(f"{role}.{name}")
            value = plain(given.value) if given and given.way == "given" else declared.default
            try:
                chosen = coerced(declared, _SMALL[name](coerced(declared, value)))
            except ValueError:  # told with its place when the row is checked
                continue
            several = isinstance(chosen, list)
            tree = Items(tuple(Leaf(item, place) for item in chosen), place) if several else Leaf(chosen, place)
            small[f"{role}.{name}"] = Decision(tree, given.place if given else place)
    return small
