"""What environments separate: by environment, the share of training graphs whose oracle parts agree with their label.

    python benchmarks/environments.py suites/all-methods.yaml [--store FOLDER] [--parts base motif]

Reads the environment ids of a suite that has been run, and oracle fields of its training graphs. An environment that
a method can use separates graphs by the part that is spurious; one that separates them by the invariant part misleads,
and shares that are the same everywhere are those of a random division.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from safetensors.numpy import load_file

from harness.run.session import Options, Session, open_session


def main() -> None:
    """Print a line per assignment and environment."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite")
    parser.add_argument("--store", type=Path)
    parser.add_argument("--parts", nargs="+", default=["base", "motif"])
    given = parser.parse_args()
    session = open_session(given.suite, Options(store=given.store))
    print(f"{'ids':<60}{'env':>5}{'graphs':>8}" + "".join(f"{part:>8}" for part in given.parts))
    for stage in session.plan.stages.values():
        if stage.kind == "annotate" and session.store.has(stage.key):
            show(session, stage.title, stage.key, stage.payload.data, given.parts)


def show(session: Session, title: str, key: str, data: str, parts: Sequence[str]) -> None:
    """The environments of one assignment."""
    store = session.store
    prepare = session.plan.stages[session.plan.producers[data]]
    labels = load_file(store.open(data).path("train"))["y"]
    oracle = load_file(store.open(prepare.outputs[0]).path("train"))
    ids = load_file(store.open(key).path("env"))["env"]
    for env in sorted(set(ids.tolist())):
        here = ids == env
        shares = "".join(f"{(oracle[part] == labels)[here].mean():>8.3f}" for part in parts)
        print(f"{title:<60}{env:>5}{here.sum():>8}{shares}")


if __name__ == "__main__":
    main()
