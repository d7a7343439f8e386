"""``annotate``: environment ids of the training graphs, fixed before training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from harness.graphs import PackedGraphs
from harness.nn.environments import check_ids
from harness.randomness import generator, seeded
from harness.registry.returned import ReturnedError, expect, expect_texts
from harness.stages.context import Context, component
from harness.stages.learners import read_upstream
from harness.stages.payloads import AnnotatePayload, NetworkSettings
from harness.stages.reading import placed, read_graphs, read_groups, read_info, read_model, read_optimizer, read_oracle
from harness.store import Stage
from harness.training.bases import Environment
from harness.training.loop import total_steps


def body(stage: Stage, context: Context) -> None:
    """Write ``env`` (n,), ``extra`` (what else the environment provides) and ``info`` (number, sizes, flags)."""
    payload: AnnotatePayload = stage.payload
    environment: Environment = component(payload.environment)
    environment.rng = generator(payload.seed, "environment")
    train = read_graphs(context.store, payload.data, payload.train, labels=True, env=True)
    train = train.to(context.device)
    train.max_batch_nodes = payload.networks.settings.max_batch_nodes if payload.networks else 0
    if environment.requires not in ("", "env"):
        groups = read_groups(context.store, payload.data, payload.train, environment.requires)
        environment.groups = placed(groups, context.device)
    if payload.networks is not None:
        _set_up(environment, payload, payload.networks, train)
    fields = payload.fields
    oracle = read_oracle(context.store, payload.oracle, payload.train, fields) if fields else {}
    with seeded(payload.seed, "environment"):
        assigned: Any = environment.assign(
            train, placed(oracle, context.device), read_upstream(context, payload.upstream)
        )
    pair = isinstance(assigned, tuple) and len(assigned) == 2
    ids, extra = assigned if pair else (assigned, {})
    _check(environment, ids, extra, len(train))
    sizes = torch.bincount(ids[ids >= 0])
    with context.store.create(stage) as draft:
        draft.write_tensors("env", {"env": ids.to("cpu", copy=True)})
        draft.write_tensors("extra", {name: value.detach().to("cpu", copy=True) for name, value in extra.items()})
        draft.write_json("info", {"environments": len(sizes), "sizes": sizes.tolist(), "flags": environment.flags})


def _set_up(environment: Environment, payload: AnnotatePayload, networks: NetworkSettings, train: PackedGraphs) -> None:
    loop = replace(networks.settings, groups_per_batch=0, drop_last=False)
    info = read_info(payload, networks, train, environments=0, total_steps=total_steps(train, loop))
    model, optimizer = read_model(networks), read_optimizer(networks)
    environment.setup(info, model, seed=payload.seed, batch_size=loop.batch_size, **optimizer)


def _check(environment: Environment, ids: Any, extra: Any, count: int) -> None:
    try:
        check_ids(ids, count)
    except ValueError as error:
        raise ReturnedError(f"environment '{environment.name}', assign: {error}") from None
    expect_texts(environment, "flags", environment.flags)
    tensors = isinstance(extra, Mapping) and all(isinstance(value, Tensor) for value in extra.values())
    expect(tensors, environment, "assign", extra, "beside the ids a dict of tensors")
    if set(extra) != set(environment.provides) or any(len(value) != count for value in extra.values()):
        raise ReturnedError(
            f"environment '{environment.name}' must give one row per training graph of each of its 'provides' "
            f"({', '.join(sorted(environment.provides)) or 'none'}) and nothing else"
        )
