"""``encode``: train one self-supervised encoder without labels; keep each snapshot's weights and embeddings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from harness.errors import DivergedError
from harness.graphs import PackedGraphs
from harness.randomness import generator, seeded
from harness.registry.returned import expect, expect_array, expect_texts
from harness.stages.context import Context, component
from harness.stages.payloads import EncodePayload
from harness.stages.reading import as_float32, on_cpu, read_graphs
from harness.store import Stage
from harness.training.bases import Encoder


def body(stage: Stage, context: Context) -> None:
    """Write the embeddings of every split as ``embeddings`` under ``<epoch>/<split>``."""
    payload: EncodePayload = stage.payload
    encoder: Encoder = component(payload.encoder)
    encoder.node_features = payload.node_features
    encoder.edge_features = payload.edge_features
    encoder.seed = payload.seed
    encoder.rng = generator(payload.seed, "method")
    graphs = {
        split: read_graphs(context.store, payload.data, split, max_batch_nodes=encoder.max_batch_nodes).to(
            context.device
        )
        for split in payload.splits
    }
    with context.store.create(stage) as draft, seeded(payload.seed, "encoder"):
        embeddings: dict[str, torch.Tensor] = {}
        epochs: list[int] = []
        for epoch, module in snapshots(encoder, graphs[payload.train]):
            embeddings |= {f"{epoch}/{split}": value for split, value in _embed(encoder, module, graphs, epoch).items()}
            draft.write_tensors(f"weights-{epoch}", on_cpu(module.state_dict()))
            epochs.append(epoch)
        expect_texts(encoder, "flags", encoder.flags)
        draft.write_tensors("embeddings", embeddings)
        draft.write_json("snapshots", {"epochs": epochs, "flags": encoder.flags})


def snapshots(encoder: Encoder, graphs: PackedGraphs) -> Iterator[tuple[int, torch.nn.Module]]:
    """Yield what ``fit`` yields: each epoch of ``snapshots``, in ascending order, and the module as it then is."""
    given: Any = encoder.fit(graphs)
    allowed = "a generator (`yield epoch, module`), so that each module is taken as it is after its epoch"
    expect(isinstance(given, Iterator), encoder, "fit", given, allowed)
    due = sorted(set(encoder.snapshots))
    for item in given:
        pair = isinstance(item, tuple) and len(item) == 2 and isinstance(item[1], torch.nn.Module)
        expect(pair, encoder, "fit", item, "a pair of an epoch and a torch.nn.Module with each `yield`")
        wanted = f"the epochs of 'snapshots' in ascending order, next {due[0] if due else 'none'}"
        expect(bool(due) and item[0] == due[0], encoder, "fit", item[0], wanted)
        yield due.pop(0), item[1]
    expect(not due, encoder, "fit", None, f"a `yield` after epoch {due[0] if due else ''}, one of 'snapshots'")


def embedded(encoder: Encoder, module: torch.nn.Module, graphs: PackedGraphs) -> torch.Tensor:
    """Return the (n, d) result of ``embed``."""
    found = encoder.embed(module, graphs)
    expect_array(encoder, "embed", found, (len(graphs), None))
    return found


def _embed(
    encoder: Encoder, module: torch.nn.Module, graphs: dict[str, PackedGraphs], epoch: int
) -> dict[str, torch.Tensor]:
    training = module.training
    found = {split: as_float32(embedded(encoder, module, pack)) for split, pack in graphs.items()}
    module.train(training)
    for split, value in found.items():
        if not bool(torch.isfinite(value).all()):
            raise DivergedError(f"the embeddings of split '{split}' are not finite after epoch {epoch}")
    return found
