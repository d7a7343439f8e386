"""A small catalog of made-up components and short ways to write and read suites. Nothing here imports torch."""

from __future__ import annotations

from collections.abc import Callable

from plugin_kit import entry

from harness.data import Declaration, Features, Task
from harness.errors import DataError
from harness.hparams import HParam
from harness.registry.catalog import Catalog
from harness.suite.spec import ComponentSpec, Configuration, Row, Suite


def number(name: str, default: float, **more: object) -> HParam:
    """A float."""
    return HParam(name, "float", default, **more)  # type: ignore[arg-type]


def whole(name: str, default: int, **more: object) -> HParam:
    """An int from 1."""
    return HParam(name, "int", default, low=1, **more)  # type: ignore[arg-type]


BACKBONE = (
    whole("layers", 3),
    whole("hidden", 32),
    number("dropout", 0.0, low=0.0, high=1.0),
    HParam("edge_features", "bool", False),
)
FLAVOUR = HParam("flavour", "str", "equad", choices=("equad", "ogb"))
ENCODER = (
    whole("layers", 3),
    whole("hidden", 32),
    HParam("snapshots", "list[int]", [50, 100, 150], low=1),
    whole("batch_size", 32),
    number("lr", 1e-3),
)
STEP = (
    whole("keep", 5),
    number("tau", 0.1, low=0.0, search=(1.0, 0.1), active={"weighting": ("weighted",)}),
    HParam("weighting", "str", "weighted", choices=("weighted", "average", "single")),
)
SINGLE = ["binary", "multiclass"]


def made_up_catalog() -> Catalog:
    """Components under the names of real ones."""
    seed = HParam("seed", "int", 0, low=0)
    return Catalog(
        [
            entry(
                "dataset",
                "spmotif",
                number("bias", 0.6, low=0.0, high=1.0),
                HParam("variant", "str", "published", choices=("published", "clean")),
                HParam("undirected", "bool", False),
                HParam("num_per_class", "list[int]", None, optional=True, low=1),
                seed,
                family="synthetic",
            ),
            entry("dataset", "two-piece", number("invariant", 0.8), number("spurious", 0.9), seed, family="synthetic"),
            entry("dataset", "ogb", HParam("dataset", "str", "bace"), family="ogb"),
            entry("dataset", "toxic", seed, family="molecules"),
            entry("dataset", "drugood", seed, family="drugood"),
            entry("backbone", "gin", *BACKBONE, FLAVOUR),
            entry("backbone", "gcn", *BACKBONE, FLAVOUR),
            entry("backbone", "bare", *BACKBONE),
            entry(
                "environment",
                "domain",
                HParam("max_envs", "int", None, optional=True, low=1),
                requires="env",
                counted_by="max_envs",
            ),
            entry("environment", "base", oracle=["base"]),
            entry("environment", "random", whole("k", 2), positional="k", counted_by="k"),
            entry("environment", "random-batch", whole("k", 2), positional="k", counted_by="k", per_batch=True),
            entry("environment", "latent", whole("k", 10), positional="k", provides=["weight"]),
            entry("environment", "latent-too", provides=["other", "weight"]),
            entry("encoder", "mvgrl", *ENCODER, HParam("views", "str", "adjacency-ppr")),
            entry("encoder", "graphcl", *ENCODER, number("ratio", 0.1)),
            entry("quantifier", "svm", HParam("C", "list[float]", [10.0], low=1e-8)),
            entry("quantifier", "mlp", whole("epochs", 100)),
            entry("quantifier", "oracle", oracle=["base"]),
            entry(
                "decorrelator",
                "eqn7",
                *STEP,
                number("gamma", 0.5, low=0.0, search=(0.7, 0.5, 0.1)),
                number("strength", 0.1, low=0.0, search=(0.01, 0.1), weight_of="invariance"),
                tasks=SINGLE,
            ),
            entry("decorrelator", "reweighted-erm", *STEP, number("gamma", 0.5, search=(0.9, 0.5)), tasks=SINGLE),
            entry("baseline", "erm", tasks=[*SINGLE, "multitask"]),
            entry(
                "baseline",
                "irm",
                number("penalty", 10.0, low=0.0, search=(0.1, 1.0, 10.0)),
                needs=["environments"],
                tasks=[*SINGLE, "multitask"],
            ),
            entry(
                "baseline",
                "ciga",
                HParam("variant", "str", "v1", choices=("v1", "v2"), search=("v1", "v2")),
                number("contrast", 4.0, search=(1.0, 4.0)),
                number("hinge", 1.0, search=(0.5, 1.0), active={"variant": ("v2",)}),
                tasks=SINGLE,
            ),
            entry(
                "baseline",
                "comparing",
                HParam("form", "str", "apart", choices=("apart", "across", "over-batches")),
                needs=["environments"],
                compares_environments={"form": ["across", "over-batches"]},
                compares_over_batches={"form": ["over-batches"]},
            ),
            entry("baseline", "inferring", needs=["environments"], default_environment="latent(3)"),
            entry("baseline", "weighing", needs=["environments", "weight"], default_environment="latent"),
            entry("baseline", "demanding", needs=["environments", "weight"]),
            entry("baseline", "impossible", needs=["environments", "weight", "unheard-of"]),
            entry(
                "baseline",
                "eiil",
                needs=["environments"],
                upstream={"groups": {"kind": "environment", "name": "random", "train": {}, "params": {}}},
            ),
        ]
    )


def declare(spec: ComponentSpec) -> Declaration:
    """What the made-up datasets say of themselves."""
    features = Features("numeric", (4,))
    if spec.name == "bonded":
        return Declaration(Task("multiclass", 3), features, Features("categorical", (3,)))
    if spec.name == "ogb" and spec.params.get("dataset") == "absent":
        raise DataError("absent.csv is missing\nput it at /data/absent.csv")
    if spec.name == "toxic":
        return Declaration(Task("multitask", 2, 12, "rocauc"), features)
    if spec.name == "drugood":
        splits = {"train": "train", "ood_val": "val", "iid_val": "val", "ood_test": "test"}
        task = Task("binary", 2, metric="rocauc")
        return Declaration(task, features, splits=splits, default_val="ood_val", environments=47)  # type: ignore[arg-type]
    oracle = ("base",) if spec.name == "spmotif" else ()
    return Declaration(Task("multiclass", 3), features, oracle=oracle)


HEAD = "bench: 1\nseeds: [1]\n"
DATA = "datasets:\n  SP: {use: spmotif}\n"
EQUAD = "  EQuAD: {encoder: mvgrl, quantifier: svm, decorrelator: eqn7}\n"
IRM = "  IRM: {baseline: {use: irm, tune: {penalty: [0.1, 1, 10]}}, envs: random(2)}\n"
Load = Callable[..., Suite]


def methods(text: str, data: str = DATA) -> str:
    """A suite around the given methods."""
    return f"{HEAD}{data}methods:\n{text}"


def row(suite: Suite, method: str, dataset: str | None = None) -> Row:
    """The row of a method (on the first dataset)."""
    return next(r for r in suite.rows if r.method == method and dataset in (None, r.dataset))


def only(suite: Suite, method: str, dataset: str | None = None) -> Configuration:
    """The single configuration of a row."""
    (configuration,) = row(suite, method, dataset).configurations
    return configuration


def learners(suite: Suite, method: str) -> list[dict[str, object]]:
    """The learner's values in each configuration."""
    return [dict(configuration.learner.params) for configuration in row(suite, method).configurations]


def ids(suite: Suite, method: str) -> list[str]:
    """The configurations' names."""
    return [configuration.id for configuration in row(suite, method).configurations]
