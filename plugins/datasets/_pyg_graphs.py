"""PyG graphs as plain arrays: what of a ``Data`` object is read, and what is refused."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness import DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

PARTS = {"train": 0, "val": 1, "valid": 1, "validation": 1, "test": 2}
MASKS = ("train_mask", "val_mask", "test_mask")
LARGEST = 3.0e38


@dataclass(frozen=True)
class Taken:
    """One graph: ``x`` (n, F), ``edge_attr`` (m, K) and ``split`` (0, 1, 2: train, val, test; -1: none) may be None.

    ``name`` says which it is of the data set, such as ``graph 7``.
    """

    name: str
    nodes: int
    edge_index: Array
    y: Array
    x: Array | None = None
    edge_attr: Array | None = None
    split: int | None = None


def take(data: Any, name: str, fields: Collection[str], label: str, split_field: str | None, part: int) -> Taken:
    """The fields of one ``Data`` object.

    Args:
        data: the object.
        name: which graph of the data set it is, as in :class:`Taken`.
        fields: ``x`` and ``edge_attr``, where they are wanted; else they may hold anything.
        label: the field of the label.
        split_field: a field that names the split, or ``masks``, or ``parts`` for ``part`` itself, or None.
        part: which of several datasets it comes from.
    """
    if not hasattr(data, "edge_index") or hasattr(data, "node_types"):
        raise ValueError(f"is a {type(data).__name__}; expected a torch_geometric.data.Data")
    edge_index = _field(data, "edge_index")
    if edge_index is None or edge_index.ndim != 2 or len(edge_index) != 2 or edge_index.dtype.kind not in "iu":
        raise ValueError(f"'edge_index' is {_shape(edge_index)}; expected whole numbers of shape (2, m)")
    x = _features(data, "x") if "x" in fields else None
    nodes = _count(data, _field(data, "x") if x is None else x)
    if edge_index.size and (edge_index.min() < 0 or edge_index.max() >= nodes):
        raise ValueError(f"'edge_index' has the nodes {edge_index.min()}..{edge_index.max()}, but there are {nodes}")
    edge_attr = _features(data, "edge_attr") if "edge_attr" in fields else None
    if edge_attr is not None and len(edge_attr) != edge_index.shape[1]:
        raise ValueError(f"{len(edge_attr)} rows of 'edge_attr' for {edge_index.shape[1]} edges")
    y, split = _label(data, label), _split(data, split_field, part)
    return Taken(name, nodes, edge_index.astype("int64"), y, x, edge_attr, split)


def _stored(data: Any, name: str) -> Any:
    """Return the value stored under a name, never one that PyG would guess from the rest."""
    return data[name] if name in set(data.keys()) else None


def _field(data: Any, name: str) -> Array | None:
    import numpy as np

    value = _stored(data, name)
    if value is None:
        return None
    if getattr(value, "is_sparse", False) or hasattr(value, "storage_value"):
        raise ValueError(f"'{name}' is sparse; expected a dense tensor")
    return np.asarray(value.detach().cpu() if hasattr(value, "detach") else value)


def _features(data: Any, name: str) -> Array | None:
    """(rows, F) float32 or int64."""
    import numpy as np

    found = _field(data, name)
    if found is None:
        return None
    if found.ndim == 1:
        found = found[:, None]
    if found.ndim != 2 or found.dtype.kind not in "fiub" or found.shape[1] == 0:
        raise ValueError(f"'{name}' is {_shape(found)}; expected numbers of shape (rows, columns)")
    if found.dtype.kind != "f":
        return found.astype(np.int64)
    if not (np.abs(found.astype(np.float64)) <= LARGEST).all():
        raise ValueError(f"'{name}' holds NaN, an infinity or a number beyond float32")
    return found.astype(np.float32)


def _count(data: Any, x: Array | None) -> int:
    """Number of nodes as the data say it; never the largest id in ``edge_index``, which misses isolated last nodes."""
    stored = _stored(data, "num_nodes")
    if x is None and stored is None:
        raise ValueError("has neither 'x' nor 'num_nodes', so isolated nodes cannot be counted; set data.num_nodes")
    if x is not None and stored is not None and len(x) != stored:
        raise ValueError(f"{len(x)} rows of 'x' for {int(stored)} nodes")
    return int(stored) if x is None else len(x)


def _label(data: Any, name: str) -> Array:
    """(T,) float64."""
    import numpy as np

    found = _field(data, name)
    numbers = found is not None and found.dtype.kind in "fiub" and found.size > 0 and not np.isinf(found).any()
    if found is None or not numbers or (found.shape != (1, found.size) and found.size != 1):
        raise ValueError(
            f"the label '{name}' is {_shape(found)}; expected one finite number, or those of T tasks as a row of "
            "shape (1, T)"
        )
    return found.reshape(-1).astype("float64")


def _split(data: Any, field: str | None, part: int) -> int | None:
    if field is None or field == "parts":
        return None if field is None else part
    if field == "masks":
        masks = [_field(data, name) for name in MASKS]
        chosen = [number for number, mask in enumerate(masks) if mask is not None and mask.size == 1 and mask.any()]
        if len(chosen) > 1 or any(mask is None or mask.size != 1 for mask in masks):
            raise ValueError(f"expected one truth value each in {', '.join(MASKS)}, of which one at most is true")
        return chosen[0] if chosen else -1
    value = _stored(data, field)
    if hasattr(value, "numel") and value.numel() == 1:
        value = value.item()
    number = PARTS.get(value) if isinstance(value, str) else value
    if type(number) is not int or number not in (-1, 0, 1, 2):
        raise ValueError(f"'{field}' is {value!r}; expected 0 or train, 1 or val, 2 or test, or -1 for none")
    return number


def arrays(taken: Sequence[Taken], where: str) -> tuple[dict[str, Array], dict[str, Any]]:
    """All graphs in one array per field, and what is to be known of them before they are read.

    ``left_out`` of the latter has the row of each graph that cannot be used, and why: it has no nodes, or no label.
    """
    import numpy as np

    tables = {
        "nodes": np.array([graph.nodes for graph in taken], dtype=np.int64),
        "edges": np.array([graph.edge_index.shape[1] for graph in taken], dtype=np.int64),
        "edge_index": np.ascontiguousarray(np.concatenate([graph.edge_index for graph in taken], axis=1)),
        "y": _joined({graph.name: graph.y[None] for graph in taken}, "the label", where),
    }
    there = [graph for graph in taken if graph.nodes]
    if not there:
        raise DataError(f"{where}: none of its {len(taken)} graphs has a node")
    for name in ("x", "edge_attr"):
        found = {graph.name: value for graph in there if (value := getattr(graph, name)) is not None}
        if 0 < len(found) < len(there):
            first = next(graph.name for graph in there if graph.name not in found)
            raise DataError(
                f"{where}: {len(there) - len(found)} of {len(there)} graphs have no '{name}', such as {first}; give "
                "it to all or to none"
            )
        if found:
            tables[name] = _joined(found, f"'{name}'", where)
    if taken[0].split is not None:
        tables["split"] = np.array([graph.split for graph in taken], dtype=np.int64)
    summary = {name: _summary(tables.get(name)) for name in ("x", "edge_attr")}
    unlabelled = np.isnan(tables["y"]).all(1) if tables["y"].shape[1] == 1 else np.zeros(len(taken), bool)
    left_out = [
        [row, f"{graph.name}: {'no label' if graph.nodes else 'no nodes'}"]
        for row, graph in enumerate(taken)
        if not graph.nodes or unlabelled[row]
    ]
    return tables, {**summary, "graphs": len(taken), "left_out": left_out, **_labels(tables["y"])}


def _joined(parts: dict[str, Array], what: str, where: str) -> Array:
    """The graphs' rows in one array; what has no row has no width or type either."""
    import numpy as np

    filled = {name: part for name, part in parts.items() if len(part)} or dict(list(parts.items())[:1])
    kinds: dict[tuple[str, int], str] = {}
    for name, part in filled.items():
        kinds.setdefault((part.dtype.kind, part.shape[1]), name)
    if len(kinds) > 1:
        words = {"f": "float", "i": "whole"}
        told = ", ".join(f"{width} {words[kind]} in {name}" for (kind, width), name in sorted(kinds.items()))
        raise DataError(f"{where}: {what} differs between graphs in columns or type: {told}")
    return np.ascontiguousarray(np.concatenate(list(filled.values())))


def _summary(table: Array | None) -> dict[str, Any] | None:
    if table is None:
        return None
    if table.dtype.kind == "f":
        return {"whole": False, "width": table.shape[1]}
    low, high = (table.min(0).tolist(), table.max(0).tolist()) if len(table) else ([0] * table.shape[1],) * 2
    return {"whole": True, "width": table.shape[1], "low": low, "high": high}


def _labels(y: Array) -> dict[str, Any]:
    """Width and the different values, but a few where there are many, as in regression.

    ``indicators``: exactly one 1 and else 0 in every graph.
    """
    import numpy as np

    values = np.unique(y[~np.isnan(y)]).tolist()
    indicators = y.shape[1] > 1 and bool(np.isin(y, (0, 1)).all() and (y.sum(1) == 1).all())
    return {"tasks": y.shape[1], "values": values[:1001], "indicators": indicators}


def _shape(found: Array | None) -> str:
    return "missing" if found is None else f"{found.dtype} of shape {tuple(found.shape)}"
