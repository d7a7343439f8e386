"""``encode``: train one self-supervised encoder without labels; keep each snapshot's weights and embeddings."""

from __future__ import annotations

import torch

from harness.errors import DivergedError
from harness.graphs import PackedGraphs
from harness.randomness import generator, seeded
from harness.stage import Stage
from harness.stages.context import Context, component
from harness.stages.reading import as_float32, on_cpu, read_features, read_graphs
from harness.training.bases import Encoder


def body(stage: Stage, context: Context) -> None:
    """Embeddings of every split are written as ``embeddings`` under ``<epoch>/<split>``."""
    payload = stage.payload
    encoder: Encoder = component(payload["encoder"])
    encoder.node_features = read_features(payload["node_features"])
    encoder.edge_features = read_features(payload["edge_features"])
    encoder.seed = payload["seed"]
    encoder.rng = generator(payload["seed"], "method")
    graphs = {
        split: read_graphs(context.store, payload["data"], split, max_batch_nodes=encoder.max_batch_nodes).to(
            context.device
        )
        for split in payload["splits"]
    }
    with context.store.create(stage) as draft, seeded(payload["seed"], "encoder"):
        embeddings: dict[str, torch.Tensor] = {}
        epochs: list[int] = []
        for epoch, module in encoder.fit(graphs[payload["train"]]):
            embeddings |= {f"{epoch}/{split}": value for split, value in _embed(encoder, module, graphs, epoch).items()}
            draft.write_tensors(f"weights-{epoch}", on_cpu(module.state_dict()))
            epochs.append(epoch)
        draft.write_tensors("embeddings", embeddings)
        draft.write_json("snapshots", {"epochs": epochs, "flags": encoder.flags})


def _embed(
    encoder: Encoder, module: torch.nn.Module, graphs: dict[str, PackedGraphs], epoch: int
) -> dict[str, torch.Tensor]:
    training = module.training
    found = {split: as_float32(encoder.embed(module, pack)) for split, pack in graphs.items()}
    module.train(training)
    for split, value in found.items():
        if value.shape[0] != len(graphs[split]):
            raise ValueError(f"encoder '{encoder.name}' gave {value.shape[0]} rows for {len(graphs[split])} graphs")
        if not bool(torch.isfinite(value).all()):
            raise DivergedError(f"the embeddings of split '{split}' are not finite after epoch {epoch}")
    return found
