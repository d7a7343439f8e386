"""Information in frozen representations: a classifier trained on half of the validation split, scored on test."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from harness import Analysis, Findings, MeasuredCell, Register, Study, hookimpl, hparam
from plugins.analyses._plots import LINE, legend_above, panels, percent, plain, split_name

if TYPE_CHECKING:
    from harness import TrainedCell

Array = NDArray[Any]
NETWORK, ENCODER = "trained network", "self-supervised encoder"


class Representation(Analysis):
    """Freeze an encoder, train a two-layer perceptron on half of the validation graphs, score it on the test split.

    After the study in EQuAD's appendix (Yao et al., *Empowering Graph Invariance Learning with Deep Spurious Infomax*,
    ICML 2024) of what ERM and infomax keep of the invariant part: where test scores stay near chance although the
    classifier saw unbiased labels, the representation has lost it. The other half of validation gives the score
    without shift. Each method offers its trained network; one with an encoder also that encoder's last snapshot, the
    architectures of a pool joined. Features are standardised on the half that is trained on. Dataset
    ``spmotif-large-invariant`` has the case in which the invariant part is the larger one.
    """

    name = "representation"
    tasks = frozenset({"binary", "multiclass"})
    opens_test = True
    probes = {"*": {"epochs": 20}}

    hidden: int = hparam(64, low=1, help="width of the perceptron's hidden layer")
    epochs: int = hparam(300, low=1, help="most passes over the half; training stops when the loss no longer falls")

    def measure(self, cell: TrainedCell) -> dict[str, Any]:
        labels = cell.labels(cell.monitor)
        rng = np.random.Generator(np.random.PCG64(cell.seed))
        order = rng.permutation(len(labels))
        half, rest = np.sort(order[: len(order) // 2]), np.sort(order[len(order) // 2 :])
        found: dict[str, Any] = {"rest": rest, "sources": list(_sources(cell))}
        tests = [split for split in cell.splits if split not in (cell.train_split, *cell.validation_splits)]
        for number, (_, read) in enumerate(_sources(cell).items()):
            table = read(cell.monitor)
            predict = self._fit(table[half], labels[half], cell.task.num_classes, cell.seed)
            found[f"{number}/rest"] = predict(table[rest])
            for split in tests:
                found[f"{number}/{split}"] = predict(read(split))
        return found

    def _fit(self, table: Array, labels: Array, classes: int, seed: int) -> Callable[[Array], Array]:
        """Train on (n, d) features and give a function from features to (m, C) probabilities."""
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.neural_network import MLPClassifier
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        if len(np.unique(labels)) == 1:  # nothing to tell apart
            return lambda other: np.eye(classes)[np.full(len(other), labels[0])]
        network = MLPClassifier((self.hidden,), max_iter=self.epochs, random_state=seed)
        model = make_pipeline(StandardScaler(), network)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the number of passes is a hyperparameter here
            model.fit(np.asarray(table, np.float64), labels)

        def predict(other: Array) -> Array:
            found = np.zeros((len(other), classes))
            found[:, model.classes_] = model.predict_proba(np.asarray(other, np.float64))
            return found

        return predict

    def present(self, study: Study) -> Findings:
        rows = []
        for (dataset, method), cells in study.groups().items():
            for number, source in enumerate(cells[0].values["sources"]):
                for split in ("rest", *cells[0].test_splits):
                    known = _scores(cells, number, split)
                    rows.append((dataset, method, source, _name(split), *percent(known), len(known)))
        return Findings(
            ("dataset", "method", "representation", "scored on", "score, %", "s.d. over seeds, %", "seeds"),
            tuple(rows),
            (
                "Scores are the task's metric of a perceptron trained on half of the validation graphs. Whiskers: "
                "standard deviation over seeds.",
            ),
        )

    def figure(self, study: Study) -> Any:
        named = {
            (method, source): f"{method}:\n{source}"
            for (_, method), cells in study.groups().items()
            for source in cells[0].values["sources"]
        }
        splits = list(dict.fromkeys(split for cell in study.cells for split in ("rest", *cell.test_splits)))
        titles = {dataset: dataset for dataset in study.datasets}
        height = 0.3 + 2.5 * LINE * len(named)
        figure, axes = panels(titles, height=height, x=f"{study.metric}, %", sharex=True, sharey=True)
        places, width = list(named), 0.8 / len(splits)
        for (dataset, method), cells in study.groups().items():
            for number, source in enumerate(cells[0].values["sources"]):
                for place, split in enumerate(("rest", *cells[0].test_splits)):
                    mean, spread = percent(_scores(cells, number, split))
                    if mean is None:
                        continue
                    at = places.index((method, source)) + (place - (len(splits) - 1) / 2) * width
                    told, color = _name(split), f"C{splits.index(split)}"
                    axes[dataset].barh(at, mean, width, xerr=spread, capsize=2, color=color, label=told)
        for axis in axes.values():
            axis.set_yticks(range(len(named)), map(plain, named.values()))
            axis.grid(visible=False, axis="y")
            axis.set_xlim(0, 100)
        next(iter(axes.values())).invert_yaxis()
        legend_above(figure)
        return figure


def _sources(cell: Any) -> dict[str, Any]:
    """Name of each representation -> a function from a split to its (n, d) table."""
    found = {NETWORK: cell.embeddings}
    encoders = cell.encoders
    if encoders:
        found[ENCODER] = lambda split: np.concatenate([encoder.embeddings(split) for encoder in encoders], 1)
    return found


def _name(split: str) -> str:
    return "validation, other half" if split == "rest" else split_name(split)


def _scores(cells: Sequence[MeasuredCell], number: int, split: str) -> list[float]:
    return [value for cell in cells if (value := _score(cell, number, split)) is not None]


def _score(cell: MeasuredCell, number: int, split: str) -> float | None:
    probabilities = cell.arrays[f"{number}/{split}"]
    if split != "rest":
        return cell.score(split, probabilities)
    return cell.score(cell.validation_split, probabilities, cell.arrays["rest"])


@hookimpl
def bench_register(register: Register) -> None:
    register(Representation)
