"""Calibrated linear support vector machine: EQuAD's quantifier (Yao et al., ICML 2024, section 4.2)."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from harness import Fitted, Quantifier, Register, hookimpl, hparam
from plugins.quantifiers._folds import Array, all_columns, check, folds


class SVM(Quantifier):
    """A linear SVM (squared hinge, one against the rest) with sigmoid calibration on stratified folds.

    Each of five folds gives an SVM fitted on four fifths and a sigmoid per class fitted on the rest (Platt scaling);
    probabilities are the average over the five pairs. On training rows they are therefore partly in-sample, as in
    the paper.

    Fewer folds are used where a class has fewer than five rows, and no calibration where one has a single row; the
    result says so. Features are standardised, and the primal problem is solved, which is deterministic.
    """

    name = "svm"
    C: list[float] = hparam([10.0, 1000.0], low=1e-8, help="penalty of violations; each value is a candidate")
    standardize: bool = hparam(True, help="scale features by the training rows' mean and standard deviation")
    max_iter: int = hparam(10000, low=1, help="limit of the solver's iterations; 1000 in the public code")

    def settings(self) -> list[dict[str, Any]]:
        return [{"C": value} for value in self.C]

    def fit(self, embeddings: Array, labels: Array, num_classes: int, **setting: Any) -> Fitted:
        x, y, C = *check(embeddings, labels, num_classes), setting.get("C", 10.0)
        flags: list[str] = []
        predict = self._fit(x, y, num_classes, C, flags)
        return Fitted(predict=predict, flags=list(dict.fromkeys(flags)))

    def _fit(self, x: Array, y: Array, num_classes: int, C: float, flags: list[str]) -> Callable[[Array], Array]:
        scaler = StandardScaler(with_mean=self.standardize, with_std=self.standardize).fit(x)
        svm = LinearSVC(C=C, dual=False, max_iter=self.max_iter, random_state=self.seed % 2**32)
        splits = folds(y, flags)
        model = CalibratedClassifierCV(svm, method="sigmoid", cv=splits, ensemble=True) if splits else svm
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # becomes a flag below
            model.fit(scaler.transform(x), y)
        solvers = [pair.estimator for pair in model.calibrated_classifiers_] if splits else [model]
        if max(np.max(solver.n_iter_) for solver in solvers) >= self.max_iter:
            flags.append(f"the solver did not converge in {self.max_iter} iterations")
        probabilities = model.predict_proba if splits else lambda rows: _squash(model.decision_function(rows))
        return lambda rows: all_columns(
            probabilities(scaler.transform(np.asarray(rows, np.float64))), model.classes_, num_classes
        )


def _squash(decision: Array) -> Array:
    """Probabilities from uncalibrated decision values: a sigmoid for two classes, a softmax for more."""
    if decision.ndim == 1:
        decision = np.stack([np.zeros_like(decision), decision], axis=1)
    exponential = np.exp(decision - decision.max(1, keepdims=True))
    return exponential / exponential.sum(1, keepdims=True)


@hookimpl
def bench_register(register: Register) -> None:
    register(SVM)
