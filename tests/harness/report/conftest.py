"""Small runs for every report test."""

import pytest
from results_kit import build_run

from harness.results.rows import DatasetFacts
from harness.suite.spec import SelectSettings


@pytest.fixture
def make_run():
    return build_run


@pytest.fixture
def paper_run():
    """ERM, tuned IRM and a failing method on two datasets, three seeds."""
    return build_run(
        {
            "ERM": {"SPMotif_0.60": [0.5, 0.52, 0.54], "Two-piece (0.7, 0.9)": [0.4271, 0.43, 0.42]},
            "EQuAD": {
                "SPMotif_0.60": {"gamma=0.1": [0.7, 0.71, 0.72], "gamma=0.5": [0.6, 0.61, 0.62]},
                "Two-piece (0.7, 0.9)": {"gamma=0.1": [0.7, 0.71, 0.75], "gamma=0.5": [0.8, 0.81, "failed: boom"]},
            },
            "IRM": {
                "SPMotif_0.60": [0.51, "failed: RuntimeError: sizes 3 & 4 differ, 50% of the #batch_x", "timeout"],
                "Two-piece (0.7, 0.9)": ["diverged: loss is NaN"] * 3,
            },
        },
        facts={
            "EQuAD": {"shaped_by_validation": ("gamma=0.1", "gamma=0.5")},
            "IRM": {"environments": "random(2)", "select": SelectSettings()},
        },
        datasets=(
            DatasetFacts("SPMotif_0.60", validation="unbiased", variant="published", seed=0, split_seed=0),
            DatasetFacts(
                "Two-piece (0.7, 0.9)", validation="biased", variant="one-direction edges", seed=0, split_seed=0
            ),
        ),
        overrides=("--epochs 3",),
        reference="ERM",
    )
