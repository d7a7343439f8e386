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
        name: which graph of the data set it is, as in :class:`Taken`.
        fields: ``x`` and ``edge_attr``, where they are wanted; else they may hold anything.
        label: the field of the label.
        split_field: a field that names the split, or ``masks``, or ``parts`` for ``part`` itself, or None.
        part: which of several datasets it comes from.

    Raises:
        DataError: a field is missing or of a wrong shape, or the number of nodes is not known.
    """
    if not hasattr(data, "edge_index") or hasattr(data, "node_types"):
        raise DataError(f"{name}: is a {type(data).__name__}; expected a torch_geometric.data.Data")
    x = _features(data, "x", name) if "x" in fields else None
    edge_index = _field(data, "edge_index", name)
    if edge_index is None or edge_index.ndim != 2 or len(edge_index) != 2 or edge_index.dtype.kind not in "iu":
        raise DataError(f"{name}: 'edge_index' is {_shape(edge_index)}; expected whole numbers of shape (2, m)")
    nodes = _count(data, _field(data, "x", name) if x is None else x, name)
    if edge_index.size and (edge_index.min() < 0 or edge_index.max() >= nodes):
        raise DataError(
            f"{name}: 'edge_index' has the nodes {edge_index.min()}..{edge_index.max()}, but there are {nodes}"
        )
    edge_attr = _features(data, "edge_attr", name) if "edge_attr" in fields else None
    if edge_attr is not None and len(edge_attr) != edge_index.shape[1]:
        raise DataError(f"{name}: {len(edge_attr)} rows of 'edge_attr' for {edge_index.shape[1]} edges")
    y = _label(data, label, name)
    return Taken(name, nodes, edge_index.astype("int64"), y, x, edge_attr, _split(data, split_field, part, name))


def _stored(data: Any, name: str) -> Any:
    """Return the value stored under a name, never one that PyG would guess from the rest."""
    return data[name] if name in set(data.keys()) else None


def _field(data: Any, name: str, where: str) -> Array | None:
    import numpy as np

    value = _stored(data, name)
    if value is None:
        return None
    if getattr(value, "is_sparse", False) or hasattr(value, "storage_value"):
        raise DataError(f"{where}: '{name}' is sparse; expected a dense tensor")
    return np.asarray(value.detach().cpu() if hasattr(value, "detach") else value)


def _features(data: Any, name: str, where: str) -> Array | None:
    """(rows, F) float32 or int64."""
    import numpy as np

    found = _field(data, name, where)
    if found is None:
        return None
    if found.ndim == 1:
        found = found[:, None]
    if found.ndim != 2 or found.dtype.kind not in "fiub" or found.shape[1] == 0:
        raise DataError(f"{where}: '{name}' is {_shape(found)}; expected numbers of shape (rows, columns)")
    if found.dtype.kind != "f":
        return found.astype(np.int64)
    if found.size and not (np.abs(found.astype(np.float64)) <= LARGEST).all():
        raise DataError(f"{where}: '{name}' holds NaN, an infinity or a number beyond float32")
    return found.astype(np.float32)


def _count(data: Any, x: Array | None, where: str) -> int:
    """Number of nodes as the data say it; never the largest id in ``edge_index``, which misses isolated last nodes."""
    stored = _stored(data, "num_nodes")
    position = _field(data, "pos", where)
    known = {name: len(rows) for name, rows in (("x", x), ("pos", position)) if rows is not None}
    if stored is not None:
        known["num_nodes"] = int(stored)
    if not known:
        raise DataError(
            f"{where}: has neither 'x' nor 'num_nodes', so isolated nodes cannot be counted; set data.num_nodes"
        )
    if len(set(known.values())) > 1:
        told = ", ".join(f"{name} {count}" for name, count in known.items())
        raise DataError(f"{where}: its number of nodes is not one: {told}")
    return next(iter(known.values()))


def _label(data: Any, name: str, where: str) -> Array:
    """(T,) float64."""
    found = _field(data, name, where)
    if found is None or found.dtype.kind not in "fiub" or found.size == 0 or found.ndim > 2:
        raise DataError(f"{where}: the label '{name}' is {_shape(found)}; expected a number, or one per task")
    if found.ndim == 2 and len(found) != 1:
        raise DataError(f"{where}: the label '{name}' is {_shape(found)}, which looks like a label per node")
    if found.ndim == 1 and len(found) > 1:
        raise DataError(
            f"{where}: the label '{name}' is {_shape(found)}, as labels of nodes are; give one label, or those of "
            f"{len(found)} tasks as a row of shape (1, {len(found)})"
        )
    values: Array = found.reshape(-1).astype("float64")
    if (abs(values) == float("inf")).any():
        raise DataError(f"{where}: the label '{name}' is infinite")
    return values


def _split(data: Any, field: str | None, part: int, where: str) -> int | None:
    if field is None:
        return None
    if field == "parts":
        return part
    if field == "masks":
        masks = [_field(data, name, where) for name in MASKS]
        if any(mask is None or mask.size != 1 for mask in masks):
            raise DataError(f"{where}: expected one truth value each in {', '.join(MASKS)}")
        chosen = [number for number, mask in enumerate(masks) if mask is not None and bool(mask.reshape(-1)[0])]
        if len(chosen) > 1:
            raise DataError(f"{where}: is in more than one split: {', '.join(MASKS[number] for number in chosen)}")
        return chosen[0] if chosen else -1
    value = _stored(data, field)
    if hasattr(value, "reshape"):
        value = value.reshape(-1).tolist()
        value = value[0] if len(value) == 1 else value
    number = PARTS.get(value, -2) if isinstance(value, str) else value
    if not isinstance(number, int) or isinstance(number, bool) or number not in (-1, 0, 1, 2):
        raise DataError(f"{where}: '{field}' is {value!r}; expected 0 or train, 1 or val, 2 or test, or -1 for none")
    return number


def arrays(taken: Sequence[Taken], where: str) -> tuple[dict[str, Array], dict[str, Any]]:
    """All graphs in one array per field, and what is to be known of them before they are read.

    ``left_out`` of the latter has the row of each graph that cannot be used, and why: it has no nodes, or no label.

    Raises:
        DataError: graphs differ in which fields they have, or in their widths or types; the order does not matter.
    """
    import numpy as np

    tables = {
        "nodes": np.array([graph.nodes for graph in taken], dtype=np.int64),
        "edges": np.array([graph.edge_index.shape[1] for graph in taken], dtype=np.int64),
        "edge_index": np.ascontiguousarray(np.concatenate([graph.edge_index for graph in taken], axis=1)),
        "y": _joined([(graph.name, graph.y[None]) for graph in taken], "the label", where),
    }
    there = [graph for graph in taken if graph.nodes]
    if not there:
        raise DataError(f"{where}: none of its {len(taken)} graphs has a node")
    for name in ("x", "edge_attr"):
        lacking = [graph.name for graph in there if getattr(graph, name) is None]
        if 0 < len(lacking) < len(there):
            raise DataError(
                f"{where}: {len(lacking)} of {len(there)} graphs have no '{name}' ({_first(lacking)}); give it to all "
                "or to none"
            )
        if not lacking:
            tables[name] = _joined([(graph.name, getattr(graph, name)) for graph in there], f"'{name}'", where)
    if taken[0].split is not None:
        tables["split"] = np.array([graph.split for graph in taken], dtype=np.int64)
    summary = {name: _summary(tables.get(name)) for name in ("x", "edge_attr")}
    left_out = [[row, f"{graph.name}: {why}"] for row, graph in enumerate(taken) if (why := _unusable(graph))]
    return tables, {**summary, "graphs": len(taken), "left_out": left_out, **_labels(tables["y"])}


def _unusable(graph: Taken) -> str:
    """Return the reason why a graph cannot be used; empty if it can."""
    import numpy as np

    if not graph.nodes:
        return "no nodes"
    return "no label" if graph.y.shape == (1,) and np.isnan(graph.y[0]) else ""


def _first(names: Sequence[str]) -> str:
    return names[0] + (" …" if len(names) > 1 else "")


def _joined(named: Sequence[tuple[str, Array]], what: str, where: str) -> Array:
    """The graphs' rows in one array; what has no row has no width or type either."""
    import numpy as np

    filled = [(name, part) for name, part in named if len(part)] or named[:1]
    kinds: dict[tuple[str, int], list[str]] = {}
    for name, part in filled:
        kinds.setdefault((part.dtype.kind, part.shape[1]), []).append(name)
    if len(kinds) > 1:
        words = {"f": "float", "i": "whole"}
        told = ", ".join(
            f"{width} {words[kind]} in {len(names)} ({_first(names)})" for (kind, width), names in sorted(kinds.items())
        )
        raise DataError(f"{where}: {what} differs between graphs in columns or type: {told}")
    return np.ascontiguousarray(np.concatenate([part for _, part in filled]))


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

    values, missing = np.unique(y[~np.isnan(y)]).tolist(), bool(np.isnan(y).any())
    indicators = not missing and y.shape[1] > 1 and set(values) == {0.0, 1.0} and bool((y.sum(1) == 1).all())
    return {"tasks": y.shape[1], "values": values[:1001], "missing": missing, "indicators": indicators}


def _shape(found: Array | None) -> str:
    return "missing" if found is None else f"{found.dtype} of shape {tuple(found.shape)}"
