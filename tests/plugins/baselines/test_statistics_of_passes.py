"""Whose statistics BatchNorm keeps changes no training; that they are the prediction's, the conformance kit checks."""

import pytest
from learner_kit import graphs, make, same, train

from plugins.baselines.ciga import CIGA
from plugins.baselines.dir import DIR
from plugins.baselines.disc_gala import DisCGALA
from plugins.baselines.grea import GREA

PACKED = graphs(12, nodes=(4, 8))


@pytest.mark.parametrize(
    ("method", "where", "values"),
    [
        (CIGA, "backbone.norm", {"variant": "v2"}),
        (DIR, "backbone.norm", {"alpha": 1.0}),
        (DisCGALA, "backbone.norm", {}),
        (GREA, "head", {"predictor": "batchnorm"}),
    ],
)
def test_statistics_of_both_passes_leave_the_weights_as_they_are(method, where, values):
    learner = make(method, **values)
    weights = tuple(name for name, _ in learner.named_parameters())
    kept, mixed = train(learner, PACKED), train(make(method, statistics="both", **values), PACKED)
    assert same(kept, mixed, only=weights)
    assert not same(kept, mixed, only=where)
