"""Every fault of a suite is reported at once, with its place, what was found, what is allowed and the nearest name."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from suite_kit import DATA, EQUAD, HEAD, Load, methods

Faults = Callable[..., list[str]]
ERM = "methods: {ERM: {baseline: erm}}\n"

CASES = {
    # name: (text, place, words in the message)
    "unknown key": (
        HEAD + DATA + ERM + "sede: 1\n",
        "6:1",
        ["unknown key 'sede'", "did you mean 'seeds'", "allowed: bench"],
    ),
    "line end in a key": (HEAD + DATA + ERM + '"se\\nde": 1\n', "6:1", ["unknown key 'se\\nde'"]),
    "unknown train key": (HEAD + DATA + ERM + "train: {epoch: 1}\n", "6:9", ["'epoch' in 'train'", "'epochs'"]),
    "unknown select key": (HEAD + DATA + ERM + "select: {chekpoint: last}\n", "6:10", ["did you mean 'checkpoint'"]),
    "unknown report key": (HEAD + DATA + ERM + "report: {referense: ERM}\n", "6:10", ["did you mean 'reference'"]),
    "unknown model key": (
        HEAD + DATA + ERM + "model: {hiden: 3}\n",
        "6:9",
        ["backbone 'gin' has no hyperparameter 'hiden'", "did you mean 'hidden'"],
    ),
    "unknown model key that is no backbone's": (
        HEAD + DATA + ERM + "model: {readuot: max}\n",
        "6:9",
        ["did you mean 'readout'"],
    ),
    "key of another backbone": (
        HEAD + DATA + ERM + "model: {backbone: bare, flavour: ogb}\n",
        "6:25",
        ["backbone 'bare' has no hyperparameter 'flavour'"],
    ),
    "unknown method key": (methods("  A: {basline: erm}\n"), "6:7", ["'basline' in method 'A'", "'baseline'"]),
    "unknown component": (
        methods("  A: {baseline: emr}\n"),
        "6:17",
        ["no baseline is called 'emr'", "'erm'", "there are:"],
    ),
    "letter case": (methods("  A: {baseline: ERM}\n"), "6:17", ["did you mean 'erm'"]),
    "unknown dataset": (HEAD + "datasets: {S: {use: sp-motif}}\n" + ERM, "3:21", ["did you mean 'spmotif'"]),
    "unknown hyperparameter": (
        methods("  A: {baseline: {use: irm, penalty_wieght: 1}, envs: random(2)}\n"),
        "6:28",
        ["baseline 'irm' has no hyperparameter 'penalty_wieght'", "did you mean 'penalty'", "it has: penalty"],
    ),
    "unknown dataset hyperparameter": (
        HEAD + "datasets: {S: {use: spmotif, bais: 0.9}}\n" + ERM,
        "3:30",
        ["no hyperparameter 'bais'", "'bias'"],
    ),
    "number as text": (HEAD + DATA + ERM + 'train: {lr: "1e-3"}\n', "6:13", ["expected float", "a number in quotes"]),
    "wrong type": (HEAD + DATA + ERM + "train: {epochs: many}\n", "6:17", ["'epochs': expected int, found 'many'"]),
    "fraction for int": (HEAD + DATA + ERM + "train: {epochs: 1.5}\n", "6:17", ["expected int, found 1.5"]),
    "boolean for int": (HEAD + DATA + ERM + "train: {epochs: true}\n", "6:17", ["expected int, found True"]),
    "out of bounds": (HEAD + DATA + ERM + "train: {epochs: 0}\n", "6:17", ["expected at least 1, found 0"]),
    "infinite": (HEAD + DATA + ERM + "train: {lr: .inf}\n", "6:13", ["expected float, found inf"]),
    "huge": (HEAD + DATA + ERM + f"train: {{lr: {10**400}}}\n", "6:13", ["expected float"]),
    "nothing": (HEAD + DATA + ERM + "train: {lr: }\n", "6:12", ["expected float, found nothing"]),
    "wrong choice": (
        HEAD + DATA + ERM + "select: {checkpoint: best_val}\n",
        "6:22",
        ["best-val, last", "did you mean 'best-val'"],
    ),
    "yes for a boolean": (
        HEAD + "datasets: {S: {use: spmotif, undirected: yes}}\n" + ERM,
        "3:42",
        ["expected bool", "write true or false"],
    ),
    "table for a value": (HEAD + DATA + ERM + "train: {lr: {a: 1}}\n", "6:13", ["expected float, found a table"]),
    "list for a value": (
        methods("  A: {baseline: {use: irm, penalty: [1, 2]}, envs: random(2)}\n"),
        "6:37",
        ["'penalty' is one float, not a list", "'tune'", "'matrix'", "'pool'"],
    ),
    "value for a list": (
        methods("  A: {encoder: mvgrl, quantifier: {use: svm, C: 10}, decorrelator: eqn7}\n"),
        "6:49",
        ["write [10]"],
    ),
    "section is no table": (HEAD + DATA + ERM + "train: 5\n", "6:8", ["'train' is a table, found 5"]),
    "empty methods": (HEAD + DATA + "methods: {}\n", "5:1", ["'methods' is empty", "{ERM: {baseline: erm}}"]),
    "methods is nothing": (HEAD + DATA + "methods:\n", "5:9", ["'methods' is a table", "found nothing"]),
    "methods is text": (
        HEAD + DATA + "methods: erm\n",
        "5:10",
        ["'methods' is a table such as {ERM: {baseline: erm}}, found 'erm'"],
    ),
    "method is text": (
        methods("  ERM: erm\n"),
        "6:8",
        ["method 'ERM' is a table, found 'erm'"],
    ),
    "method is nothing": (methods("  ERM:\n"), "6:7", ["method 'ERM' is a table, found nothing"]),
    "method is empty": (methods("  ERM: {}\n"), "6:3", ["method 'ERM' is empty: give 'baseline'"]),
    "no methods": (HEAD + DATA, "1:1", ["the key 'methods' is missing"]),
    "no datasets": (HEAD + ERM, "1:1", ["the key 'datasets' is missing"]),
    "datasets is nothing": (HEAD + "datasets:\n" + ERM, "3:10", ["'datasets' is a table", "found nothing"]),
    "dataset without a component": (HEAD + "datasets: {S: {bias: 0.9}}\n" + ERM, "3:12", ["'S' has no component"]),
    "empty seeds": ("bench: 1\nseeds: []\n" + DATA + ERM, "2:8", ["'seeds' is empty"]),
    "seeds is nothing": ("bench: 1\nseeds:\n" + DATA + ERM, "2:7", ["'seeds' is empty"]),
    "seed twice": ("bench: 1\nseeds: [1, 2, 1]\n" + DATA + ERM, "2:8", ["a seed is given twice in 'seeds'"]),
    "seed is a boolean": ("bench: 1\nseeds: [true]\n" + DATA + ERM, "2:9", ["'seeds': expected int, found True"]),
    "seed is negative": ("bench: 1\nseeds: [-1]\n" + DATA + ERM, "2:9", ["'seeds': expected at least 0, found -1"]),
    "seeds is text": ("bench: 1\nseeds: one\n" + DATA + ERM, "2:8", ["such as 1,2,3; found 'one'"]),
    "duplicate top key": (HEAD + DATA + ERM + "seeds: [2]\n", "6:1", ["duplicate key 'seeds'"]),
    "no version": ("seeds: [1]\n" + DATA + ERM, "1:1", ["starts with 'bench: 1'"]),
    "another version": ("bench: 2\n" + DATA + ERM, "1:8", ["version 1, found 2"]),
    "name leads out": (HEAD + DATA + ERM + "name: ../../x\n", "6:7", ["'name' may hold letters"]),
    "unknown protocol": (
        HEAD + DATA + ERM + "protocol: EQuAD\n",
        "6:11",
        ["no protocol is called", "did you mean 'equad'"],
    ),
    "budget of nothing": (HEAD + DATA + ERM + "budget: 0\n", "6:9", ["'budget': expected at least 1"]),
    "unknown reference": (
        HEAD + DATA + ERM + "report: {reference: erm}\n",
        "6:21",
        ["'reference' names no row", "'ERM'"],
    ),
    "unknown published numbers": (
        HEAD + DATA + ERM + "report: {published: equad-icml42}\n",
        "6:21",
        ["no published numbers are called 'equad-icml42'", "did you mean 'equad-icml24'"],
    ),
    "statistics is no boolean": (
        HEAD + DATA + ERM + "report: {statistics: all}\n",
        "6:22",
        ["expected bool, found 'all'"],
    ),
    "like nothing": (
        methods(EQUAD + "  B: {like: EQUAD}\n"),
        "7:13",
        ["'like' names no method", "did you mean 'EQuAD'"],
    ),
    "like in a circle": (
        methods("  A: {like: B}\n  B: {like: C}\n  C: {like: B}\n"),
        "8:13",
        ["goes round in a circle: B → C → B"],
    ),
    "like itself": (methods("  A: {like: A}\n"), "6:13", ["A → A"]),
    "like and bundle": (
        methods(EQUAD + "  B: {like: EQuAD, bundle: equad/paper}\n"),
        "7:20",
        ["either 'like' or 'bundle'"],
    ),
    "unknown bundle": (methods("  B: {bundle: equad/papers}\n"), "6:15", ["no bundle is called", "'equad/paper'"]),
    "half a pipeline": (methods("  A: {encoder: mvgrl}\n"), "6:3", ["'A' lacks quantifier, decorrelator"]),
    "baseline and pipeline": (
        methods("  A: {baseline: erm, encoder: mvgrl}\n"),
        "6:3",
        ["has a baseline and also encoder"],
    ),
    "part without a name": (
        methods("  A: {encoder: {layers: 2}, quantifier: svm, decorrelator: eqn7}\n"),
        "6:3",
        ["method 'A' does not name its encoder"],
    ),
    "component is a list": (methods("  A: {baseline: [erm, irm]}\n"), "6:17", ["found a list", "use 'matrix'"]),
    "tune of an unknown name": (
        methods("  A: {baseline: {use: irm, tune: {penalti: [1]}}, envs: random(2)}\n"),
        "6:35",
        ["no hyperparameter 'penalti'"],
    ),
    "tune of an unknown path": (
        methods("  A: {baseline: erm, tune: {basline.x: [1]}}\n"),
        "6:29",
        ["did you mean 'baseline'"],
    ),
    "tune without a path": (
        methods("  A: {baseline: erm, tune: {lr: [1]}}\n"),
        "6:29",
        ["for example baseline.penalty"],
    ),
    "tune of an absent part": (
        methods("  A: {baseline: erm, tune: {envs.k: [1]}}\n"),
        "6:29",
        ["uses no envs"],
    ),
    "tune of an unknown model key": (methods("  A: {baseline: erm, tune: {model.layrs: [1]}}\n"), "6:29", ["'layers'"]),
    "tune of an unknown train key": (
        methods("  A: {baseline: erm, tune: {train.lrr: [1]}}\n"),
        "6:29",
        ["did you mean 'lr'"],
    ),
    "tune of the backbone": (
        methods("  A: {baseline: erm, tune: {model.backbone: [gin]}}\n"),
        "6:29",
        ["no hyperparameter 'backbone'"],
    ),
    "tune of one value": (
        methods("  A: {baseline: erm, tune: {train.lr: 0.1}}\n"),
        "6:39",
        ["takes a list of values, found 0.1"],
    ),
    "tune of no value": (methods("  A: {baseline: erm, tune: {train.lr: []}}\n"), "6:39", ["found an empty list"]),
    "tune is a list": (methods("  A: {baseline: erm, tune: [1]}\n"), "6:28", ["'default' or a table of lists"]),
    "tune of a wrong type": (
        methods("  A: {baseline: erm, tune: {train.lr: [0.1, x]}}\n"),
        "6:45",
        ["expected float, found 'x'"],
    ),
    "no search space": (methods("  A: {baseline: {use: erm, tune: default}}\n"), "6:28", ["declares no search space"]),
    "given and tuned": (
        methods("  A: {baseline: {use: irm, penalty: 1, tune: {penalty: [1]}}, envs: random(2)}\n"),
        "6:47",
        ["'baseline.penalty' is decided twice (given and tune)"],
    ),
    "pool and value": (
        methods("  A: {encoder: {use: mvgrl, layers: 2, pool: {layers: [2]}}, quantifier: svm, decorrelator: eqn7}\n"),
        "6:47",
        ["decided twice (given and pool)"],
    ),
    "pool elsewhere": (
        methods("  A: {encoder: mvgrl, quantifier: {use: svm, pool: {C: [1]}}, decorrelator: eqn7}\n"),
        "6:46",
        ["no hyperparameter 'pool'"],
    ),
    "pool of an unknown name": (
        methods("  A: {encoder: {use: mvgrl, pool: {depth: [1]}}, quantifier: svm, decorrelator: eqn7}\n"),
        "6:36",
        ["'depth'"],
    ),
    "pool of one value": (
        methods("  A: {encoder: {use: mvgrl, pool: {layers: 1}}, quantifier: svm, decorrelator: eqn7}\n"),
        "6:44",
        ["takes a list"],
    ),
    "tune on a dataset": (
        HEAD + "datasets: {S: {use: spmotif, tune: {bias: [1]}}}\n" + ERM,
        "3:30",
        ["dataset 'spmotif' has no hyperparameter 'tune'"],
    ),
    "tune on a dataset's environments": (
        HEAD + "datasets: {S: {use: spmotif, envs: {use: random, tune: {k: [2]}}}}\n" + ERM,
        "3:50",
        ["environment 'random' has no hyperparameter 'tune'"],
    ),
    "tune of the whole suite's backbone": (
        HEAD + DATA + ERM + "model: {backbone: {use: gin, tune: {layers: [2]}}}\n",
        "6:30",
        ["backbone 'gin' has no hyperparameter 'tune'"],
    ),
    "matrix of one value": (
        methods("  A: {baseline: erm, matrix: {model.layers: 3}}\n"),
        "6:45",
        ["takes a list of values"],
    ),
    "matrix over a given part": (
        methods("  A: {baseline: erm, matrix: {baseline: [erm, irm]}}\n"),
        "6:31",
        ["'baseline' is decided twice (given and matrix)"],
    ),
    "matrix of a part without a name": (
        methods("  A: {encoder: mvgrl, decorrelator: eqn7, matrix: {quantifier: [svm, {C: [1]}]}}\n"),
        "6:70",
        ["over 'quantifier' needs a name"],
    ),
    "unknown placeholder": (
        methods("  'A {deph}': {baseline: erm, matrix: {model.layers: [3]}}\n"),
        "6:3",
        ["'{deph}'"],
    ),
    "placeholder without a matrix": (methods("  'A {layers}': {baseline: erm}\n"), "6:3", ["is no axis of its matrix"]),
    "row twice": (
        methods("  A, layers=3: {baseline: erm}\n  A: {baseline: erm, matrix: {model.layers: [3]}}\n"),
        "7:3",
        ["two rows are called"],
    ),
    "no environments": (
        methods("  IRM: {baseline: irm}\n"),
        "6:3",
        [
            "'IRM' (irm) needs environments and dataset 'SP' has none",
            "'envs:'",
            "there are: base, latent, latent-too, random",
        ],
    ),
    "one environment": (
        methods("  A: {baseline: {use: comparing, form: across}, envs: random(1)}\n"),
        "6:55",
        ["'A' (comparing) compares environments, and environment 'random' gives one; it needs two or more"],
    ),
    "one environment, tuned": (
        methods("  A: {baseline: {use: comparing, form: across}, envs: {use: random, tune: {k: [1, 2]}}}\n"),
        "6:61",
        ["environment 'random' gives one"],
    ),
    "one domain": (
        methods(
            "  A: {baseline: {use: comparing, form: across}, envs: {use: domain, max_envs: 1}}\n",
            "datasets:\n  D: {use: drugood}\n",
        ),
        "6:61",
        ["environment 'domain' gives one"],
    ),
    "one environment in each batch": (
        methods(
            "  A: {baseline: {use: comparing, form: across}, train: {groups_per_batch: 1}}\n",
            "datasets:\n  D: {use: drugood}\n",
        ),
        "6:57",
        ["'A' (comparing) compares environments, and 'groups_per_batch: 1' puts one into each batch"],
    ),
    "environments without what is needed": (
        methods("  A: {baseline: demanding, envs: random(2)}\n"),
        "6:34",
        ["'A' (demanding) needs environments that come with weight", "these do: latent, latent-too"],
    ),
    "a default replaced by less": (
        methods("  A: {baseline: weighing, envs: base}\n"),
        "6:33",
        ["'A' (weighing) needs environments that come with weight"],
    ),
    "what no environment provides": (
        methods("  A: {baseline: impossible, envs: latent}\n"),
        "6:35",
        ["come with unheard-of; these do: none"],
    ),
    "domain without domains": (
        methods("  IRM: {baseline: irm, envs: domain}\n"),
        "6:30",
        ["reads the dataset's own environments", "'SP' has none"],
    ),
    "oracle that the dataset lacks": (
        methods("  IRM: {baseline: irm, envs: base}\n", "datasets:\n  T: {use: two-piece}\n"),
        "6:30",
        ["oracle field base", "it has: none"],
    ),
    "oracle field of a quantifier that the dataset lacks": (
        methods(EQUAD.replace("svm", "oracle"), "datasets:\n  T: {use: two-piece}\n"),
        "6:39",
        ["method 'EQuAD': quantifier 'oracle' reads the oracle field base, which dataset 'T' lacks; it has: none"],
    ),
    "value in parentheses": (methods("  A: {baseline: erm(2)}\n"), "6:17", ["takes no value in parentheses"]),
    "wrong value in parentheses": (methods("  A: {baseline: irm, envs: random(x)}\n"), "6:28", ["'k': expected int"]),
    "twice in parentheses": (
        methods("  A: {baseline: irm, envs: {use: random(2), k: 3}}\n"),
        "6:45",
        ["'envs.k' is decided twice"],
    ),
    "task": (
        methods("  A: {baseline: ciga}\n", "datasets:\n  T: {use: toxic}\n"),
        "6:17",
        ["method 'A': baseline 'ciga' supports binary, multiclass tasks; dataset 'T' is multitask"],
    ),
    "unknown split": (
        HEAD + "datasets: {D: {use: drugood}}\n" + ERM + "select: {split: ood-val}\n",
        "5:17",
        ["no validation split 'ood-val'", "did you mean 'ood_val'", "auto, ood_val, iid_val"],
    ),
    "missing data": (
        HEAD + "datasets: {M: {use: ogb, dataset: absent}}\n" + ERM,
        "3:21",
        ["'M': absent.csv is missing; put it at"],
    ),
    "name with a line break": (methods('  "A\\nB": {baseline: erm}\n'), "6:3", ["printable text"]),
}


@pytest.mark.parametrize("case", CASES)
def test_fault(case: str, faults: Faults) -> None:
    text, place, words = CASES[case]
    found = faults(text)
    assert len(found) == 1, found
    assert found[0].startswith(f"{place}: "), found
    for word in words:
        assert word in found[0]
    assert "\n" not in found[0]


def test_one_environment_will_do_where_nothing_is_compared(load: Load) -> None:
    load(
        "train: {groups_per_batch: 1}\n"
        + methods(
            "  A: {baseline: comparing, envs: random(1)}\n"
            "  B: {baseline: {use: comparing, form: across}, envs: random-batch(2)}\n"
            "  C: {baseline: erm}\n"
            "  D: {baseline: {use: comparing, form: over-batches}, envs: random(2)}\n"
        )
    )


def test_all_faults_at_once_in_order(faults: Faults) -> None:
    text = (
        "bench: 1\nseeds: [1, 1]\nsede: 1\nprotocol: equd\ntrain: {lr: x}\n"
        "datasets: {S: {use: spmotiv}, T: {use: spmotif, bias: 2}, U: {use: spmotif}}\n"
        "methods:\n  A: {baseline: emr}\n  B: {baseline: {use: irm, tune: {penalti: [1]}}, envs: random(2)}\n"
        "  C: {like: D}\n"
    )
    assert [fault.split(": ")[0] for fault in faults(text)] == [
        "2:8", "3:1", "4:11", "5:13", "6:21", "6:55", "8:17", "9:35", "10:13"
    ]  # fmt: skip
