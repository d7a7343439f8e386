"""What both quantifiers owe: a table of probabilities for any labels, sound calibration, the same bits every time."""

import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from harness import BenchError
from plugins.quantifiers.mlp import MLP
from plugins.quantifiers.svm import SVM

BOTH = pytest.mark.parametrize("make", [SVM, lambda **v: MLP(**{"batch_size": 16, **v})], ids=["svm", "mlp"])


def blobs(counts, *, spread=1.0, d=6, scale=1.0, seed=0):
    """Rows around one centre per class, shuffled; ``counts`` rows of each class."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(np.arange(len(counts)), counts))
    centres = rng.normal(size=(len(counts), d)) * 4
    return (centres[y] + spread * rng.normal(size=(len(y), d))) * scale, y


@BOTH
@pytest.mark.parametrize("counts", [(60, 40), (40, 50, 60)])
def test_probabilities_are_a_table_and_separable_classes_are_found(make, counts):
    x, y = blobs(counts)
    fitted = make().fit(x, y, len(counts))
    for rows in (x, x[:1]):
        p = fitted.predict(rows)
        assert p.shape == (len(rows), len(counts))
        assert p.dtype == np.float64
        np.testing.assert_allclose(p.sum(1), 1.0, atol=1e-6)
        assert (p >= 0).all()
    assert (fitted.predict(x).argmax(1) == y).all()
    assert fitted.flags == []
    assert fitted.training is None


@BOTH
def test_noise_gives_probabilities_near_the_priors(make):
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat([0, 1, 2], [150, 300, 450]))
    values = {} if make is SVM else {"batch_size": 256}
    p = make(**values).fit(rng.normal(size=(900, 4)), y, 3).predict(rng.normal(size=(500, 4)))
    np.testing.assert_allclose(p.mean(0), [1 / 6, 1 / 3, 1 / 2], atol=0.05)
    assert p.std(0).max() < 0.1


@BOTH
def test_probabilities_are_calibrated_on_new_rows(make):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(3000, 3))
    true = 1 / (1 + np.exp(-2 * x[:, 0]))
    y = (rng.random(3000) < true).astype(int)
    fitted = make(**({} if make is SVM else {"epochs": 10})).fit(x[:1500], y[:1500], 2)
    assert np.abs(fitted.predict(x[1500:])[:, 1] - true[1500:]).mean() < 0.05


@BOTH
def test_the_same_input_gives_the_same_bits_also_in_threads(make):
    x, y = blobs((50, 60, 40), spread=4.0)
    torch.manual_seed(1)
    np.random.seed(1)
    first = make().fit(x, y, 3).predict(x)
    torch.manual_seed(2)
    np.random.seed(2)
    with ThreadPoolExecutor(2) as threads:
        again = list(threads.map(lambda _: make().fit(x, y, 3).predict(x), range(2)))
    assert all(np.array_equal(first, other) for other in again)


def test_another_seed_gives_another_network():
    x, y = blobs((30, 30), spread=4.0)
    one, other = MLP(epochs=5), MLP(epochs=5)
    other.seed = 1
    assert not np.array_equal(one.fit(x, y, 2).predict(x), other.fit(x, y, 2).predict(x))


@BOTH
@pytest.mark.parametrize(
    ("counts", "flag"),
    [((60, 60, 3), "calibration folds reduced to 3"), ((60, 60, 1), "not calibrated: a class has a single")],
)
def test_a_rare_class_is_flagged_and_still_found(make, counts, flag):
    x, y = blobs(counts, spread=0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = make().fit(x, y, 3)
    assert [f for f in fitted.flags if flag in f]
    p = fitted.predict(x)
    np.testing.assert_allclose(p.sum(1), 1.0, atol=1e-6)
    if make is SVM:
        assert (p.argmax(1) == y).all()


@BOTH
@pytest.mark.parametrize("present", [(0, 2), (1, 2)])
def test_a_class_without_rows_gets_a_zero_column(make, present):
    x, y = blobs((30, 40))
    p = make().fit(x, np.array(present)[y], 3).predict(x)
    (absent,) = {0, 1, 2} - set(present)
    assert (p[:, absent] == 0).all()
    assert (p.argmax(1) == np.array(present)[y]).all()


@BOTH
def test_labels_with_a_trailing_axis_or_as_floats_are_read(make):
    x, y = blobs((30, 30))
    expected = make().fit(x, y, 2).predict(x)
    assert np.array_equal(make().fit(x, y[:, None], 2).predict(x), expected)
    assert np.array_equal(make().fit(x, y.astype(float), 2).predict(x), expected)


@BOTH
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x, y: (x, np.zeros_like(y)), "one class only"),
        (lambda x, y: (x, np.where(y == 1, np.iinfo(np.int64).min, 0)), "none may be missing"),
        (lambda x, y: (x, np.where(y == 1, np.nan, 0.0)), "none may be missing"),
        (lambda x, y: (x, y + 1), "must be 0 to 1"),
        (lambda x, y: (np.where(y[:, None] == 1, np.nan, x), y), "30 embeddings hold a value that is not finite"),
        (lambda x, y: (x, y[1:]), "60 embeddings but 59 labels"),
    ],
)
def test_unusable_input_is_refused_in_words(make, change, message):
    with pytest.raises(BenchError, match=message):
        make().fit(*change(*blobs((30, 30))), 2)


@BOTH
def test_constant_columns_and_large_scales_do_no_harm(make):
    x, y = blobs((40, 40), scale=1e6)
    x[:, 0] = 7.0
    p = make().fit(x, y, 2).predict(x)
    assert np.isfinite(p).all()
    assert (p.argmax(1) == y).all()


def test_svm_has_a_candidate_for_each_c():
    assert SVM().settings() == [{"C": 10.0}, {"C": 1000.0}]
    assert SVM(C=[1]).settings() == [{"C": 1.0}]


def test_svm_is_the_calibrated_linear_svm_of_scikit_learn():
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.svm import LinearSVC

    x, y = blobs((50, 60, 70), spread=5.0)
    z = (x - x.mean(0)) / x.std(0)
    reference = CalibratedClassifierCV(LinearSVC(C=10.0, dual=False, max_iter=10000), cv=5).fit(z, y)
    np.testing.assert_allclose(SVM().fit(x, y, 3, C=10.0).predict(x), reference.predict_proba(z), atol=1e-9)
    raw = CalibratedClassifierCV(LinearSVC(C=10.0, dual=False, max_iter=10000), cv=5).fit(x, y)
    np.testing.assert_allclose(SVM(standardize=False).fit(x, y, 3, C=10.0).predict(x), raw.predict_proba(x), atol=1e-9)


def test_svm_says_when_the_solver_did_not_converge():
    x, y = blobs((50, 60, 70), spread=5.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = SVM(max_iter=1).fit(x, y, 3, C=1000.0)
    assert fitted.flags == ["the solver did not converge in 1 iterations"]
