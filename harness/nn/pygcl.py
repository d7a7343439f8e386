"""Make PyGCL 0.1.2 importable where the extensions it imports, but does not declare, are absent or broken.

PyGCL (Zhu, Xu, Liu and Wu, *An Empirical Study of Graph Contrastive Learning*, NeurIPS 2021 Datasets and
Benchmarks) imports ``dgl``, ``torch_scatter`` and ``torch_sparse``. Builds of these for a given torch are often
not to be had. PyGCL uses five names of them, and one of PyG that later versions may lack:

===================  =============================================  ==============================
module               names                                          stand-in
===================  =============================================  ==============================
``dgl``              ``DGLGraph`` (an annotation), ``graph``        ``graph`` refuses, by name
``torch_scatter``    ``scatter``                                    ``torch_geometric.utils.scatter``
``torch_sparse``     ``coalesce``, ``SparseTensor.random_walk``     ``torch_geometric.utils.coalesce``, a torch loop
``torch_geometric``  ``utils.dropout_adj``                          ``torch_geometric.utils.dropout_edge``
===================  =============================================  ==============================

A real package wins where it imports. The stand-ins are in ``sys.modules`` only while PyGCL is being imported, so
that no other library mistakes them for the real thing. Nothing here imports torch before :func:`load_pygcl` runs.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any

from harness.errors import BenchError

if TYPE_CHECKING:
    from torch import Tensor

_RECORD = "__bench_stand_ins__"


def load_pygcl() -> ModuleType:
    """Import the package ``GCL``, with stand-ins where needed.

    Raises:
        BenchError: PyGCL is not installed, or does not import even so; the text says what to do.
    """
    loaded = sys.modules.get("GCL")
    if loaded is not None:
        return loaded
    if importlib.util.find_spec("GCL") is None:
        raise BenchError("PyGCL is not installed; install it with: pip install PyGCL==0.1.2")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        importlib.import_module("torch_geometric.utils")  # first, so that it never takes a stand-in for the real thing
        importlib.import_module("torch_geometric.transforms")
        with _stand_ins() as reasons:
            try:
                package = importlib.import_module("GCL")
            except Exception as error:
                used = "".join(f"; {name}: {reason}" for name, reason in reasons.items())
                raise BenchError(f"PyGCL does not import ({type(error).__name__}: {error}){used}") from error
    setattr(package, _RECORD, reasons)
    return package


def pygcl_state() -> dict[str, str]:
    """Return the state of PyGCL here: its version, the result of importing it, and the stand-ins it runs on.

    Keys are ``version``, ``import`` (``ok`` or what is wrong), ``dgl``, ``torch_scatter``, ``torch_sparse`` and
    ``dropout_adj`` (``real``, or ``stand-in`` with the reason). Imports PyGCL, and with it torch.
    """
    try:
        version = importlib.metadata.version("PyGCL")
    except importlib.metadata.PackageNotFoundError:
        version = "not installed"
    try:
        reasons: dict[str, str] = getattr(load_pygcl(), _RECORD, {})
    except BenchError as error:
        return {"version": version, "import": str(error)}
    parts = {name: f"stand-in ({reasons[name]})" if name in reasons else "real" for name in (*_MAKERS, "dropout_adj")}
    return {"version": version, "import": "ok", **parts}


@contextmanager
def _stand_ins() -> Iterator[dict[str, str]]:
    """Put stand-ins into ``sys.modules`` for packages that do not import; yield the reason of each."""
    reasons: dict[str, str] = {}
    placed: dict[str, ModuleType] = {}
    utils = importlib.import_module("torch_geometric.utils")
    for name, make in _MAKERS.items():
        reason = _why_unusable(name)
        if reason is not None:
            reasons[name] = reason
            placed[name] = sys.modules[name] = make()
    lacks_dropout = not hasattr(utils, "dropout_adj")
    if lacks_dropout:
        reasons["dropout_adj"] = "not in this torch_geometric"
        utils.dropout_adj = _dropout_adj  # type: ignore[attr-defined]
    try:
        yield reasons
    finally:
        for name, module in placed.items():
            if sys.modules.get(name) is module:
                del sys.modules[name]
        if lacks_dropout:
            del utils.dropout_adj


def _why_unusable(name: str) -> str | None:
    """Return None if the real package imports, else the reason in a few words."""
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        return "not installed" if error.name == name else f"needs {error.name}"
    except Exception as error:
        for part in [part for part in sys.modules if part == name or part.startswith(f"{name}.")]:
            del sys.modules[part]
        text = str(error).splitlines()[0] if str(error) else ""
        return f"broken: {type(error).__name__}: {text}; reinstall it for this torch, or uninstall it"
    return None


def _make_dgl() -> ModuleType:
    module = ModuleType("dgl", "Stand-in: PyGCL names dgl in one annotation and one unused function.")

    def graph(*_: Any, **__: Any) -> None:
        raise ImportError("this needs the package dgl, which is not installed")

    module.DGLGraph = type("DGLGraph", (), {})  # type: ignore[attr-defined]
    module.graph = graph  # type: ignore[attr-defined]
    return module


def _make_torch_scatter() -> ModuleType:
    from torch_geometric.utils import scatter as pyg_scatter

    module = ModuleType("torch_scatter", "Stand-in: scatter by torch_geometric.")

    def scatter(
        src: Tensor,
        index: Tensor,
        dim: int = -1,
        out: Tensor | None = None,
        dim_size: int | None = None,
        reduce: str = "sum",
    ) -> Tensor:
        if out is not None:
            raise NotImplementedError("the stand-in of torch_scatter.scatter takes no 'out'")
        return pyg_scatter(src, index, dim=dim, dim_size=dim_size, reduce=reduce)  # type: ignore[no-any-return]

    module.scatter = scatter  # type: ignore[attr-defined]
    return module


def _make_torch_sparse() -> ModuleType:
    from torch_geometric.utils import coalesce as pyg_coalesce

    module = ModuleType("torch_sparse", "Stand-in: coalesce by torch_geometric, random walks by torch.")

    def coalesce(index: Tensor, value: Tensor | None, m: int, n: int, op: str = "add") -> tuple[Tensor, Tensor | None]:
        if value is None:
            return pyg_coalesce(index, None, num_nodes=max(m, n)), None
        merged, values = pyg_coalesce(index, value, num_nodes=max(m, n), reduce="sum" if op == "add" else op)
        return merged, values

    module.coalesce = coalesce  # type: ignore[attr-defined]
    module.SparseTensor = _WalkableAdjacency  # type: ignore[attr-defined]
    return module


class _WalkableAdjacency:
    """The part of ``torch_sparse.SparseTensor`` that PyGCL uses: uniform random walks along the rows."""

    def __init__(self, row: Tensor, col: Tensor, sparse_sizes: tuple[int, int]) -> None:
        import torch

        order = torch.argsort(row, stable=True)
        self.col = col[order]
        self.degree = torch.bincount(row, minlength=sparse_sizes[0])
        self.first = self.degree.cumsum(0) - self.degree

    def random_walk(self, start: Tensor, walk_length: int) -> Tensor:
        """Return (S, walk_length + 1) visited nodes; a walk stays at a node without outgoing edges."""
        import torch

        nodes = [start]
        for _ in range(walk_length):
            here, degree = nodes[-1], self.degree[nodes[-1]]
            pick = (torch.rand(here.shape, device=here.device) * degree).long().clamp(max=(degree - 1).clamp(min=0))
            step = (self.first[here] + pick).clamp(max=max(self.col.numel() - 1, 0))
            nodes.append(torch.where(degree > 0, self.col[step], here) if self.col.numel() else here)
        return torch.stack(nodes, 1)


def _dropout_adj(
    edge_index: Tensor, edge_attr: Tensor | None = None, p: float = 0.5, **options: Any
) -> tuple[Tensor, Tensor | None]:
    """Stand in for a function that PyGCL calls and that newer PyG has replaced by ``dropout_edge``."""
    from torch_geometric.utils import dropout_edge

    kept, mask = dropout_edge(edge_index, p=p, **options)
    return kept, None if edge_attr is None else edge_attr[mask]


_MAKERS: dict[str, Callable[[], ModuleType]] = {
    "dgl": _make_dgl,
    "torch_scatter": _make_torch_scatter,
    "torch_sparse": _make_torch_sparse,
}
