"""Each planted bug is found by the checks that are there for it, and by no other."""

import planted_analyses as analyses
import planted_learners as learners
import planted_others as others
import planted_statistics as statistics
import planted_trackers as trackers
import pytest

from harness.testing import check_component
from harness.testing.checks import run_check
from harness.testing.learner_rig import LearnerRig
from harness.testing.learners import statistics_follow_prediction

LEARNERS = [
    (learners.Sound, ""),
    (learners.Masked, ""),
    (learners.DetachedPenalty, "live_terms weights_matter"),
    (learners.RebuiltPenalty, "live_terms weights_matter another_device"),
    (learners.FixedWeight, "weights_matter"),
    (learners.NotERM, "equals_erm"),
    (learners.NotFinite, "odd_data"),
    (learners.LostMask, "every_module_learns"),
    (learners.HardMask, "every_module_learns"),
    (learners.DeadMode, "every_module_learns"),
    (learners.HiddenVectors, "every_module_learns"),
    (statistics.MixedStatistics, "statistics_follow_prediction"),
    (learners.Reseeds, "global_state"),
    (learners.ReseedsAtStart, "global_state"),
    (learners.ReseedsInBuild, "global_state other_seed"),
    (learners.DrawsGlobally, "global_state another_device"),
    (learners.FixedSeed, "other_seed"),
    (learners.Companions, "companions"),
    (learners.ReadsLabels, "reads_no_labels"),
    (learners.ReadsVotes, "reads_no_labels hyperparameters_matter"),
    (learners.NeedsEnvironments, "trains"),
    (learners.DeadHyperparameter, "hyperparameters_matter"),
    (learners.NotFiniteChoice, "hyperparameters_matter"),
    (learners.NotInState, "state_round_trip"),
    (
        learners.RandomPrediction,
        "companions global_state reads_no_labels same_seed state_round_trip",
    ),
    (learners.NeedsEdges, "odd_data"),
    (learners.NeedsTwoClasses, "odd_data"),
    (learners.OnTheCPU, "another_device"),
    (learners.OnTheCPUInOneMode, "another_device"),
]
OTHERS = [
    (others.SoundEncoder, ""),
    (others.CompanionEncoder, "companions"),
    (others.ShuffledEncoder, "companions"),
    (others.LateEncoder, "works"),
    (others.ListEncoder, "works"),
    (others.ReseedingEncoder, "global_state"),
    (others.StillEncoder, "hyperparameters_matter"),
    (others.SoundQuantifier, ""),
    (others.UnnormalisedQuantifier, "works"),
    (others.FrequencyOrder, "columns_in_class_order"),
    (others.GlobalQuantifier, "global_state same_seed"),
    (others.SoundEnvironment, ""),
    (others.FloatIds, "works"),
    (others.GapInIds, "works"),
    (others.ForgetsToProvide, "provides_what_it_says"),
    (others.GlobalIds, "global_state"),
    (others.DeadGroups, "hyperparameters_matter"),
    (others.SoundDataset, ""),
    (others.LabelInFeatures, "sealed"),
    (others.TruthInFeatures, "sealed"),
    (others.SharedGraphs, "splits_disjoint"),
    (others.SameFeatures, ""),
    (others.RepeatedSplit, "splits_disjoint"),
    (others.GlobalDataset, "global_state"),
    (others.UnstableDataset, "same_seed"),
    (others.OtherDeclaration, "works"),
    (others.SoundBackbone, ""),
    (others.IgnoresWeights, "edge_weights"),
    (others.OneLayerHeeds, "edge_weights"),
    (others.MixesBatch, "companions"),
    (others.CountsNodes, "node_order"),
    (others.ReadsBatchX, "node_rows"),
    (others.DeadDropout, "hyperparameters_matter"),
]
ANALYSES = [
    (analyses.SoundAnalysis, ""),
    (analyses.DrawsGlobally, "global_state"),
    (analyses.DrawsWhilePresenting, "global_state"),
    (analyses.ReseedsItself, "same_seed"),
    (analyses.SilentNaN, "gives_a_table odd_runs hyperparameters_matter"),
    (analyses.SpreadOfOne, "gives_a_table"),
    (analyses.NeedsBothSeeds, "gives_a_table"),
    (analyses.NeedsTwoClasses, "odd_runs"),
    (analyses.NeedsEnvironments, "odd_runs"),
    (analyses.NeedsEncoder, "gives_a_table"),
    (analyses.PeeksWhileMeasuring, "gives_a_table"),
    (analyses.DeadHyperparameter, "hyperparameters_matter"),
    (analyses.EmptyTable, "gives_a_table odd_runs hyperparameters_matter"),
]
TRACKERS = [
    (trackers.SoundTracker, ""),
    (trackers.NeedsScores, "follows_a_run"),
    (trackers.NeedsFiniteNumbers, "follows_a_run"),
    (trackers.OpensLate, "follows_a_run"),
    (trackers.AddsToConfiguration, "leaves_inputs"),
    (trackers.DrawsName, "global_state"),
]
PLANTED = LEARNERS + OTHERS + ANALYSES + TRACKERS


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(("component", "expected"), PLANTED, ids=lambda value: getattr(value, "__name__", ""))
def test_planted(component, expected):
    report = check_component(component)
    assert {outcome.check for outcome in report.with_status("failed")} == set(expected.split()), report.text()


@pytest.mark.parametrize(
    ("learner", "told"),
    [
        (
            statistics.MixedStatistics,
            ["the running statistics of 'backbone.convs.0.mlp.1' and of 1 more follow another"],
        ),
        (statistics.MixedStatisticsInOneMode, ["with statistics=mixed: the running statistics of 'backbone.convs.0."]),
        (statistics.DeclaredStatistics, []),
        (statistics.MixedStatisticsOfItsOwn, ["the running statistics of 'head.0' follow another"]),
        (statistics.MovedByAHook, ["the running statistics of 'backbone.convs.0.mlp.1' and of 1 more follow another"]),
    ],
)
def test_running_statistics_follow_the_prediction_or_the_learner_says_why_not(learner, told):
    found = run_check(statistics_follow_prediction, LearnerRig(learner)).problems
    assert len(found) == len(told)
    assert all(text.startswith(start) for text, start in zip(found, told, strict=True)), found


class LossOfEachGraph(learners.Sound):
    """Forgets the mean."""

    name = "loss-of-each-graph"

    def loss(self, batch):
        return {"erm": self.risk(self(batch), batch)}


class LossWithoutName(learners.Sound):
    """Returns the number alone."""

    name = "loss-without-name"

    def loss(self, batch):
        return self.risk(self(batch), batch).mean()


@pytest.mark.parametrize(
    ("learner", "told"),
    [
        (
            LossOfEachGraph,
            "baseline 'loss-of-each-graph', loss, 'erm': expected a tensor of one number, found Tensor of",
        ),
        (LossWithoutName, "LossWithoutName.loss returned Tensor; it must return the loss terms by name"),
    ],
)
def test_loss_terms_of_a_wrong_kind_are_told_as_in_a_run(learner, told):
    (outcome,) = check_component(learner).with_status("failed")
    assert told in " ".join(str(outcome).split())


def test_a_component_that_ends_the_process_fails_its_checks_alone():
    report = check_component(learners.Exits)
    assert not report.passed
    assert "SystemExit: 7" in report.text()


def test_a_changed_process_is_told() -> None:
    report = check_component(learners.LowersPrecision)
    told = {problem for outcome in report.outcomes for problem in outcome.problems}
    assert told == {"changes torch's precision of matrix products and leaves it so"}
