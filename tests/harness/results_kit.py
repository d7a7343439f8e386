"""Small runs made of dictionaries."""

import math
from dataclasses import replace

from harness.results.rows import DatasetFacts, MethodFacts, ResultRow, RunResults


def build_run(cells, *, seeds=(1, 2, 3), datasets=None, facts=None, **fields):
    """A run from ``{method: {dataset: values}}``.

    Values are per seed: a number, ``None`` for a cell that has not run, NaN for an undefined score, or
    ``"status: reason"``. ``{config: values}`` instead of values makes a tuned method (its validation score is the
    test score plus 0.1). ``facts[method]`` overrides fields of :class:`MethodFacts`.
    """
    labels = list(dict.fromkeys(label for by_dataset in cells.values() for label in by_dataset))
    datasets = datasets or tuple(DatasetFacts(label, validation="unbiased") for label in labels)
    entries, rows = [], []
    for method, by_dataset in cells.items():
        for label, values in by_dataset.items():
            configs = values if isinstance(values, dict) else {"-": values}
            configurations = {name: {"x.c": name} if len(configs) > 1 else {} for name in configs}
            entries.append(replace(MethodFacts(label, method, configurations), **(facts or {}).get(method, {})))
            facts_of = next(d for d in datasets if d.label == label)
            for config, scores in configs.items():
                for seed, value in zip(seeds, scores, strict=True):
                    rows += _rows(facts_of, method, config, seed, value)
    defaults = {"suite": "demo", "run": "r1", "protocol": "equad"}
    return RunResults(
        **{**defaults, **fields},
        seeds=tuple(seeds),
        datasets=tuple(datasets),
        methods=tuple(cells),
        entries=tuple(entries),
        rows=tuple(rows),
    )


def _rows(dataset, method, config, seed, value):
    if value is None:
        return []
    status, reason = "ok", ""
    if isinstance(value, str):
        status, _, reason = value.partition(": ")
        value = None
    elif math.isnan(value):
        status, reason, value = "undefined", "1 class", None
    rows = []
    for split, role in dataset.splits.items():
        for rule in (f"best@{dataset.default_val}", "last"):
            shown = value
            if value is not None:
                shown = value + (0.1 if role == "val" else 0.0) - (0.05 if rule == "last" else 0.0)
            rows.append(
                ResultRow(dataset.label, method, config, seed, split, dataset.metric, rule, shown, status, reason)
            )
    return rows
