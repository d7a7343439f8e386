"""What this code must not call: a scan of the syntax trees of all that is run beside the tests.

Each call that is allowed nevertheless stands in :data:`ALLOWED` with the reason.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FILES = sorted(
    path
    for folder in ("harness", "plugins", "examples", "benchmarks")
    for path in (ROOT / folder).rglob("*.py")
    if "build" not in path.parts
)
MODULES = ("pickle", "cPickle", "_pickle", "dill", "cloudpickle", "marshal", "shelve", "joblib")
CALLS = ("eval", "exec", "compile", "__import__")
ATTRIBUTES = {
    "os": ("system", "popen", "spawnl", "spawnv", "spawnlp", "spawnvp"),
    "tempfile": ("mktemp",),
    "pandas": ("read_pickle",),
    "pd": ("read_pickle",),
    "yaml": ("unsafe_load", "full_load", "load_all", "unsafe_load_all", "full_load_all"),
    "commands": ("getoutput",),
    "subprocess": ("getoutput", "getstatusoutput"),
    "builtins": ("eval", "exec"),
}
ALLOWED = {
    # the answers of processes that this one has started, through a pipe that nobody else holds
    ("plugins/datasets/_smiles_pool.py", "import pickle"): 1,
    # the loader is CSafeLoader or SafeLoader, which a test of parse_yaml holds it to
    ("harness/safe_io.py", "yaml.load without a safe loader"): 1,
    # classes of PyTorch Geometric read what they stored as pickles: in a process of its own, and told in its docstring
    ("plugins/datasets/_pyg_cache.py", "weights_only off for all"): 1,
}


def found(tree: ast.AST) -> Iterator[str]:
    """What a tree holds that needs a reason."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name.split(".")[0] for alias in node.names]
            yield from (f"import {name}" for name in names if name in MODULES)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            if node.module.split(".")[0] in MODULES:
                yield f"import {node.module}"
            owned = (*ATTRIBUTES.get(node.module, ()), *(["load"] if node.module in ("yaml", "torch") else []))
            yield from (f"{node.module}.{alias.name}" for alias in node.names if alias.name in owned)
        elif isinstance(node, ast.Constant) and node.value == "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD":
            yield "weights_only off for all"
        elif isinstance(node, ast.Call):
            yield from _calls(node)


def _calls(node: ast.Call) -> Iterator[str]:
    given = {item.arg: item.value for item in node.keywords}
    if isinstance(node.func, ast.Name) and node.func.id in CALLS:
        yield f"{node.func.id}()"
    if _is_true(given.get("shell")):
        yield "shell=True"
    if _is_true(given.get("allow_pickle")):
        yield "allow_pickle=True"
    if isinstance(node.func, ast.Attribute):
        owner, name = ast.unparse(node.func.value), node.func.attr
        if name in ATTRIBUTES.get(owner, ()):
            yield f"{owner}.{name}"
        if (owner, name) == ("yaml", "load") and not _is_safe(given.get("Loader")):
            yield "yaml.load without a safe loader"
        if (owner, name) == ("torch", "load") and not _is_true(given.get("weights_only")):
            yield "torch.load without weights_only=True"
        if name in ("extractall", "extract") and "filter" not in given:
            yield f"{name} without a filter"


def _is_true(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Constant) and value.value is True


def _is_safe(value: ast.expr | None) -> bool:
    return value is not None and ast.unparse(value) in ("yaml.SafeLoader", "yaml.CSafeLoader")


def test_every_call_that_needs_a_reason_has_one() -> None:
    counted: Counter[tuple[str, str]] = Counter()
    for path in FILES:
        tree = ast.parse(path.read_bytes(), filename=str(path))
        counted.update((path.relative_to(ROOT).as_posix(), what) for what in found(tree))
    assert counted == ALLOWED


@pytest.mark.parametrize(
    "code",
    [
        "import pickle",
        "from pickle import loads",
        "import joblib.x",
        "eval(x)",
        "exec(x)",
        "__import__(x)",
        "compile(x)",
        "from yaml import load",
        "from torch import load",
        "yaml.load(x)",
        "yaml.load(x, Loader=yaml.Loader)",
        "yaml.unsafe_load(x)",
        "torch.load(x)",
        "{'TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD': 1}",
        "torch.load(x, weights_only=False)",
        "np.load(x, allow_pickle=True)",
        "subprocess.run(x, shell=True)",
        "os.system(x)",
        "from os import system",
        "tempfile.mktemp()",
        "tar.extractall(x)",
        "zip.extract(x)",
    ],
)
def test_the_scan_sees(code: str) -> None:
    assert len(list(found(ast.parse(code)))) == 1


@pytest.mark.parametrize(
    "code",
    ["model.eval()", "re.compile(x)", "torch.load(x, weights_only=True)", "yaml.load(x, Loader=yaml.SafeLoader)"],
)
def test_the_scan_passes(code: str) -> None:
    assert list(found(ast.parse(code))) == []
