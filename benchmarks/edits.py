"""Edits: files that a suite is made of change while it runs; whatever is stored must be what its key says.

    python benchmarks/edits.py [--edits 1000] [--seed 0] [--engines inline processes dask] [--keep]

Five files are edited at random moments by the clock while a suite runs, each between two contents: a plugin, three
helpers that it imports relatively, absolutely and within a function, two of them in folders without ``__init__.py``,
and an input file of the data. Half of the edits replace the file, half write into it; each is whole. The suite first
runs undisturbed in each of the 32 states, in a process of its own: that is what every key may hold. A round takes a
fresh store, runs the suite in it while files are edited until it ends, and once more undisturbed. Then each artifact
must have a key of one of the states and be that state's bit for bit, no failure may be stored, ``bench cache verify``
must find nothing, and nothing may be left over.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from field import SLOWEST, SUITE, Field, ended

from harness.store import Store
from harness.store.maintenance import inspect, listing

PLUGIN = '''\
from extra.factor import FACTOR
from harness import Baseline, hookimpl
from .parts.scale import SCALE

OWN = 2.0

class Scaled(Baseline):
    """ERM with a loss of numbers from four files."""

    name = "scaled"

    def loss(self, batch):
        from .lazy import LAZY

        risk = self.risk(self(batch), batch).mean()
        return {"erm": OWN * risk + SCALE * risk**2 + FACTOR * risk**3 + LAZY * risk**4}

@hookimpl
def bench_register(register):
    register(Scaled)
'''
FILES = {
    "scaled.py": PLUGIN,
    "parts/scale.py": "SCALE = 2.0\n",
    "extra/factor.py": "FACTOR = 2.0\n",
    "lazy.py": "LAZY = 2.0\n",
    "number.txt": "2.0\n",
}
ENGINES = {
    "inline": (1.0, ("--engine", "inline")),
    "processes": (1.5, ("--engine", "processes", "--jobs", "2")),
    "dask": (1.5, ("--engine", "dask", "--jobs", "2")),
}
"""The longest pause between two edits, in seconds, and the options of the run."""


GRACE = 1.0
"""Seconds that are left to a run that took the longest time already."""


@dataclass
class Tally:
    """What became of the rounds of one engine."""

    runs: int = 0
    edits: int = 0
    completed: int = 0
    stages: int = 0
    differences: list[str] = field(default_factory=list)


class Edited(Field):
    """A folder with the suite, its files, and what each key of each of their states must hold.

    Args:
        edited: names of the files that are edited.
    """

    def __init__(self, folder: Path, edited: Iterable[str] = FILES) -> None:
        self.folder, self.edited = folder, list(edited)
        shutil.copy(Path(__file__).resolve().parents[1] / "tests" / "integration" / "toy_plugin.py", folder)
        (folder / "suite.yaml").write_text(SUITE, encoding="utf-8")
        self._warm_up()  # without the plugin that is edited: each process reads it itself
        suite = SUITE.replace("[toy_plugin.py]", "[toy_plugin.py, scaled.py]").replace("seeds: [1]", "seeds: [1, 2]")
        suite = suite.replace("{use: toy}", f"{{use: toy, file: {folder / 'number.txt'}}}")
        (folder / "suite.yaml").write_text(f"{suite}  Scaled: {{baseline: scaled}}\n", encoding="utf-8")
        for name in FILES:
            self.write(name, "2")
        sys.path.insert(0, str(folder))
        self.known: dict[str, dict[str, str]] = {}
        for state in itertools.product("23", repeat=len(self.edited)):
            for name, digit in zip(self.edited, state, strict=True):
                self.write(name, digit)
            self._run(folder / "reference")
        self.known = stored(Store(folder / "reference"))
        trained = [tuple(files.items()) for title, files in self.known.items() if "train Scaled" in title]
        assert len(set(trained)) == len(trained), "two states give the same bits"

    def _environment(self, store: Path) -> dict[str, str]:
        known = super()._environment(store)
        return {**known, "PYTHONPATH": f"{known['PYTHONPATH']}{os.pathsep}{self.folder}"}

    def _run(self, store: Path) -> None:
        code = ended(self.start(store))
        log = self.folder / f"{store.name}.log"
        assert code == 0, f"the undisturbed run ended with {code}: {log.read_text()[-400:]}"

    def write(self, name: str, digit: str, *, within: bool = False) -> None:
        """Give a file one of its contents, at once: by another file in its place, or one byte in it."""
        path, text = self.folder / name, FILES[name].replace("2.0", f"{digit}.0")
        if within:
            target = os.open(path, os.O_WRONLY)
            os.pwrite(target, digit.encode(), text.index(f"{digit}.0"))
            os.close(target)
            return
        path.parent.mkdir(exist_ok=True)
        part = path.with_suffix(".part")
        part.write_text(text, encoding="utf-8")
        part.replace(path)

    def edit(self, rng: random.Random, names: Sequence[str]) -> None:
        """Change one of these files."""
        name = rng.choice(names)
        before = (self.folder / name).read_text(encoding="utf-8")
        self.write(name, "3" if "2.0" in before else "2", within=rng.random() < 0.5)

    def edited_run(self, rng: random.Random, store: Path, pause: float, words: Sequence[str]) -> tuple[int, int]:
        """Run the suite while files are edited, mostly not the data, whose edit ends a run; exit code and edits."""
        names = [name for name in self.edited if name != "number.txt" or rng.random() < 1 / 3]
        pid, edits, end = self.start(store, None, *words), 0, time.monotonic() + SLOWEST
        while True:
            time.sleep(rng.uniform(0, pause))
            if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) or time.monotonic() > end:
                return ended(pid, GRACE), edits
            self.edit(rng, names)
            edits += 1

    def differences(self, store: Path) -> list[str]:
        """Run the suite undisturbed; what is stored and is not what its key says, or should not be there."""
        self._run(store)
        return compare(Store(store), self.known)


def compare(store: Store, known: dict[str, dict[str, str]]) -> list[str]:
    """What a store holds and is not as known, or should not be there."""
    found = []
    for title, files in stored(store).items():
        if title not in known:
            found.append(f"{title}: no state has this key")
        found += [f"{title}: {name} differs" for name in files if files[name] != known.get(title, files).get(name)]
    found += [f"verify: {problem}" for problem in inspect(store)]
    for pattern in ("failures/*/*", "tmp/*", "leases/*"):
        found += [f"left over: {path.relative_to(store.root)}" for path in store.root.glob(pattern)]
    return found


def stored(store: Store) -> dict[str, dict[str, str]]:
    """Checksums of the files of every artifact, by its title and key."""
    found = {}
    for info in listing(store):
        meta = store.meta(info.key)
        assert meta is not None
        found[f"{info.title} {info.key}"] = {name: item["sha256"] for name, item in meta.files.items()}
    return found


def one_round(rng: random.Random, at: Edited, store: Path, engine: str, tally: Tally) -> list[str]:
    """One round; what was found."""
    tally.runs += 1
    try:
        code, edits = at.edited_run(rng, store, *ENGINES[engine])
        tally.edits, tally.completed = tally.edits + edits, tally.completed + (code == 0)
        tally.stages += len(stored(Store(store)))
        found = [] if code in (0, 1, 2) else [f"with edits it ended with {code}"]
        found += at.differences(store)
    except AssertionError as error:
        found = [str(error)]
    tally.differences += found
    return found


def campaign(at: Edited, edits: int, seed: int, engines: Sequence[str], say: Callable[[str], None]) -> dict[str, Tally]:
    """Rounds of each engine until it has its share of the edits."""
    tallies = {engine: Tally() for engine in engines}
    for engine, tally in tallies.items():
        while tally.edits * len(engines) < edits:
            store = at.folder / f"{engine}-{tally.runs:04d}"
            found = one_round(random.Random(f"{seed}-{store.name}"), at, store, engine, tally)
            for line in found:
                say(f"{store.name}: {line}")
            if not found:
                shutil.rmtree(store, ignore_errors=True)
    return tallies


def table(tallies: dict[str, Tally]) -> str:
    """Runs, edits, artifacts and differences by engine."""
    lines = ["| engine | runs | edits | runs with exit code 0 | artifacts compared | differences |"]
    lines.append("|---|" + "---:|" * 5)
    rows: dict[str, tuple[int, ...]] = {
        name: (t.runs, t.edits, t.completed, t.stages, len(t.differences)) for name, t in tallies.items()
    }
    rows["all"] = tuple(map(sum, zip(*rows.values(), strict=True)))
    return "\n".join([*lines, *("| " + " | ".join([name, *map(str, row)]) + " |" for name, row in rows.items())])


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edits", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--engines", nargs="+", choices=list(ENGINES), default=list(ENGINES))
    parser.add_argument("--keep", action="store_true", help="keep the folder, with the stores of rounds that failed")
    given = parser.parse_args()
    import torch  # here, so that the forked runs have it

    torch.set_num_threads(1)
    folder = Path(tempfile.mkdtemp(prefix="bench-edits-"))
    began = time.monotonic()
    at = Edited(folder)
    print(f"{len(at.known)} artifacts of {2 ** len(at.edited)} states, in {time.monotonic() - began:.0f} s", flush=True)
    tallies = campaign(at, given.edits, given.seed, given.engines, lambda line: print(line, flush=True))
    print(table(tallies))
    if not given.keep:
        shutil.rmtree(folder)
    raise SystemExit(1 if any(tally.differences for tally in tallies.values()) else 0)


if __name__ == "__main__":
    main()
