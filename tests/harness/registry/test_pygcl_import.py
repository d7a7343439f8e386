"""PyGCL imports on a pure pip install, and its stand-ins do what the real packages do."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
import torch

from harness.registry import pygcl

EXTENSIONS = ("dgl", "torch_scatter", "torch_sparse")
absent = pytest.mark.skipif(
    any(importlib.util.find_spec(name) for name in EXTENSIONS),
    reason="a real dgl, torch_scatter or torch_sparse is here",
)


def run(program, extra_path=""):
    root = str(Path(__file__).parents[2])
    path = os.pathsep.join(part for part in (str(extra_path), root) if part)
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, env=environment)


def test_nothing_is_imported_before_it_is_asked_for():
    done = run("import sys, harness; print(sorted({'torch', 'torch_geometric', 'GCL'} & set(sys.modules)))")
    assert done.stdout.strip() == "[]", done.stderr


@absent
def test_a_plugin_file_imports_pygcl_at_its_top_and_stand_ins_do_not_stay(tmp_path):
    """PyG, asked later, must not take a stand-in for the real package."""
    plugin = tmp_path / "contrast.py"
    plugin.write_text(
        "import GCL.augmentors as A\n"
        "from harness import Baseline, hookimpl\n\n\n"
        "class Mine(Baseline):\n"
        '    """ERM."""\n\n'
        '    name = "mine"\n'
        "    augment = A.EdgeRemoving(pe=0.5)\n\n\n"
        "@hookimpl\n"
        "def bench_register(register):\n"
        "    register(Mine)\n"
    )
    done = run(
        "import sys\n"
        "from pathlib import Path\n"
        "from harness.registry.discovery import file_source, load_source\n"
        f"augment = load_source(file_source(Path({str(plugin)!r})))[0].augment\n"
        "from torch_geometric import typing\n"
        "assert not typing.WITH_TORCH_SCATTER\n"
        f"print(augment.pe, set({EXTENSIONS}) & set(sys.modules))\n"
    )
    assert done.stdout.strip() == "0.5 set()", done.stderr
    state = pygcl.pygcl_state()
    assert state["version"] == "0.1.2"
    assert state["import"] == "ok"
    assert all(state[name] == "stand-in (not installed)" for name in EXTENSIONS)


def test_a_broken_torch_scatter_is_named_and_replaced_and_a_real_dgl_wins(tmp_path):
    (tmp_path / "torch_scatter.py").write_text("raise OSError('undefined symbol: _ZN5torch')\n")
    (tmp_path / "dgl.py").write_text("class DGLGraph: pass\n")
    program = (
        "import json, warnings; warnings.simplefilter('ignore')\n"
        "from harness.registry.pygcl import pygcl_state\n"
        "import torch, dgl, GCL\n"
        "assert GCL.utils.dgl is dgl\n"
        "h, g = torch.zeros(4, 2), torch.zeros(2, 2)\n"
        "contrast = GCL.models.DualBranchContrast(GCL.losses.JSD(), 'G2L')\n"
        "assert contrast(h, h, g, g, torch.tensor([0, 0, 1, 1])) == 0\n"
        "print(json.dumps(pygcl_state()))\n"
    )
    done = run(program, tmp_path)
    assert done.returncode == 0, done.stderr
    assert '"dgl": "real"' in done.stdout
    assert "stand-in (broken: OSError: undefined symbol: _ZN5torch; reinstall it" in done.stdout


def test_a_pygcl_that_does_not_import_names_the_stand_ins(tmp_path):
    (tmp_path / "GCL").mkdir()
    (tmp_path / "GCL/__init__.py").write_text("import dgl; dgl.graph()\n")
    done = run("import harness, GCL", tmp_path)
    assert "PyGCL does not import (ImportError: this needs the package dgl" in done.stderr
    assert "; dgl: not installed" in done.stderr


def test_scatter_adds_rows():
    scatter = pygcl._make_torch_scatter().scatter
    ones = torch.eye(4)
    assert scatter(ones, torch.tensor([0, 0, 1, 1]), dim=0, reduce="sum").tolist() == [[1, 1, 0, 0], [0, 0, 1, 1]]
    assert scatter(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([2, 0, 2])).tolist() == [2, 0, 4]
    with pytest.raises(NotImplementedError, match="out"):
        scatter(ones, torch.arange(4), out=ones)


def test_coalesce_sorts_and_adds():
    coalesce = pygcl._make_torch_sparse().coalesce
    index, value = coalesce(torch.tensor([[1, 0, 1], [0, 1, 0]]), torch.tensor([1.0, 2.0, 4.0]), 2, 2)
    assert index.tolist() == [[0, 1], [1, 0]]
    assert value.tolist() == [2, 5]
    assert coalesce(index, None, 2, 2)[1] is None


def test_walks_follow_edges_and_stay_where_there_is_none():
    adjacency = pygcl._make_torch_sparse().SparseTensor(
        row=torch.tensor([2, 0, 0]), col=torch.tensor([0, 1, 2]), sparse_sizes=(4, 4)
    )
    walks = adjacency.random_walk(torch.tensor([0, 1, 2, 3] * 50), 3)
    assert walks.shape == (200, 4)
    steps = {tuple(step) for walk in walks.tolist() for step in pairwise(walk)}
    assert steps == {(0, 1), (0, 2), (2, 0), (1, 1), (3, 3)}
    empty = torch.empty(0, dtype=torch.int64)
    lonely = pygcl._make_torch_sparse().SparseTensor(row=empty, col=empty, sparse_sizes=(2, 2))
    assert lonely.random_walk(torch.tensor([1]), 2).tolist() == [[1, 1, 1]]


def test_dgl_graphs_are_refused_by_name():
    with pytest.raises(ImportError, match="dgl"):
        pygcl._make_dgl().graph(None)


def test_dropout_adj_is_there_where_pyg_has_dropped_it():
    edges = torch.arange(20).view(2, 10)
    kept, values = pygcl._dropout_adj(edges, torch.arange(10), p=0.5)
    assert torch.equal(kept[0], values)
    assert pygcl._dropout_adj(edges, p=0.0)[0].shape == (2, 10)


def test_pygcls_augmentors_run_on_the_stand_ins():
    from GCL import augmentors

    x, edges = torch.ones(5, 2), torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]])
    for augmentor in (
        augmentors.EdgeRemoving(pe=0.5),
        augmentors.PPRDiffusion(use_cache=False),
        augmentors.RWSampling(num_seeds=3, walk_length=2),
        augmentors.NodeDropping(pn=0.5),
    ):
        _, found, _ = augmentor(x, edges)
        assert found.shape[0] == 2
