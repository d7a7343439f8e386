"""Let ``import GCL`` work where the extensions that PyGCL 0.1.2 imports, but does not declare, are absent or broken.

PyGCL (Zhu, Xu, Liu and Wu, *An Empirical Study of Graph Contrastive Learning*, NeurIPS 2021 Datasets and
Benchmarks) imports ``dgl``, ``torch_scatter`` and ``torch_sparse``. Builds of these for a given torch are often
not to be had. PyGCL uses five names of them, and one of PyG that is deprecated and warns at each call:

===================  =============================================  ==============================
module               names                                          stand-in
===================  =============================================  ==============================
``dgl``              ``DGLGraph`` (an annotation), ``graph``        ``graph`` refuses, by name
``torch_scatter``    ``scatter``                                    ``torch_geometric.utils.scatter``
``torch_sparse``     ``coalesce``, ``SparseTensor.random_walk``     ``torch_geometric.utils.coalesce``, a torch loop
``torch_geometric``  ``utils.dropout_adj``                          ``torch_geometric.utils.dropout_edge``
===================  =============================================  ==============================

A real ``dgl``, ``torch_scatter`` or ``torch_sparse`` wins where it imports. The stand-ins are in ``sys.modules`` only
while PyGCL is being imported, so that no other library mistakes them for the real thing. ``import harness`` puts
:class:`PyGCLFinder` in place; nothing here imports torch before ``GCL`` is asked for.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

_RECORD = "__bench_stand_ins__"


class PyGCLFinder:
    """Finds the package ``GCL`` where it is installed, and has it loaded with stand-ins; finds nothing else."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Return the spec of ``GCL``; None for all other names."""
        del path, target
        spec = PathFinder.find_spec(name) if name == "GCL" else None
        if spec is not None and spec.origin is not None:
            spec.loader = _Loader(name, spec.origin)
        return spec


class _Loader(SourceFileLoader):
    """Loads ``GCL``, which imports all of its modules, with stand-ins."""

    def exec_module(self, module: ModuleType) -> None:
        """Import the package.

        Raises:
            ImportError: PyGCL does not import even so; the text has the reasons of the stand-ins.
        """
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with _stand_ins() as reasons:
                try:
                    super().exec_module(module)
                except Exception as error:
                    used = "".join(f"; {name}: {reason}" for name, reason in reasons.items())
                    raise ImportError(f"PyGCL does not import ({type(error).__name__}: {error}){used}") from error
        setattr(module, _RECORD, reasons)


def pygcl_state() -> dict[str, str]:
    """Return the state of PyGCL here: its version, the result of importing it, and the stand-ins it runs on.

    Keys are ``version``, ``import`` (``ok`` or what is wrong), ``dgl``, ``torch_scatter``, ``torch_sparse`` and
    ``dropout_adj`` (``real``, or ``stand-in`` with the reason). Imports PyGCL, and with it torch.
    """
    from importlib.metadata import PackageNotFoundError, version

    try:
        found = version("PyGCL")
    except PackageNotFoundError:
        return {"version": "not installed", "import": "install it with: pip install PyGCL==0.1.2"}
    try:
        reasons: dict[str, str] = getattr(importlib.import_module("GCL"), _RECORD, {})
    except ImportError as error:
        return {"version": found, "import": str(error)}
    parts = {name: f"stand-in ({reasons[name]})" if name in reasons else "real" for name in (*_MAKERS, "dropout_adj")}
    return {"version": found, "import": "ok", **parts}


@contextmanager
def _stand_ins() -> Iterator[dict[str, str]]:
    """Put stand-ins into ``sys.modules`` for packages that do not import; yield the reason of each."""
    reasons: dict[str, str] = {"dropout_adj": "deprecated in torch_geometric"}
    placed: dict[str, ModuleType] = {}
    importlib.import_module("torch_geometric.transforms")  # first, so that it never takes a stand-in for the real thing
    utils = importlib.import_module("torch_geometric.utils")
    for name, make in _MAKERS.items():
        reason = _why_unusable(name)
        if reason is not None:
            reasons[name] = reason
            placed[name] = sys.modules[name] = make()
    original = getattr(utils, "dropout_adj", None)
    utils.dropout_adj = _dropout_adj  # type: ignore[attr-defined]
    try:
        yield reasons
    finally:
        utils.dropout_adj = original  # type: ignore[attr-defined]
        for name, module in placed.items():
            if sys.modules.get(name) is module:
                del sys.modules[name]


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
