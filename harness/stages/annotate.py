"""``annotate``: environment ids of the training graphs, fixed before training."""

from __future__ import annotations

import torch

from harness.randomness import generator, seeded
from harness.stage import Stage
from harness.stages.context import Context, component
from harness.stages.reading import read_graphs, read_oracle
from harness.stages.upstream import read_upstream
from harness.training.bases import Environment


def body(stage: Stage, context: Context) -> None:
    """Write ``env`` (n,) and ``info`` with the number of environments and their sizes."""
    payload = stage.payload
    environment: Environment = component(payload["environment"])
    environment.rng = generator(payload["seed"], "environment")
    train = read_graphs(context.store, payload["data"], payload["train"], labels=True, env=True)
    oracle = (
        read_oracle(context.store, payload["oracle"], payload["train"], payload["fields"]) if payload["fields"] else {}
    )
    with seeded(payload["seed"], "environment"):
        ids = environment.assign(train, oracle, read_upstream(context, payload))
    if ids.shape != (len(train),) or ids.dtype != torch.int64 or int(ids.min()) < -1 or int(ids.max()) < 0:
        raise ValueError(
            f"environment '{environment.name}' must give each training graph one int64 id: from 0, or -1 for none"
        )
    sizes = torch.bincount(ids[ids >= 0])
    with context.store.create(stage) as draft:
        draft.write_tensors("env", {"env": ids.clone()})
        draft.write_json("info", {"environments": len(sizes), "sizes": sizes.tolist()})
