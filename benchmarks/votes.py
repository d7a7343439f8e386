"""How the quantifiers vote: mean probability of the true label where base and label agree, and elsewhere.

    python benchmarks/votes.py benchmarks/recorded/two-piece.yaml --store FOLDER

Reads the quantify stages of a suite that has been run, and the oracle fields ``base`` and ``motif`` of its training
graphs. ``agree`` are those whose base agrees with the label, ``other`` the others; ``base`` and ``motif`` those in
which only that part does.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

from harness.run.session import Options, Session, open_session


def main() -> None:
    """Print a line per quantify stage and candidate."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suite")
    parser.add_argument("--store", type=Path)
    given = parser.parse_args()
    session = open_session(given.suite, Options(store=given.store))
    columns = ("agree", "other", "base", "motif", "train", "val")
    print(f"{'stage':<70}{'epoch':>6}" + "".join(f"{column:>8}" for column in columns))
    for stage in session.plan.stages.values():
        if stage.kind == "quantify" and session.store.has(stage.key):
            show(session, stage.title, stage.key, stage.payload["data"])


def show(session: Session, title: str, key: str, data: str) -> None:
    """The candidates of one quantify stage."""
    store = session.store
    prepare = session.plan.stages[session.plan.producers[data]]
    labels = load_file(store.open(data).path("train"))["y"]
    oracle = load_file(store.open(prepare.outputs[0]).path("train"))
    base, motif = oracle["base"] == labels, oracle["motif"] == labels
    groups = (base, ~base, base & ~motif, motif & ~base)
    artifact = store.open(key)
    probabilities = load_file(artifact.path("probabilities"))["probabilities"]
    for row, table in zip(artifact.read_json("candidates"), probabilities, strict=True):
        vote = table[np.arange(len(labels)), labels]
        means = [*(vote[group].mean() for group in groups), row["train_score"], *row["scores"].values()]
        print(f"{title:<70}{row['epoch']:>6}" + "".join(f"{value:>8.3f}" for value in means))


if __name__ == "__main__":
    main()
