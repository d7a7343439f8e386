"""Whatever the file says, loading gives a suite or a SuiteError with places, never a traceback."""

from __future__ import annotations

import copy
import random
import tempfile
from pathlib import Path

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from suite_kit import declare

from harness.errors import SuiteError
from harness.registry.catalog import Catalog
from harness.suite import Overrides, load_suite
from harness.suite.spec import Suite

TEXT = """
bench: 1
name: all
protocol: equad
seeds: [1, 2]
budget: 2
model: {backbone: {use: gin, flavour: ogb}, layers: 3, readout: sum}
train: {epochs: 5, lr: 1e-3}
select: {checkpoint: best-val, config: mean-val, split: auto}
datasets:
  SP: {use: spmotif, bias: 0.6, model: {hidden: 8}, envs: random(3)}
  D: {use: drugood, train: {epochs: 3}, select: {split: iid_val}}
methods:
  ERM: {baseline: erm, tune: {model.layers: [3, 5]}}
  IRM: {baseline: {use: irm, tune: default}, envs: {use: random, k: 2}}
  EQuAD:
    encoder: {use: mvgrl, pool: {layers: [2, 3], hidden: [8]}, snapshots: [1, 2]}
    quantifier: {use: svm, C: [1, 10]}
    decorrelator: {use: eqn7, tune: {gamma: [0.1, 0.5]}}
    matrix: {quantifier: [svm, mlp]}
  "B {weighting}": {bundle: equad/paper, matrix: {decorrelator.weighting: [average, single]}, tune: default}
  L: {like: EQuAD, decorrelator: {use: reweighted-erm, matrix: {gamma: [0.1]}}, train: {lr: 0.1}}
report: {reference: ERM}
""".replace("    quantifier: {use: svm, C: [1, 10]}\n", "")
ODD = [
    None,
    True,
    0,
    -1,
    1.5,
    1e308,
    float("nan"),
    "",
    "x",
    "default",
    "random(2)",
    "erm",
    "*",
    "!",
    [],
    {},
    [[]],
    [{}],
]
KEYS = [
    "use",
    "like",
    "tune",
    "matrix",
    "pool",
    "envs",
    "model",
    "baseline",
    "encoder",
    "layers",
    "",
    "*",
    "!",
    "a.b",
    "<<",
]


def load(text: str, catalog: Catalog, **overrides: object) -> Suite | SuiteError:
    """The suite, or its faults, which must have places and messages of one line."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "s.yaml"
        path.write_text(text, encoding="utf-8", errors="surrogatepass")
        try:
            suite = load_suite(path, catalog, declare, overrides=Overrides(**overrides))  # type: ignore[arg-type]
        except SuiteError as error:
            found = error
        else:
            found = None
    if found is not None:
        assert found.problems
        assert all(problem.where and problem.message for problem in found.problems)
        return found
    assert suite.rows
    assert all(row.configurations for row in suite.rows)
    names = [[configuration.id for configuration in row.configurations] for row in suite.rows]
    assert all(len(set(ids)) == len(ids) for ids in names)
    return suite


def test_the_unchanged_suite_loads(catalog: Catalog) -> None:
    assert isinstance(load(TEXT, catalog), Suite)


def spots(tree: object) -> list[tuple[object, object]]:
    """Every (container, key) of a tree."""
    keys = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    return [spot for key, value in keys for spot in [(tree, key), *spots(value)]]


def mutate(tree: object, draw: random.Random) -> None:
    """Change one place of the tree: replace, remove, rename, add or move."""
    container, key = draw.choice(spots(tree))
    action = draw.randrange(5)
    if action == 0:
        container[key] = copy.deepcopy(draw.choice(ODD))  # type: ignore[index]
    elif action == 1:
        del container[key]  # type: ignore[attr-defined]
    elif action == 2 and isinstance(container, dict):
        container[draw.choice(KEYS)] = container.pop(key)
    elif action == 3 and isinstance(container, dict):
        container[draw.choice(KEYS)] = copy.deepcopy(draw.choice(ODD))
    else:
        other, where = draw.choice(spots(tree))
        other[where] = copy.deepcopy(container[key])  # type: ignore[index]


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32), count=st.integers(1, 4))
def test_changed_trees(catalog: Catalog, seed: int, count: int) -> None:
    draw = random.Random(seed)
    tree = yaml.safe_load(TEXT)
    for _ in range(count):
        if spots(tree):
            mutate(tree, draw)
    load(yaml.safe_dump(tree, sort_keys=False), catalog)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    start=st.integers(0, len(TEXT)),
    length=st.integers(0, 20),
    put=st.text(alphabet="{}[]:,-&*!|>'\"#%@ \n\tae1.é\x00", max_size=8),
)
def test_changed_text(catalog: Catalog, start: int, length: int, put: str) -> None:
    load(TEXT[:start] + put + TEXT[start + length :], catalog)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    path=st.lists(
        st.sampled_from(["train", "lr", "datasets", "SP", "methods", "EQuAD", "decorrelator", "gamma", *KEYS]),
        max_size=5,
    ),
    value=st.sampled_from(["1", "[1]", "{a: 1}", "x", "", "null", "[", "default", "{use: erm}"]),
)
def test_any_set(catalog: Catalog, path: list[str], value: str) -> None:
    load(TEXT, catalog, sets=[f"{'.'.join(path)}={value}"])


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(max_size=60))
def test_any_text(catalog: Catalog, text: str) -> None:
    load(text, catalog)
